"""Tests of opening a run in the console of a running server."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.support.paths import REPOSITORY_ROOT

PROGRAM = """
import sys
from cleats.cli.launch.console_link import open_in_console
open_in_console("r_1", int(sys.argv[1]))
"""


def open_run(home: Path, port: int) -> tuple[str, str]:
    """Open a run with a browser that writes down the address; return the address and stderr."""
    browser, address = home / "browser.sh", home / "address.txt"
    browser.write_text(f'#!/bin/sh\necho "$1" > {address}\n')
    browser.chmod(0o755)
    environ = {**os.environ, "BROWSER": str(browser), "PYTHONPATH": str(REPOSITORY_ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(port)], env=environ, capture_output=True, text=True, check=True
    )
    return (address.read_text().strip() if address.exists() else ""), done.stderr


def test_the_page_of_the_run_opens_in_the_browser(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        address, stderr = open_run(tmp_path, port)

    assert (address, stderr) == (f"http://127.0.0.1:{port}/console/runs/r_1", "")


def test_without_a_server_the_person_learns_how_to_start_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    address, stderr = open_run(tmp_path, port)

    assert address == ""
    assert "Start `cleats http`" in stderr
    assert f"http://127.0.0.1:{port}/console/runs/r_1" in stderr
