"""The author of each line, the last author of a file, and its churn."""

import random
from pathlib import Path

import pytest

from cleats.toolsets.code.analysis.history.replay import FileHistory, History
from tests.support.git_repositories import ANN_IDENTITY, BEN_IDENTITY, GitCheckout, configure_trap, is_trap_sprung
from tests.support.paths import REPOSITORY_ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> GitCheckout:
    return GitCheckout.create(tmp_path / "repo")


def read_history(checkout: GitCheckout, previous: bytes | None = None) -> History:
    history = History.from_commit(checkout.root, checkout.head_commit, previous)
    assert history.warnings == []
    return history


def get_file_history(history: History, path: str | bytes) -> FileHistory:
    file_history = history.find_file(path)
    assert file_history is not None
    return file_history


def spell_authors(history: History, path: str | bytes) -> str:
    """Return the first letter of each line's author."""
    return "".join(history.authors[number][:1] or "-" for number in history.list_line_authors(path))


def test_each_line_has_the_author_who_changed_it_last(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n3\n4\n")
    head = checkout.commit(BEN_IDENTITY, a__py="1\n2b\n3\n4\n5\n")

    history = read_history(checkout)

    assert history.authors == ["", ANN_IDENTITY, BEN_IDENTITY]
    assert spell_authors(history, "a.py") == "ABAAB"
    assert history.find_authors("a.py", 1, 1) == [ANN_IDENTITY]
    assert history.find_authors("a.py", 1, 4) == [ANN_IDENTITY, BEN_IDENTITY]
    assert history.find_authors("a.py", 5, 9) == [BEN_IDENTITY]
    last = get_file_history(history, "a.py")
    assert (last.last_author, last.last_commit, last.churn) == (BEN_IDENTITY, head, 7)
    assert last.last_modified == 1_700_000_120


def test_a_removed_line_takes_its_author_along(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")
    checkout.commit(ANN_IDENTITY, a__py="2\n")

    assert spell_authors(read_history(checkout), "a.py") == "B"


def test_a_file_that_git_does_not_know_has_no_history(checkout: GitCheckout) -> None:
    checkout.commit(a__py="1\n")
    checkout.write_file("new.py", "1\n")

    history = read_history(checkout)

    assert history.find_file("new.py") is None
    assert history.find_authors("new.py", 1, 1) == []


def test_churn_counts_the_last_ten_commits_of_a_file(checkout: GitCheckout) -> None:
    checkout.commit(a__py="".join(f"{n}\n" for n in range(100)))
    for number in range(9):
        checkout.commit(a__py=f"{number}\n" * 2)
    before = get_file_history(read_history(checkout), "a.py").churn
    checkout.commit(a__py="x\n")

    after = get_file_history(read_history(checkout), "a.py").churn

    assert before == 100 + (99 + 1) + 8 * 4
    assert after == before - 100 + 3


def test_a_renamed_file_keeps_its_history(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="".join(f"{n}\n" for n in range(9)))
    checkout.run_git("mv", "a.py", "b.py")
    checkout.commit(BEN_IDENTITY, b__py="".join(f"{n}\n" for n in [*range(8), 99]))

    history = read_history(checkout)

    assert history.find_file("a.py") is None
    assert spell_authors(history, "b.py") == "AAAAAAAAB"
    assert get_file_history(history, "b.py").churn == 11


def test_two_files_from_one_both_keep_its_lines(checkout: GitCheckout) -> None:
    text = "".join(f"{n}\n" for n in range(9))
    checkout.commit(ANN_IDENTITY, m__py=text)
    checkout.run_git("rm", "--quiet", "m.py")
    checkout.commit(BEN_IDENTITY, a__py=text, z__py=text)

    history = read_history(checkout)

    assert {spell_authors(history, "a.py"), spell_authors(history, "z.py")} <= {"A" * 9, "B" * 9}
    assert "A" * 9 in {spell_authors(history, "a.py"), spell_authors(history, "z.py")}


def test_a_file_that_comes_back_is_new(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n")
    (checkout.root / "a.py").unlink()
    checkout.commit(ANN_IDENTITY)
    checkout.commit(BEN_IDENTITY, a__py="1\n2\n")

    history = read_history(checkout)

    assert spell_authors(history, "a.py") == "BB"
    assert get_file_history(history, "a.py").churn == 2


def test_a_file_that_becomes_a_link_is_another(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n")
    (checkout.root / "a.py").unlink()
    (checkout.root / "a.py").symlink_to("elsewhere")
    checkout.commit(BEN_IDENTITY)

    assert spell_authors(read_history(checkout), "a.py") == "B"


def test_another_mode_changes_no_line(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    (checkout.root / "a.py").chmod(0o755)
    checkout.commit(BEN_IDENTITY)

    history = read_history(checkout)

    assert spell_authors(history, "a.py") == "A"
    assert get_file_history(history, "a.py").last_author == BEN_IDENTITY


def test_a_binary_file_has_a_last_author_and_no_lines(checkout: GitCheckout) -> None:
    checkout.write_file("a.bin", b"\0\n\1\n")
    checkout.commit(ANN_IDENTITY)
    checkout.write_file("a.bin", b"text\n")
    checkout.commit(BEN_IDENTITY)
    checkout.write_file("a.bin", b"text\nmore\n")
    checkout.commit(BEN_IDENTITY)

    history = read_history(checkout)

    assert spell_authors(history, "a.bin") == "-B"
    assert get_file_history(history, "a.bin").last_author == BEN_IDENTITY


@pytest.mark.parametrize("name", ["a b.py", "tab\there.py", 'quo"te.py', "back\\slash.py", "ünï.py", "new\nline b/x"])
def test_a_path_may_have_any_letter(checkout: GitCheckout, name: str) -> None:
    checkout.write_file(name, "1\n")
    checkout.commit(ANN_IDENTITY)
    checkout.write_file(name, "1\n2\n")
    checkout.commit(BEN_IDENTITY)

    assert spell_authors(read_history(checkout), name) == "AB"


def test_a_path_may_have_bytes_that_are_no_text(checkout: GitCheckout) -> None:
    (checkout.root / "a\udcff.py").write_text("1\n")
    checkout.commit()

    history = read_history(checkout)

    assert spell_authors(history, "a\udcff.py") == spell_authors(history, b"a\xff.py") == "A"


def test_an_empty_file_is_known(checkout: GitCheckout) -> None:
    checkout.write_file("pack age/__init__.py", "")
    checkout.commit()

    history = read_history(checkout)

    assert get_file_history(history, "pack age/__init__.py").last_author
    assert history.list_line_authors("pack age/__init__.py") == []


def test_text_that_looks_like_a_patch_is_text(checkout: GitCheckout) -> None:
    trick = "-- a/x\n++ b/x\n@@ -1 +1 @@\n\x01\ndiff --git a/x b/x\ndeleted file mode 1\n\\ No\n"
    checkout.commit(ANN_IDENTITY, a__py=trick)
    checkout.commit(BEN_IDENTITY, a__py="diff --git\n" + trick)
    checkout.commit(ANN_IDENTITY, a__py="diff --git\n" + trick.replace("@@", "@"))

    assert spell_authors(read_history(checkout), "a.py") == "BAAA" + "AAAA"


def test_a_missing_last_newline_and_carriage_returns_change_no_count(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\r\n2\r3\n4")
    checkout.commit(BEN_IDENTITY, a__py="1\r\n2\r3\n4x")
    checkout.commit(ANN_IDENTITY, a__py="1\r\n2\r3\n4x\n5")

    history = read_history(checkout)

    assert spell_authors(history, "a.py") == "AAAA"
    assert history.find_authors("a.py", 1, 9, b"1\r\n2\r3\n4x\n5") == [ANN_IDENTITY]


def test_a_merge_is_credited_to_the_one_author_of_its_branch(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    checkout.run_git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN_IDENTITY, b__py="1\n")
    checkout.commit(BEN_IDENTITY, b__py="1\n2\n")
    checkout.run_git("checkout", "--quiet", "main")
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n")
    checkout.run_git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN_IDENTITY)

    history = read_history(checkout)

    assert spell_authors(history, "b.py") == "BB"
    assert get_file_history(history, "b.py").last_commit == checkout.head_commit
    assert get_file_history(history, "a.py").churn == 2


def test_a_merge_of_several_peoples_work_is_credited_to_who_merged(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    checkout.run_git("checkout", "--quiet", "-b", "side")
    checkout.commit(BEN_IDENTITY, b__py="1\n")
    checkout.commit("Cyd <c@x>", b__py="1\n2\n")
    checkout.run_git("checkout", "--quiet", "main")
    checkout.run_git("merge", "--quiet", "--no-ff", "-m", "merge", "side", author=ANN_IDENTITY)

    assert spell_authors(read_history(checkout), "b.py") == "AA"


def test_the_mail_map_gives_authors_their_names(checkout: GitCheckout) -> None:
    checkout.commit("old name <old@x>", a__py="1\n")
    before = read_history(checkout).save()
    checkout.write_file(".mailmap", f"{BEN_IDENTITY} <old@x>\n")

    assert read_history(checkout).authors == ["", BEN_IDENTITY]
    assert read_history(checkout, before).authors == ["", BEN_IDENTITY]


def test_a_history_of_few_files_maps_the_authors_of_these_files(checkout: GitCheckout) -> None:
    checkout.commit("old name <old@x>", a__py="1\n")
    checkout.commit("another <another@x>", b__py="1\n")
    checkout.write_file(".mailmap", f"{BEN_IDENTITY} <old@x>\n{ANN_IDENTITY} <another@x>\n")
    saved = read_history(checkout).save()

    history = History.from_commit(checkout.root, checkout.head_commit, saved, paths=["a.py"])

    assert spell_authors(history, "a.py") == "B"
    assert get_file_history(history, "a.py").last_author == BEN_IDENTITY
    assert history.authors == ["", BEN_IDENTITY, "another <another@x>"]


def test_a_history_says_whether_a_file_differs_from_the_commit(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n")
    before = read_history(checkout).is_dirty
    checkout.write_file("a.py", "2\n")

    assert (before, read_history(checkout).is_dirty) == (False, True)


def test_lines_that_are_not_committed_have_no_author(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n3\n", b__py="1\n")
    checkout.write_file("a.py", "0\n1\n3\n")

    history = read_history(checkout)

    assert spell_authors(history, "a.py") == "-AA"
    assert history.find_authors("a.py", 1, 1, b"0\n1\n3\n") == []
    assert history.find_authors("a.py", 1, 2, b"0\n1\n3\n") == [ANN_IDENTITY]
    assert get_file_history(history, "a.py").last_author == ANN_IDENTITY


def test_nobody_is_named_for_a_text_that_git_was_not_asked_about(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n3\n")

    assert read_history(checkout).find_authors("a.py", 1, 1, b"quite\nanother\n") == []


def test_a_file_that_was_moved_but_not_committed_keeps_its_lines(checkout: GitCheckout) -> None:
    text = "".join(f"{n}\n" for n in range(9))
    checkout.commit(ANN_IDENTITY, a__py=text)
    checkout.run_git("mv", "a.py", "b.py")
    checkout.write_file("b.py", text + "9\n")

    assert spell_authors(read_history(checkout), "b.py") == "A" * 9 + "-"


def test_a_folder_of_a_repository_has_paths_of_its_own(checkout: GitCheckout) -> None:
    checkout.write_file("sub/a.py", "1\n")
    checkout.commit(ANN_IDENTITY, a__py="1\n2\n")
    checkout.write_file("sub/a.py", "1\n2\n")

    history = read_history(GitCheckout(checkout.root / "sub"))

    assert spell_authors(history, "a.py") == "A-"
    assert history.find_file("sub/a.py") is None


def test_a_bare_repository_has_a_history(checkout: GitCheckout, tmp_path: Path) -> None:
    checkout.commit(a__py="1\n")
    checkout.run_git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))

    assert spell_authors(read_history(GitCheckout(tmp_path / "bare")), "a.py") == "A"


TRAP_SETTINGS = ["filter.evil.clean", "diff.external", "diff.evil.textconv", "diff.evil.command"]
TRAP_SETTINGS += ["core.fsmonitor", "core.pager", "pager.log"]


@pytest.mark.parametrize("setting", TRAP_SETTINGS)
def test_no_program_that_a_repository_names_is_run(checkout: GitCheckout, setting: str) -> None:
    configure_trap(checkout, setting)

    history = read_history(checkout)

    assert not is_trap_sprung(checkout)
    assert spell_authors(history, "a.py") == "-"


def test_no_signature_is_checked(checkout: GitCheckout) -> None:
    configure_trap(checkout, "gpg.program")
    checkout.run_git("config", "log.showSignature", "true")
    head, _, rest = checkout.run_git("cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    checkout.write_file(".git/signed", f"{head}\n{signature}\n\n{rest}\n")
    signed = checkout.run_git("hash-object", "-t", "commit", "-w", ".git/signed")

    history = History.from_commit(checkout.root, signed)

    assert not is_trap_sprung(checkout)
    assert get_file_history(history, "a.py").last_commit == signed


DIFF_SETTINGS = ["diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.interHunkContext=9"]
DIFF_SETTINGS += ["diff.context=5", "color.ui=always", "log.showRoot=false", "log.date=relative"]
DIFF_SETTINGS += ["diff.renames=false", "format.pretty=oneline", "diff.submodule=log", "log.follow=true"]
DIFF_SETTINGS += ["core.quotePath=true", "diff.orderFile=a.py", "log.decorate=full", "diff.relative=1"]
DIFF_SETTINGS += ["log.diffMerges=off", "core.bigFileThreshold=1", "diff.suppressBlankEmpty=true"]


def test_no_setting_of_a_repository_changes_the_answer(checkout: GitCheckout) -> None:
    checkout.commit(ANN_IDENTITY, ü__py="1\n\n3\n\n5\n6\n7\n8\n")
    checkout.run_git("mv", "ü.py", "y.py")
    checkout.commit(BEN_IDENTITY, y__py="1\n\n3b\n\n5b\n6\n7\n8\n")
    expected = spell_authors(read_history(checkout), "y.py")

    for setting in DIFF_SETTINGS:
        checkout.run_git("config", *setting.split("=", 1))

    assert spell_authors(read_history(checkout), "y.py") == expected == "AABABAAA"


def test_it_agrees_with_blame_on_this_repository() -> None:
    checkout = GitCheckout(REPOSITORY_ROOT)
    if checkout.run_git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone has no history to compare")
    tracked = checkout.run_git("ls-tree", "-r", "--name-only", "HEAD").split("\n")
    sample = random.Random(5).sample([path for path in tracked if path.endswith(".py")], 12)
    head = checkout.head_commit

    ledger = History.from_commit(REPOSITORY_ROOT, head)._ledger

    for path in sample:
        blame = checkout.run_git("blame", "--first-parent", "--root", "-s", "-l", head, "--", path)
        lines = [ledger.shas[number].hex() for number in ledger.files[path.encode()].lines]
        assert lines == [line.split()[0] for line in blame.split("\n") if line], path
