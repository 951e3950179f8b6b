"""Tests of what a server imports before anybody opens a page."""

import subprocess
import sys

PROBE = """
import sys
import {module}
print([name for name in ("jinja2", "pygments", "markdown_it", "cleats.contract.compat") if name in sys.modules])
"""


def test_the_console_imports_nothing_heavy_before_the_first_page() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROBE.format(module="cleats.console.entry")], capture_output=True, text=True, check=True
    ).stdout

    assert output == "[]\n"


def test_a_stdio_server_does_not_import_the_console() -> None:
    probe = (
        "import sys, cleats.app, cleats.cli.serve; print([n for n in sys.modules if n.startswith('cleats.console')])"
    )

    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "[]\n"
