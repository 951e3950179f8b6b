"""`build_index` and `index_status` as a server runs them, and what they know about freshness."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome
from cleats.contract.violations import Validator
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import Progress, Report
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.code.indexing import artifacts, freshness
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.freshness import Freshness
from cleats.toolsets.code.repository import Repository
from tests.index_world import World
from tests.requirements import requirement


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("app/core.py", "def first():\n    return 1\n")
    world.write("README.md", "# Title\n\nSome words about it.\n")
    return world


def settings(world: World, **more: Any) -> Settings:
    chosen = {"index_workers": 1, "index_lint": "off", "telemetry": "off", **more}
    return Settings(cache_dir=world.cache, project_dir=world.root, **chosen)


def called(
    world: World, tool: str, reports: Callable[[Report], None] | None = None, **given: Any
) -> tuple[Call, Outcome]:
    """Call a tool on a server of its own."""

    async def send(report: Report) -> None:
        if reports is not None:
            reports(report)

    async def main() -> tuple[Call, Outcome]:
        call = Call(tool=tool, arguments=given, reporter=Progress(send))
        async with serving(world) as dispatcher:
            return call, await dispatcher.dispatch(call)

    return anyio.run(main)


def serving(world: World) -> AbstractAsyncContextManager[Dispatcher]:
    made, vitals = settings(world), Vitals()
    return app.dispatching(made, app.toolsets(made, ["code"], vitals), vitals)


def result(world: World, tool: str, **given: Any) -> dict[str, Any]:
    _, outcome = called(world, tool, **given)
    assert isinstance(outcome, Done), outcome
    schema = app.catalogue(settings(world)).find(tool).output
    assert not list(Validator(schema or {}).violations(outcome.result))
    return dict(outcome.result)


def fresh(indexes: Indexes, world: World, **given: Any) -> Freshness | None:
    return anyio.run(partial(indexes.freshness, Repository(world.root), **given))


@requirement("b:tools:required:build_index")
def test_build_index_builds_in_a_process_of_its_own_and_reports_progress(
    world: World,
) -> None:
    phases = []

    call, outcome = called(world, "build_index", lambda at: phases.append(at.phase), mode="all")

    assert isinstance(outcome, Done)
    assert outcome.result["files"]["added"] == 2
    assert outcome.result["generation"] == world.lease().name
    assert not outcome.result["restoredArtifacts"]
    assert call.meta.repo == str(world.root)
    assert phases


def test_the_result_fits_its_schema_and_a_second_build_starts_no_process(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = result(world, "build_index")
    monkeypatch.setattr("cleats.runtime.process.run", None)
    again = result(world, "build_index", incremental=True)

    assert first["published"]
    assert not again["published"]
    assert again["generation"] == first["generation"]
    assert again["files"]["unchanged"] == 2


@requirement("a:tools:index_build")
def test_the_older_name_still_works(world: World) -> None:
    _, outcome = called(world, "index_build")

    assert isinstance(outcome, Done)


def test_a_path_that_is_not_there_is_refused(world: World) -> None:
    for tool in ("build_index", "index_status"):
        _, outcome = called(world, tool, repoPath="nowhere")

        assert isinstance(outcome, Failed)
        assert outcome.error.code is ErrorCode.INVALID_REQUEST
        assert outcome.error.message == "Repo path not found: nowhere"


def test_a_cancelled_build_leaves_the_last_index_and_no_process(world: World) -> None:
    before = world.build().generation
    world.write("app/more.py", "x = 1\n")
    lock = world.shelf.claim()
    assert lock is not None

    async def main() -> Outcome:
        async def send(report: Report) -> None:
            assert report.phase == "wait"
            call.cancel()

        call = Call(tool="build_index", arguments={}, reporter=Progress(send))
        async with serving(world) as dispatcher:
            return await dispatcher.dispatch(call)

    outcome = anyio.run(main)
    lock.release()

    assert isinstance(outcome, Cancelled)
    assert world.lease().name == before
    assert result(world, "build_index", incremental=True)["files"]["added"] == 1


def test_status_without_an_index_says_so(world: World) -> None:
    status = result(world, "index_status")

    assert status["repoPath"] == str(world.root)
    assert status["repoId"] == Repository(world.root).id
    assert status["index"] == {"exists": False, "outdated": False}
    assert status["freshness"] is None
    assert status["git"] == {"isRepo": False}


@requirement("a:tools:index_status", "b:tools:required:index_status")
def test_status_tells_what_is_in_the_index_and_what_has_changed_since(world: World) -> None:
    world.write("blob.py", b"\0" * 99)
    world.git("init", "-q", "-b", "main")
    commit = world.commit()
    world.build(sqlite=True)
    world.write("app/core.py", "def other(): ...\n")
    world.write("app/more.py", "x = 1\n")
    (world.root / "README.md").unlink()
    world.git("checkout", "-q", "-b", "side")

    status = result(world, "index_status", repoPath="app")

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
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleats.toolsets.code.indexing.access.RECENT", 0.0)
    indexes = Indexes(settings(world))
    assert fresh(indexes, world) is None
    name = world.build().generation

    assert fresh(indexes, world) == Freshness(name)
    world.write("app/core.py", "changed = True\n")
    assert fresh(indexes, world) == Freshness(name, changed=1)
    world.write("app/more.py", "added = True\n")
    assert fresh(indexes, world) == Freshness(name, added=1, changed=1)
    (world.root / "README.md").unlink()
    seen = fresh(indexes, world)
    assert seen == Freshness(name, added=1, changed=1, removed=1)
    assert str(seen) == "1 new, 1 changed, 1 removed file(s)"


def test_a_second_look_asks_nobody_when_nothing_has_moved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.git("init", "-q")
    world.commit()
    world.build()
    lookout = freshness.Lookout(world.root, world.shelf, world.options)
    for folder in (world.root, world.root / "app"):
        os.utime(folder, ns=(10**18, 10**18))
    first = lookout.look()

    monkeypatch.setattr("cleats.toolsets.code.indexing.survey.discover", None)

    assert lookout.look() is first


def test_a_recent_look_holds_until_another_generation_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleats.toolsets.code.indexing.access.RECENT", 600.0)
    indexes = Indexes(settings(world))
    world.build()
    first = fresh(indexes, world)
    world.write("app/more.py", "x = 1\n")

    assert fresh(indexes, world) is first

    name = world.build().generation
    assert fresh(indexes, world) == Freshness(name)


def test_an_answer_does_not_wait_for_a_slow_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build()
    indexes = Indexes(settings(world))

    assert fresh(indexes, world, within=0.0) is None
    assert fresh(indexes, world) is not None


def test_what_was_seen_before_a_build_is_not_said_of_the_index_after_it(world: World) -> None:
    world.build()
    indexes = Indexes(settings(world))
    world.write("app/more.py", "x = 1\n")
    old = fresh(indexes, world)
    name = world.build().generation

    assert old is not None
    assert old.stale
    assert fresh(indexes, world, within=0.0) is None
    assert fresh(indexes, world) == Freshness(name)


def test_other_settings_make_an_index_old(world: World) -> None:
    world.build()
    options = Indexes(settings(world, index_max_lines=7)).options

    seen = freshness.Lookout(world.root, world.shelf, options).look()

    assert seen is not None
    assert seen.outgrown
    assert str(seen) == "it was built by another version of Cleats or with other settings"


def test_another_branch_at_the_same_commit_is_not_called_another_commit(world: World) -> None:
    world.git("init", "-q", "-b", "main")
    world.commit()
    world.build()
    lookout = freshness.Lookout(world.root, world.shelf, world.options)

    world.git("checkout", "-q", "-b", "side")
    side = lookout.look()
    world.write("app/more.py", "x = 1\n")
    world.commit()
    moved = freshness.Lookout(world.root, world.shelf, world.options).look()

    assert str(side) == "another branch is checked out"
    assert str(moved) == "1 new file(s); another commit is checked out"


def test_a_repository_without_its_git_is_not_said_to_be_at_another_commit(world: World) -> None:
    world.git("init", "-q")
    world.commit()
    world.build()
    (world.root / ".git").rename(world.folder / "away")
    lookout = freshness.Lookout(world.root, world.shelf, world.options)

    assert str(lookout.look()) == "it is no longer under git"

    world.build()
    (world.folder / "away").rename(world.root / ".git")

    assert str(lookout.look()) == "it is under git now"


def test_a_shallow_clone_that_is_made_whole_has_an_old_index(tmp_path: Path) -> None:
    source, world = World(tmp_path / "source"), World(tmp_path)
    source.write("app/core.py", "x = 1\n")
    source.git("init", "-q")
    source.commit()
    source.commit()
    uri = source.root.as_uri()
    source.git("clone", "-q", "--depth=1", uri, str(world.root))
    world.build()
    lookout = freshness.Lookout(world.root, world.shelf, world.options)
    before = lookout.look()

    world.git("fetch", "-q", "--unshallow")
    after = lookout.look()

    assert str(before) == "up to date"
    assert str(after) == "git has another part of the history"
    assert lookout.settled(world.options) is None
    assert world.build().published
    assert str(lookout.look()) == "up to date"


def test_what_an_index_was_not_asked_to_hold_does_not_make_it_old(world: World) -> None:
    world.build(modes=("prose",), vectors=False)

    seen = freshness.Lookout(world.root, world.shelf, world.options).look()

    assert seen is not None
    assert not seen.stale


# An index from elsewhere


def test_an_index_can_be_carried_to_another_machine(world: World, tmp_path: Path) -> None:
    world.build()
    with world.lease() as lease:
        artifacts.export(lease, world.root / "ci-artifacts")
    (world.root / ".gitignore").write_text("ci-artifacts\n")
    other = World(tmp_path, cache_name="other")
    world.write("app/more.py", "x = 1\n")

    done = result(other, "build_index", useArtifacts=True)

    assert done["restoredArtifacts"]
    assert (done["files"]["added"], done["files"]["unchanged"]) == (2, 2)
    world.build()
    assert other.content() == world.content()


def exported(world: World) -> Path:
    world.build()
    with world.lease() as lease:
        artifacts.export(lease, world.folder / "out")
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
    world: World, damage: str, code: ErrorCode
) -> None:
    folder = exported(world)
    before = world.lease().name
    manifest = folder / artifacts.MANIFEST
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
        world.build(artifacts=str(folder))

    assert refused.value.code is code
    assert world.lease().name == before


def test_a_folder_that_no_path_can_name_holds_no_exported_index(world: World) -> None:
    _, outcome = called(world, "build_index", useArtifacts=True, artifactsDir="a\0b")

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.NOT_FOUND


def test_an_exported_index_of_another_version_is_left_alone(world: World) -> None:
    folder = exported(world)
    manifest = folder / artifacts.MANIFEST
    manifest.write_text(manifest.read_text().replace('"schema":', '"schema":9'))
    other = World(world.folder, cache_name="other")

    done = other.build(artifacts=str(folder))

    assert not done.restored_artifacts
    assert done.files.added == 2
    assert "another version" in done.warnings[0]
