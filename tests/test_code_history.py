"""Who wrote each line, who touched a file last, and how busy it is."""

import random
from pathlib import Path

import pytest

from cleats.toolsets.code.history.replay import FileHistory, History
from tests.git_world import ANN, BEN, Checkout, set_trap, sprung
from tests.shell import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.new(tmp_path / "repo")


def history(checkout: Checkout, previous: bytes | None = None) -> History:
    made = History.of(checkout.root, checkout.head, previous)
    assert made.warnings == []
    return made


def known(history: History, path: str | bytes) -> FileHistory:
    found = history.file(path)
    assert found is not None
    return found


def written(history: History, path: str | bytes) -> str:
    """The first letter of each line's author."""
    return "".join(history.authors[each][:1] or "-" for each in history.line_authors(path))


def test_each_line_has_the_author_who_changed_it_last(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n2\n3\n4\n")
    head = checkout.commit(BEN, a__py="1\n2b\n3\n4\n5\n")

    found = history(checkout)

    assert found.authors == ["", ANN, BEN]
    assert written(found, "a.py") == "ABAAB"
    assert found.authors_of("a.py", 1, 1) == [ANN]
    assert found.authors_of("a.py", 1, 4) == [ANN, BEN]
    assert found.authors_of("a.py", 5, 9) == [BEN]
    last = known(found, "a.py")
    assert (last.last_author, last.last_commit, last.churn) == (BEN, head, 7)
    assert last.last_modified == 1_700_000_120


def test_a_removed_line_takes_its_author_along(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n")
    checkout.commit(BEN, a__py="1\n2\n")
    checkout.commit(ANN, a__py="2\n")

    assert written(history(checkout), "a.py") == "B"


def test_a_file_that_git_does_not_know_has_no_history(checkout: Checkout) -> None:
    checkout.commit(a__py="1\n")
    checkout.write("new.py", "1\n")

    found = history(checkout)

    assert found.file("new.py") is None
    assert found.authors_of("new.py", 1, 1) == []


def test_churn_counts_the_last_ten_commits_of_a_file(checkout: Checkout) -> None:
    checkout.commit(a__py="".join(f"{n}\n" for n in range(100)))
    for number in range(9):
        checkout.commit(a__py=f"{number}\n" * 2)
    before = known(history(checkout), "a.py").churn
    checkout.commit(a__py="x\n")

    after = known(history(checkout), "a.py").churn

    assert before == 100 + (99 + 1) + 8 * 4
    assert after == before - 100 + 3


def test_a_renamed_file_keeps_its_history(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="".join(f"{n}\n" for n in range(9)))
    checkout.git("mv", "a.py", "b.py")
    checkout.commit(BEN, b__py="".join(f"{n}\n" for n in [*range(8), 99]))

    found = history(checkout)

    assert found.file("a.py") is None
    assert written(found, "b.py") == "AAAAAAAAB"
    assert known(found, "b.py").churn == 11


def test_two_files_from_one_both_keep_its_lines(checkout: Checkout) -> None:
    text = "".join(f"{n}\n" for n in range(9))
    checkout.commit(ANN, m__py=text)
    checkout.git("rm", "--quiet", "m.py")
    checkout.commit(BEN, a__py=text, z__py=text)

    found = history(checkout)

    assert {written(found, "a.py"), written(found, "z.py")} <= {"A" * 9, "B" * 9}
    assert "A" * 9 in {written(found, "a.py"), written(found, "z.py")}


def test_a_file_that_comes_back_is_new(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n2\n")
    (checkout.root / "a.py").unlink()
    checkout.commit(ANN)
    checkout.commit(BEN, a__py="1\n2\n")

    found = history(checkout)

    assert written(found, "a.py") == "BB"
    assert known(found, "a.py").churn == 2


def test_a_file_that_becomes_a_link_is_another(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n2\n")
    (checkout.root / "a.py").unlink()
    (checkout.root / "a.py").symlink_to("elsewhere")
    checkout.commit(BEN)

    assert written(history(checkout), "a.py") == "B"


def test_another_mode_changes_no_line(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n")
    (checkout.root / "a.py").chmod(0o755)
    checkout.commit(BEN)

    found = history(checkout)

    assert written(found, "a.py") == "A"
    assert known(found, "a.py").last_author == BEN


def test_a_binary_file_has_a_last_author_and_no_lines(checkout: Checkout) -> None:
    checkout.write("a.bin", b"\0\n\1\n")
    checkout.commit(ANN)
    checkout.write("a.bin", b"text\n")
    checkout.commit(BEN)
    checkout.write("a.bin", b"text\nmore\n")
    checkout.commit(BEN)

    found = history(checkout)

    assert written(found, "a.bin") == "-B"
    assert known(found, "a.bin").last_author == BEN


@pytest.mark.parametrize(
    "name", ["a b.py", "tab\there.py", 'quo"te.py', "back\\slash.py", "ünï.py", "new\nline b/x"]
)
def test_a_path_may_have_any_letter(checkout: Checkout, name: str) -> None:
    checkout.write(name, "1\n")
    checkout.commit(ANN)
    checkout.write(name, "1\n2\n")
    checkout.commit(BEN)

    assert written(history(checkout), name) == "AB"


def test_a_path_may_have_bytes_that_are_no_text(checkout: Checkout) -> None:
    (checkout.root / "a\udcff.py").write_text("1\n")
    checkout.commit()

    found = history(checkout)

    assert written(found, "a\udcff.py") == written(found, b"a\xff.py") == "A"


def test_an_empty_file_is_known(checkout: Checkout) -> None:
    checkout.write("pack age/__init__.py", "")
    checkout.commit()

    found = history(checkout)

    assert known(found, "pack age/__init__.py").last_author
    assert found.line_authors("pack age/__init__.py") == []


def test_text_that_looks_like_a_patch_is_text(checkout: Checkout) -> None:
    trick = "-- a/x\n++ b/x\n@@ -1 +1 @@\n\x01\ndiff --git a/x b/x\ndeleted file mode 1\n\\ No\n"
    checkout.commit(ANN, a__py=trick)
    checkout.commit(BEN, a__py="diff --git\n" + trick)
    checkout.commit(ANN, a__py="diff --git\n" + trick.replace("@@", "@"))

    assert written(history(checkout), "a.py") == "BAAA" + "AAAA"


def test_a_missing_last_newline_and_carriage_returns_change_no_count(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\r\n2\r3\n4")
    checkout.commit(BEN, a__py="1\r\n2\r3\n4x")
    checkout.commit(ANN, a__py="1\r\n2\r3\n4x\n5")

    found = history(checkout)

    assert written(found, "a.py") == "AAAA"
    assert found.authors_of("a.py", 1, 9, b"1\r\n2\r3\n4x\n5") == [ANN]


def test_a_merge_is_credited_to_the_one_author_of_its_branch(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n")
    checkout.git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN, b__py="1\n")
    checkout.commit(BEN, b__py="1\n2\n")
    checkout.git("checkout", "--quiet", "main")
    checkout.commit(ANN, a__py="1\n2\n")
    checkout.git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN)

    found = history(checkout)

    assert written(found, "b.py") == "BB"
    assert known(found, "b.py").last_commit == checkout.head
    assert known(found, "a.py").churn == 2


def test_a_merge_of_several_peoples_work_is_credited_to_who_merged(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n")
    checkout.git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN, b__py="1\n")
    checkout.commit("Cyd <c@x>", b__py="1\n2\n")
    checkout.git("checkout", "--quiet", "main")
    checkout.git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN)

    assert written(history(checkout), "b.py") == "AA"


def test_the_mail_map_gives_authors_their_names(checkout: Checkout) -> None:
    checkout.commit("old name <old@x>", a__py="1\n")
    before = history(checkout).save()
    checkout.write(".mailmap", f"{BEN} <old@x>\n")

    assert history(checkout).authors == ["", BEN]
    assert history(checkout, before).authors == ["", BEN]


def test_lines_that_are_not_committed_have_no_author(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n2\n3\n", b__py="1\n")
    checkout.write("a.py", "0\n1\n3\n")

    found = history(checkout)

    assert written(found, "a.py") == "-AA"
    assert found.authors_of("a.py", 1, 1, b"0\n1\n3\n") == []
    assert found.authors_of("a.py", 1, 2, b"0\n1\n3\n") == [ANN]
    assert known(found, "a.py").last_author == ANN


def test_nobody_is_named_for_a_text_that_git_was_not_asked_about(checkout: Checkout) -> None:
    checkout.commit(ANN, a__py="1\n2\n3\n")

    assert history(checkout).authors_of("a.py", 1, 1, b"quite\nanother\n") == []


def test_a_file_that_was_moved_but_not_committed_keeps_its_lines(checkout: Checkout) -> None:
    text = "".join(f"{n}\n" for n in range(9))
    checkout.commit(ANN, a__py=text)
    checkout.git("mv", "a.py", "b.py")
    checkout.write("b.py", text + "9\n")

    assert written(history(checkout), "b.py") == "A" * 9 + "-"


def test_a_folder_of_a_repository_has_paths_of_its_own(checkout: Checkout) -> None:
    checkout.write("sub/a.py", "1\n")
    checkout.commit(ANN, a__py="1\n2\n")
    checkout.write("sub/a.py", "1\n2\n")

    found = history(Checkout(checkout.root / "sub"))

    assert written(found, "a.py") == "A-"
    assert found.file("sub/a.py") is None


def test_a_bare_repository_has_a_history(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit(a__py="1\n")
    checkout.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))

    assert written(history(Checkout(tmp_path / "bare")), "a.py") == "A"


TRAPS = ["filter.evil.clean", "diff.external", "diff.evil.textconv", "diff.evil.command"]
TRAPS += ["core.fsmonitor", "core.pager", "pager.log"]


@pytest.mark.parametrize("setting", TRAPS)
def test_no_program_that_a_repository_names_is_run(checkout: Checkout, setting: str) -> None:
    set_trap(checkout, setting)

    found = history(checkout)

    assert not sprung(checkout)
    assert written(found, "a.py") == "-"


def test_no_signature_is_checked(checkout: Checkout) -> None:
    set_trap(checkout, "gpg.program")
    checkout.git("config", "log.showSignature", "true")
    head, _, rest = checkout.git("cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    checkout.write(".git/signed", f"{head}\n{signature}\n\n{rest}\n")
    signed = checkout.git("hash-object", "-t", "commit", "-w", ".git/signed")

    found = History.of(checkout.root, signed)

    assert not sprung(checkout)
    assert known(found, "a.py").last_commit == signed


SETTINGS = ["diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.interHunkContext=9"]
SETTINGS += ["diff.context=5", "color.ui=always", "log.showRoot=false", "log.date=relative"]
SETTINGS += ["diff.renames=false", "format.pretty=oneline", "diff.submodule=log", "log.follow=true"]
SETTINGS += ["core.quotePath=true", "diff.orderFile=a.py", "log.decorate=full", "diff.relative=1"]
SETTINGS += ["log.diffMerges=off", "core.bigFileThreshold=1", "diff.suppressBlankEmpty=true"]


def test_no_setting_of_a_repository_changes_the_answer(checkout: Checkout) -> None:
    checkout.commit(ANN, ü__py="1\n\n3\n\n5\n6\n7\n8\n")
    checkout.git("mv", "ü.py", "y.py")
    checkout.commit(BEN, y__py="1\n\n3b\n\n5b\n6\n7\n8\n")
    expected = written(history(checkout), "y.py")

    for setting in SETTINGS:
        checkout.git("config", *setting.split("=", 1))

    assert written(history(checkout), "y.py") == expected == "AABABAAA"


def test_it_agrees_with_blame_on_this_repository() -> None:
    checkout = Checkout(ROOT)
    if checkout.git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone has no history to compare")
    tracked = checkout.git("ls-tree", "-r", "--name-only", "HEAD").split("\n")
    sample = random.Random(5).sample([path for path in tracked if path.endswith(".py")], 12)
    head = checkout.head

    ledger = History.of(ROOT, head)._ledger

    for path in sample:
        blame = checkout.git("blame", "--first-parent", "--root", "-s", "-l", head, "--", path)
        lines = [ledger.shas[number] for number in ledger.files[path.encode()].lines]
        assert lines == [line.split()[0] for line in blame.split("\n") if line], path
