"""Patches: changes of the site as data, from one state of a file to another.

A patch carries the hash of the file before it and the hash after it (`content_hash`). So a bundle
can be applied again at any time: what is already in place is skipped, what fits is changed, and
anything else is a conflict that changes nothing. Several patches of one file form a chain.

`apply_patch` is pure: bytes in, bytes out. Only `apply_bundle` writes, and only through a guard.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.site import pages

SitePatch: TypeAlias = dict[str, Any]

MISSING_FILE_HASH = "0" * 64
"""The hash that represents a missing file, as opposed to an empty one."""


class ConflictError(Exception):
    """Raised when a patch does not fit the current file. `reason` is a code for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.patch: Mapping[str, Any] = {}
        """The patch of a bundle that cannot be applied."""

    def as_json(self) -> dict[str, Any]:
        patch_fields = {name: self.patch[name] for name in ("patch_id", "type", "path")}
        return {**patch_fields, "reason": self.reason, "message": self.message}


def make_create_patch(path: str, text: str) -> SitePatch:
    """Make a patch that creates a new file."""
    return _make_patch("create_file", path, None, new_content=text)


def make_anchor_patch(path: str, before: str, anchor: str, text: str) -> SitePatch:
    """Make a patch that adds text at the end of the section with this heading or anchor."""
    return _make_patch("update_by_anchor", path, before, anchor=anchor, new_content=text)


def make_front_matter_patch(path: str, before: str, updates: Mapping[str, Any]) -> SitePatch:
    """Make a patch that sets keys of the front matter; None removes a key."""
    return _make_patch("update_frontmatter_keys", path, before, frontmatter_updates=dict(updates))


def make_range_patch(path: str, before: str, start: int, end: int, text: str) -> SitePatch:
    """Make a patch that replaces lines `start` to `end`; an `end` of `start` - 1 inserts the text."""
    return _make_patch("update_file_range", path, before, start_line=start, end_line=end, new_content=text)


def make_text_patch(path: str, before: str, after: str) -> SitePatch:
    """Make a patch that replaces the lines from the first to the last that differ."""
    old, new = before.split("\n"), after.split("\n")
    tail = _count_equal_lines(old[::-1], new[::-1])
    head = min(_count_equal_lines(old, new), min(len(old), len(new)) - tail)
    middle = new[head : len(new) - tail]
    text = "\n".join(middle) + "\n" if middle else ""
    patch = make_range_patch(path, before, head + 1, len(old) - tail, text)
    if apply_patch_to_text(patch, before) != after:
        raise ValueError(f"the patch of {path} does not produce the new text")
    return patch


