"""What holds for every history, and what is left of one that is not whole."""

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

from cleats.toolsets.code.history import git
from cleats.toolsets.code.history.ledger import Ledger
from cleats.toolsets.code.history.patches import Event, Hunk, Parser, Patch, unquote
from cleats.toolsets.code.history.reading import base_of
from cleats.toolsets.code.history.replay import History
from tests.git_world import ANN, BEN, Checkout
from tests.shell import LAW

CYD = "Cyd <cyd@example.com>"
NAMES = ["a.py", "b.py", "sub/a.py", "sub/c d.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.new(tmp_path / "repo")


def story(history: History) -> dict[bytes, object]:
    """All that can be asked about each file, and the commits of its lines."""
    ledger = history._ledger
    return {
        path: (history.file(path), [ledger.shas[number] for number in entry.lines])
        for path, entry in ledger.files.items()
    }


def work(checkout: Checkout, chance: random.Random) -> None:
    """Do one of the things people do."""
    files = [name for name in NAMES if (checkout.root / name).is_file()]
    author = chance.choice([ANN, BEN, CYD])
    match chance.choice(["edit"] * 6 + ["add", "add", "rename", "delete", "merge", "binary"]):
        case "edit" if files:
            for name in chance.sample(files, chance.randint(1, len(files))):
                edit(checkout.root / name, chance)
        case "rename" if files and len(files) < len(NAMES):
            free = chance.choice([name for name in NAMES if name not in files])
            (checkout.root / free).parent.mkdir(exist_ok=True)
            (checkout.root / chance.choice(files)).rename(checkout.root / free)
        case "delete" if files:
            (checkout.root / chance.choice(files)).unlink()
        case "binary":
            checkout.write(chance.choice(NAMES), b"\0" + chance.randbytes(9))
        case "merge":
            branch(checkout, chance)
        case _:
            text = [str(chance.randrange(99)) for _ in range(chance.randrange(12))]
            checkout.write(chance.choice(NAMES), "\n".join(text))
    checkout.commit(author)


def edit(file: Path, chance: random.Random) -> None:
    lines = file.read_bytes().split(b"\n")
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randrange(3)] = [b"%d" % chance.randrange(99)] * chance.randrange(3)
    file.write_bytes(b"\n".join(lines))


def branch(checkout: Checkout, chance: random.Random) -> None:
    name = f"side{checkout.minutes}"
    checkout.git("checkout", "--quiet", "-b", name)
    for number in range(chance.randint(1, 2)):
        checkout.write(f"side/{name}.{number}", "1\n2\n")
        checkout.commit(chance.choice([ANN, BEN]))
    checkout.git("checkout", "--quiet", "main")
    checkout.minutes += 1
    words = ("merge", "--quiet", "--no-ff", "--message", "merge")
    checkout.git(*words, name, author=chance.choice([ANN, CYD]))


@settings(LAW, max_examples=4)
@given(st.randoms(use_true_random=False))
def test_going_on_from_any_point_gives_what_reading_everything_gives(
    chance: random.Random,
) -> None:
    with TemporaryDirectory() as folder:
        checkout = Checkout.new(Path(folder))
        checkout.commit(a__py="1\n2\n3\n")
        saved = History.of(checkout.root, checkout.head).save()

        for _ in range(2):
            for _ in range(chance.randint(1, 5)):
                work(checkout, chance)
            if chance.random() < 0.3:
                checkout.git("reset", "--quiet", "--hard", "HEAD~1")
            went_on = History.of(checkout.root, checkout.head, saved)
            all_read = History.of(checkout.root, checkout.head)
            saved = went_on.save()

            assert story(went_on) == story(all_read)
            assert went_on.authors == all_read.authors
            assert knows_every_line(checkout, all_read)


def knows_every_line(checkout: Checkout, history: History) -> bool:
    return all(
        len(entry.lines) == len((checkout.root / path.decode()).read_bytes().splitlines())
        for path, entry in history._ledger.files.items()
        if entry.whole
    )


