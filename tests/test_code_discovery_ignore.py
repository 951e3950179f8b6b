import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.toolsets.code.discovery import git
from cleats.toolsets.code.discovery.files import discover
from cleats.toolsets.code.discovery.ignore import IgnoreTree, parse
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.discovery.tree import Tree
from cleats.toolsets.code.discovery.walk import take_walked


def walked(root: Path) -> list[str]:
    tree = Tree(os.path.realpath(root), Limits())
    take_walked(tree)
    return sorted(tree.files)


NAMES = ["a", "b", "ab", "a.c", "b.o", "x y", "é", "[a]", "#a", "!a", "a ", "b\\"]
PIECES = [
    "*",
    "**",
    "?",
    "a",
    "b",
    ".c",
    "[ab]",
    "[!a]",
    "[a-b]",
    "\\a",
    "é",
    "x\\ y",
    "[[:alpha:]]",
]
PIECES += ["#a", "\\#a", "\\!a", "[", "[]a]", "b\\\\", "[^b]", "[z-a]", "\\[a]"]

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
patterns = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "!", "/", "!/"]),
    st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join),
        min_size=1,
        max_size=3,
    ).map("/".join),
    st.sampled_from(["", "", "/", "/**", "/*"]),
    st.sampled_from(["", "", " ", "\r"]),
)
ignore_files = st.dictionaries(
    st.one_of(st.just(""), paths),
    st.lists(patterns, max_size=5).map("\n".join),
    max_size=3,
)


def plant(root: Path, files: list[str], ignores: dict[str, str]) -> None:
    for folder, text in ignores.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / ".gitignore").write_text(text, newline="")
    for path in files:
        place = root / path
        if any(above.is_file() for above in place.parents) or place.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x\n")


@settings(max_examples=60)
@given(st.lists(paths, max_size=12), ignore_files)
def test_a_walk_finds_what_git_finds(files: list[str], ignores: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        plant(root, files, ignores)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)

        listed = discover(root)

        assert listed.source == "git"
        assert walked(root) == [file.path for file in listed.files]


@pytest.fixture
def nobodys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's own ignore file, so that the one of this machine does not matter."""
    place = tmp_path / "global"
    monkeypatch.setattr(git, "excludes_file", lambda: place)
    return place


def test_a_nested_ignore_file_wins_over_its_parent_and_that_over_the_rest(
    nobodys: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_text("*.two\n!*.three\n")
    nobodys.write_text("*.three\n*.four\n")
    plant(
        root,
        ["a.one", "a.two", "a.three", "a.four", "sub/a.one", "sub/a.two"],
        {"": "*.one\n", "sub": "!*.one\n!*.two\n"},
    )

    assert walked(root) == [".gitignore", "a.three", "sub/.gitignore", "sub/a.one", "sub/a.two"]


def test_nothing_below_an_excluded_folder_can_be_brought_back(
    nobodys: Path, tmp_path: Path
) -> None:
    plant(tmp_path, ["out/keep.py", "in/keep.py"], {"": "out/\n!out/keep.py\nin/*\n!in/keep.py\n"})

    assert walked(tmp_path) == [".gitignore", "in/keep.py"]


def test_a_pattern_that_ends_in_a_slash_is_for_folders_alone(nobodys: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    plant(root, ["out", "sub/out/a.py"], {"": "out/\n"})

    assert walked(root) == [".gitignore", "out"]


def test_git_says_where_the_ignore_file_of_a_user_lies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\texcludesFile = ~/mine\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))

    assert git.excludes_file() == tmp_path / "mine"

    config.write_text("")

    assert git.excludes_file() == tmp_path / ".config" / "git" / "ignore"


@pytest.mark.parametrize("line", ["", "   ", "# note", "/", "!", "a[", "a\\", "[[:what:]]"])
def test_a_line_that_matches_nothing_is_no_pattern(line: str) -> None:
    assert parse(line) is None


def test_a_pattern_of_many_stars_is_matched_in_no_time() -> None:
    tree = IgnoreTree()
    tree.add("", "**/" * 30 + "x\n" + "/".join(["**"] * 30) + "/y\n" + "*a" * 40 + "b\n")

    assert not tree.excludes("/".join("abcdefghijkl") + "/z", folder=False)
    assert not tree.excludes("a" * 250, folder=False)
    assert tree.excludes("a" * 250 + "b", folder=False)


def test_a_repository_below_a_walked_folder_is_listed_by_git(nobodys: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    plant(root, ["a.py", "repo/b.py", "repo/c.py"], {"repo": "c.py\n"})
    subprocess.run(["git", "init", "-q"], cwd=root / "repo", check=True)
    subprocess.run(["git", "add", "-f", "c.py"], cwd=root / "repo", check=True)

    discovery = discover(root)

    assert discovery.source == "walk"
    assert [file.path for file in discovery.files] == [
        "a.py",
        "repo/.gitignore",
        "repo/b.py",
        "repo/c.py",
    ]


def test_without_git_a_repository_is_walked(
    nobodys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    plant(root, ["a.py", "b.o"], {"": "*.o\n"})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setenv("PATH", str(tmp_path))

    discovery = discover(root)

    assert discovery.source == "walk"
    assert [file.path for file in discovery.files] == [".gitignore", "a.py"]
    assert discovery.ignored == 1


def test_what_may_not_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, ["a.py", "closed.py", "shut/b.py", "gone/c.py"], {})
    (tmp_path / "closed.py").chmod(0o600)
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("/shut"):
            raise PermissionError(13, "Permission denied")
        if path.endswith("/gone"):
            raise FileNotFoundError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)

    discovery = discover(tmp_path)

    assert [file.path for file in discovery.files] == ["a.py"]
    assert discovery.skipped == [
        ("closed.py", "unreadable", ""),
        ("shut", "unreadable", "Permission denied"),
    ]
