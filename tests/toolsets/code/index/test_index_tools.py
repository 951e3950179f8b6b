"""`build_index` and `index_status` as a server runs them, and their reports of freshness."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from cleats import app
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome
from cleats.contract.violations import Validator
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.settings import make_settings as make_settings_flat
from cleats.toolsets.code.composition import open_indexes
from cleats.toolsets.code.index import freshness, freshness_snapshot, portable
from cleats.toolsets.code.index.freshness import Freshness
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.repository import Repository
from tests.support.hanging_commands import COMMAND_PROCESS_COUNT, HangingCommands
from tests.support.indexes import IndexedRepository
from tests.support.requirements import requirement


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", "def first():\n    return 1\n")
    world.write_file("README.md", "# Title\n\nSome words about it.\n")
    return world


def make_settings(world: IndexedRepository, **overrides: Any) -> Settings:
    chosen = {"index_workers": 1, "index_lint": "off", "telemetry": "off", **overrides}
    return make_settings_flat(cache_dir=world.cache, project_dir=world.root, **chosen)


def call_tool(
    world: IndexedRepository, tool: str, reports: Callable[[ProgressReport], None] | None = None, **arguments: Any
) -> tuple[ToolCall, Outcome]:
    """Call a tool on a server of its own, and return the call and its outcome."""

    async def send(report: ProgressReport) -> None:
        if reports is not None:
            reports(report)

    async def main() -> tuple[ToolCall, Outcome]:
        call = ToolCall(tool=tool, arguments=arguments, reporter=ProgressReporter(send))
        async with open_dispatcher(world) as dispatcher:
            return call, await dispatcher.dispatch(call)

    return anyio.run(main)


def open_dispatcher(world: IndexedRepository) -> AbstractAsyncContextManager[Dispatcher]:
    settings, server_status = make_settings(world), ServerStatus()
    return app.open_dispatcher(settings, app.load_toolsets(settings, ["code"], server_status), server_status)


def get_result(world: IndexedRepository, tool: str, **arguments: Any) -> dict[str, Any]:
    _, outcome = call_tool(world, tool, **arguments)
    assert isinstance(outcome, Done), outcome
    schema = app.build_registry(make_settings(world)).find(tool).output
    assert not list(Validator(schema or {}).find_violations(outcome.result))
    return dict(outcome.result)


def read_freshness(indexes: Indexes, world: IndexedRepository, **arguments: Any) -> Freshness | None:
    return anyio.run(partial(indexes.check_freshness, Repository(world.root), **arguments))


@requirement("b:tools:required:build_index")
def test_build_index_builds_in_a_process_of_its_own_and_reports_progress(
    world: IndexedRepository,
) -> None:
    phases = []

    call, outcome = call_tool(world, "build_index", lambda at: phases.append(at.phase), mode="all")

    assert isinstance(outcome, Done)
    assert outcome.result["files"]["added"] == 2
    assert outcome.result["generation"] == world.lease_current().name
    assert not outcome.result["restoredArtifacts"]
    assert call.meta.repo == str(world.root)
    assert phases


def test_the_result_fits_its_schema_and_a_second_build_starts_no_process(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = get_result(world, "build_index")
    monkeypatch.setattr("cleats.system.processes.process.run", None)
    second = get_result(world, "build_index", incremental=True)

    assert first["published"]
    assert not second["published"]
    assert second["generation"] == first["generation"]
    assert second["files"]["unchanged"] == 2


@requirement("a:tools:index_build")
def test_the_older_name_still_works(world: IndexedRepository) -> None:
    _, outcome = call_tool(world, "index_build")

    assert isinstance(outcome, Done)


def test_a_path_that_is_not_there_is_refused(world: IndexedRepository) -> None:
    for tool in ("build_index", "index_status"):
        _, outcome = call_tool(world, tool, repoPath="nowhere")

        assert isinstance(outcome, Failed)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
        assert outcome.error.message == "Repo path not found: nowhere"


def test_a_cancelled_build_leaves_the_last_index_and_no_process(world: IndexedRepository) -> None:
    before = world.build_index().generation
    world.write_file("app/more.py", "x = 1\n")
    lock = world.generation_store.try_build_lock()
    assert lock is not None

    async def main() -> Outcome:
        async def send(report: ProgressReport) -> None:
            assert report.phase == "wait"
            call.cancel()

        call = ToolCall(tool="build_index", arguments={}, reporter=ProgressReporter(send))
        async with open_dispatcher(world) as dispatcher:
            return await dispatcher.dispatch(call)

    outcome = anyio.run(main)
    lock.release()

    assert isinstance(outcome, Cancelled)
    assert world.lease_current().name == before
    assert get_result(world, "build_index", incremental=True)["files"]["added"] == 1


def test_status_without_an_index_says_so(world: IndexedRepository) -> None:
    status = get_result(world, "index_status")

    assert status["repoPath"] == str(world.root)
    assert status["repoId"] == Repository(world.root).id
    assert status["index"] == {"exists": False, "outdated": False}
    assert status["freshness"] is None
    assert status["git"] == {"isRepo": False}


@requirement("a:tools:index_status", "b:tools:required:index_status")
def test_status_tells_what_is_in_the_index_and_what_has_changed_since(world: IndexedRepository) -> None:
    world.write_file("blob.py", b"\0" * 99)
    world.run_git("init", "-q", "-b", "main")
    commit = world.commit()
    world.build_index(sqlite=True)
    world.write_file("app/core.py", "def other(): ...\n")
    world.write_file("app/more.py", "x = 1\n")
    (world.root / "README.md").unlink()
    world.run_git("checkout", "-q", "-b", "side")

    status = get_result(world, "index_status", repoPath="app")

    index = status["index"]
    assert (index["commit"], index["branch"], index["dirty"]) == (commit, "main", False)
    assert index["files"] == 2
    assert index["skippedReasons"] == {"binary": 1}
    assert index["skipped"] == [{"path": "blob.py", "reason": "binary", "detail": ""}]
    assert index["bytes"] > status["sqlite"]["bytes"] > 0
    assert status["sqlite"]["exists"]
    assert status["vectors"] == {"available": True}
    assert status["git"] == {"isRepo": True, "head": commit, "branch": "side", "isDirty": True}
    assert status["freshness"] == {
        "stale": True,
        "added": 1,
        "changed": 1,
        "removed": 1,
        "headMoved": True,
        "outgrown": False,
    }


# Freshness


def test_freshness_is_looked_up_again_when_a_file_or_a_folder_has_changed(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleats.toolsets.code.index.freshness.FRESHNESS_CACHE_SECONDS", 0.0)
    indexes = open_indexes(make_settings(world))
    assert read_freshness(indexes, world) is None
    name = world.build_index().generation

    assert read_freshness(indexes, world) == Freshness(name)
    world.write_file("app/core.py", "changed = True\n")
    assert read_freshness(indexes, world) == Freshness(name, changed=1)
    world.write_file("app/more.py", "added = True\n")
    assert read_freshness(indexes, world) == Freshness(name, added=1, changed=1)
    (world.root / "README.md").unlink()
    state = read_freshness(indexes, world)
    assert state == Freshness(name, added=1, changed=1, removed=1)
    assert str(state) == "1 new, 1 changed, 1 removed file(s)"


def test_a_second_look_asks_nobody_when_nothing_has_moved(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run_git("init", "-q")
    world.commit()
    world.build_index()
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)
    for folder in (world.root, world.root / "app"):
        os.utime(folder, ns=(10**18, 10**18))
    first = checker.check()

    monkeypatch.setattr("cleats.toolsets.code.index.changes.discover_files", None)

    assert checker.check() is first


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report changes")
def test_files_are_not_looked_at_again_until_the_system_reports_a_change(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build_index()
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)
    for folder in (world.root, world.root / "app"):
        os.utime(folder, ns=(10**18, 10**18))
    checker.check()
    looked: list[object] = []
    look = freshness_snapshot.FreshnessSnapshot.list_linked_files

    def count_look(snapshot: freshness_snapshot.FreshnessSnapshot) -> object:
        looked.append(snapshot)
        return look(snapshot)

    monkeypatch.setattr(freshness_snapshot.FreshnessSnapshot, "list_linked_files", count_look)

    unchanged = [checker.has_changed() for _ in range(3)]
    looks_before = len(looked)
    core = world.root / "app/core.py"
    core.write_bytes(core.read_bytes()[::-1])  # of the same size
    changed = [checker.has_changed() for _ in range(2)]

    assert unchanged == [False] * 3
    assert looks_before == 1
    assert changed == [True] * 2


def test_a_change_through_a_hard_link_elsewhere_is_noticed(world: IndexedRepository) -> None:
    linked = world.folder / "elsewhere.py"
    os.link(world.root / "app/core.py", linked)
    world.build_index()
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)
    for folder in (world.root, world.root / "app"):
        os.utime(folder, ns=(10**18, 10**18))
    checker.check()
    before = checker.has_changed()

    linked.write_text("changed = True\n")

    assert before is False
    assert checker.has_changed() is True


def test_a_file_that_is_written_after_a_look_is_reported_before_it_is_counted(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleats.toolsets.code.index.freshness.FRESHNESS_CACHE_SECONDS", 600.0)
    indexes = open_indexes(make_settings(world))
    name = world.build_index().generation
    for folder in (world.root, world.root / "app"):
        os.utime(folder, ns=(10**18, 10**18))
    first = read_freshness(indexes, world)
    assert read_freshness(indexes, world) is first

    world.write_file("app/core.py", "x = 1\n")

    at_once = read_freshness(indexes, world, max_wait=0.0)
    assert at_once is not None
    assert at_once.is_stale
    assert str(at_once) == "files were written since it was last checked"
    assert read_freshness(indexes, world) == Freshness(name, changed=1)


def test_an_answer_does_not_wait_for_a_slow_look(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    world.build_index()
    indexes = open_indexes(make_settings(world))

    assert read_freshness(indexes, world, max_wait=0.0) is None
    assert read_freshness(indexes, world) is not None


def test_what_was_seen_before_a_build_is_not_said_of_the_index_after_it(world: IndexedRepository) -> None:
    world.build_index()
    indexes = open_indexes(make_settings(world))
    world.write_file("app/more.py", "x = 1\n")
    old = read_freshness(indexes, world)
    name = world.build_index().generation

    assert old is not None
    assert old.is_stale
    assert read_freshness(indexes, world, max_wait=0.0) is None
    assert read_freshness(indexes, world) == Freshness(name)


def test_other_settings_make_an_index_old(world: IndexedRepository) -> None:
    world.build_index()
    options = open_indexes(make_settings(world, index_max_lines=7)).options

    state = freshness.FreshnessChecker(world.root, world.generation_store, options).check()

    assert state is not None
    assert state.outgrown
    assert str(state) == "it was built by another version of Cleats or with other settings"


def test_another_branch_at_the_same_commit_is_not_called_another_commit(world: IndexedRepository) -> None:
    world.run_git("init", "-q", "-b", "main")
    world.commit()
    world.build_index()
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)

    world.run_git("checkout", "-q", "-b", "side")
    side = checker.check()
    world.write_file("app/more.py", "x = 1\n")
    world.commit()
    moved = freshness.FreshnessChecker(world.root, world.generation_store, world.options).check()

    assert str(side) == "another branch is checked out"
    assert str(moved) == "1 new file(s); another commit is checked out"


def test_a_repository_without_its_git_is_not_said_to_be_at_another_commit(world: IndexedRepository) -> None:
    world.run_git("init", "-q")
    world.commit()
    world.build_index()
    (world.root / ".git").rename(world.folder / "away")
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)

    assert str(checker.check()) == "it is no longer under git"

    world.build_index()
    (world.folder / "away").rename(world.root / ".git")

    assert str(checker.check()) == "it is under git now"


def test_a_shallow_clone_that_is_made_whole_has_an_old_index(tmp_path: Path) -> None:
    source, world = IndexedRepository(tmp_path / "source"), IndexedRepository(tmp_path)
    source.write_file("app/core.py", "x = 1\n")
    source.run_git("init", "-q")
    source.commit()
    source.commit()
    uri = source.root.as_uri()
    source.run_git("clone", "-q", "--depth=1", uri, str(world.root))
    world.build_index()
    checker = freshness.FreshnessChecker(world.root, world.generation_store, world.options)
    before = checker.check()

    world.run_git("fetch", "-q", "--unshallow")
    after = checker.check()

    assert str(before) == "up to date"
    assert str(after) == "git has another part of the history"
    assert checker.report_if_unchanged(world.options) is None
    assert world.build_index().published
    assert str(checker.check()) == "up to date"


def test_what_an_index_was_not_asked_to_hold_does_not_make_it_old(world: IndexedRepository) -> None:
    world.build_index(modes=("prose",), vectors=False)

    state = freshness.FreshnessChecker(world.root, world.generation_store, world.options).check()

    assert state is not None
    assert not state.is_stale


# An index from elsewhere


def test_an_index_can_be_carried_to_another_machine(world: IndexedRepository, tmp_path: Path) -> None:
    world.build_index()
    with world.lease_current() as lease:
        portable.export_generation(lease, world.root / "ci-artifacts")
    (world.root / ".gitignore").write_text("ci-artifacts\n")
    other = IndexedRepository(tmp_path, cache_name="other")
    world.write_file("app/more.py", "x = 1\n")

    report = get_result(other, "build_index", useArtifacts=True)

    assert report["restoredArtifacts"]
    assert (report["files"]["added"], report["files"]["unchanged"]) == (2, 2)
    world.build_index()
    assert other.read_content() == world.read_content()


def export_index(world: IndexedRepository) -> Path:
    world.build_index()
    with world.lease_current() as lease:
        portable.export_generation(lease, world.folder / "out")
    return world.folder / "out"


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("bytes", ErrorCode.DOWNLOAD_VERIFY_FAILED),
        ("missing", ErrorCode.DOWNLOAD_VERIFY_FAILED),
        ("manifest", ErrorCode.DOWNLOAD_VERIFY_FAILED),
        ("link", ErrorCode.ARCHIVE_UNSAFE),
        ("linked folder", ErrorCode.ARCHIVE_UNSAFE),
        ("escape", ErrorCode.ARCHIVE_UNSAFE),
        ("nothing", ErrorCode.NOT_FOUND),
    ],
)
def test_an_exported_index_that_is_not_what_it_says_is_refused(
    world: IndexedRepository, damage: str, code: ErrorCode
) -> None:
    folder = export_index(world)
    before = world.lease_current().name
    manifest = folder / portable.MANIFEST_FILE_NAME
    catalogue = folder / "catalogue.db"
    match damage:
        case "bytes":
            catalogue.write_bytes(catalogue.read_bytes() + b"!")
        case "missing":
            catalogue.unlink()
        case "manifest":
            manifest.write_text("{}")
        case "link":
            catalogue.rename(world.folder / "elsewhere")
            catalogue.symlink_to(world.folder / "elsewhere")
        case "linked folder":
            shutil.move(folder / "shards", world.folder / "elsewhere")
            (folder / "shards").symlink_to(world.folder / "elsewhere")
        case "escape":
            manifest.write_text(manifest.read_text().replace('"catalogue.db"', '"../x"'))
        case _:
            manifest.unlink()

    with pytest.raises(ToolError) as refused:
        world.build_index(artifacts=str(folder))

    assert refused.value.code is code
    assert world.lease_current().name == before


def test_a_folder_that_no_path_can_name_holds_no_exported_index(world: IndexedRepository) -> None:
    _, outcome = call_tool(world, "build_index", useArtifacts=True, artifactsDir="a\0b")

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NOT_FOUND


def test_an_exported_index_of_another_version_is_left_alone(world: IndexedRepository) -> None:
    folder = export_index(world)
    manifest = folder / portable.MANIFEST_FILE_NAME
    manifest.write_text(manifest.read_text().replace('"schema":', '"schema":9'))
    other = IndexedRepository(world.folder, cache_name="other")

    report = other.build_index(artifacts=str(folder))

    assert not report.restored_artifacts
    assert report.files.added == 2
    assert "another version" in report.warnings[0]


# Checks that hang


def count_checks(commands: HangingCommands) -> int:
    return len(commands.find_living()) // COMMAND_PROCESS_COUNT


@pytest.fixture
def hanging_git(world: IndexedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HangingCommands:
    world.run_git("init", "-q")
    world.commit()
    world.build_index()
    commands = HangingCommands(tmp_path / "bin")
    commands.hang("git")
    monkeypatch.setenv("PATH", commands.environ["PATH"])
    return commands


@requirement("a:cancel:stops-the-work", "a:kill:all-descendants")
def test_a_check_that_two_calls_wait_for_ends_with_the_second(
    world: IndexedRepository, hanging_git: HangingCommands
) -> None:
    indexes = open_indexes(make_settings(world, grace=0.1))

    async def cancel_both() -> None:
        check = partial(indexes.check_freshness, Repository(world.root))
        first, second = asyncio.create_task(check()), asyncio.create_task(check())
        await to_thread.run_sync(hanging_git.wait_until_hanging)
        first.cancel()
        await asyncio.wait({first})

        assert not second.done()
        assert count_checks(hanging_git) == 1

        second.cancel()
        await to_thread.run_sync(hanging_git.wait_until_gone)

    anyio.run(cancel_both)


@requirement("a:kill:all-descendants")
@pytest.mark.parametrize("ending", ["limit", "stop", "wait"])
def test_a_check_that_nobody_waits_for_ends_by_itself_with_the_server_or_for_a_removal(
    world: IndexedRepository, hanging_git: HangingCommands, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    if ending == "limit":
        monkeypatch.setattr(freshness, "MAX_CHECK_SECONDS", 1.0)
    indexes = open_indexes(make_settings(world, grace=0.1))

    async def leave_check() -> None:
        assert await indexes.check_freshness(Repository(world.root), max_wait=0.0) is None
        await to_thread.run_sync(hanging_git.wait_until_hanging)
        if ending == "stop":
            indexes.stop_checks()
        elif ending == "wait":
            await indexes.wait_for_checks()
        await to_thread.run_sync(hanging_git.wait_until_gone)

    anyio.run(leave_check)
