"""Patches: changes of the site as data, planned from one state of a file and leading to another.

A patch carries the hash of the file before it and the hash after it (`content_hash`). So a bundle
can be applied again at any time: what is already there is skipped, what fits is changed, and
anything else is a conflict that changes nothing. Several patches of one file form a chain.

`result` is pure: bytes in, bytes out. Only `apply` writes, and only through a fence.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import pages
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.front import updated

Patch: TypeAlias = dict[str, Any]

GONE = "0" * 64
"""The hash that stands for a file that is not there: an empty file is something else."""


class ConflictError(Exception):
    """Raised when a patch does not fit the file it meets. `reason` is a code for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Conflict:
    """A patch of a bundle that cannot be applied, and why."""

    patch: Mapping[str, Any]
    reason: str
    message: str

    def as_json(self) -> dict[str, Any]:
        return {
            "patch_id": self.patch["patch_id"],
            "type": self.patch["type"],
            "path": self.patch["path"],
            "reason": self.reason,
            "message": self.message,
        }


def create_file(path: str, text: str) -> Patch:
    """Make a file that is not there yet."""
    return _patch("create_file", path, None, new_content=text)


def update_by_anchor(path: str, before: str, anchor: str, text: str) -> Patch:
    """Add text at the end of what stands under a heading, named by its words or its anchor."""
    return _patch("update_by_anchor", path, before, anchor=anchor, new_content=text)


def update_front_matter(path: str, before: str, updates: Mapping[str, Any]) -> Patch:
    """Set keys of the front matter; None takes a key away. All else stays as it is written."""
    return _patch("update_frontmatter_keys", path, before, frontmatter_updates=dict(updates))


def update_range(path: str, before: str, start: int, end: int, text: str) -> Patch:
    """Replace lines `start` to `end`; with `end` just before `start`, insert before `start`."""
    return _patch(
        "update_file_range", path, before, start_line=start, end_line=end, new_content=text
    )


def delete_file(path: str, before: str) -> Patch:
    """Remove a file."""
    return _patch("delete_file", path, before)


def bundle(patches: Iterable[Patch]) -> dict[str, Any]:
    """Put patches together, in the order in which they are to be applied."""
    return {"schema_version": "1.0", "patches": list(patches)}


def after(patch: Mapping[str, Any], before: str) -> str:
    """Return the text a patch makes of a text, to build the next patch of a chain on."""
    made = result(patch, before.encode())
    return "" if made is None else made.decode()


def result(patch: Mapping[str, Any], before: bytes | None) -> bytes | None:
    """Return what a patch makes of a file; None stands for no file.

    Raises:
        ConflictError: the patch does not fit.
    """
    kind = patch["type"]
    if kind == "create_file":
        if before is not None:
            raise ConflictError("FILE_EXISTS_CONFLICT", "another file is there already")
        return str(patch["new_content"]).encode()
    if before is None:
        raise ConflictError("FILE_MISSING", "the file is not there")
    if kind == "delete_file":
        return None
    try:
        text = before.decode()
    except UnicodeDecodeError:
        raise ConflictError("NOT_TEXT", "the file is not UTF-8") from None
    if kind == "update_by_anchor":
        return _under(text, patch["anchor"], patch["new_content"]).encode()
    if kind == "update_frontmatter_keys":
        try:
            return updated(text, patch["frontmatter_updates"]).encode()
        except pages.FrontMatterError as error:
            raise ConflictError("FRONTMATTER_INVALID", error.message) from error
    return _ranged(text, patch["start_line"], patch["end_line"], patch["new_content"]).encode()


def conflicts(document: Mapping[str, Any], fence: Fence) -> list[Conflict]:
    """List what would keep a bundle from being applied; nothing is written."""
    return [found for _, chain in _chains(document) if (found := _tried(chain, fence)[1])]


def apply(document: Mapping[str, Any], fence: Fence) -> list[str]:
    """Apply a bundle, whole or not at all as far as can be known before the first write.

    Killed half-way, the same call finishes it. Returns the ids of all patches that are now in
    place, whether this call wrote them or an earlier one.

    Raises:
        ToolError: ALLOWED_PATHS_VIOLATION, or INVALID_INPUT with the conflicts.
    """
    outcomes = [(path, *_tried(chain, fence)) for path, chain in _chains(document)]
    if found := [conflict for _, _, conflict in outcomes if conflict is not None]:
        raise conflict_error(found)
    for path, made, _ in outcomes:
        if made.changed and made.data is None:
            fence.delete(path)
        elif made.changed and made.data is not None:
            fence.write(path, made.data)
    return [patch["patch_id"] for patch in document["patches"]]


