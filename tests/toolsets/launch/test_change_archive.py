"""Tests of the archive of a change: what it holds, that git applies it, and that it is always the same."""

import io
import os
import zipfile
from pathlib import Path

import anyio
import pytest

from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.workers import validate
from cleats.toolsets.launch.workers.validate import build_change_archive
from tests.support.git_repositories import GitCheckout

GIT_ENVIRON = filter_git_environment(os.environ)
BASE_FILES = {
    "docs/kept.md": "kept\n",
    "docs/changed.md": "one\ntwo\nthree\n",
    "docs/ends early.md": "first\nno line feed",
    "docs/gone.md": "gone\n",
    "docs/übung.md": "alt\n",
}
NEW_FILES = {
    "docs/changed.md": "one\n2\nthree\nfour",
    "docs/ends early.md": "first\nstill\x0c none\u2028here",
    "docs/übung.md": "neu\n",
    "docs/new page.md": "---\ntitle: New\n---\n\n--- a/dashes\n+++ b/pluses\n",
    "docs/empty.md": "",
}


@pytest.fixture
def site(tmp_path: Path) -> GitCheckout:
    checkout = GitCheckout.create(tmp_path / "site")
    for path, text in BASE_FILES.items():
        checkout.write_file(path, text)
    checkout.run_git("add", "--all")
    checkout.run_git("commit", "--quiet", "-m", "base")
    return checkout


def change_site(checkout: GitCheckout) -> None:
    for path, text in NEW_FILES.items():
        checkout.write_file(path, text)
    (checkout.root / "docs/gone.md").unlink()


def read_archive(checkout: GitCheckout) -> dict[str, bytes]:
    base = checkout.run_git("rev-parse", "HEAD").strip()
    data = anyio.run(build_change_archive, checkout.root, base, GIT_ENVIRON)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_archive_holds_every_changed_file_and_no_other(site: GitCheckout) -> None:
    change_site(site)

    entries = read_archive(site)

    assert list(entries) == sorted(["changes.patch", *(f"files/{path}" for path in NEW_FILES)])
    assert {path: entries[f"files/{path}"].decode() for path in NEW_FILES} == NEW_FILES


def test_git_applies_the_patch_of_the_archive_to_the_base(site: GitCheckout, tmp_path: Path) -> None:
    change_site(site)
    patch = tmp_path / "changes.patch"
    patch.write_bytes(read_archive(site)["changes.patch"])
    site.run_git("stash", "--quiet", "--include-untracked")

    site.run_git("apply", "--whitespace=nowarn", str(patch))

    files = {path.relative_to(site.root).as_posix() for path in (site.root / "docs").iterdir()}
    assert files == {"docs/kept.md", *NEW_FILES}
    assert {path: (site.root / path).read_bytes().decode() for path in NEW_FILES} == NEW_FILES


def test_the_same_change_gives_the_same_bytes_at_any_time(site: GitCheckout) -> None:
    change_site(site)
    base = site.run_git("rev-parse", "HEAD").strip()
    first = anyio.run(build_change_archive, site.root, base, GIT_ENVIRON)
    for path in NEW_FILES:
        os.utime(site.root / path, (1, 1))

    again = anyio.run(build_change_archive, site.root, base, GIT_ENVIRON)

    assert again == first


def test_a_worktree_without_a_change_gives_an_empty_patch(site: GitCheckout) -> None:
    assert read_archive(site) == {"changes.patch": b""}


def test_links_nested_repositories_and_huge_files_stay_out(site: GitCheckout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MAX_ARCHIVED_FILE_BYTES", 10)
    (site.root / "docs/link.md").symlink_to("/etc/passwd")
    GitCheckout.create(site.root / "docs/nested").commit(a__py="1\n")
    site.write_file("docs/huge.md", "x" * 11)

    assert read_archive(site) == {"changes.patch": b""}


def test_a_removed_submodule_does_not_end_the_validation(site: GitCheckout) -> None:
    head = site.run_git("rev-parse", "HEAD").strip()
    site.run_git("update-index", "--add", "--cacheinfo", f"160000,{head},theme")
    site.run_git("commit", "--quiet", "-m", "submodule")

    assert read_archive(site) == {"changes.patch": b""}


def test_a_file_that_is_no_text_is_a_file_of_the_archive_only(site: GitCheckout) -> None:
    (site.root / "docs/picture.png").write_bytes(b"\x89PNG\xff\x00")

    entries = read_archive(site)

    assert entries["files/docs/picture.png"] == b"\x89PNG\xff\x00"
    assert b"Binary files a/docs/picture.png and b/docs/picture.png differ" in entries["changes.patch"]
