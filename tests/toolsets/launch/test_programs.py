"""Tests of programs that are run: real packages, real environments, the real fence."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cleats.system.processes.fenced_command import FenceLimits
from cleats.toolsets.launch.snippets import environments, programs
from tests.support.launch_client import REAL_SERVER_COMMAND, open_launch_client
from tests.support.launch_pipeline import SOURCE_STEPS, Pipeline
from tests.support.launch_sites import EXAMPLES_FOLDER, commit_folder
from tests.support.namespaces import skip_without_namespaces
from tests.support.process_trees import read_command_line
from tests.support.waiting import wait_until

BACKEND_CODE = """\
import os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "kettle-1.0-py3-none-any.whl"
    info = "kettle-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.write("kettle/__init__.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: kettle\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PYPROJECT_TEXT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "kettle"
version = "1.0"
description = "Boil water."
requires-python = ">=3.10"
"""
README_TEXT = """\
# Kettle

Kettle boils water in a few lines of Python.

## Quick start

```python
import kettle

print(kettle.boil(2))
```

## Details

The rest of a program looks like this, with a kettle that you have made before.

```python
import kettle

kettle.pour(my_kettle)
```
"""
PACKAGE_FILES = {
    "pyproject.toml": PYPROJECT_TEXT,
    "backend.py": BACKEND_CODE,
    "README.md": README_TEXT,
    "kettle/__init__.py": '"""Boil water."""\n\n\ndef boil(litres: int) -> str:\n'
    '    """Boil some water."""\n    return f"{litres} l"\n\n\ndef pour(litres: int) -> None:\n    """Pour water."""\n',
}


@pytest.fixture(autouse=True)
def require_fence() -> None:
    skip_without_namespaces()


def make_pipeline(tmp_path: Path, files: Mapping[str, str], **config: Any) -> Pipeline:
    source, site = tmp_path / "source", tmp_path / "site"
    for path, text in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    shutil.copytree(EXAMPLES_FOLDER / "site", site)
    commit_folder(site)
    values = {"profile": "plain", "family": "kettle", "required_sections": ["docs"], **config}
    return Pipeline(tmp_path, source, site, **values)


def run_source_steps(pipeline: Pipeline, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Run the steps up to the catalogue, with programs; return the entries of the catalogue by path."""
    allow_programs(pipeline, tmp_path)
    pipeline.run_steps(*SOURCE_STEPS)
    entries = pipeline.read_json("snippet_catalog.json")["snippets"]
    return {f"{entry['source']['path']}:{entry['source']['start_line']}": entry for entry in entries}