def test_another_branch_is_read_from_its_beginning(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n")
    checkout.git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN, a__py="1\n2\n")
    saved = History.of(checkout.root, checkout.head).save()
    checkout.git("checkout", "--quiet", "main")
    checkout.commit(CYD, b__py="1\n")
    checkout.git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN)

    found = History.of(checkout.root, checkout.head, saved)

    assert found.authors == ["", ANN, CYD, BEN]
    assert story(found) == story(History.of(checkout.root, checkout.head))


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_save_is_as_good_as_none(checkout: Checkout, damage: bytes | None) -> None:
    checkout.commit(ANN, a__py="1\n")
    saved = History.of(checkout.root, checkout.head).save()
    previous = saved[: len(saved) // 2] if damage is None else damage

    assert History.of(checkout.root, checkout.head, previous).authors == ["", ANN]


def test_a_save_of_a_commit_that_is_gone_is_as_good_as_none(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit(ANN, a__py="1\n")
    other = Checkout.new(tmp_path / "other")
    other.commit(BEN, a__py="1\n")

    found = History.of(checkout.root, checkout.head, History.of(other.root, other.head).save())

    assert found.authors == ["", ANN]


def test_older_commits_than_the_limit_are_left_out_and_that_is_said(checkout: Checkout) -> None:
    text = ["0", "1", "2", "3", "4", "5"]
    checkout.commit(ANN, a__py="\n".join(text), b__py="1\n")
    for number in range(6):
        text[number] = "x"
        checkout.commit(BEN, a__py="\n".join(text))

    found = History.of(checkout.root, checkout.head, None, 3)

    assert found.authors_of("a.py", 1, 3) == []
    assert found.authors_of("a.py", 4, 9, "\n".join(text).encode()) == [BEN]
    assert found.file("b.py") is None
    assert found.warnings == [
        "only the newest 3 commits were read; older lines and files have no author"
    ]


@given(st.integers(0, 500), st.integers(1, 100))
def test_what_is_left_out_keeps_the_limit_and_moves_in_steps(commits: int, most: int) -> None:
    base = base_of(commits, most)

    assert min(commits, most * 4 // 5) <= commits - base <= most
    assert base % max(1, most // 5) == 0


def test_going_on_beyond_the_limit_gives_what_reading_everything_gives(
    checkout: Checkout,
) -> None:
    saved: bytes | None = None
    for number in range(7):
        head = checkout.commit(ANN, a__py=f"{number}\n" * number)
        found = History.of(checkout.root, head, saved, 5)
        saved = found.save()

        assert story(found) == story(History.of(checkout.root, head, None, 5))


def test_a_shallow_clone_names_nobody_for_what_it_began_with(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit(ANN, a__py="1\n", b__py="1\n")
    checkout.commit(BEN, a__py="1\n2\n")
    checkout.commit(CYD, a__py="1\n2\n3\n")
    source = checkout.root.as_uri()
    checkout.git("clone", "--quiet", "--depth=2", source, str(tmp_path / "shallow"))
    clone = Checkout(tmp_path / "shallow")

    found = History.of(clone.root, clone.head)

    assert found.authors_of("a.py", 1, 2) == []
    assert found.authors_of("a.py", 3, 3) == [CYD]
    untouched = found.file("b.py")
    assert untouched is not None
    assert (untouched.last_author, untouched.last_commit, untouched.churn) == ("", None, None)
    assert "git fetch --unshallow" in found.warnings[0]


def test_a_clone_that_is_made_whole_is_read_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit(ANN, a__py="1\n")
    checkout.commit(BEN, a__py="1\n2\n")
    source = checkout.root.as_uri()
    checkout.git("clone", "--quiet", "--depth=1", source, str(tmp_path / "shallow"))
    clone = Checkout(tmp_path / "shallow")
    saved = History.of(clone.root, clone.head).save()
    clone.git("fetch", "--quiet", "--unshallow")

    found = History.of(clone.root, clone.head, saved)

    assert found.warnings == []
    assert found.authors_of("a.py", 1, 2) == [ANN, BEN]


def test_where_blobs_are_missing_files_have_a_last_author(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit(ANN, a__py="old\n", b__py="1\n")
    checkout.git("mv", "b.py", "c.py")
    checkout.commit(BEN, a__py="1\n2\n")
    checkout.git("config", "uploadpack.allowFilter", "true")
    words = ("clone", "--quiet", "--filter=blob:none", checkout.root.as_uri())
    checkout.git(*words, str(tmp_path / "partial"))
    partial = Checkout(tmp_path / "partial")
    objects = sorted((partial.root / ".git" / "objects").rglob("*"))

    found = History.of(partial.root, partial.head)

    history = found.file("a.py")
    assert history is not None
    assert (history.last_author, history.churn) == (BEN, None)
    assert found.line_authors("a.py") == []
    assert found.file("c.py") is not None
    assert found.file("b.py") is None
    assert "missing" in found.warnings[0]
    assert sorted((partial.root / ".git" / "objects").rglob("*")) == objects
    partial.commit(CYD, a__py="1\n")
    again = History.of(partial.root, partial.head, found.save()).file("a.py")
    assert again is not None
    assert again.last_author == CYD


def test_a_damaged_repository_is_a_warning(checkout: Checkout) -> None:
    head = checkout.commit(ANN, a__py="1\n")
    shutil.rmtree(checkout.root / ".git" / "objects")
    (checkout.root / ".git" / "objects").mkdir()

    found = History.of(checkout.root, head)

    assert found.file("a.py") is None
    assert found.authors_of("a.py", 1, 1) == []
    assert len(found.warnings) == 1


def test_a_repository_that_holds_git_up_is_a_warning(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = checkout.commit(ANN, a__py="1\n")
    os.mkfifo(checkout.root / ".gitattributes")
    monkeypatch.setattr(git, "SILENCE", 1.0)

    found = History.of(checkout.root, head)

    assert found.authors_of("a.py", 1, 1) == []
    assert found.warnings == ["git log said nothing for 1 s"]


def test_changed_files_that_hold_git_up_are_a_warning(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = checkout.commit(ANN, a__py="1\n")
    saved = History.of(checkout.root, head).save()
    (checkout.root / "a.py").write_text("1\n2\n")
    os.mkfifo(checkout.root / ".gitattributes")
    monkeypatch.setattr(git, "SILENCE", 1.0)

    found = History.of(checkout.root, head, saved)

    assert found.authors_of("a.py", 1, 1) == [ANN]
    assert [warning.partition(";")[0] for warning in found.warnings] == [
        "git diff said nothing for 1 s"
    ]


LOG = b"""\
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


def read(pieces: Iterable[bytes]) -> list[Event]:
    parser = Parser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [*events, *parser.end()]


@given(st.lists(st.integers(0, len(LOG))))
def test_pieces_may_end_anywhere(ends: list[int]) -> None:
    cuts = [0, *sorted(ends), len(LOG)]

    found = read(LOG[start:end] for start, end in pairwise(cuts))

    assert found == read([LOG])


def test_a_log_becomes_commits_and_patches() -> None:
    ann, created, ben, moved, merge, cut, gone = read([LOG])

    assert ann == ("a1", (), 12, "Ann <a>")
    assert created == Patch(None, b"x y", [Hunk(0, 0, 2)])
    assert ben == ("b2", ("a1",), 0, "B <b>")
    assert moved == Patch(b"a\tb", b"c", opaque=True)
    assert merge == ("c3", ("b2", "a1"), 2**53, "B <b>")
    assert cut == Patch(b"x", b"z", [Hunk(2, 2, 0)])
    assert gone == Patch(b"\xc3\xbc", None, opaque=True)


@given(st.binary())
def test_quotes_around_a_path_are_undone(path: bytes) -> None:
    quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'

    assert unquote(quoted) == path


def test_an_empty_ledger_can_be_saved() -> None:
    assert Ledger.load(Ledger().save()) == Ledger()
