"""The change of a worktree as one archive, for people who want to look at it or apply it elsewhere.

It is a ZIP file with `changes.patch`, which `git apply` takes, and with every changed file below
`files/`. The same change gives the same bytes on every machine: the entries are sorted, have no time
of their own, and are stored uncompressed, because compressors differ.
"""

import difflib
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching.path_guard import list_changed_paths

CHANGE_ARCHIVE_NAME: Final = "reports/changes.zip"
PATCH_ENTRY_NAME: Final = "changes.patch"
FILES_ENTRY_PREFIX: Final = "files/"

MAX_ARCHIVED_FILE_BYTES: Final = 8 << 20
"""A larger file is not archived; a page has at most half a megabyte, and a run keeps every archive."""

_LINE_PATTERN: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""A line; only a line feed ends one."""

_ENTRY_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The first date that a ZIP file can express."""


async def build_change_archive(worktree: Path, base: str, env: Mapping[str, str]) -> bytes:
    """Return the archive of everything in a worktree that differs from the base commit.

    Links and other special files, which no gate lets pass, are left out.

    Raises:
        ToolError: The worktree is not a checkout of the base commit.
    """
    git = HardenedGit(env, worktree)
    paths = await list_changed_paths(worktree, base, env)
    listing = await git.run("", "ls-tree", "-r", "-z", base, "--", *paths) if paths else b""
    kinds = {os.fsdecode(path): kind for kind, _, path in (line.partition(b"\t") for line in listing.split(b"\0"))}
    entries: dict[str, bytes] = {}
    patch_lines: list[str] = []
    for path in paths:
        file = worktree / path
        after = _read_file(file)
        if (after is None and (file.exists() or file.is_symlink())) or b" blob " not in kinds.get(path, b" blob "):
            continue
        before = await git.run("", "cat-file", "blob", f"{base}:{path}") if path in kinds else None
        patch_lines += _format_file_patch(path, before, after)
        if after is not None:
            entries[FILES_ENTRY_PREFIX + path] = after
    return _pack_entries({PATCH_ENTRY_NAME: "".join(patch_lines).encode(), **entries})


def _read_file(file: Path) -> bytes | None:
    is_plain = file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_ARCHIVED_FILE_BYTES
    return file.read_bytes() if is_plain else None


def _format_file_patch(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield the difference of one file as git writes it."""
    yield f"diff --git a/{path} b/{path}\n"
    if before is None:
        yield "new file mode 100644\n"
    if after is None:
        yield "deleted file mode 100644\n"
    try:
        old_lines, new_lines = (_LINE_PATTERN.findall((data or b"").decode()) for data in (before, after))
    except UnicodeDecodeError:
        yield f"Binary files a/{path} and b/{path} differ\n"
        return
    old_name = "/dev/null" if before is None else f"a/{path}"
    new_name = "/dev/null" if after is None else f"b/{path}"
    for line in difflib.unified_diff(old_lines, new_lines, old_name, new_name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _pack_entries(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(entries.items()):
            entry = zipfile.ZipInfo(name, _ENTRY_DATE)
            entry.create_system = 3  # Unix, also where Python would write another
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()
