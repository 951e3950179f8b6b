"""An index is built, kept up to date and described; nothing in a repository can stop the build."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.toolsets.code.analysis.history import replay as history
from cleats.toolsets.code.analysis.history.line_authors import BlameLedger
from cleats.toolsets.code.index import catalogue_schema, changes, ingest
from tests.support.indexes import IndexedRepository


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", "def first():\n    return 1\n\ndef second():\n    return first()\n")
    world.write_file("app/extra.py", 'class Extra:\n    """A few words about what it is."""\n')
    world.write_file("README.md", "# Title\n\nSome words about it.\n")
    return world


def track_world(world: IndexedRepository) -> IndexedRepository:
    world.run_git("init", "-q", "-b", "main")
    world.commit()
    return world


# What is built


def test_a_first_build_reads_everything(world: IndexedRepository) -> None:
    report = world.build_index()

    assert report.published
    assert (report.files.total, report.files.added, report.files.unchanged) == (3, 3, 0)
    assert report.languages == {"markdown": 1, "python": 2}
    assert report.generation == world.lease_current().name
    assert world.list_paths() == {"app/core.py", "app/extra.py", "README.md"}
    assert ("first",) in world.select_rows("SELECT name FROM chunks")


def test_nothing_is_written_when_nothing_has_changed(world: IndexedRepository) -> None:
    first = track_world(world).build_index()

    second = world.build_index()

    assert not second.published
    assert second.generation == first.generation
    assert (second.files.total, second.files.unchanged) == (3, 3)
    assert second.chunks == first.chunks


def test_an_update_reads_only_what_has_changed(world: IndexedRepository) -> None:
    world.build_index()
    world.write_file("app/core.py", "def third(): ...\n")
    world.write_file("app/new.py", "x = 1\n")
    (world.root / "README.md").unlink()

    report = world.build_index()

    files = report.files
    assert (files.added, files.changed, files.removed, files.unchanged) == (1, 1, 1, 1)
    assert world.list_paths() == {"app/core.py", "app/extra.py", "app/new.py"}
    assert not world.select_rows("SELECT 1 FROM chunks WHERE name = 'first'")
    assert [at.total for at in world.progress_reports if at.phase == "read"][-1] == 2


def test_a_full_build_forgets_everything(world: IndexedRepository) -> None:
    world.build_index()

    report = world.build_index(incremental=False)

    assert report.published
    assert report.files.added == 3


def test_a_file_that_was_only_touched_is_the_same(world: IndexedRepository) -> None:
    world.build_index()
    os.utime(world.root / "README.md", ns=(5 * 10**18, 10**18))

    report = world.build_index()

    assert not report.published
    assert report.files.unchanged == 3


def test_times_are_noted_anew_when_hashing_gets_dear(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_REHASHED_BYTES", 1)
    world.build_index()
    os.utime(world.root / "README.md", ns=(5 * 10**18, 10**18))

    first, second = world.build_index(), world.build_index()

    assert first.published
    assert not second.published


def test_a_change_within_one_tick_of_the_clock_is_seen(world: IndexedRepository) -> None:
    path = world.write_file("a.py", "a = 1\n")
    now = time.time_ns() + 3600 * 10**9  # as if no time had passed until it was read
    os.utime(path, ns=(now, now))
    world.build_index()
    path.write_bytes(b"a = 2\n")
    os.utime(path, ns=(now, now))

    report = world.build_index()

    assert report.files.changed == 1


def test_a_file_whose_content_is_not_worth_it_is_not_read_again(world: IndexedRepository) -> None:
    world.write_file("blob.py", b"\0\1\2" * 100)
    first = world.build_index()

    second = world.build_index()

    assert first.skipped_reasons == {"binary": 1}
    assert "blob.py" not in world.list_paths()
    assert not second.published
    assert second.files.skipped == 1


def test_a_file_can_become_worth_it_and_stop_to_be(world: IndexedRepository) -> None:
    world.write_file("blob.py", b"\0\1\2" * 100)
    world.build_index()

    world.write_file("blob.py", "x = 1\n")
    world.build_index()
    assert "blob.py" in world.list_paths()

    world.write_file("blob.py", b"\0\1\2" * 100)
    world.build_index()
    assert "blob.py" not in world.list_paths()


@pytest.mark.parametrize("with_git", [True, False])
def test_an_index_that_lies_in_its_repository_does_not_index_itself(world: IndexedRepository, with_git: bool) -> None:
    if with_git:
        track_world(world)
    inside = IndexedRepository(world.folder, cache_name="project/cache")

    inside.build_index()

    assert inside.list_paths() == {"app/core.py", "app/extra.py", "README.md"}
    assert not inside.build_index().published


# Modes and options


def test_one_mode_holds_only_its_own(world: IndexedRepository) -> None:
    report = world.build_index(modes=("prose", "extracted-prose"))

    assert set(report.chunks) == {"prose", "extracted-prose"}


def test_another_mode_is_added_and_the_first_one_kept(world: IndexedRepository) -> None:
    world.build_index(modes=("prose", "extracted-prose"))

    report = world.build_index(modes=("code",), incremental=False)

    assert set(report.chunks) == {"code", "prose", "extracted-prose"}


def test_modes_that_are_not_asked_for_are_brought_up_to_date_too(world: IndexedRepository) -> None:
    world.build_index()
    world.write_file("README.md", "# Another\n\nOther words.\n")

    world.build_index(modes=("code",))

    assert ("Another",) in world.select_rows("SELECT name FROM chunks WHERE mode = 'prose'")


def test_an_index_without_vectors_stays_so_until_they_are_asked_for(world: IndexedRepository) -> None:
    assert not world.build_index(vectors=False).vectors
    assert not world.build_index().vectors
    assert world.select_rows("SELECT max(length(vectors)) FROM files") == [(0,)]

    assert world.build_index(vectors=True).vectors
    assert world.select_rows("SELECT max(length(vectors)) FROM files") > [(0,)]


def test_facts_made_by_another_version_are_made_again(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build_index()
    monkeypatch.setattr(changes, "hash_program", lambda: "another")

    report = world.build_index()

    assert report.files.added == 3


def test_every_maker_of_facts_that_is_named_exists() -> None:
    code = Path(changes.__file__).parents[1]

    assert [name for name in changes.FACT_SOURCES if not (code / name).exists()] == []


def test_a_source_that_does_not_exist_is_an_error_and_not_an_empty_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "FACT_SOURCES", ("discovery", "records/gone.py"))
    with pytest.raises(FileNotFoundError, match=r"records/gone\.py"):
        changes.hash_program.__wrapped__()


def test_an_index_of_another_form_is_replaced(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        next_version = catalogue_schema.CATALOGUE_SCHEMA_VERSION + 1
        patch.setattr("cleats.toolsets.code.index.catalogue_layers.CATALOGUE_SCHEMA_VERSION", next_version)
        world.build_index()
    assert world.generation_store.lease_current() is None

    report = world.build_index()

    assert report.files.added == 3
    assert world.generation_store.lease_current() is not None


# Git


def test_a_commit_without_a_change_brings_git_facts_up_to_date(world: IndexedRepository) -> None:
    world.run_git("init", "-q", "-b", "main")
    world.build_index()
    assert world.select_rows("SELECT DISTINCT last_author FROM files") == [(None,)]

    commit = world.commit()
    report = world.build_index()

    assert report.published
    assert report.files.unchanged == 3
    assert world.select_rows("SELECT DISTINCT last_commit FROM files") == [(commit,)]
    assert world.read_meta()["commit"] == commit
    authors = world.select_rows("SELECT authors FROM chunks WHERE name = 'first'")[0][0]
    assert msgspec.msgpack.decode(authors) == ["Ann <ann@example.org>"]


def test_an_update_knows_whether_tracked_files_differ_from_the_commit(world: IndexedRepository) -> None:
    track_world(world)
    world.build_index()
    committed = (world.root / "app/core.py").read_text("utf-8")
    states = []
    for text in (f"{committed}# changed\n", committed):
        world.write_file("app/core.py", text)
        world.build_index()
        states += world.select_rows("SELECT value FROM meta WHERE key = 'dirty'")
    world.write_file("app/core.py", f"{committed}# changed\n")
    world.build_index()
    world.write_file("app/untracked.py", "x = 1\n")
    world.build_index()  # the file that was read is not the one that differs
    states += world.select_rows("SELECT value FROM meta WHERE key = 'dirty'")

    assert states == [("true",), ("false",), ("true",)]


def test_another_branch_with_the_same_files_is_noticed(world: IndexedRepository) -> None:
    track_world(world).build_index()
    world.run_git("checkout", "-q", "-b", "other")

    report = world.build_index()

    assert report.published
    assert world.read_meta()["branch"] == "other"


def test_when_git_is_switched_off_its_facts_go(world: IndexedRepository) -> None:
    track_world(world).build_index()

    world.build_index(git=False)

    assert world.select_rows("SELECT DISTINCT last_author FROM files") == [(None,)]
    assert world.select_rows("SELECT DISTINCT authors FROM chunks") == [(None,)]


def test_a_repository_without_commits_is_indexed(world: IndexedRepository) -> None:
    world.run_git("init", "-q")

    assert world.build_index().files.total == 3
    assert not world.build_index().published


def test_when_the_repository_is_gone_its_facts_go_too(world: IndexedRepository) -> None:
    track_world(world).build_index()
    shutil.rmtree(world.root / ".git")

    report = world.build_index()

    assert report.published
    assert world.select_rows("SELECT DISTINCT last_commit FROM files") == [(None,)]


def test_the_authors_of_a_piece_are_those_of_its_lines_under_one_name_each(world: IndexedRepository) -> None:
    track_world(world)
    world.write_file("app/core.py", "def first():\n    return 2\n\ndef second():\n    return first()\n")
    world.commit("Bob")
    world.write_file(".mailmap", "Ann <ann@example.org> Bob <ann@example.org>\n")
    world.build_index()
    merged = dict(world.select_rows("SELECT name, authors FROM chunks WHERE kind = 'function'"))

    (world.root / ".mailmap").unlink()
    world.build_index()
    apart = dict(world.select_rows("SELECT name, authors FROM chunks WHERE kind = 'function'"))

    ann, bob = "Ann <ann@example.org>", "Bob <ann@example.org>"
    assert msgspec.msgpack.decode(merged["first"]) == [ann]
    assert msgspec.msgpack.decode(apart["first"]) == [ann, bob]
    assert msgspec.msgpack.decode(apart["second"]) == [ann]


@pytest.mark.parametrize("dies", [False, True])
def test_a_history_that_is_read_beside_the_files_is_the_same(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    track_world(world)
    world.write_file("app/core.py", "def first():\n    return 2\n\ndef second():\n    return first()\n")
    world.commit("Bob")
    world.write_file("app/extra.py", "class Extra:\n    changed = True\n")
    facts = "SELECT path, last_author, last_modified, last_commit, churn FROM files ORDER BY path"
    world.build_index()
    expected = world.select_rows(facts), world.select_rows("SELECT name, authors FROM chunks ORDER BY id")
    here, complete = os.getpid(), history.read_full_history
    read_here: list[bool] = []

    def read_history(*args: Any) -> BlameLedger:
        read_here.append(os.getpid() == here)
        if dies and os.getpid() != here:
            os.abort()
        return complete(*args)

    monkeypatch.setattr(history, "read_full_history", read_history)
    monkeypatch.setattr(ingest, "MIN_PARALLEL_HISTORY_FILES", 1)

    world.build_index(incremental=False)

    rows = world.select_rows(facts), world.select_rows("SELECT name, authors FROM chunks ORDER BY id")
    assert rows == expected
    assert read_here == [True] * dies


# Risk


def test_what_one_file_does_changes_what_is_said_of_those_that_call_it(world: IndexedRepository) -> None:
    world.write_file("app/a.py", "from app.b import take\n\n\ndef go():\n    return take(input())\n")
    world.write_file("app/b.py", "def take(value):\n    return eval(value)\n")
    world.build_index()
    (before,) = world.select_rows("SELECT risk FROM chunks WHERE name = 'go'")

    world.write_file("app/b.py", "def take(value):\n    return str(value)\n")
    world.build_index()
    (after,) = world.select_rows("SELECT risk FROM chunks WHERE name = 'go'")

    assert b"eval" in before[0]
    assert b"eval" not in after[0]


# Lint


def test_findings_are_kept_with_the_smallest_piece_they_are_about(world: IndexedRepository) -> None:
    world.write_file("app/core.py", "class A:\n    def f(self):\n        return missing\n")

    world.build_index(lint=True)

    names = [name for name, lint in world.select_rows("SELECT name, lint FROM chunks") if lint]
    assert names == ["A.f"]


def test_other_settings_of_a_linter_are_noticed_and_without_lint_nothing_is_left(
    world: IndexedRepository,
) -> None:
    world.write_file("app/core.py", "class A:\n    def f(self):\n        return missing\n")
    world.build_index(lint=True)

    world.write_file("ruff.toml", 'lint.ignore = ["F821"]\n')
    world.build_index(lint=True)
    assert world.select_rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == []

    (world.root / "ruff.toml").unlink()
    world.build_index(lint=True)
    assert world.select_rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == [(1,)]

    world.build_index(lint=False)
    assert world.select_rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == []
