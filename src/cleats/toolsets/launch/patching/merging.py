"""Three-way merging of pages: the draft of an update against the edits that people made.

The base, the page as the previous run drafted it, is known only by one digest for each line. That is enough: a merge
never quotes the base. It uses the draft where only the draft changed, the site where only people changed something, and
the lines of the site where both changed the same lines. The last is a conflict; the drafted lines are reported.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LINE_DIGEST_CHARACTERS = 12
"""Length of the digest of a line: 48 bits, so that two different lines of a page never share one."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Lines that both sides changed: those of the site, which are kept, and those of the draft."""

    line: int
    """The first of the kept lines in the merged page."""
    kept: str
    drafted: str


@dataclass(frozen=True, slots=True)
class MergedPage:
    """The result of a merge."""

    text: str
    has_edits: bool
    """True if people changed the page since the previous run."""
    conflicts: tuple[MergeConflict, ...]


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines of the base that one side replaced: a range of the base and a range of that side."""

    start: int
    end: int
    new_start: int
    new_end: int


def digest_lines(text: str) -> list[str]:
    """Return the digest of each line of a page; white space at the end of a line does not count."""
    lines = (line.rstrip() for line in text.removesuffix("\n").split("\n"))
    return [hashlib.sha256(line.encode()).hexdigest()[:LINE_DIGEST_CHARACTERS] for line in lines]


def list_line_changes(base: Sequence[str], text: str) -> list[LineChange]:
    """List the changes that lead from the digests of a base to a text, in order."""
    matcher = SequenceMatcher(None, base, digest_lines(text), autojunk=False)
    return [LineChange(*positions) for tag, *positions in matcher.get_opcodes() if tag != "equal"]


def merge_page(base: Sequence[str], draft: str, page: str) -> MergedPage:
    """Merge a draft into the page of the site; `base` has the digests of their common origin."""
    draft_lines, page_lines = _split_lines(draft), _split_lines(page)
    draft_changes, page_changes = list_line_changes(base, draft), list_line_changes(base, page)
    merged: list[str] = []
    conflicts: list[MergeConflict] = []
    position = offset = 0  # in the base, and from the base to the page
    for drafted, edited in _group_changes(draft_changes, page_changes):
        start, end = _find_bounds([*drafted, *edited])
        merged += page_lines[position + offset : start + offset]
        own_lines = _slice_side(page_lines, edited, start, end, offset)
        new_lines = _slice_side(draft_lines, drafted, start, end, 0)
        if not drafted or own_lines == new_lines:
            merged += own_lines
        elif not edited:
            merged += new_lines
        elif start == end:  # both added lines at one place
            merged += [*own_lines, *new_lines]
        else:
            conflicts.append(MergeConflict(len(merged) + 1, "\n".join(own_lines), "\n".join(new_lines)))
            merged += own_lines
        position = end
        offset += sum(change.new_end - change.new_start - (change.end - change.start) for change in edited)
    merged += page_lines[position + offset :]
    return MergedPage("\n".join(merged) + "\n", bool(page_changes), tuple(conflicts))


def _split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _find_bounds(changes: Sequence[LineChange]) -> tuple[int, int]:
    return min(change.start for change in changes), max(change.end for change in changes)


def _slice_side(lines: Sequence[str], changes: Sequence[LineChange], start: int, end: int, offset: int) -> list[str]:
    """Return the lines that a side has for a range of the base."""
    if not changes:
        return list(lines[start + offset : end + offset])
    first, last = changes[0], changes[-1]
    return list(lines[first.new_start - (first.start - start) : last.new_end + (end - last.end)])


def _group_changes(
    drafted: Sequence[LineChange], edited: Sequence[LineChange]
) -> Iterator[tuple[list[LineChange], list[LineChange]]]:
    """Yield groups of changes that touch the same lines of the base, in order."""
    marked = [(change, True) for change in drafted] + [(change, False) for change in edited]
    group: list[tuple[LineChange, bool]] = []
    for change, is_drafted in sorted(marked, key=lambda item: (item[0].start, item[0].end)):
        if group and not _has_overlap(*_find_bounds([member for member, _ in group]), change):
            yield _split_group(group)
            group = []
        group.append((change, is_drafted))
    if group:
        yield _split_group(group)


def _has_overlap(start: int, end: int, change: LineChange) -> bool:
    """Return whether a change shares lines with a range, or adds lines where an empty range adds some."""
    if start == end or change.start == change.end:
        is_same_place = start == end == change.start == change.end
        return is_same_place or (start < change.start < end)
    return change.start < end


def _split_group(group: Sequence[tuple[LineChange, bool]]) -> tuple[list[LineChange], list[LineChange]]:
    return [change for change, is_drafted in group if is_drafted], [change for change, mine in group if not mine]