def allow_programs(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.settings["run_snippets"] = {"cache": str(tmp_path / "environments"), "pip_env": {}}
    pipeline.settings["offline"] = True


def test_programs_are_run_in_an_environment_with_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2hunter2")
    limits = FenceLimits(wall_seconds=8.0, memory_bytes=200 << 20, processes=30)
    monkeypatch.setattr(environments, "PROGRAM_LIMITS", limits)
    marker = tmp_path / "marker"
    bodies = {
        "environment": "import os\nprint(kettle.__file__, sorted(set(os.environ) & {'SERVICE_TOKEN'}))",
        "fails": "raise ValueError('no water')",
        "file": "print(open('tea.txt').read())",
        "forks": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        "hangs": "while True:\n    pass",
        "home": "import os\nopen(os.path.expanduser('~/left'), 'w').write(kettle.boil(1))",
        "memory": "cups = []\nwhile True:\n    cups.append(bytearray(b'x') * (8 << 20))",
        "needs": "import teapot_that_nobody_has\nteapot_that_nobody_has.pour()",
        "network": "import socket\nsocket.create_connection(('192.0.2.7', 80), 5)",
        "outside": f"try:\n    open({str(marker)!r}, 'w')\nexcept OSError as error:\n    print(type(error).__name__)",
        "question": "print(kettle.boil(int(input('Litres? '))))",
    }
    examples = {f"examples/{name}.py": f"import kettle\n\nkettle.boil(1)\n{body}\n" for name, body in bodies.items()}
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES | examples)

    entries = run_source_steps(pipeline, tmp_path)

    runs = {key.removeprefix("examples/").removesuffix(".py:1"): entry["run"] for key, entry in entries.items()}
    assert {key: (run["outcome"], run.get("reason", "")) for key, run in runs.items()} == {
        "README.md:7": ("passed", ""),
        "README.md:17": ("not_run", "It is a part of a program: it does not define `my_kettle`."),
        "environment": ("passed", ""),
        "fails": ("failed", "It ended with exit code 1: ValueError: no water"),
        "file": ("inconclusive", "It needs the file tea.txt."),
        "forks": ("failed", "It started more processes than it may."),
        "hangs": ("failed", "It did not end in time."),
        "home": ("passed", ""),
        "memory": ("failed", "It used more memory than it may."),
        "needs": ("not_run", "It needs the module teapot_that_nobody_has, which is not installed."),
        "network": ("inconclusive", "It needs the network, from which it was cut off."),
        "outside": ("passed", ""),
        "question": ("inconclusive", "It waits for input."),
    }
    verdicts = {entry["validation"]["runnable_ok"] for entry in entries.values()}
    assert verdicts == {True, False, "unknown"}
    log = pipeline.read_text(entries["examples/environment.py:1"]["validation"]["log_path"])
    installed_path = f"/env/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/kettle/__init__.py"
    assert log.endswith(f"\n--- stdout\n{installed_path} []\n")
    assert "FileNotFoundError" in pipeline.read_text(entries["examples/outside.py:1"]["validation"]["log_path"])
    assert not marker.exists()
    assert "log_path" not in entries["README.md:17"]["validation"]
    assert pipeline.facts["snippets"]["programs_passed"] == 4
    assert pipeline.read_json("snippet_catalog.json")["environment"].endswith("with the package installed")


def test_nothing_of_the_repository_runs_by_default(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    note = f"\nopen({str(marker)!r}, 'w')\n"
    files = PACKAGE_FILES | {"examples/first.py": f"import kettle\n{note}", "backend.py": BACKEND_CODE + note}
    pipeline = make_pipeline(tmp_path, files)

    pipeline.run_steps(*SOURCE_STEPS)

    catalogue = pipeline.read_json("snippet_catalog.json")
    assert not marker.exists()
    assert not any(name.startswith("logs/") for name in pipeline.inputs)
    assert all("run" not in entry for entry in catalogue["snippets"])
    assert {entry["validation"]["runnable_ok"] for entry in catalogue["snippets"]} == {"unknown"}
    assert (set(catalogue), set(pipeline.facts["snippets"])) == ({"schema_version", "snippets"}, {"snippets", "valid"})


def test_the_same_commit_gives_the_same_results_and_reuses_the_environment(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES)
    run_source_steps(pipeline, tmp_path)
    first = dict(pipeline.inputs)
    [environment] = (tmp_path / "environments").glob("*-*-*")
    identity = environment.stat().st_ino

    pipeline.run_steps("snippets")

    assert pipeline.inputs == first
    assert [folder.stat().st_ino for folder in (tmp_path / "environments").glob("*-*-*")] == [identity]


def test_a_page_shows_the_program_that_passed_and_says_where_it_ran(tmp_path: Path) -> None:
    readme = README_TEXT.replace("print(kettle.boil(2))", "print(kettle.boil(2).steam)")
    example = 'import kettle\n\nprint(kettle.boil(3), "of water")\n'
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES | {"README.md": readme, "examples/boil.py": example})
    allow_programs(pipeline, tmp_path)

    pipeline.run_all()
    pipeline.run_steps("validate")

    text = "\n".join(pipeline.read_pages().values())
    entries = {entry["source"]["path"]: entry for entry in pipeline.read_json("snippet_catalog.json")["snippets"][:2]}
    assert ".steam" not in text
    assert example.strip() in text
    assert "\nran examples/boil.py:1-3\n" in text
    assert entries["README.md"]["run"]["reason"].startswith("It ended with exit code 1: AttributeError: ")
    report = pipeline.read_json("validation_report.json")
    assert [issue for issue in report["issues"] if issue["gate"] in ("truth_lock", "snippet_syntax")] == []


