"""Tests of the paths that others name: nothing leads out of a folder."""

import os
from pathlib import Path

import pytest

from cleats.system import safe_paths
from cleats.system.safe_paths import NotRegularFileError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    return folder


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "loop/file"])
def test_a_path_that_no_file_can_have_is_an_error_of_one_kind(root: Path, path: str) -> None:
    (root / "loop").symlink_to("loop")

    with pytest.raises(ValueError, match="the path is invalid"):
        safe_paths.resolve_path(root, path)


def test_a_path_is_resolved_through_every_link(root: Path) -> None:
    (root / "link").symlink_to("sub")
    (root / "out").symlink_to("..")

    assert safe_paths.resolve_path(root, "link/file") == root / "sub/file"
    assert safe_paths.resolve_path(root, "out/secret") == root.parent / "secret"
    assert safe_paths.resolve_path(root, "sub/../../secret") == root.parent / "secret"
    assert safe_paths.resolve_path(root, "/") == Path("/")


def test_a_home_folder_is_meant_only_where_it_is_allowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root / "sub"))

    assert safe_paths.resolve_path(root, "~/file") == root / "~/file"
    assert safe_paths.resolve_path(root, "~/file", expands_home=True) == root / "sub/file"


@pytest.mark.parametrize(
    ("path", "within"), [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)]
)
def test_a_name_that_begins_like_the_folder_is_not_in_it(path: str, within: bool) -> None:
    assert safe_paths.is_within(path, "/a") is within
    assert safe_paths.is_within(path, "/")


def test_a_file_is_opened_below_a_folder(root: Path) -> None:
    with safe_paths.open_file_below(root, Path("sub/file")) as file:
        assert file.read() == b"inside"


@pytest.mark.parametrize("path", ["link", "folder/secret", "sub/link"])
def test_no_link_is_followed_wherever_it_stands_in_the_path(root: Path, path: str) -> None:
    (root / "link").symlink_to("../secret")
    (root / "sub/link").symlink_to("file")
    (root / "folder").symlink_to("..")

    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        safe_paths.open_file_below(root, Path(path))


def test_a_pipe_is_neither_opened_nor_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(NotRegularFileError):
        safe_paths.open_file_below(root, Path("pipe"))
    with pytest.raises(NotRegularFileError):
        safe_paths.open_regular_file(root / "sub")


def test_a_folder_that_is_swapped_for_a_link_is_not_entered(root: Path) -> None:
    handle = os.open(root, safe_paths.FOLDER_FLAGS)
    try:
        with safe_paths.open_folder_below(handle, ["sub"]) as folder:
            (root / "sub").rename(root / "moved")
            (root / "sub").symlink_to("..")
            with safe_paths.open_regular_file("file", folder=folder) as file:
                assert file.read() == b"inside"
        with (
            pytest.raises(OSError, match=r"Not a directory|symbolic links"),
            safe_paths.open_folder_below(handle, ["sub"]),
        ):
            pass
    finally:
        os.close(handle)


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = count_descriptors()

    safe_paths.open_file_below(root, Path("sub/file")).close()
    for path in ("none", "sub/none", "none/file", "sub"):
        with pytest.raises(OSError):
            safe_paths.open_file_below(root, Path(path))

    assert count_descriptors() == before
