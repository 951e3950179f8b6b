"""Tests of `cleats doctor`: it reports what is wrong, also where little works."""

import json
import re
import shutil
from importlib import metadata
from types import SimpleNamespace

import pytest

from cleats.cli import doctor
from tests.support.shell import Shell


def test_a_healthy_machine_exits_0_and_says_so(shell: Shell) -> None:
    done = shell.run("doctor")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Ready.\n")
    for title in ("Versions", "Libraries", "Settings", "Configuration", "Folders", "Capabilities"):
        assert f"\n{title}\n" in f"\n{done.stdout}"


def test_the_doctor_knows_where_each_setting_came_from(shell: Shell) -> None:
    (shell.folder / ".cleats.toml").write_text("queue = 3")
    url = "https://user:secret@example.org/v1"

    done = shell.run(
        "doctor",
        "--json",
        CLEATS_CONCURRENCY="2",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url,
        CLEATS_CONCURENCY="1",
    )

    findings = json.loads(done.stdout)
    values = {setting["name"]: (setting["value"], setting["source"]) for setting in findings["settings"]}
    assert done.returncode == 0
    assert values["concurrency"] == (2, "environment")
    assert values["queue"] == (3, str(shell.folder / ".cleats.toml"))
    assert values["drain"] == (2.0, "default")
    assert values["otlp_endpoint"] == ("https://***@example.org/v1", "environment")
    assert "Did you mean CLEATS_CONCURRENCY?" in findings["notes"][0]


def test_the_doctor_shows_what_is_set_and_the_rest_when_asked(shell: Shell) -> None:
    short = shell.run("doctor", CLEATS_QUEUE="3").stdout
    full_report = shell.run("doctor", "--all").stdout

    assert re.search(r"^  queue +3 +environment$", short, re.MULTILINE)
    assert re.search(r"^  \d+ others +default +\(--all shows them\)$", short, re.MULTILINE)
    assert re.search(r"^  \d+ installed +\(--all shows them\)$", short, re.MULTILINE)
    assert ("log_level" in short, "tantivy" in short, "tantivy" in full_report) == (False, False, True)
    assert re.search(r"^  log_level +info +default$", full_report, re.MULTILINE)


def test_a_wrong_setting_is_the_doctors_to_explain(shell: Shell) -> None:
    done = shell.run("doctor", CLEATS_QUEUE="x")

    assert done.returncode == 1
    assert "Problem: CLEATS_QUEUE: expected a number, not 'x'" in done.stdout


def test_a_folder_that_cannot_be_written_is_a_problem_with_a_remedy(shell: Shell) -> None:
    (shell.folder / "file").write_text("")

    done = shell.run("doctor", CLEATS_CACHE_DIR=str(shell.folder / "file" / "cache"))

    assert done.returncode == 1
    assert "cannot be written to\nSet CLEATS_CACHE_DIR to a writable folder.\n" in done.stdout


def test_a_full_disk_is_a_problem(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=4096))

    findings = doctor.examine_machine(shell.environ, shell.folder)

    assert not findings["ok"]
    assert [problem["what"].partition(":")[0] for problem in findings["problems"]] == ["cache_dir", "data_dir"]
    assert findings["problems"][0]["remedy"].startswith("Free some space, or set CLEATS_CACHE_DIR")


def test_a_timeout_of_no_tool_is_noted(shell: Shell) -> None:
    done = shell.run("doctor", CLEATS_TIMEOUTS="search=9,serach=9,whatever=9")

    assert done.returncode == 0
    assert "timeouts: unknown tool 'serach'. Did you mean search?\ntimeouts: unknown tool 'whatever'.\n" in done.stdout


def test_schemas_that_are_not_served_are_noted_with_the_reason(shell: Shell) -> None:
    folder = shell.folder / "schemas"
    folder.mkdir()
    texts = {
        "tone.schema.json": '{"type": "object"}',
        "tone.json": '{"type": "object"}',
        "list.schema.json": "[1]",
        "yes.schema.json": "true",
        "torn.schema.json": '{"type":',
        "odd.schema.json": '{"type": 5}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)

    done = shell.run("doctor", "--json", SYN_SCHEMAS_DIR="schemas")

    notes = json.loads(done.stdout)["notes"]
    assert (done.returncode, done.stderr) == (0, "")
    assert set(notes[:-1]) == {
        "assets: schemas/tone.json is not served: name taken by schemas/tone.schema.json.",
        "assets: schemas/list.schema.json is not served: not an object.",
        "assets: schemas/yes.schema.json is not served: not an object.",
        "assets: schemas/torn.schema.json is not served: not json.",
    }
    assert notes[-1].startswith("assets: the schema 'odd' cannot be used: /type: ")


def test_a_missing_library_is_a_problem_and_comes_with_its_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata.version

    def find_version(name: str) -> str:
        if name == "mcp":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", find_version)

    findings = doctor.examine_machine(shell.environ, shell.folder)

    assert not findings["ok"]
    assert findings["problems"][0]["what"] == "mcp is not installed"
    assert findings["problems"][0]["remedy"].startswith("pip install 'mcp")


def test_the_doctor_works_where_a_library_is_broken(shell: Shell) -> None:
    (shell.folder / "jsonschema_rs.py").write_text("raise ImportError('broken')")

    done = shell.run("doctor", PYTHONPATH=str(shell.folder))

    assert done.returncode == 1
    assert "Problem: A library cannot be imported: broken" in done.stdout


def test_the_doctor_lists_what_is_missing_and_how_to_get_it(shell: Shell) -> None:
    findings = json.loads(shell.run("doctor", "--json", PATH="/nowhere").stdout)

    git = next(capability for capability in findings["capabilities"] if capability["group"] == "git")
    assert git["present"] is False
    assert git["remedy"].startswith("Install git")
