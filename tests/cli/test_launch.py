"""Tests of `cleats launch` as a user or a script calls it: its output and its exit codes."""

import json
import os
import pty
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
import yaml

from cleats.cli.launch.start import RunView
from tests.support.launch_client import RUN_CONFIG
from tests.support.launch_remotes import GITHUB_URL, create_repository, redirect_github
from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell
from tests.support.waiting import wait_until

HOST_MODULE = "tests.support.launch_cli_host"


class LaunchCommand:
    """The command in a temporary home, with the small worker."""

    def __init__(self, home: Path) -> None:
        self.shell = Shell(home)
        self.home = home

    def write_trouble(self, **trouble: Any) -> None:
        (self.home / "trouble.json").write_text(json.dumps(trouble))

    def write_config(self, name: str = "run.yaml", **changes: Any) -> str:
        run_config = {**RUN_CONFIG, **changes}
        text = json.dumps(run_config) if name.endswith(".json") else yaml.safe_dump(run_config)
        (self.home / name).write_text(text)
        return name

    def __call__(self, *words: str, exits: int = 0, **environ: Any) -> subprocess.CompletedProcess[str]:
        process = self.shell.run("launch", *words, module=HOST_MODULE, **environ)
        assert process.returncode == exits, (process.stdout, process.stderr)
        return process

    def run_json(self, *words: str, exits: int = 0, **environ: Any) -> Any:
        return json.loads(self(*words, "--json", exits=exits, **environ).stdout)


@pytest.fixture(scope="module")
def waiting_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[LaunchCommand, str, str]:
    """Start a run that waits for a decision; return the command, the run ID and the output."""
    cleats = LaunchCommand(tmp_path_factory.mktemp("home"))
    cleats.write_trouble(page="BAD1\n", picture="ff00")
    process = cleats("start", cleats.write_config(), "--key", "k", exits=3)
    run_id = process.stdout.split()[0]
    return cleats, run_id, process.stdout + process.stderr


def test_a_run_is_driven_here_to_its_first_decision_with_a_line_for_what_happens(
    waiting_run: tuple[LaunchCommand, str, str],
) -> None:
    _, run_id, output = waiting_run

    assert f"{run_id}  VALIDATING" in output
    assert "W1 clone" in output
    assert "gate words: failed" in output
    assert f"Next: cleats launch fix {run_id}" in output


def test_the_status_of_a_run_that_waits_leaves_with_three(waiting_run: tuple[LaunchCommand, str, str]) -> None:
    cleats, run_id, _ = waiting_run

    answer = cleats.run_json("status", run_id, exits=3)

    assert answer["status"]["section_states"] == {"docs": "BLOCKED"}


def test_a_run_is_named_by_last_or_by_the_first_characters_of_its_id(
    waiting_run: tuple[LaunchCommand, str, str],
) -> None:
    cleats, run_id, _ = waiting_run
    other_id = cleats.run_json("start", cleats.write_config("other.yaml", family="other"), "--no-drive")["run_id"]

    for text, expected_id in (("last", other_id), (run_id[-8:-2], run_id), (run_id[:-1], run_id), (run_id, run_id)):
        exits = 3 if expected_id == run_id else 0
        assert cleats.run_json("status", text, exits=exits)["status"]["run_id"] == expected_id
    ambiguous = cleats("cancel", "r_", exits=2).stderr
    unknown = cleats("cancel", "zzzz", exits=2).stderr
    assert f"'r_' matches 2 runs: {other_id}, {run_id}. Give more characters." in " ".join(ambiguous.split())
    assert "RUN_NOT_FOUND" in unknown or "INVALID_INPUT" in unknown
    assert cleats.run_json("cancel", "last")["run_id"] == other_id


def test_runs_are_listed_and_chosen(waiting_run: tuple[LaunchCommand, str, str]) -> None:
    cleats, run_id, _ = waiting_run

    head, run_line = cleats("list", "--state", "validating", "--product", "3d").stdout.splitlines()
    assert head.split() == ["RUN", "PRODUCT", "STATE", "STARTED"]
    assert run_id in run_line
    assert cleats("list", "--product", "none").stdout == "No runs match the filters.\n"