def test_a_page_that_names_another_program_as_run_is_found_and_corrected(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES)
    allow_programs(pipeline, tmp_path)
    pipeline.run_all()
    [path] = [path for path, text in pipeline.read_pages().items() if "\nran README.md:7-11\n" in text][:1]
    page = pipeline.site / path
    page.write_text(page.read_text().replace("ran README.md:7-11", "ran README.md:17-21"))

    pipeline.run_steps("validate")

    issues = pipeline.read_json("validation_report.json")["issues"]
    assert ("GATE_TRUTH_LIST", path) in {(issue["error_code"], issue["location"]["path"]) for issue in issues}


def test_a_failed_program_without_a_better_one_is_a_warning_that_can_be_fixed(tmp_path: Path) -> None:
    readme = README_TEXT.replace("print(kettle.boil(2))", "print(kettle.boil_all())").partition("## Details")[0]
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES | {"README.md": readme})
    allow_programs(pipeline, tmp_path)

    pipeline.run_all()
    pipeline.run_steps("validate")

    issues = pipeline.read_json("validation_report.json")["issues"]
    [issue, *_] = [issue for issue in issues if issue["error_code"] == "GATE_SNIPPET_FAILED"]
    assert issue["severity"] == "warn"
    assert "AttributeError: module 'kettle' has no attribute 'boil_all'" in issue["message"]


def test_a_package_that_cannot_be_built_is_used_from_its_source(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, PACKAGE_FILES | {"backend.py": "raise RuntimeError('no tools')\n"})

    entries = run_source_steps(pipeline, tmp_path)

    assert entries["README.md:7"]["run"]["outcome"] == "passed"
    environment = pipeline.read_json("snippet_catalog.json")["environment"]
    assert "with the source of the package, because the package could not be built: " in environment
    assert "RuntimeError: no tools" in environment


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ("nothing-of-this-name", "Its requirements could not be fetched as wheels: No matching distribution found"),
        ("evil @ file:///tmp/evil", "It requires 'evil @ file:///tmp/evil', which is not a package of an index."),
        ("--index-url=https://example.com", "It requires '--index-url=https://example.com', which is not a package"),
    ],
)
def test_programs_are_not_run_if_the_package_cannot_be_had(tmp_path: Path, requirement: str, reason: str) -> None:
    files = PACKAGE_FILES | {
        "pyproject.toml": PYPROJECT_TEXT.replace("requires = []", f"requires = [{requirement!r}]"),
        "kettle/__init__.py": "import nothing_of_this_name\n" + PACKAGE_FILES["kettle/__init__.py"],
    }
    pipeline = make_pipeline(tmp_path, files)

    entries = run_source_steps(pipeline, tmp_path)

    run = entries["README.md:7"]["run"]
    assert (run["outcome"], run["reason"][: len(reason)]) == ("not_run", reason)
    assert str(tmp_path) not in json.dumps(entries)


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
def test_programs_for_node_are_run_if_the_package_has_nothing_to_install(tmp_path: Path) -> None:
    manifest = {"name": "kettle", "version": "1.0.0", "type": "module", "exports": "./index.js"}
    readme = README_TEXT.partition("## Quick")[0] + (
        '## Quick start\n\n```js\nimport { boil } from "kettle";\n\nconsole.log(boil(2));\n```\n\n'
        '## Later\n\n```js\nimport { boil } from "kettle";\n\nboil(myKettle);\n```\n\n'
        '## Wrong\n\n```js\nimport { boil } from "kettle";\n\nboil(2).pour();\n```\n'
    )
    files = {
        "package.json": json.dumps(manifest),
        "index.js": "/** Boil water. */\nexport function boil(litres) {\n  return `${litres} l`;\n}\n",
        "README.md": readme,
    }
    pipeline = make_pipeline(tmp_path, files, target_platform="javascript")

    entries = run_source_steps(pipeline, tmp_path)

    assert [entry["run"]["outcome"] for entry in entries.values()] == ["passed", "inconclusive", "failed"]
    assert "TypeError" in list(entries.values())[2]["run"]["reason"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import kettle\nkettle.boil(1)", ""),
        ("from kettle import *\nboil(1)", ""),
        ("import kettle as k\nfor i, (a, *b) in k.x:\n    print(f'{i} {a} {b}', __name__)", ""),
        ("try:\n    import kettle\nexcept ImportError as error:\n    print(error)\nprint([n for n in ()])", ""),
        ("import kettle\nmatch kettle.x:\n    case {'a': a, **rest}:\n        print(a, rest)", ""),
        ("import kettle\nkettle.boil(water)", "It is a part of a program: it does not define `water`."),
        ("from . import kettle", "It is a part of a package: it has a relative import."),
        ("import kettle\nawait kettle.boil()", "It is a part of a program: 'await' outside function."),
        ("import kettle\nreturn kettle", "It is a part of a program: 'return' outside function."),
    ],
)
def test_only_code_that_can_be_a_whole_program_is_run(code: str, reason: str) -> None:
    assert programs.find_incompleteness(code) == reason


