import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.toolsets.code.discovery import files
from cleats.toolsets.code.discovery.content import DiscoveryLimits
from cleats.toolsets.code.discovery.files import add_walked_files, discover_files
from cleats.toolsets.code.discovery.ignore_rules import IgnoreTree, parse_pattern
from cleats.toolsets.code.discovery.tree import DiscoveredTree


def walk_paths(root: Path) -> list[str]:
    tree = DiscoveredTree(os.path.realpath(root), DiscoveryLimits())
    add_walked_files(tree)
    return sorted(tree.files)


FILE_NAMES = ["a", "b", "ab", "a.c", "b.o", "x y", "é", "[a]", "#a", "!a", "a ", "b\\"]
PATTERN_PIECES = [
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
PATTERN_PIECES += ["#a", "\\#a", "\\!a", "[", "[]a]", "b\\\\", "[^b]", "[z-a]", "\\[a]"]

paths = st.lists(st.sampled_from(FILE_NAMES), min_size=1, max_size=4).map("/".join)
patterns = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "!", "/", "!/"]),
    st.lists(
        st.lists(st.sampled_from(PATTERN_PIECES), min_size=1, max_size=2).map("".join),
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


def write_tree(root: Path, files: list[str], ignores: dict[str, str]) -> None:
    for folder, text in ignores.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / ".gitignore").write_text(text, newline="")
    for path in files:
        file = root / path
        if any(above.is_file() for above in file.parents) or file.is_dir():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")


@settings(max_examples=60)
@given(st.lists(paths, max_size=12), ignore_files)
def test_a_walk_finds_what_git_finds(files: list[str], ignores: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_tree(root, files, ignores)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)

        discovery = discover_files(root)

        assert discovery.source == "git"
        assert walk_paths(root) == [file.path for file in discovery.files]


@pytest.fixture
def user_ignore_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the path of a user's ignore file, so that the one of this machine does not matter."""
    path = tmp_path / "global"
    monkeypatch.setattr(files, "find_excludes_file", lambda _: path)
    return path


def test_a_nested_ignore_file_wins_over_its_parent_and_that_over_the_rest(
    user_ignore_file: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_text("*.two\n!*.three\n")
    user_ignore_file.write_text("*.three\n*.four\n")
    write_tree(
        root,
        ["a.one", "a.two", "a.three", "a.four", "sub/a.one", "sub/a.two"],
        {"": "*.one\n", "sub": "!*.one\n!*.two\n"},
    )

    assert walk_paths(root) == [".gitignore", "a.three", "sub/.gitignore", "sub/a.one", "sub/a.two"]


def test_nothing_below_an_excluded_folder_can_be_brought_back(user_ignore_file: Path, tmp_path: Path) -> None:
    write_tree(tmp_path, ["out/keep.py", "in/keep.py"], {"": "out/\n!out/keep.py\nin/*\n!in/keep.py\n"})

    assert walk_paths(tmp_path) == [".gitignore", "in/keep.py"]


def test_a_pattern_that_ends_in_a_slash_is_for_folders_alone(user_ignore_file: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, ["out", "sub/out/a.py"], {"": "out/\n"})

    assert walk_paths(root) == [".gitignore", "out"]


def test_git_says_where_the_ignore_file_of_a_user_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\texcludesFile = ~/mine\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("HOME", str(tmp_path))

    assert files.find_excludes_file() == tmp_path / "mine"

    config.write_text("")

    assert files.find_excludes_file() == tmp_path / ".config" / "git" / "ignore"


@pytest.mark.parametrize("line", ["", "   ", "# note", "/", "!", "a[", "a\\", "[[:what:]]"])
def test_a_line_that_matches_nothing_is_no_pattern(line: str) -> None:
    assert parse_pattern(line) is None


def test_a_pattern_of_many_stars_is_matched_in_no_time() -> None:
    tree = IgnoreTree()
    tree.add("", "**/" * 30 + "x\n" + "/".join(["**"] * 30) + "/y\n" + "*a" * 40 + "b\n")

    assert not tree.is_excluded("/".join("abcdefghijkl") + "/z", is_folder=False)
    assert not tree.is_excluded("a" * 250, is_folder=False)
    assert tree.is_excluded("a" * 250 + "b", is_folder=False)


def test_a_repository_below_a_walked_folder_is_listed_by_git(user_ignore_file: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, ["a.py", "repo/b.py", "repo/c.py"], {"repo": "c.py\n"})
    subprocess.run(["git", "init", "-q"], cwd=root / "repo", check=True)
    subprocess.run(["git", "add", "-f", "c.py"], cwd=root / "repo", check=True)

    discovery = discover_files(root)

    assert discovery.source == "walk"
    assert [file.path for file in discovery.files] == [
        "a.py",
        "repo/.gitignore",
        "repo/b.py",
        "repo/c.py",
    ]


def test_without_git_a_repository_is_walked(
    user_ignore_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    write_tree(root, ["a.py", "b.o"], {"": "*.o\n"})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setenv("PATH", str(tmp_path))

    discovery = discover_files(root)

    assert discovery.source == "walk"
    assert [file.path for file in discovery.files] == [".gitignore", "a.py"]
    assert discovery.ignored == 1


def test_what_may_not_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, ["a.py", "closed.py", "shut/b.py", "gone/c.py"], {})
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

    discovery = discover_files(tmp_path)

    assert [file.path for file in discovery.files] == ["a.py"]
    assert discovery.skipped == [
        ("closed.py", "unreadable", ""),
        ("shut", "unreadable", "Permission denied"),
    ]
