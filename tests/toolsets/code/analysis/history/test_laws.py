"""Laws that hold for every history, and what remains of an incomplete one."""

import os
import random
import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.system import git
from cleats.toolsets.code.analysis.history.line_authors import (
    BlameLedger,
    FilePatch,
    GitLogParser,
    HistoryEvent,
    Hunk,
    unquote_path,
)
from cleats.toolsets.code.analysis.history.replay import History, count_skipped_commits
from tests.support.git_repositories import ANN_IDENTITY, BEN_IDENTITY, GitCheckout
from tests.support.shell import LAW_SETTINGS

CYD_AUTHOR = "Cyd <cyd@example.com>"
FILE_PATHS = ["a.py", "b.py", "sub/a.py", "sub/c d.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> GitCheckout:
    return GitCheckout.create(tmp_path / "repo")


def summarize_history(history: History) -> dict[bytes, object]:
    """Return everything that is known about each file, and the commits of its lines."""
    ledger = history._ledger
    return {
        path: (history.find_file(path), [ledger.shas[number] for number in entry.lines])
        for path, entry in ledger.files.items()
    }


def make_random_commit(checkout: GitCheckout, rng: random.Random) -> None:
    """Make one of the changes that people make, and commit it."""
    files = [name for name in FILE_PATHS if (checkout.root / name).is_file()]
    author = rng.choice([ANN_IDENTITY, BEN_IDENTITY, CYD_AUTHOR])
    match rng.choice(["edit"] * 6 + ["add", "add", "rename", "delete", "merge", "binary"]):
        case "edit" if files:
            for name in rng.sample(files, rng.randint(1, len(files))):
                edit_file(checkout.root / name, rng)
        case "rename" if files and len(files) < len(FILE_PATHS):
            free = rng.choice([name for name in FILE_PATHS if name not in files])
            (checkout.root / free).parent.mkdir(exist_ok=True)
            (checkout.root / rng.choice(files)).rename(checkout.root / free)
        case "delete" if files:
            (checkout.root / rng.choice(files)).unlink()
        case "binary":
            checkout.write_file(rng.choice(FILE_PATHS), b"\0" + rng.randbytes(9))
        case "merge":
            merge_branch(checkout, rng)
        case _:
            text = [str(rng.randrange(99)) for _ in range(rng.randrange(12))]
            checkout.write_file(rng.choice(FILE_PATHS), "\n".join(text))
    checkout.commit(author)


def edit_file(file: Path, rng: random.Random) -> None:
    lines = file.read_bytes().split(b"\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines) + 1)
        lines[at : at + rng.randrange(3)] = [b"%d" % rng.randrange(99)] * rng.randrange(3)
    file.write_bytes(b"\n".join(lines))


def merge_branch(checkout: GitCheckout, rng: random.Random) -> None:
    name = f"side{checkout.elapsed_minutes}"
    checkout.run_git("checkout", "--quiet", "-b", name)
    for number in range(rng.randint(1, 2)):
        checkout.write_file(f"side/{name}.{number}", "1\n2\n")
        checkout.commit(rng.choice([ANN_IDENTITY, BEN_IDENTITY]))
    checkout.run_git("checkout", "--quiet", "main")
    checkout.elapsed_minutes += 1
    words = ("merge", "--quiet", "--no-ff", "--message", "merge")
    checkout.run_git(*words, name, author=rng.choice([ANN_IDENTITY, CYD_AUTHOR]))


@settings(LAW_SETTINGS, max_examples=4)
@given(st.randoms(use_true_random=False))
def test_going_on_from_any_point_gives_what_reading_everything_gives(
    rng: random.Random,
) -> None:
    with TemporaryDirectory() as folder:
        checkout = GitCheckout.create(Path(folder))
        checkout.commit(a__py="1\n2\n3\n")
        saved = History.from_commit(checkout.root, checkout.head_commit).save()

        for _ in range(2):
            for _ in range(rng.randint(1, 5)):
                make_random_commit(checkout, rng)
            if rng.random() < 0.3:
                checkout.run_git("reset", "--quiet", "--hard", "HEAD~1")
            went_on = History.from_commit(checkout.root, checkout.head_commit, saved)
            all_read = History.from_commit(checkout.root, checkout.head_commit)
            saved = went_on.save()

            assert summarize_history(went_on) == summarize_history(all_read)
            assert went_on.authors == all_read.authors
            assert knows_every_line(checkout, all_read)


def knows_every_line(checkout: GitCheckout, history: History) -> bool:
    return all(
        len(entry.lines) == len((checkout.root / path.decode()).read_bytes().splitlines())
        for path, entry in history._ledger.files.items()
        if entry.whole
    )


def test_another_branch_is_read_from_its_beginning(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    checkout.run_git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")
    saved = History.from_commit(checkout.root, checkout.head_commit).save()
    checkout.run_git("checkout", "--quiet", "main")
    checkout.commit(CYD_AUTHOR, b__py="1\n")
    checkout.run_git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN_IDENTITY)

    history = History.from_commit(checkout.root, checkout.head_commit, saved)

    assert history.authors == ["", ANN_IDENTITY, CYD_AUTHOR, BEN_IDENTITY]
    assert summarize_history(history) == summarize_history(History.from_commit(checkout.root, checkout.head_commit))


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_save_is_as_good_as_none(checkout: GitCheckout, damage: bytes | None) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    saved = History.from_commit(checkout.root, checkout.head_commit).save()
    previous = saved[: len(saved) // 2] if damage is None else damage

    assert History.from_commit(checkout.root, checkout.head_commit, previous).authors == ["", ANN_IDENTITY]


def test_a_save_of_a_commit_that_is_gone_is_as_good_as_none(checkout: GitCheckout, tmp_path: Path) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    other = GitCheckout.create(tmp_path / "other")
    other.commit(BEN_IDENTITY, a__py="1\n")

    history = History.from_commit(
        checkout.root, checkout.head_commit, History.from_commit(other.root, other.head_commit).save()
    )

    assert history.authors == ["", ANN_IDENTITY]


def test_older_commits_than_the_limit_are_left_out_and_that_is_said(checkout: GitCheckout) -> None:
    text = ["0", "1", "2", "3", "4", "5"]
    checkout.commit(ANN_IDENTITY, a__py="\n".join(text), b__py="1\n")
    for number in range(6):
        text[number] = "x"
        checkout.commit(BEN_IDENTITY, a__py="\n".join(text))

    history = History.from_commit(checkout.root, checkout.head_commit, None, 3)

    assert history.find_authors("a.py", 1, 3) == []
    assert history.find_authors("a.py", 4, 9, "\n".join(text).encode()) == [BEN_IDENTITY]
    assert history.find_file("b.py") is None
    assert history.warnings == ["only the newest 3 commits were read; older lines and files have no author"]


@given(st.integers(0, 500), st.integers(1, 100))
def test_what_is_left_out_keeps_the_limit_and_moves_in_steps(commits: int, most: int) -> None:
    base = count_skipped_commits(commits, most)

    assert min(commits, most * 4 // 5) <= commits - base <= most
    assert base % max(1, most // 5) == 0


def test_going_on_beyond_the_limit_gives_what_reading_everything_gives(
    checkout: GitCheckout,
) -> None:
    saved: bytes | None = None
    for number in range(7):
        head = checkout.commit(ANN_IDENTITY, a__py=f"{number}\n" * number)
        history = History.from_commit(checkout.root, head, saved, 5)
        saved = history.save()

        assert summarize_history(history) == summarize_history(History.from_commit(checkout.root, head, None, 5))


def test_a_shallow_clone_names_nobody_for_what_it_began_with(checkout: GitCheckout, tmp_path: Path) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n", b__py="1\n")
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")
    checkout.commit(CYD_AUTHOR, a__py="1\n2\n3\n")
    source = checkout.root.as_uri()
    checkout.run_git("clone", "--quiet", "--depth=2", source, str(tmp_path / "shallow"))
    clone = GitCheckout(tmp_path / "shallow")

    history = History.from_commit(clone.root, clone.head_commit)

    assert history.find_authors("a.py", 1, 2) == []
    assert history.find_authors("a.py", 3, 3) == [CYD_AUTHOR]
    untouched = history.find_file("b.py")
    assert untouched is not None
    assert (untouched.last_author, untouched.last_commit, untouched.churn) == ("", None, None)
    assert "git fetch --unshallow" in history.warnings[0]


def test_a_clone_that_is_made_whole_is_read_anew(checkout: GitCheckout, tmp_path: Path) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")
    source = checkout.root.as_uri()
    checkout.run_git("clone", "--quiet", "--depth=1", source, str(tmp_path / "shallow"))
    clone = GitCheckout(tmp_path / "shallow")
    saved = History.from_commit(clone.root, clone.head_commit).save()
    clone.run_git("fetch", "--quiet", "--unshallow")

    history = History.from_commit(clone.root, clone.head_commit, saved)

    assert history.warnings == []
    assert history.find_authors("a.py", 1, 2) == [ANN_IDENTITY, BEN_IDENTITY]


def test_where_blobs_are_missing_files_have_a_last_author(checkout: GitCheckout, tmp_path: Path) -> None:
    checkout.commit(ANN_IDENTITY, a__py="old\n", b__py="1\n")
    checkout.run_git("mv", "b.py", "c.py")
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")
    checkout.run_git("config", "uploadpack.allowFilter", "true")
    words = ("clone", "--quiet", "--filter=blob:none", checkout.root.as_uri())
    checkout.run_git(*words, str(tmp_path / "partial"))
    partial = GitCheckout(tmp_path / "partial")
    objects = sorted((partial.root / ".git" / "objects").rglob("*"))

    history = History.from_commit(partial.root, partial.head_commit)

    file_history = history.find_file("a.py")
    assert file_history is not None
    assert (file_history.last_author, file_history.churn) == (BEN_IDENTITY, None)
    assert history.list_line_authors("a.py") == []
    assert history.find_file("c.py") is not None
    assert history.find_file("b.py") is None
    assert "missing" in history.warnings[0]
    assert sorted((partial.root / ".git" / "objects").rglob("*")) == objects
    partial.commit(CYD_AUTHOR, a__py="1\n")
    reread_history = History.from_commit(partial.root, partial.head_commit, history.save()).find_file("a.py")
    assert reread_history is not None
    assert reread_history.last_author == CYD_AUTHOR


def test_a_damaged_repository_is_a_warning(checkout: GitCheckout) -> None:
    head = checkout.commit(ANN_IDENTITY, a__py="1\n")
    shutil.rmtree(checkout.root / ".git" / "objects")
    (checkout.root / ".git" / "objects").mkdir()

    history = History.from_commit(checkout.root, head)

    assert history.find_file("a.py") is None
    assert history.find_authors("a.py", 1, 1) == []
    assert len(history.warnings) == 1


def test_a_repository_that_holds_git_up_is_a_warning(checkout: GitCheckout, monkeypatch: pytest.MonkeyPatch) -> None:
    head = checkout.commit(ANN_IDENTITY, a__py="1\n")
    os.mkfifo(checkout.root / ".gitattributes")
    monkeypatch.setattr(git, "SILENCE_TIMEOUT_SECONDS", 1.0)

    history = History.from_commit(checkout.root, head)

    assert history.find_authors("a.py", 1, 1) == []
    assert history.warnings == ["git log printed nothing for 1 s"]


def test_changed_files_that_hold_git_up_are_a_warning(checkout: GitCheckout, monkeypatch: pytest.MonkeyPatch) -> None:
    head = checkout.commit(ANN_IDENTITY, a__py="1\n")
    saved = History.from_commit(checkout.root, head).save()
    (checkout.root / "a.py").write_text("1\n2\n")
    os.mkfifo(checkout.root / ".gitattributes")
    monkeypatch.setattr(git, "SILENCE_TIMEOUT_SECONDS", 1.0)

    history = History.from_commit(checkout.root, head, saved)

    assert history.find_authors("a.py", 1, 1) == [ANN_IDENTITY]
    assert [warning.partition(";")[0] for warning in history.warnings] == ["git diff printed nothing for 1 s"]


GIT_LOG_OUTPUT = b"""\
\x01a1\0\x0012\0Ann <a>

diff --git a/x y b/x y
new file mode 100644
index 0000000..1
--- /dev/null
+++ b/x y\t
@@ -0,0 +1,2 @@
+1
+@@ -1 +1 @@
\\ No newline at end of file
\x01b2\0a1\0\x2d1\0B <b>
:100644 100644 1 2 R100\t"a\\tb"\tc
\x01c3\0b2\x20a1\x0099999999999999999999\0B <b>
diff --git a/x b/z
similarity index 90%
rename from x
rename to z
@@ -3,2 +2,0 @@ def f():
-a
-b
diff --git "a/\\303\\274" "b/\\303\\274"
deleted file mode 100644
Binary files "a/\\303\\274" and /dev/null differ
"""


def parse_log(pieces: Iterable[bytes]) -> list[HistoryEvent]:
    parser = GitLogParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [*events, *parser.finish()]


@given(st.lists(st.integers(0, len(GIT_LOG_OUTPUT))))
def test_pieces_may_end_anywhere(ends: list[int]) -> None:
    cuts = [0, *sorted(ends), len(GIT_LOG_OUTPUT)]

    events = parse_log(GIT_LOG_OUTPUT[start:end] for start, end in pairwise(cuts))

    assert events == parse_log([GIT_LOG_OUTPUT])


def test_a_log_becomes_commits_and_patches() -> None:
    ann, created, ben, moved, merge, cut, gone = parse_log([GIT_LOG_OUTPUT])

    assert ann == ("a1", (), 12, "Ann <a>")
    assert created == FilePatch(None, b"x y", [Hunk(0, 0, 2)])
    assert ben == ("b2", ("a1",), 0, "B <b>")
    assert moved == FilePatch(b"a\tb", b"c", opaque=True)
    assert merge == ("c3", ("b2", "a1"), 2**53, "B <b>")
    assert cut == FilePatch(b"x", b"z", [Hunk(2, 2, 0)])
    assert gone == FilePatch(b"\xc3\xbc", None, opaque=True)


@given(st.binary())
def test_quotes_around_a_path_are_undone(path: bytes) -> None:
    quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'

    assert unquote_path(quoted) == path


def test_an_empty_ledger_can_be_saved() -> None:
    assert BlameLedger.load(BlameLedger().save()) == BlameLedger()