def test_a_resumed_run_does_not_run_its_programs_again_and_a_cancelled_run_ends_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copytree(EXAMPLES_FOLDER / "site", tmp_path / "site")
    commit_folder(tmp_path / "site")
    hanging = {"examples/hang.py": "import time\n\nimport kettle\n\nkettle.boil(1)\ntime.sleep(1000)\n"}
    commits = {}
    for name, files in (("quick", PACKAGE_FILES), ("slow", PACKAGE_FILES | hanging)):
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        commits[name] = commit_folder(tmp_path / name)
    config = {
        "profile": "plain",
        "family": "kettle",
        "target_platform": "python",
        "required_sections": ["docs"],
        "site_repo_url": f"file://{tmp_path / 'site'}",
    }
    environ = {"PATH": os.environ["PATH"], "CLEATS_LAUNCH_RUN_SNIPPETS": "on", "CLEATS_LAUNCH_OFFLINE": "on"}

    with open_launch_client(home, *REAL_SERVER_COMMAND, **environ) as client:
        run_id = client.start_run(**config, github_repo_url=str(tmp_path / "quick"), github_ref=commits["quick"])
        answer = client.call_for_run(run_id, "resume")
        catalogue = client.read_artifact_text(run_id, "snippet_catalog.json")
        client.peer.process.kill()
    with open_launch_client(home, *REAL_SERVER_COMMAND, **environ) as client:
        while answer["status"]["state"] not in ("VALIDATING", "READY_FOR_PR"):
            answer = client.call_for_run(run_id, "resume")
        started = [event["payload"] for event in client.read_events(run_id) if event["type"] == "WORK_ITEM_STARTED"]
        unchanged = client.read_artifact_text(run_id, "snippet_catalog.json")
        slow_id = client.call(
            "launch_start_run",
            run_config={**config, "github_repo_url": str(tmp_path / "slow"), "github_ref": commits["slow"]},
        )["run_id"]
        wait_until(lambda: list_fenced_programs(home))
        cancelled = client.call_for_run(slow_id, "cancel")
        wait_until(lambda: not list_fenced_programs(home))
        state = client.call_for_run(slow_id, "get_status")["status"]["state"]

    assert json.loads(catalogue)["snippets"][0]["run"]["outcome"] == "passed"
    assert [item["scope_key"] for item in started].count("snippets") == 1
    assert unchanged == catalogue
    assert (cancelled["ok"], state) == (True, "CANCELLED")


def list_fenced_programs(home: Path) -> list[int]:
    """Return the programs of this test's server: the order of a fence names the home of the server."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if b"/work/program.py" in read_command_line(pid) and _sees_home(pid, home)]


def _sees_home(pid: int, home: Path) -> bool:
    try:
        return str(home) in Path(f"/proc/{pid}/mountinfo").read_text()
    except OSError:
        return False