def _count_equal_lines(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def make_whole_file_patch(path: str, before: str | None, after: str | None) -> SitePatch:
    """Make the patch that leads from one state of a file to another; None is a missing file."""
    if before is None:
        return make_create_patch(path, after or "")
    return make_delete_patch(path, before) if after is None else make_text_patch(path, before, after)


def make_delete_patch(path: str, before: str) -> SitePatch:
    """Make a patch that removes a file."""
    return _make_patch("delete_file", path, before)


def make_bundle_name(step: str) -> str:
    """Return the name of the artifact that a step applies."""
    kind, _, number = step.partition(":fix:")
    return f"patch_bundle.delta.{number}.json" if number and kind == "apply" else "patch_bundle.json"


def make_bundle(patches: Iterable[SitePatch]) -> dict[str, Any]:
    """Make a bundle of patches, in the order in which they are applied."""
    return {"schema_version": "1.0", "patches": list(patches)}


def apply_patch_to_text(patch: Mapping[str, Any], before: str) -> str:
    """Return the text that a patch makes of a text, as the base for the next patch of a chain."""
    new_data = apply_patch(patch, before.encode())
    return "" if new_data is None else new_data.decode()


def apply_patch(patch: Mapping[str, Any], before: bytes | None) -> bytes | None:
    """Return the bytes that a patch makes of a file; None means that there is no file.

    Raises:
        ConflictError: The patch does not fit.
    """
    kind = patch["type"]
    if kind == "create_file":
        if before is not None:
            raise ConflictError("FILE_EXISTS_CONFLICT", "another file already exists there")
        return str(patch["new_content"]).encode()
    if before is None:
        raise ConflictError("FILE_MISSING", "the file does not exist")
    if kind == "delete_file":
        return None
    try:
        text = before.decode()
    except UnicodeDecodeError:
        raise ConflictError("NOT_TEXT", "the file is not UTF-8") from None
    if kind == "update_by_anchor":
        return _insert_under_heading(text, patch["anchor"], patch["new_content"]).encode()
    if kind == "update_frontmatter_keys":
        try:
            return front_matter.set_front_matter_keys(text, patch["frontmatter_updates"]).encode()
        except front_matter.FrontMatterError as error:
            raise ConflictError("FRONTMATTER_INVALID", error.message) from error
    return _replace_range(text, patch["start_line"], patch["end_line"], patch["new_content"]).encode()


def find_conflicts(document: Mapping[str, Any], guard: WorktreeGuard) -> list[ConflictError]:
    """Return the conflicts that would keep a bundle from being applied; nothing is written."""
    return [conflict for _, chain in _group_by_path(document) if (conflict := _try_chain(chain, guard)[2])]


def apply_bundle(document: Mapping[str, Any], guard: WorktreeGuard) -> list[str]:
    """Apply a bundle completely or, if a conflict is known before the first write, not at all.

    If the process is killed half-way, the same call completes the work. Returns the ids of all
    patches that are now in place, whether this call wrote them or an earlier one.

    Raises:
        ToolError: ALLOWED_PATHS_VIOLATION, or INVALID_INPUT with the conflicts.
    """
    outcomes = [(path, *_try_chain(chain, guard)) for path, chain in _group_by_path(document)]
    if conflicts := [conflict for _, _, _, conflict in outcomes if conflict is not None]:
        raise make_conflict_error(conflicts)
    for path, existing, data, _ in outcomes:
        if data == existing:
            continue
        if data is None:
            guard.delete(path)
        else:
            guard.write(path, data)
    return [patch["patch_id"] for patch in document["patches"]]


def make_conflict_error(conflicts: Sequence[ConflictError]) -> ToolError:
    """Return one error for all patches that cannot be applied."""
    first = conflicts[0]
    remainder = f" The same applies to {len(conflicts) - 1} more." if len(conflicts) > 1 else ""
    hint = "Start another run, which plans from the site as it is now."
    if any(entry.reason == "FILE_EXISTS_CONFLICT" for entry in conflicts):
        hint = "A launch does not overwrite pages. Remove the pages from the site first, or launch only "
        hint += "sections that it does not have."
    return ToolError(
        ErrorCode.INVALID_INPUT,
        f"Cannot apply {first.patch['path']}: {first.message}.{remainder}",
        hint=hint,
        retryable=False,
        details={
            "error_code": "LINKER_PATCHER_CONFLICT_UNRESOLVABLE",
            "conflicts": [conflict.as_json() for conflict in conflicts],
        },
    )


def hash_content(data: bytes | None) -> str:
    """Return the hash of a file's content, as patches use it."""
    return MISSING_FILE_HASH if data is None else hashlib.sha256(data).hexdigest()


def _make_patch(kind: str, path: str, before: str | None, **fields: Any) -> SitePatch:
    patch: SitePatch = {"patch_id": "", "type": kind, "path": path, "content_hash": "", **fields}
    data = None if before is None else before.encode()
    if data is not None:
        patch["expected_before_hash"] = hash_content(data)
    patch["content_hash"] = hash_content(apply_patch(patch, data))
    identity = "|".join((kind, path, patch.get("expected_before_hash", ""), patch["content_hash"]))
    patch["patch_id"] = f"patch_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    return patch


def _group_by_path(document: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    chains: dict[str, list[Mapping[str, Any]]] = {}
    for patch in document["patches"]:
        chains.setdefault(patch["path"], []).append(patch)
    return list(chains.items())


def _try_chain(
    chain: Sequence[Mapping[str, Any]], guard: WorktreeGuard
) -> tuple[bytes | None, bytes | None, ConflictError | None]:
    """Follow a chain; return the current state of the file, its final state, and the conflict if any."""
    existing = current = guard.read(chain[0]["path"])
    states = [chain[0].get("expected_before_hash", MISSING_FILE_HASH), *(patch["content_hash"] for patch in chain)]
    reached = max((number for number, state in enumerate(states) if state == hash_content(current)), default=0)
    for patch in chain[reached:]:
        try:
            current = _apply_verified(patch, current)
        except ConflictError as error:
            error.patch = patch
            return existing, existing, error
    return existing, current, None


def _apply_verified(patch: Mapping[str, Any], before: bytes | None) -> bytes | None:
    expected = patch.get("expected_before_hash")
    if expected is not None and before is not None and expected != hash_content(before):
        raise ConflictError("HASH_MISMATCH", "the file has changed since it was planned")
    new_data = apply_patch(patch, before)
    if hash_content(new_data) != patch["content_hash"]:
        raise ConflictError("HASH_MISMATCH", "the result of the patch is not the expected one")
    return new_data


def _insert_under_heading(text: str, anchor: str, addition: str) -> str:
    try:
        page = front_matter.parse_page(text)
    except front_matter.FrontMatterError as error:
        raise ConflictError("FRONTMATTER_INVALID", error.message) from error
    headings = pages.list_headings(page.body, page.body_line)
    heading_name = anchor.strip().lstrip("#").casefold()
    matches = [heading for heading in headings if heading_name in (heading.text.casefold(), heading.anchor.casefold())]
    if not matches:
        raise ConflictError("ANCHOR_MISSING", f"no heading is named {anchor!r}")
    level, start = matches[0].level, matches[0].line
    lines = text.split("\n")
    ends = (heading.line - 1 for heading in headings if heading.line > start and heading.level <= level)
    end = next(ends, len(lines))
    above = "\n".join(lines[:end]).rstrip("\n")
    below = "\n".join(lines[end:]).strip("\n")
    # A list that continues needs no empty line; everything else does.
    ends_with_item = above.rsplit("\n", 1)[-1].lstrip().startswith(("- ", "* "))
    separator = "\n" if ends_with_item and addition.lstrip().startswith(("- ", "* ")) else "\n\n"
    added = addition.strip("\n")
    return f"{above}{separator}{added}\n" + (f"\n{below}\n" if below else "")


def _replace_range(text: str, start: int, end: int, replacement: str) -> str:
    lines = text.split("\n")
    line_count = len(lines) - (lines[-1] == "")
    if not (1 <= start <= line_count + 1 and start - 1 <= end <= line_count):
        raise ConflictError("RANGE_OUT_OF_BOUNDS", f"the file has {line_count} lines")
    new_lines = replacement.removesuffix("\n").split("\n") if replacement else []
    return "\n".join([*lines[: start - 1], *new_lines, *lines[end:]])
