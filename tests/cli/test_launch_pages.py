"""Tests of the commands that look at the pages of a run, on a real launch of the sample."""

import json
import signal
import socket
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.support.launch_sites import commit_folder, copy_sample
from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell
from tests.support.waiting import wait_until

PAGE = "content/docs/measurekit/installation.md"


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str]:
    """Launch the sample; return the shell and the id of the run."""
    home = tmp_path_factory.mktemp("home")
    for name in ("source", "site"):
        copy_sample(home / name, name)
    config = {
        "profile": "plain",
        "family": "measurekit",
        "target_platform": "python",
        "required_sections": ["docs", "reference"],
        "allow_manual_edits": True,
        "github_repo_url": str(home / "source"),
        "github_ref": commit_folder(home / "source"),
        "site_repo_url": f"file://{home / 'site'}",
    }
    commit_folder(home / "site")
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    shell = Shell(home)
    process = shell.run("launch", "start", "run.yaml")
    assert process.returncode == 0, process.stderr
    return shell, process.stdout.split()[0]


def find_site(shell: Shell, run_id: str) -> Path:
    return shell.folder / f".local/share/cleats/launch/runs/{run_id}/work/site"


def test_last_names_the_last_run_and_is_the_default_of_status(launched: tuple[Shell, str]) -> None:
    shell, run_id = launched

    assert shell.run("launch", "last").stdout == f"{run_id}\n"
    assert json.loads(shell.run("launch", "status", "--json").stdout)["status"]["run_id"] == run_id


def test_without_any_run_the_default_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    process = Shell(tmp_path).run("launch", "diff")

    assert process.returncode == 2
    assert "No run has been started yet." in process.stderr
    assert "cleats launch start" in process.stderr


def test_diff_shows_the_change_with_edits_as_a_patch(launched: tuple[Shell, str]) -> None:
    shell, run_id = launched
    page = find_site(shell, run_id) / PAGE
    text = page.read_text()
    page.write_text(text + "\nEdited by hand.\n")

    patch = shell.run("launch", "diff").stdout

    page.write_text(text)
    assert f"diff --git a/{PAGE} b/{PAGE}\nnew file mode 100644\n" in patch
    assert "+Edited by hand.\n" in patch
    assert json.loads(shell.run("launch", "diff", run_id, "--json").stdout)["run_id"] == run_id


def test_explain_shows_the_claim_of_a_line_and_the_lines_that_prove_it(launched: tuple[Shell, str]) -> None:
    shell, run_id = launched
    lines = (find_site(shell, run_id) / PAGE).read_text().split("\n")
    number = next(number for number, line in enumerate(lines, start=1) if "Python 3.10" in line)

    answer = json.loads(shell.run("launch", "explain", f"installation.md:{number}", "--json").stdout)
    shown = shell.run("launch", "explain", f"{PAGE}:{number}", "--run", run_id).stdout

    [claim] = answer["claims"]
    sources = {source["path"]: source for source in claim["sources"]}
    source = sources["pyproject.toml"]
    cited = (shell.folder / "source/pyproject.toml").read_text().split("\n")[source["start_line"] - 1]
    assert source["text"][0] == cited
    assert "requires-python" in cited
    assert f"pyproject.toml:{source['start_line']}" in shown
    assert cited in shown


def test_explain_says_where_code_comes_from(launched: tuple[Shell, str]) -> None:
    shell, run_id = launched
    lines = (find_site(shell, run_id) / PAGE).with_name("getting-started.md").read_text().split("\n")
    number = next(number for number, line in enumerate(lines, start=1) if line == "from measurekit import Quantity")

    answer = json.loads(shell.run("launch", "explain", f"getting-started.md:{number}", "--json").stdout)

    assert answer["kind"] == "code"
    assert answer["sources"][0]["path"] == "README.md"


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nowhere.md:1", "No page of the run is named 'nowhere.md'."),
        ("installation.md:9999", "line 9999 does not exist"),
        ("_index.md:1", "2 pages are named '_index.md'."),
        ("installation.md", "is not a page and a line"),
    ],
)
def test_a_place_that_does_not_exist_is_a_usage_error(launched: tuple[Shell, str], place: str, problem: str) -> None:
    process = launched[0].run("launch", "explain", place)

    assert process.returncode == 2
    assert problem in process.stderr


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_preview_serves_the_pages_of_the_run_until_it_is_interrupted(launched: tuple[Shell, str]) -> None:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}/docs/measurekit/installation/"

    def fetch_page() -> str:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return str(response.read().decode())
        except OSError:
            return ""

    with launched[0].start_process("launch", "preview", "--port", str(port), module="cleats") as process:
        try:
            wait_until(fetch_page)
            page = fetch_page()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=EXIT_TIMEOUT_SECONDS)

    assert "pip install measurekit" in page
    with pytest.raises(OSError, match=r"refused|reset"), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