def test_artifacts_are_listed_printed_and_written_as_they_are(
    waiting_run: tuple[LaunchCommand, str, str],
) -> None:
    cleats, run_id, _ = waiting_run

    assert "drafts/docs/index.md" in cleats("artifact", run_id).stdout
    assert cleats("artifact", run_id, "drafts/docs/index.md").stdout == "BAD1\n"
    cleats("artifact", run_id, "drafts/docs/picture.png", "-o", "out.png")
    assert (cleats.home / "out.png").read_bytes() == b"\xff\x00"
    assert "Known: bundle.txt" in cleats("artifact", run_id, "nothing", exits=2).stderr


def test_watching_a_run_that_waits_tells_its_story_and_ends(waiting_run: tuple[LaunchCommand, str, str]) -> None:
    cleats, run_id, _ = waiting_run

    lines, _, status = cleats("watch", run_id, "--json", exits=3).stdout.partition("\n{\n")

    kinds = [json.loads(line)["type"] for line in lines.splitlines()]
    assert kinds[0] == "RUN_CREATED"
    assert json.loads("{" + status)["status"]["run_id"] == run_id


def test_the_same_key_goes_on_with_the_same_run(waiting_run: tuple[LaunchCommand, str, str]) -> None:
    cleats, run_id, _ = waiting_run

    again = cleats.run_json("start", cleats.write_config(), "--key", "k", "--no-drive")

    assert again == {"ok": True, "run_id": run_id, "state": "VALIDATING"}


def test_a_run_that_was_only_created_is_resumed_fixed_and_published(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    cleats.write_trouble(page="BAD1 BAD2\n")

    created = cleats.run_json("start", cleats.write_config("run.json"), "--no-drive")
    run_id = created["run_id"]
    assert created["state"] == "CREATED"
    assert cleats.run_json("resume", run_id, exits=3)["status"]["state"] == "VALIDATING"
    fix_output = cleats("fix", run_id, exits=3).stdout
    assert "1 issue" in fix_output
    assert fix_output.endswith(f"\nNext: cleats launch fix {run_id}\n")
    judged = cleats("validate", run_id, exits=3).stdout
    assert judged.endswith(f"\nNext: cleats launch fix {run_id}\n")
    ready = cleats("fix", "--all", run_id).stdout
    assert ready.endswith(f"1 gate passed, 0 failed.\nNext: cleats launch open-pr {run_id}\n")
    assert cleats("status", run_id).stdout.endswith(f"open http://127.0.0.1:7345/console/runs/{run_id}\n")
    pull_request = cleats.run_json("open-pr", run_id)
    assert pull_request["branch"].startswith("launch/")
    assert cleats("validate", run_id).stdout == "1 gate passed, 0 failed.\n"


def test_the_checkouts_of_ended_runs_can_be_removed_and_the_rest_stays(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    cleats.write_trouble(page="fine\n")
    waiting_id = cleats.run_json("start", cleats.write_config())["run_id"]
    ended_id = cleats.run_json("start", cleats.write_config())["run_id"]
    cleats("cancel", ended_id)
    work = {run_name: next(tmp_path.rglob(f"{run_name}/work")) for run_name in (waiting_id, ended_id)}

    young = cleats("clean", "--days", "1").stdout
    dry_run_answer = cleats.run_json("clean", "--dry-run")
    refusal = cleats("clean", waiting_id, exits=1).stderr
    clean_output = cleats("clean").stdout

    assert young == "0 B freed.\n"
    assert [run_name["run_id"] for run_name in dry_run_answer["removed"]] == [ended_id]
    assert dry_run_answer["ok"] is True
    assert dry_run_answer["freed_bytes"] > 0
    assert refusal.endswith("(ILLEGAL_STATE)\ncleats launch cancel ends it.\n")
    assert ended_id in clean_output
    assert "freed." in clean_output
    assert (work[waiting_id].is_dir(), work[ended_id].exists()) == (True, False)
    assert cleats("artifact", ended_id).stdout == cleats("artifact", waiting_id).stdout
    assert cleats.run_json("clean")["removed"] == []
    assert "RUN_NOT_FOUND" in cleats("clean", "r_never_was", exits=2).stderr


def test_fixing_ends_with_the_report_of_the_fix_that_ended_the_run(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    cleats.write_trouble(page="BAD7 BAD1\n")
    run_id = cleats.run_json("start", cleats.write_config("run.json"), exits=3)["status"]["run_id"]

    output = cleats("fix", "--all", run_id, exits=1).stdout

    assert "blocker  style  content/docs/index.md: WORSE" in output
    assert output.endswith("\nThe run has failed.\n")


@pytest.mark.parametrize(
    ("words", "error_part"),
    [
        (("start", "bad_ref.yaml"), "/github_ref"),
        (("status", "r_12345678"), "RUN_NOT_FOUND"),
        (("status", "r_12345678"), "List the runs with cleats launch list."),
        (("start",), "Give one of"),
        (("start", "list.yaml"), "table of names"),
        (("start", "broken.yaml"), "broken.yaml"),
    ],
)
def test_what_was_asked_wrongly_leaves_with_two_and_says_where(
    tmp_path: Path, words: tuple[str, ...], error_part: str
) -> None:
    cleats = LaunchCommand(tmp_path)
    cleats.write_config("bad_ref.yaml", github_ref="x")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")

    assert cleats(*words, exits=2).stderr.count(error_part) == 1


def test_a_run_that_fails_leaves_with_one_and_its_status_says_why(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    cleats.write_trouble(crash={"clone": 1})

    process = cleats("start", cleats.write_config(), exits=1)
    [run] = cleats.run_json("list")["runs"]

    assert "INTERNAL" in process.stderr
    assert run["state"] == "FAILED"


def test_ctrl_c_leaves_the_run_at_its_last_step_and_another_terminal_can_cancel_it(
    tmp_path: Path,
) -> None:
    cleats = LaunchCommand(tmp_path)
    gate = tmp_path / "gate"
    cleats.write_trouble(block={"inventory": str(gate)})
    with cleats.shell.start_process("launch", "start", cleats.write_config(), module=HOST_MODULE) as process:
        wait_until(gate.exists)
        [driven] = cleats.run_json("list")["runs"]
        meanwhile = cleats("status", driven["run_id"]).stdout
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=EXIT_TIMEOUT_SECONDS)
    gate.unlink()

    [run] = cleats.run_json("list")["runs"]
    assert f"Next: cleats launch watch {run['run_id']} (" in meanwhile
    assert (process.returncode, out) == (130, "")
    assert "last recorded step" in err
    assert f"`cleats launch resume {run['run_id']}`" in err
    assert f"Next: cleats launch resume {run['run_id']}" in cleats("status", run["run_id"]).stdout
    assert run["state"] == "CLONED_INPUTS"
    assert "cancelled" in cleats("cancel", run["run_id"]).stdout


def test_watching_a_run_ends_quietly_when_nobody_reads_on(waiting_run: tuple[LaunchCommand, str, str]) -> None:
    cleats, run_id, _ = waiting_run

    done = cleats.shell.run_with_closed_output("launch", "watch", run_id, module=HOST_MODULE)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_shows_a_picture_that_goes_when_the_run_rests(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    gate = tmp_path / "gate"
    cleats.write_trouble(block={"validate:1": str(gate)})
    controller_fd, terminal_fd = pty.openpty()
    environ = {**cleats.shell.environ, "TERM": "xterm"}
    words = ("launch", "start", cleats.write_config())
    command = [sys.executable, "-m", HOST_MODULE, *words]
    process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=terminal_fd, stderr=terminal_fd)
    os.close(terminal_fd)
    output, is_shown = b"", False
    while True:
        try:
            chunk = os.read(controller_fd, 1 << 16)
        except OSError:  # Linux says that the other side is closed so
            break
        if not chunk:
            break
        output += chunk
        if not is_shown and "◐ validation".encode() in output:
            is_shown = True
            wait_until(gate.exists)  # the worker may begin a moment later
            gate.unlink()
    os.close(controller_fd)

    assert process.wait(EXIT_TIMEOUT_SECONDS) == 0
    text = output.decode()
    assert "◐ validation" in text
    assert "READY_FOR_PR" in "".join(text.splitlines()[-6:])


def test_an_address_is_enough_to_start(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    repo = create_repository(tmp_path / "repo", {"README.md": "# x\n"})
    env = redirect_github(tmp_path, {"o/aspose-3d-foss-go": repo.root})
    env["CLEATS_LAUNCH_SITE"] = f"{GITHUB_URL}/o/site"

    started_run = cleats.run_json(
        "start", "--repo-url", f"{GITHUB_URL}/o/aspose-3d-foss-go", "--no-drive", exits=0, **env
    )
    wrong = cleats("start", "--product-url", "https://example.org/", exits=2, **env)

    assert started_run["derived_config"]["github_ref"] == repo.head_commit
    assert "UNSUPPORTED_SITE" in wrong.stderr


def test_profiles_are_listed_and_a_bad_one_is_named_with_its_fault(tmp_path: Path) -> None:
    cleats = LaunchCommand(tmp_path)
    bad = tmp_path / "profiles" / "mine"
    bad.mkdir(parents=True)
    (bad / "profile.toml").write_text('name = "mine"\n')

    profile_output = cleats("profiles", "aspose")
    wrong = cleats("profiles", exits=1, CLEATS_LAUNCH_PROFILES=str(bad.parent))
    [aspose, plain, mkdocs] = cleats.run_json("profiles")

    assert "22 families, 12 platforms" in profile_output.stdout
    assert "products.aspose.org" in profile_output.stdout
    assert "mine  cannot be used" in wrong.stdout
    assert (aspose["ok"], plain["families"]) == (True, "any")
    assert (plain["site"], mkdocs["site"]) == ("hugo", "mkdocs")


def build_state_changes(count: int) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(type="RUN_STATE_CHANGED", payload={"new_state": f"S{number}"}, ts="2026-01-01T00:00:00Z")
        for number in range(count)
    ]


def test_an_event_that_comes_between_two_looks_is_told_once() -> None:
    events = build_state_changes(3)
    lengths = iter((2, 3))

    def get_run(_run_id: str) -> SimpleNamespace:
        return SimpleNamespace(tail=SimpleNamespace(length=next(lengths)))

    store = SimpleNamespace(get=get_run, list_events=lambda _run_id, start: events[start:])
    desk: Any = SimpleNamespace(launches=SimpleNamespace(engine=SimpleNamespace(store=store)))
    lines = StringIO()
    view = RunView(desk, "r_12345678", lines=lines)

    anyio.run(view.refresh)
    anyio.run(view.refresh)

    assert [line.split()[-1] for line in lines.getvalue().splitlines()] == ["S0", "S1", "S2"]


def test_two_looks_at_the_same_moment_tell_everything_once() -> None:
    events = build_state_changes(3)
    both = Barrier(2)

    def read_events(_run_id: str, start: int) -> list[SimpleNamespace]:
        both.wait(EXIT_TIMEOUT_SECONDS)
        return events[start:]

    run = SimpleNamespace(tail=SimpleNamespace(length=3))
    store = SimpleNamespace(get=lambda _run_id: run, list_events=read_events)
    desk: Any = SimpleNamespace(launches=SimpleNamespace(engine=SimpleNamespace(store=store)))
    lines = StringIO()
    view = RunView(desk, "r_12345678", lines=lines)

    async def look_twice() -> None:
        async with anyio.create_task_group() as looks:
            looks.start_soon(view.refresh)
            looks.start_soon(view.refresh)

    anyio.run(look_twice)

    assert [line.split()[-1] for line in lines.getvalue().splitlines()] == ["S0", "S1", "S2"]