def conflict_error(found: Sequence[Conflict]) -> ToolError:
    """Make the one error for patches that cannot be applied."""
    first = found[0]
    more = f" So it is for {len(found) - 1} more." if len(found) > 1 else ""
    there = any(each.reason == "FILE_EXISTS_CONFLICT" for each in found)
    return ToolError(
        ErrorCode.INVALID_INPUT,
        f"The site does not take {first.patch['path']}: {first.message}.{more}",
        hint="A launch overwrites no page. Remove the pages from the site first, or launch only "
        "sections that it does not have."
        if there
        else "Start another run, which plans from the site as it is now.",
        retryable=False,
        details={
            "error_code": "LINKER_PATCHER_CONFLICT_UNRESOLVABLE",
            "conflicts": [conflict.as_json() for conflict in found],
        },
    )


def digest(data: bytes | None) -> str:
    """Hash a file as patches do."""
    return GONE if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class _Made:
    data: bytes | None
    changed: bool


def _patch(kind: str, path: str, before: str | None, **more: Any) -> Patch:
    patch: Patch = {"patch_id": "", "type": kind, "path": path, "content_hash": "", **more}
    data = None if before is None else before.encode()
    if data is not None:
        patch["expected_before_hash"] = digest(data)
    patch["content_hash"] = digest(result(patch, data))
    name = "|".join((kind, path, patch.get("expected_before_hash", ""), patch["content_hash"]))
    patch["patch_id"] = f"patch_{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return patch


def _chains(document: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    chains: dict[str, list[Mapping[str, Any]]] = {}
    for patch in document["patches"]:
        chains.setdefault(patch["path"], []).append(patch)
    return list(chains.items())


def _tried(chain: Sequence[Mapping[str, Any]], fence: Fence) -> tuple[_Made, Conflict | None]:
    """Follow a chain from the state that the file is in to its end."""
    standing = fence.read(chain[0]["path"])
    now = standing
    states = [chain[0].get("expected_before_hash", GONE), *(each["content_hash"] for each in chain)]
    reached = max((n for n, state in enumerate(states) if state == digest(now)), default=0)
    for patch in chain[reached:]:
        try:
            now = _checked(patch, now)
        except ConflictError as error:
            return _Made(standing, changed=False), Conflict(patch, error.reason, error.message)
    return _Made(now, changed=now != standing), None


def _checked(patch: Mapping[str, Any], before: bytes | None) -> bytes | None:
    expected = patch.get("expected_before_hash")
    if expected is not None and before is not None and expected != digest(before):
        raise ConflictError("HASH_MISMATCH", "the file has changed since it was planned")
    made = result(patch, before)
    if digest(made) != patch["content_hash"]:
        raise ConflictError("HASH_MISMATCH", "the patch does not give what it promises")
    return made


def _under(text: str, anchor: str, addition: str) -> str:
    try:
        page = pages.parse(text)
    except pages.FrontMatterError as error:
        raise ConflictError("FRONTMATTER_INVALID", error.message) from error
    found = pages.headings(page.body, page.body_line)
    wanted = anchor.strip().lstrip("#").casefold()
    named = [h for h in found if wanted in (h.text.casefold(), h.anchor.casefold())]
    if not named:
        raise ConflictError("ANCHOR_MISSING", f"no heading is named {anchor!r}")
    level, start = named[0].level, named[0].line
    lines = text.split("\n")
    end = next((h.line - 1 for h in found if h.line > start and h.level <= level), len(lines))
    above = "\n".join(lines[:end]).rstrip("\n")
    below = "\n".join(lines[end:]).strip("\n")
    # A list that goes on needs no empty line, everything else does.
    items = above.rsplit("\n", 1)[-1].lstrip().startswith(("- ", "* "))
    joint = "\n" if items and addition.lstrip().startswith(("- ", "* ")) else "\n\n"
    added = addition.strip("\n")
    return f"{above}{joint}{added}\n" + (f"\n{below}\n" if below else "")


def _ranged(text: str, start: int, end: int, new: str) -> str:
    lines = text.split("\n")
    total = len(lines) - (lines[-1] == "")
    if not (1 <= start <= total + 1 and start - 1 <= end <= total):
        raise ConflictError("RANGE_OUT_OF_BOUNDS", f"the file has {total} lines")
    middle = new.removesuffix("\n").split("\n") if new else []
    return "\n".join([*lines[: start - 1], *middle, *lines[end:]])
