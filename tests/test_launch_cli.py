"""`cleats launch` as a person or a script uses it: what it prints, and how it leaves."""

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

from cleats.cli.launch_drive import View
from tests.launch_client import CONFIG
from tests.launch_remotes import GITHUB, github, repository
from tests.shell import PATIENCE, Shell
from tests.waiting import until

HOST = "tests.launch_cli_host"


class Cleats:
    """The command in a home of its own, with the small worker."""

    def __init__(self, home: Path) -> None:
        self.shell = Shell(home)
        self.home = home

    def trouble(self, **what: Any) -> None:
        (self.home / "trouble.json").write_text(json.dumps(what))

    def config(self, name: str = "run.yaml", **changes: Any) -> str:
        given = {**CONFIG, **changes}
        text = json.dumps(given) if name.endswith(".json") else yaml.safe_dump(given)
        (self.home / name).write_text(text)
        return name

    def __call__(
        self, *words: str, exits: int = 0, **environ: Any
    ) -> subprocess.CompletedProcess[str]:
        ended = self.shell.run("launch", *words, module=HOST, **environ)
        assert ended.returncode == exits, (ended.stdout, ended.stderr)
        return ended

    def json(self, *words: str, exits: int = 0, **environ: Any) -> Any:
        return json.loads(self(*words, "--json", exits=exits, **environ).stdout)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cleats, str, str]:
    """A run that was started here and waits for a decision, and what was said meanwhile."""
    cleats = Cleats(tmp_path_factory.mktemp("home"))
    cleats.trouble(page="BAD1\n", picture="ff00")
    started = cleats("start", cleats.config(), "--key", "k", exits=3)
    run_id = started.stdout.split()[0]
    return cleats, run_id, started.stdout + started.stderr


def test_a_run_is_driven_here_to_its_first_decision_with_a_line_for_what_happens(
    told: tuple[Cleats, str, str],
) -> None:
    _, run_id, said = told

    assert f"{run_id}  VALIDATING" in said
    assert "W1 clone" in said
    assert "gate words: failed" in said
    assert f"Next: cleats launch fix {run_id}" in said


def test_the_status_of_a_run_that_waits_leaves_with_three(told: tuple[Cleats, str, str]) -> None:
    cleats, run_id, _ = told

    answer = cleats.json("status", run_id, exits=3)

    assert answer["status"]["section_states"] == {"docs": "BLOCKED"}


def test_runs_are_listed_and_chosen(told: tuple[Cleats, str, str]) -> None:
    cleats, run_id, _ = told

    head, found = cleats("list", "--state", "validating", "--product", "3d").stdout.splitlines()
    assert head.split() == ["RUN", "PRODUCT", "STATE", "STARTED"]
    assert run_id in found
    assert cleats("list", "--product", "none").stdout == "There are no such runs.\n"


def test_artifacts_are_listed_printed_and_written_as_they_are(
    told: tuple[Cleats, str, str],
) -> None:
    cleats, run_id, _ = told

    assert "drafts/docs/index.md" in cleats("artifact", run_id).stdout
    assert cleats("artifact", run_id, "drafts/docs/index.md").stdout == "BAD1\n"
    cleats("artifact", run_id, "drafts/docs/picture.png", "-o", "out.png")
    assert (cleats.home / "out.png").read_bytes() == b"\xff\x00"
    assert "Known: bundle.txt" in cleats("artifact", run_id, "nothing", exits=2).stderr


def test_watching_a_run_that_waits_tells_its_story_and_ends(told: tuple[Cleats, str, str]) -> None:
    cleats, run_id, _ = told

    lines, _, status = cleats("watch", run_id, "--json", exits=3).stdout.partition("\n{\n")

    kinds = [json.loads(line)["type"] for line in lines.splitlines()]
    assert kinds[0] == "RUN_CREATED"
    assert json.loads("{" + status)["status"]["run_id"] == run_id


def test_the_same_key_goes_on_with_the_same_run(told: tuple[Cleats, str, str]) -> None:
    cleats, run_id, _ = told

    again = cleats.json("start", cleats.config(), "--key", "k", "--no-drive")

    assert again == {"ok": True, "run_id": run_id, "state": "VALIDATING"}


