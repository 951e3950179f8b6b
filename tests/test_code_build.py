"""An index is built, kept up to date and described; nothing in a repository can stop it."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.toolsets.code.history import reading as history
from cleats.toolsets.code.history.ledger import Ledger
from cleats.toolsets.code.indexing import authorship, fingerprint, survey
from cleats.toolsets.code.store import schema
from tests.index_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("app/core.py", "def first():\n    return 1\n\ndef second():\n    return first()\n")
    world.write("app/extra.py", 'class Extra:\n    """A few words about what it is."""\n')
    world.write("README.md", "# Title\n\nSome words about it.\n")
    return world


def tracked(world: World) -> World:
    world.git("init", "-q", "-b", "main")
    world.commit()
    return world


# What is built


def test_a_first_build_reads_everything(world: World) -> None:
    done = world.build()

    assert done.published
    assert (done.files.total, done.files.added, done.files.unchanged) == (3, 3, 0)
    assert done.languages == {"markdown": 1, "python": 2}
    assert done.generation == world.lease().name
    assert world.paths() == {"app/core.py", "app/extra.py", "README.md"}
    assert ("first",) in world.rows("SELECT name FROM chunks")


def test_nothing_is_written_when_nothing_has_changed(world: World) -> None:
    first = tracked(world).build()

    again = world.build()

    assert not again.published
    assert again.generation == first.generation
    assert (again.files.total, again.files.unchanged) == (3, 3)
    assert again.chunks == first.chunks


def test_an_update_reads_only_what_has_changed(world: World) -> None:
    world.build()
    world.write("app/core.py", "def third(): ...\n")
    world.write("app/new.py", "x = 1\n")
    (world.root / "README.md").unlink()

    done = world.build()

    files = done.files
    assert (files.added, files.changed, files.removed, files.unchanged) == (1, 1, 1, 1)
    assert world.paths() == {"app/core.py", "app/extra.py", "app/new.py"}
    assert not world.rows("SELECT 1 FROM chunks WHERE name = 'first'")
    assert [at.total for at in world.seen if at.phase == "read"][-1] == 2


def test_a_full_build_forgets_everything(world: World) -> None:
    world.build()

    done = world.build(incremental=False)

    assert done.published
    assert done.files.added == 3


def test_a_file_that_was_only_touched_is_the_same(world: World) -> None:
    world.build()
    os.utime(world.root / "README.md", ns=(5 * 10**18, 10**18))

    done = world.build()

    assert not done.published
    assert done.files.unchanged == 3


def test_times_are_noted_anew_when_hashing_gets_dear(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "WORTH_NOTING", 1)
    world.build()
    os.utime(world.root / "README.md", ns=(5 * 10**18, 10**18))

    first, second = world.build(), world.build()

    assert first.published
    assert not second.published


def test_a_change_within_one_tick_of_the_clock_is_seen(world: World) -> None:
    place = world.write("a.py", "a = 1\n")
    now = time.time_ns() + 3600 * 10**9  # as if no time had passed until it was read
    os.utime(place, ns=(now, now))
    world.build()
    place.write_bytes(b"a = 2\n")
    os.utime(place, ns=(now, now))

    done = world.build()

    assert done.files.changed == 1


def test_a_file_whose_content_is_not_worth_it_is_not_read_again(world: World) -> None:
    world.write("blob.py", b"\0\1\2" * 100)
    first = world.build()

    again = world.build()

    assert first.skipped_reasons == {"binary": 1}
    assert "blob.py" not in world.paths()
    assert not again.published
    assert again.files.skipped == 1


def test_a_file_can_become_worth_it_and_stop_to_be(world: World) -> None:
    world.write("blob.py", b"\0\1\2" * 100)
    world.build()

    world.write("blob.py", "x = 1\n")
    world.build()
    assert "blob.py" in world.paths()

    world.write("blob.py", b"\0\1\2" * 100)
    world.build()
    assert "blob.py" not in world.paths()


@pytest.mark.parametrize("with_git", [True, False])
def test_an_index_that_lies_in_its_repository_does_not_index_itself(
    world: World, with_git: bool
) -> None:
    if with_git:
        tracked(world)
    inside = World(world.folder, cache_name="project/cache")

    inside.build()

    assert inside.paths() == {"app/core.py", "app/extra.py", "README.md"}
    assert not inside.build().published


# Modes and options


def test_one_mode_holds_only_its_own(world: World) -> None:
    done = world.build(modes=("prose", "extracted-prose"))

    assert set(done.chunks) == {"prose", "extracted-prose"}


def test_another_mode_is_added_and_the_first_one_kept(world: World) -> None:
    world.build(modes=("prose", "extracted-prose"))

    done = world.build(modes=("code",), incremental=False)

    assert set(done.chunks) == {"code", "prose", "extracted-prose"}


def test_modes_that_are_not_asked_for_are_brought_up_to_date_too(world: World) -> None:
    world.build()
    world.write("README.md", "# Another\n\nOther words.\n")

    world.build(modes=("code",))

    assert ("Another",) in world.rows("SELECT name FROM chunks WHERE mode = 'prose'")


def test_an_index_without_vectors_stays_so_until_they_are_asked_for(world: World) -> None:
    assert not world.build(vectors=False).vectors
    assert not world.build().vectors
    assert world.rows("SELECT max(length(vectors)) FROM files") == [(0,)]

    assert world.build(vectors=True).vectors
    assert world.rows("SELECT max(length(vectors)) FROM files") > [(0,)]


def test_facts_made_by_another_version_are_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build()
    monkeypatch.setattr(fingerprint, "ours", lambda: "another")

    done = world.build()

    assert done.files.added == 3


def test_every_maker_of_facts_that_is_named_exists() -> None:
    code = Path(fingerprint.__file__).parents[1]

    assert [name for name in fingerprint.MAKERS if not (code / name).exists()] == []


def test_an_index_of_another_form_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("cleats.toolsets.code.store.catalogue.SCHEMA", schema.SCHEMA + 1)
        world.build()
    assert world.shelf.current() is None

    done = world.build()

    assert done.files.added == 3
    assert world.shelf.current() is not None


# Git


def test_a_commit_without_a_change_brings_git_facts_up_to_date(world: World) -> None:
    world.git("init", "-q", "-b", "main")
    world.build()
    assert world.rows("SELECT DISTINCT last_author FROM files") == [(None,)]

    commit = world.commit()
    done = world.build()

    assert done.published
    assert done.files.unchanged == 3
    assert world.rows("SELECT DISTINCT last_commit FROM files") == [(commit,)]
    assert world.meta()["commit"] == commit
    authors = world.rows("SELECT authors FROM chunks WHERE name = 'first'")[0][0]
    assert msgspec.msgpack.decode(authors) == ["Ann <ann@example.org>"]


def test_another_branch_with_the_same_files_is_noticed(world: World) -> None:
    tracked(world).build()
    world.git("checkout", "-q", "-b", "other")

    done = world.build()

    assert done.published
    assert world.meta()["branch"] == "other"


def test_when_git_is_switched_off_its_facts_go(world: World) -> None:
    tracked(world).build()

    world.build(git=False)

    assert world.rows("SELECT DISTINCT last_author FROM files") == [(None,)]
    assert world.rows("SELECT DISTINCT authors FROM chunks") == [(None,)]


def test_a_repository_without_commits_is_indexed(world: World) -> None:
    world.git("init", "-q")

    assert world.build().files.total == 3
    assert not world.build().published


def test_when_the_repository_is_gone_its_facts_go_too(world: World) -> None:
    tracked(world).build()
    shutil.rmtree(world.root / ".git")

    done = world.build()

    assert done.published
    assert world.rows("SELECT DISTINCT last_commit FROM files") == [(None,)]


def test_the_authors_of_a_piece_are_those_of_its_lines_under_one_name_each(world: World) -> None:
    tracked(world)
    world.write("app/core.py", "def first():\n    return 2\n\ndef second():\n    return first()\n")
    world.commit("Bob")
    world.write(".mailmap", "Ann <ann@example.org> Bob <ann@example.org>\n")
    world.build()
    merged = dict(world.rows("SELECT name, authors FROM chunks WHERE kind = 'function'"))

    (world.root / ".mailmap").unlink()
    world.build()
    apart = dict(world.rows("SELECT name, authors FROM chunks WHERE kind = 'function'"))

    ann, bob = "Ann <ann@example.org>", "Bob <ann@example.org>"
    assert msgspec.msgpack.decode(merged["first"]) == [ann]
    assert msgspec.msgpack.decode(apart["first"]) == [ann, bob]
    assert msgspec.msgpack.decode(apart["second"]) == [ann]


@pytest.mark.parametrize("dies", [False, True])
def test_a_history_that_is_read_beside_the_files_is_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    tracked(world)
    world.write("app/core.py", "def first():\n    return 2\n\ndef second():\n    return first()\n")
    world.commit("Bob")
    world.write("app/extra.py", "class Extra:\n    changed = True\n")
    facts = "SELECT path, last_author, last_modified, last_commit, churn FROM files ORDER BY path"
    world.build()
    expected = world.rows(facts), world.rows("SELECT name, authors FROM chunks ORDER BY id")
    here, complete = os.getpid(), history.complete
    read_here: list[bool] = []

    def watched(*given: Any) -> Ledger:
        read_here.append(os.getpid() == here)
        if dies and os.getpid() != here:
            os.abort()
        return complete(*given)

    monkeypatch.setattr(history, "complete", watched)
    monkeypatch.setattr(authorship, "MANY", 1)

    world.build(incremental=False)

    found = world.rows(facts), world.rows("SELECT name, authors FROM chunks ORDER BY id")
    assert found == expected
    assert read_here == [True] * dies


# Risk


def test_what_one_file_does_changes_what_is_said_of_those_that_call_it(world: World) -> None:
    world.write("app/a.py", "from app.b import take\n\n\ndef go():\n    return take(input())\n")
    world.write("app/b.py", "def take(value):\n    return eval(value)\n")
    world.build()
    (before,) = world.rows("SELECT risk FROM chunks WHERE name = 'go'")

    world.write("app/b.py", "def take(value):\n    return str(value)\n")
    world.build()
    (after,) = world.rows("SELECT risk FROM chunks WHERE name = 'go'")

    assert b"eval" in before[0]
    assert b"eval" not in after[0]


# Lint


def test_findings_are_kept_with_the_smallest_piece_they_are_about(world: World) -> None:
    world.write("app/core.py", "class A:\n    def f(self):\n        return missing\n")

    world.build(lint=True)

    found = [name for name, lint in world.rows("SELECT name, lint FROM chunks") if lint]
    assert found == ["A.f"]


def test_other_settings_of_a_linter_are_noticed_and_without_lint_nothing_is_left(
    world: World,
) -> None:
    world.write("app/core.py", "class A:\n    def f(self):\n        return missing\n")
    world.build(lint=True)

    world.write("ruff.toml", 'lint.ignore = ["F821"]\n')
    world.build(lint=True)
    assert world.rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == []

    (world.root / "ruff.toml").unlink()
    world.build(lint=True)
    assert world.rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == [(1,)]

    world.build(lint=False)
    assert world.rows("SELECT 1 FROM chunks WHERE lint IS NOT NULL") == []
