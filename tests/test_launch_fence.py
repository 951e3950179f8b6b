"""The fence holds: by name, on the disk, and against what changes while it works."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching.fence import Fence
from tests.requirements import requirement
from tests.shell import LAW

ALLOWED = ["content/docs/note", "content/blog/", "data/menus.toml"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    for folder in ("content/docs/note", "content/docs/notebook", ".git"):
        (root / folder).mkdir(parents=True)
    (root / "content/docs/note/a.md").write_text("old")
    (root / ".git/config").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("secret")
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        action()
    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    return str(caught.value.details["reason"])


def passes_or_is_refused(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except ToolError as error:
        if error.code is not ErrorCode.ALLOWED_PATHS_VIOLATION:
            raise
        return None


def test_inside_the_allowed_paths_files_are_written_read_and_deleted(site: Path) -> None:
    fence = Fence(site, ALLOWED)

    fence.write("content/docs/note/deep/er/b.md", b"new")
    fence.write("content/docs/note/a.md", b"changed")
    fence.write("data/menus.toml", b"menu")

    assert fence.read("content/docs/note/deep/er/b.md") == b"new"
    assert (site / "content/docs/note/a.md").read_bytes() == b"changed"
    assert fence.read("content/blog/none.md") is None
    fence.delete("content/docs/note/a.md")
    fence.delete("content/docs/note/a.md")
    assert fence.read("content/docs/note/a.md") is None
    assert [path.name for path in site.rglob("*part*")] == []


def test_a_file_keeps_its_mode(site: Path) -> None:
    page = site / "content/docs/note/a.md"
    page.chmod(0o600)

    Fence(site, ALLOWED).write("content/docs/note/a.md", b"new")

    assert page.stat().st_mode & 0o777 == 0o600


@requirement("e:code:allowed-paths")
@pytest.mark.parametrize(
    "path",
    [
        "content/docs/notebook/a.md",  # a sibling that begins the same way
        "content/docs/note.md",
        "content/docs",
        "content/docs/note/../notebook/a.md",
        "../outside/secret.md",
        "content/docs/note/../../../../outside/secret.md",
        "/etc/passwd",
        "//server/share",
        "C:/windows",
        "content\\docs\\note\\a.md",
        "content/docs/note\\..\\..\\x",
        "content/docs/note/./a.md",
        "content/docs//note/a.md",
        "content/docs/note/a.md\0.txt",
        "content/docs/note/a\n.md",
        "content/docs/note/\u202egpj.md",
        "",
        ".",
        "./content/docs/note/a.md",
        "CONTENT/docs/note/a.md",
        "content/docs/NOTE/a.md",
        "content/docs/\uff4eote/a.md",
        "content/docs/note/.git/config",
        "content/docs/note/.GIT/config",
        "content/docs/note/.Git",
        "content/docs/note/.g\u200cit/config",
        "content/docs/note/git~1/config",
        "content/docs/note/.git./config",
        "content/docs/note/.git /config",
        "content/docs/note/a.md:stream",
        "content/docs/note/.git::$INDEX_ALLOCATION/config",
        "content/docs/note/" + "a" * 300,
        "data/menus.toml.bak",
        "data/menus",
        "~/x",
    ],
)
def test_a_path_that_is_not_plainly_inside_is_refused(site: Path, path: str) -> None:
    fence = Fence(site, ALLOWED)
    before = contents(site.parent)

    for action in (
        lambda: fence.check(path),
        lambda: fence.read(path),
        lambda: fence.write(path, b"x"),
        lambda: fence.delete(path),
    ):
        refused(action)

    assert contents(site.parent) == before


def test_nothing_is_allowed_when_nothing_is_named(site: Path) -> None:
    refused(lambda: Fence(site, []).check("content/docs/note/a.md"))


@pytest.mark.parametrize(
    "entry", ["", ".", "/", "..", "/content", "a/../..", "content/**/x", ".git"]
)
def test_an_allowed_path_must_itself_be_a_plain_path(site: Path, entry: str) -> None:
    refused(lambda: Fence(site, [entry]))


def test_a_folder_may_be_allowed_in_three_spellings(site: Path) -> None:
    for entry in ("content/docs/note", "content/docs/note/", "content/docs/note/**"):
        assert Fence(site, [entry]).check("content/docs/note/x/y.md") == "content/docs/note/x/y.md"
        refused(partial(Fence(site, [entry]).check, "content/docs/notebook/y.md"))


@pytest.mark.parametrize("path", ["content/blog/secret.md", "content/docs/note/link/secret.md"])
def test_a_link_is_never_followed(site: Path, path: str) -> None:
    (site / "content/blog").symlink_to(site.parent / "outside")
    (site / "content/docs/note/link").symlink_to("../../../../outside")
    fence = Fence(site, ALLOWED)

    refused(lambda: fence.read(path))
    refused(lambda: fence.write(path, b"x"))
    refused(lambda: fence.write(path.replace("secret", "new"), b"x"))
    refused(lambda: fence.delete(path))

    assert contents(site.parent / "outside") == {"secret.md": b"secret"}


def test_a_file_that_is_a_link_is_refused_and_its_target_untouched(site: Path) -> None:
    (site / "content/docs/note/l.md").symlink_to(site.parent / "outside/secret.md")
    (site / "content/docs/note/dangling.md").symlink_to(site.parent / "outside/none.md")
    fence = Fence(site, ALLOWED)

    for name in ("l.md", "dangling.md"):
        refused(partial(fence.read, f"content/docs/note/{name}"))
        refused(partial(fence.write, f"content/docs/note/{name}", b"x"))
        refused(partial(fence.delete, f"content/docs/note/{name}"))

    assert contents(site.parent / "outside") == {"secret.md": b"secret"}


def test_a_hard_link_is_cut_not_written_through(site: Path) -> None:
    os.link(site.parent / "outside/secret.md", site / "content/docs/note/hard.md")

    Fence(site, ALLOWED).write("content/docs/note/hard.md", b"mine")

    assert (site.parent / "outside/secret.md").read_bytes() == b"secret"
    assert (site / "content/docs/note/hard.md").read_bytes() == b"mine"


def test_what_is_no_plain_file_is_refused(site: Path) -> None:
    os.mkfifo(site / "content/docs/note/pipe.md")
    fence = Fence(site, ALLOWED)

    refused(lambda: fence.read("content/docs/note/pipe.md"))
    refused(lambda: fence.write("content/docs/note/pipe.md", b"x"))
    refused(lambda: fence.read("content/docs/note"))
    refused(lambda: fence.write("content/docs/note/a.md/b.md", b"x"))


def test_a_name_that_differs_only_in_case_or_composition_is_refused(site: Path) -> None:
    (site / "content/docs/note/Über").mkdir()
    fence = Fence(site, ALLOWED)

    assert "case" in refused(lambda: fence.write("content/docs/note/A.md", b"x"))
    assert "case" in refused(lambda: fence.write("content/docs/note/u\u0308ber/x.md", b"x"))
    assert "case" in refused(lambda: fence.read("content/docs/note/A.MD"))


def test_a_worktree_that_is_a_link_or_missing_is_refused(site: Path) -> None:
    link = site.parent / "link"
    link.symlink_to(site)

    refused(lambda: Fence(link, ALLOWED))
    refused(lambda: Fence(site.parent / "none", ALLOWED))
    refused(lambda: Fence(site / "content/docs/note/a.md", ALLOWED))


def test_a_system_that_cannot_hold_the_fence_says_so(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())

    with pytest.raises(ToolError) as caught:
        Fence(site, ALLOWED)

    assert caught.value.code is ErrorCode.CAPABILITY_MISSING


@pytest.mark.parametrize("replacement", ["nothing", "copy", "link"])
def test_a_worktree_swapped_for_another_folder_is_refused(site: Path, replacement: str) -> None:
    fence = Fence(site, ALLOWED)
    moved = site.rename(site.parent / "moved")
    if replacement == "copy":
        (site / "content/docs/note").mkdir(parents=True)
    elif replacement == "link":
        site.symlink_to(moved)
    before = contents(site.parent)

    for action in (
        lambda: fence.read("content/docs/note/a.md"),
        lambda: fence.write("content/docs/note/a.md", b"x"),
        lambda: fence.delete("content/docs/note/a.md"),
    ):
        assert "worktree" in refused(action)

    assert contents(site.parent) == before


def test_a_worktree_removed_and_made_anew_is_another_one(site: Path) -> None:
    # The kernel likes to give the same inode again; the open folder keeps it from doing so.
    empty = site.parent / "empty"
    empty.mkdir()
    fence = Fence(empty, ["docs"])
    empty.rmdir()
    empty.mkdir()

    refused(lambda: fence.write("docs/a.md", b"x"))

    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("call", ["open", "mkdir", "rename", "fsync", "stat", "listdir"])
@pytest.mark.parametrize("nth", range(8))
def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(
    site: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    outside = site.parent / "outside"
    (outside / "note").mkdir()
    docs = site / "content/docs"
    real: Callable[..., Any] = getattr(os, call)
    count = 0

    def swapping(*args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth + 1 and not docs.is_symlink():
            docs.replace(site / "content/moved")
            docs.symlink_to(outside)
        return real(*args, **more)

    fence = Fence(site, ALLOWED)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, swapping)
        passes_or_is_refused(lambda: fence.write("content/docs/note/new/x.md", b"x"))

    assert contents(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize("call", ["open", "mkdir", "rename", "fsync", "stat", "listdir"])
@pytest.mark.parametrize("nth", range(8))
def test_a_folder_that_is_removed_at_any_moment_is_a_refusal_and_no_crash(
    site: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    real: Callable[..., Any] = getattr(os, call)
    count = 0

    def removing(*args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth + 1:
            shutil.rmtree(site / "content/docs")
        return real(*args, **more)

    fence = Fence(site, ALLOWED)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, removing)
        passes_or_is_refused(lambda: fence.write("content/docs/note/new/x.md", b"x"))

    assert list(site.rglob("*part*")) == []


def test_a_folder_carried_out_of_the_worktree_takes_no_new_file_along(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, taken = site / "content/docs/note", site.parent / "outside/taken"
    real = os.fsync

    def carrying(file: int) -> None:
        if note.exists():
            note.rename(taken)
        real(file)

    monkeypatch.setattr(os, "fsync", carrying)

    assert "swapped" in refused(lambda: Fence(site, ALLOWED).write("content/docs/note/x.md", b"x"))
    assert contents(taken) == {"a.md": b"old"}


def test_under_a_storm_of_swaps_nothing_lands_outside(site: Path) -> None:
    outside = site.parent / "outside"
    note, aside = site / "content/docs/note", site / "content/docs/aside"
    link = site / "content/docs/link"
    link.symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            shutil.rmtree(aside, ignore_errors=True)  # of a round that the fence got between
            with suppress(OSError):
                note.rename(aside)
                link.rename(note)
            with suppress(OSError):
                note.rename(link)
                aside.rename(note)

    storm = threading.Thread(target=swap)
    storm.start()
    fence = Fence(site, ALLOWED)
    try:
        for number in range(100):
            passes_or_is_refused(partial(fence.write, f"content/docs/note/n{number}.md", b"x"))
    finally:
        over.set()
        storm.join(10)

    assert contents(outside) == {"secret.md": b"secret"}


NAMES = st.sampled_from(
    ["content", "docs", "note", "notebook", "..", ".", "", "a.md", ".git", "NOTE", "b", "\0", "\\"]
) | st.text(max_size=3)


@LAW
@given(st.lists(NAMES, min_size=1, max_size=7), st.sampled_from(["", "/", "./", "../"]))
def test_what_passes_is_inside_for_any_path(names: list[str], lead: str) -> None:
    path = lead + "/".join(names)
    root = Path(__file__).parent
    fence = Fence(root, ["content/docs/note"])

    passed = passes_or_is_refused(lambda: fence.check(path))

    if passed is None:
        return
    inside = root / "content/docs/note"
    assert inside == root / passed or inside in Path(os.path.normpath(root / passed)).parents
    assert ".." not in passed.split("/")
    assert ".git" not in passed.lower().split("/")