def test_a_run_that_was_only_created_is_resumed_fixed_and_published(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    cleats.trouble(page="BAD1 BAD2\n")

    created = cleats.json("start", cleats.config("run.json"), "--no-drive")
    run_id = created["run_id"]
    assert created["state"] == "CREATED"
    assert cleats.json("resume", run_id, exits=3)["status"]["state"] == "VALIDATING"
    fixed = cleats("fix", run_id, exits=3).stdout
    assert "1 issue" in fixed
    assert fixed.endswith(f"\nNext: cleats launch fix {run_id}\n")
    judged = cleats("validate", run_id, exits=3).stdout
    assert judged.endswith(f"\nNext: cleats launch fix {run_id}\n")
    ready = cleats("fix", "--all", run_id).stdout
    assert ready.endswith(f"1 gate passed, 0 failed.\nNext: cleats launch open-pr {run_id}\n")
    made = cleats.json("open-pr", run_id)
    assert made["branch"].startswith("launch/")
    assert cleats("validate", run_id).stdout == "1 gate passed, 0 failed.\n"


def test_the_checkouts_of_ended_runs_can_be_removed_and_the_rest_stays(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    cleats.trouble(page="fine\n")
    waits = cleats.json("start", cleats.config())["run_id"]
    ended = cleats.json("start", cleats.config())["run_id"]
    cleats("cancel", ended)
    work = {each: next(tmp_path.rglob(f"{each}/work")) for each in (waits, ended)}

    young = cleats("clean", "--days", "1").stdout
    tried = cleats.json("clean", "--dry-run")
    refused = cleats("clean", waits, exits=1).stderr
    cleaned = cleats("clean").stdout

    assert young == "0 B freed.\n"
    assert [each["run_id"] for each in tried["removed"]] == [ended]
    assert tried["ok"] is True
    assert tried["freed_bytes"] > 0
    assert refused.endswith("(ILLEGAL_STATE)\ncleats launch cancel ends it.\n")
    assert ended in cleaned
    assert "freed." in cleaned
    assert (work[waits].is_dir(), work[ended].exists()) == (True, False)
    assert cleats("artifact", ended).stdout == cleats("artifact", waits).stdout
    assert cleats.json("clean")["removed"] == []
    assert "RUN_NOT_FOUND" in cleats("clean", "r_never_was", exits=2).stderr


def test_fixing_ends_with_the_report_of_the_fix_that_ended_the_run(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    cleats.trouble(page="BAD7 BAD1\n")
    run_id = cleats.json("start", cleats.config("run.json"), exits=3)["status"]["run_id"]

    said = cleats("fix", "--all", run_id, exits=1).stdout

    assert "blocker  style  content/docs/index.md: WORSE" in said
    assert said.endswith("\nThe run has failed.\n")


@pytest.mark.parametrize(
    ("words", "said"),
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
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    cleats = Cleats(tmp_path)
    cleats.config("bad_ref.yaml", github_ref="x")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")

    assert cleats(*words, exits=2).stderr.count(said) == 1


def test_a_run_that_fails_leaves_with_one_and_its_status_says_why(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    cleats.trouble(crash={"clone": 1})

    failed = cleats("start", cleats.config(), exits=1)
    [run] = cleats.json("list")["runs"]

    assert "INTERNAL" in failed.stderr
    assert run["state"] == "FAILED"


def test_ctrl_c_leaves_the_run_at_its_last_step_and_another_terminal_can_cancel_it(
    tmp_path: Path,
) -> None:
    cleats = Cleats(tmp_path)
    gate = tmp_path / "gate"
    cleats.trouble(block={"inventory": str(gate)})
    with cleats.shell.start("launch", "start", cleats.config(), module=HOST) as started:
        until(gate.exists)
        [driven] = cleats.json("list")["runs"]
        meanwhile = cleats("status", driven["run_id"]).stdout
        os.kill(started.pid, signal.SIGINT)
        out, err = started.communicate(timeout=PATIENCE)
    gate.unlink()

    [run] = cleats.json("list")["runs"]
    assert f"Next: cleats launch watch {run['run_id']}, " in meanwhile
    assert (started.returncode, out) == (130, "")
    assert "last recorded step" in err
    assert f"`cleats launch resume {run['run_id']}`" in err
    assert f"Next: cleats launch resume {run['run_id']}" in cleats("status", run["run_id"]).stdout
    assert run["state"] == "CLONED_INPUTS"
    assert "cancelled" in cleats("cancel", run["run_id"]).stdout


def test_watching_a_run_ends_quietly_when_nobody_reads_on(told: tuple[Cleats, str, str]) -> None:
    cleats, run_id, _ = told

    done = cleats.shell.unread("launch", "watch", run_id, module=HOST)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_shows_a_picture_that_goes_when_the_run_rests(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    gate = tmp_path / "gate"
    cleats.trouble(block={"validate:1": str(gate)})
    here, there = pty.openpty()
    environ = {**cleats.shell.environ, "TERM": "xterm"}
    words = ("launch", "start", cleats.config())
    command = [sys.executable, "-m", HOST, *words]
    started = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=there, stderr=there)
    os.close(there)
    seen, shown = b"", False
    while True:
        try:
            chunk = os.read(here, 1 << 16)
        except OSError:  # Linux says that the other side is closed so
            break
        if not chunk:
            break
        seen += chunk
        if not shown and "◐ validation".encode() in seen:
            shown = True
            until(gate.exists)  # the worker may begin a moment later
            gate.unlink()
    os.close(here)

    assert started.wait(PATIENCE) == 0
    text = seen.decode()
    assert "◐ validation" in text
    assert "READY_FOR_PR" in text.splitlines()[-3] + text.splitlines()[-2]


def test_an_address_is_enough_to_start(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    repo = repository(tmp_path / "repo", {"README.md": "# x\n"})
    env = github(tmp_path, {"o/aspose-3d-foss-go": repo.root})
    env["CLEATS_LAUNCH_SITE"] = f"{GITHUB}/o/site"

    made = cleats.json(
        "start", "--repo-url", f"{GITHUB}/o/aspose-3d-foss-go", "--no-drive", exits=0, **env
    )
    wrong = cleats("start", "--product-url", "https://example.org/", exits=2, **env)

    assert made["derived_config"]["github_ref"] == repo.head
    assert "UNSUPPORTED_SITE" in wrong.stderr


def test_profiles_are_listed_and_a_bad_one_is_named_with_its_fault(tmp_path: Path) -> None:
    cleats = Cleats(tmp_path)
    bad = tmp_path / "profiles" / "mine"
    bad.mkdir(parents=True)
    (bad / "profile.toml").write_text('name = "mine"\n')

    whole = cleats("profiles", "aspose")
    wrong = cleats("profiles", exits=1, CLEATS_LAUNCH_PROFILES=str(bad.parent))
    [aspose, plain] = cleats.json("profiles")

    assert "22 families, 12 platforms" in whole.stdout
    assert "products.aspose.org" in whole.stdout
    assert "mine  cannot be used" in wrong.stdout
    assert (aspose["ok"], plain["families"]) == (True, "any")


def state_changes(count: int) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(
            type="RUN_STATE_CHANGED", payload={"new_state": f"S{n}"}, ts="2026-01-01T00:00:00Z"
        )
        for n in range(count)
    ]


def test_an_event_that_comes_between_two_looks_is_told_once() -> None:
    events = state_changes(3)
    lengths = iter((2, 3))

    def get(_run_id: str) -> SimpleNamespace:
        return SimpleNamespace(tail=SimpleNamespace(length=next(lengths)))

    store = SimpleNamespace(get=get, events=lambda _run_id, seen: events[seen:])
    desk: Any = SimpleNamespace(launches=SimpleNamespace(engine=SimpleNamespace(store=store)))
    lines = StringIO()
    view = View(desk, "r_12345678", lines=lines)

    anyio.run(view.look)
    anyio.run(view.look)

    assert [line.split()[-1] for line in lines.getvalue().splitlines()] == ["S0", "S1", "S2"]


def test_two_looks_at_the_same_moment_tell_everything_once() -> None:
    events = state_changes(3)
    both = Barrier(2)

    def read(_run_id: str, seen: int) -> list[SimpleNamespace]:
        both.wait(PATIENCE)
        return events[seen:]

    run = SimpleNamespace(tail=SimpleNamespace(length=3))
    store = SimpleNamespace(get=lambda _run_id: run, events=read)
    desk: Any = SimpleNamespace(launches=SimpleNamespace(engine=SimpleNamespace(store=store)))
    lines = StringIO()
    view = View(desk, "r_12345678", lines=lines)

    async def look_twice() -> None:
        async with anyio.create_task_group() as looks:
            looks.start_soon(view.look)
            looks.start_soon(view.look)

    anyio.run(look_twice)

    assert [line.split()[-1] for line in lines.getvalue().splitlines()] == ["S0", "S1", "S2"]
