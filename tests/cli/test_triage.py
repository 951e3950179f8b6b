"""`cleats triage` as used by people and by scripts."""

import json
import subprocess
from pathlib import Path

import pytest

from cleats.toolsets.code.records.model import SOURCE_NAMES
from tests.support.postgres import create_database
from tests.support.shell import Shell
from tests.support.triage import LOADER_SOURCE, REPORTS_FOLDER


@pytest.fixture
def project(shell: Shell) -> Path:
    """Return the repository that the command runs in."""
    subprocess.run(["git", "init", "-q"], cwd=shell.folder, env=shell.environ, check=True)
    (shell.folder / ".gitignore").write_text("/.cache/\n/.local/\n")
    (shell.folder / "loader.py").write_text(LOADER_SOURCE)
    (shell.folder / "alerts.json").write_bytes((REPORTS_FOLDER / "dependabot.json").read_bytes())
    return shell.folder


def test_findings_are_taken_in_and_listed_the_worst_first(shell: Shell, project: Path) -> None:
    result = shell.run("triage", "ingest", "dependabot", "alerts.json", "--meta", "service=shop")
    repeated = shell.run("triage", "ingest", "dependabot", str(project / "alerts.json"), "--json")
    listing = shell.run("triage", "list")
    worst = json.loads(shell.run("triage", "list", "--severity", "high", "--json").stdout)

    assert (result.returncode, result.stdout) == (0, "2 findings: 2 created.\n")
    assert json.loads(repeated.stdout)["unchanged"] == 0, "the service is gone, so both have changed"
    head, first, second = listing.stdout.splitlines()
    assert head.split() == ["ID", "SEVERITY", "NAME", "WHERE", "STATUS", "TITLE"]
    assert "critical" in first
    assert "GHSA-aaaa-bbbb-cccc" in second
    assert [(finding["cve"], finding["decision"]) for finding in worst] == [("CVE-2020-14343", None)]


def test_a_finding_in_code_is_listed_with_its_line(shell: Shell, project: Path) -> None:
    region = {"artifactLocation": {"uri": "loader.py"}, "region": {"startLine": 6}}
    result = {
        "ruleId": "B506",
        "message": {"text": "Unsafe load"},
        "locations": [{"physicalLocation": region}],
    }
    report = {
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "x"}}, "results": [result]}],
    }
    (project / "x.sarif").write_text(json.dumps(report))
    shell.run("triage", "ingest", "sarif", "x.sarif")

    listing = shell.run("triage", "list")
    [finding] = json.loads(shell.run("triage", "list", "--json").stdout)

    assert "  loader.py:6  " in listing.stdout
    assert (finding["title"], finding["location"]) == ("Unsafe load", "loader.py:6")


def test_a_finding_is_indexed_packed_and_decided_on_by_the_beginning_of_its_id(shell: Shell, project: Path) -> None:
    shell.run("triage", "ingest", "dependabot", "alerts.json", "--index")
    [worst] = json.loads(shell.run("triage", "list", "--severity", "high", "--json").stdout)
    start = worst["recordId"][:8]

    search_result = shell.run("search", "validation", "--mode", "records", "--compact")
    decided = shell.run("triage", "decide", start, "accept", "--expires", "2099-01-31")
    packed = shell.run("triage", "pack", start, "--out", "pack.json")
    undecided = shell.run("triage", "list", "--undecided")

    assert f".cleats/records/{worst['recordId']}.md" in search_result.stdout
    assert decided.stdout.startswith("accept until 2099-01-31: recorded as ")
    assert "  decided   accept (same finding)" in packed.stdout
    assert 'import "yaml" in code\n  loader.py:6  load\n' in packed.stdout
    assert json.loads((project / "pack.json").read_bytes())["recordId"] == worst["recordId"]
    assert start not in undecided.stdout
    assert "GHSA-aaaa-bbbb-cccc" in undecided.stdout


def test_what_is_wrong_is_said_on_stderr(shell: Shell, project: Path) -> None:
    missing = shell.run("triage", "ingest", "sarif", "nothing.sarif")
    broken = shell.run("triage", "ingest", "sarif", "loader.py")
    meta = shell.run("triage", "ingest", "sarif", "alerts.json", "--meta", "service")
    unknown = shell.run("triage", "decide", "0000", "fix")
    empty = shell.run("triage", "list")

    assert (missing.returncode, broken.returncode, unknown.returncode) == (1, 2, 1)
    assert missing.stderr.startswith("Error: FILE: the file ")
    assert "is not JSON" in broken.stderr
    assert meta.returncode == 2
    assert "KEY=TEXT" in meta.stderr
    assert unknown.stderr == (
        "Error: FINDING: no record has the id '0000'\n`cleats triage list` shows the ids of findings.\n"
    )
    assert empty.stdout == "No findings. Run `cleats triage ingest` to import some.\n"


def test_a_report_of_another_format_leaves_with_two_and_a_clean_one_says_so(shell: Shell, project: Path) -> None:
    (project / "bandit.json").write_text('{"errors": [], "metrics": {}, "results": [{}]}')
    (project / "clean.sarif").write_text('{"version": "2.1.0", "runs": []}')

    other = shell.run("triage", "ingest", "sarif", "bandit.json")
    clean = shell.run("triage", "ingest", "sarif", "clean.sarif")

    assert (other.returncode, other.stdout) == (2, "")
    assert "This looks like bandit's JSON: run `bandit -f sarif`." in other.stderr
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "0 findings.\n", "")


def test_the_help_names_every_source_in_one_piece(shell: Shell) -> None:
    words = shell.run("triage", "ingest", "--help").stdout.replace(",", " ").replace(".", " ")

    assert set(SOURCE_NAMES) <= set(words.split())


def test_an_index_counts_records_apart_from_files(shell: Shell, project: Path) -> None:
    shell.run("triage", "ingest", "dependabot", "alerts.json")

    built = shell.run("index")
    repeated = shell.run("index")
    status = shell.run("index", "status")

    assert "3 files and 2 records (5 new), " in built.stdout
    assert "  files    1 ignore, 1 json, 1 python\n  records  2 of `cleats triage`\n" in built.stdout
    assert "up to date: 3 files and 2 records, " in repeated.stdout
    assert "1 ignore, 1 json, 1 python\n" in status.stdout


def test_records_of_before_are_put_into_the_database(shell: Shell, project: Path) -> None:
    shell.run("triage", "ingest", "dependabot", "alerts.json")
    [worst] = json.loads(shell.run("triage", "list", "--severity", "high", "--json").stdout)
    shell.run("triage", "decide", worst["recordId"], "accept")
    url = create_database()

    nowhere = shell.run("triage", "share")
    before = shell.run("triage", "list", CLEATS_DATABASE_URL=url)
    shared = shell.run("triage", "share", CLEATS_DATABASE_URL=url)
    elsewhere = {"CLEATS_DATABASE_URL": url, "CLEATS_CACHE_DIR": str(project / ".cache/other")}
    after = json.loads(shell.run("triage", "list", "--json", **elsewhere).stdout)

    assert nowhere.returncode == 2
    assert "CLEATS_DATABASE_URL" in nowhere.stderr
    assert before.stdout.startswith("No findings.")
    assert (shared.returncode, shared.stdout) == (0, "3 records put there.\n")
    assert [finding["decision"] for finding in after] == ["accept", None]
