"""The update of pages that an earlier run wrote: what changes, what stays, and what a reviewer should know.

A page changes only if what it says has changed. The date of the commit alone does not count, and the date on which a
page was published stays.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from cleats.system import front_matter
from cleats.toolsets.launch.patching.launch_records import LaunchRecords
from cleats.toolsets.launch.patching.merging import MergeConflict, list_line_changes, merge_page
from cleats.toolsets.launch.site.claim_markers import strip_claim_markers, strip_evidence_list

MAX_LISTED_LINES = 12
"""Maximum number of added and of removed lines that are listed for a page; the difference has all of them."""

_PUBLISHED_KEY_PATTERN = re.compile(r"(?:date|publishdate|publish_date|created): ")
_COMMIT_DATE_PATTERN = re.compile(r"(?:date|publishdate|publish_date|created|lastmod|updated): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageUpdate:
    """What an update does with one page."""

    path: str
    change: str
    """`new`, `changed`, `unchanged`, `removed`, or `obsolete` for an edited page that is no longer drafted."""
    new_text: str | None = None
    """The text after the update; None for a page that is removed."""
    drafted: str | None = None
    """The draft that the record keeps; None if the record stays as it is."""
    edited: bool = False
    previous_sha: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()

    def as_json(self) -> dict[str, Any]:
        conflicts = [{"line": it.line, "kept": it.kept, "drafted": it.drafted} for it in self.conflicts]
        lines = {"added": list(self.added), "removed": list(self.removed)} if self.added or self.removed else {}
        return {
            "path": self.path,
            "change": self.change,
            "edited": self.edited,
            **({"previous_sha": self.previous_sha} if self.previous_sha else {}),
            **lines,
            **({"conflicts": conflicts} if conflicts else {}),
        }


def plan_page_update(
    path: str, draft: str, page: str | None, records: LaunchRecords, refresh_evidence: Callable[[str], str]
) -> PageUpdate | None:
    """Plan the update of one page; None if the site has a page there that no run is known to have written.

    Pages are compared without their lists of evidence, which a new commit always changes; a page that changes gets a
    new list from `refresh_evidence`.
    """
    recorded = records.find_page(path)
    if page is None:
        return PageUpdate(path=path, change="new", new_text=draft, drafted=draft)
    if recorded is None:
        return None
    bare_draft, bare_page = strip_evidence_list(draft), strip_evidence_list(page)
    edited = bool(list_line_changes(recorded.digests, bare_page))
    sha = recorded.repo_sha
    if not has_news(recorded.digests, bare_draft):
        return PageUpdate(path=path, change="unchanged", new_text=page, edited=edited, previous_sha=sha)
    bare_draft = _keep_published_date(bare_draft, bare_page)
    merged = merge_page(recorded.digests, bare_draft, bare_page)
    added, removed = list_changed_statements(bare_page, merged.text)
    is_changed = merged.text != bare_page
    return PageUpdate(
        path=path,
        change="changed" if is_changed else "unchanged",
        new_text=refresh_evidence(merged.text) if is_changed else page,
        drafted=bare_draft,
        edited=edited,
        previous_sha=sha,
        added=added,
        removed=removed,
        conflicts=merged.conflicts,
    )


def plan_page_removal(path: str, page: str, records: LaunchRecords) -> PageUpdate:
    """Plan the end of a page that is no longer drafted: it is removed, unless people edited it."""
    recorded = records.find_page(path)
    sha = recorded.repo_sha if recorded else ""
    bare_page = strip_evidence_list(page)
    if recorded is None or list_line_changes(recorded.digests, bare_page):
        return PageUpdate(path=path, change="obsolete", new_text=page, edited=True, previous_sha=sha)
    _, removed = list_changed_statements(bare_page, "")
    return PageUpdate(path=path, change="removed", previous_sha=sha, removed=removed)


def has_news(digests: Sequence[str], draft: str) -> bool:
    """Return whether a draft differs from its predecessor in more than dates."""
    lines = draft.removesuffix("\n").split("\n")
    return any(
        change.end - change.start != change.new_end - change.new_start
        or not all(_COMMIT_DATE_PATTERN.match(line) for line in lines[change.new_start : change.new_end])
        for change in list_line_changes(digests, draft)
    )


def _keep_published_date(draft: str, page: str) -> str:
    """Return the draft with the publication dates of the page; a page is not published again."""
    published = {line.split(":", 1)[0]: line for line in page.split("\n") if _PUBLISHED_KEY_PATTERN.match(line)}
    body_line = front_matter.parse_page(draft).body_line
    return "\n".join(
        published.get(line.split(":", 1)[0], line)
        if number < body_line and _PUBLISHED_KEY_PATTERN.match(line)
        else line
        for number, line in enumerate(draft.split("\n"), start=1)
    )


def list_changed_statements(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines that a change adds and removes, as a reader sees them, without moved lines."""
    old_lines, new_lines = ([_strip_markers(line) for line in text.split("\n")] for text in (before, after))
    added: list[str] = []
    removed: list[str] = []
    for _, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, old_lines, new_lines, autojunk=False
    ).get_opcodes():
        if old_lines[old_start:old_end] != new_lines[new_start:new_end]:
            removed += old_lines[old_start:old_end]
            added += new_lines[new_start:new_end]
    moved = set(old_lines) & set(new_lines)
    return _select_lines(added, moved), _select_lines(removed, moved)


def _strip_markers(line: str) -> str:
    return strip_claim_markers(line).rstrip()


def _select_lines(lines: Sequence[str], moved: set[str]) -> tuple[str, ...]:
    selected = [line for line in lines if line.strip(" -|`*") and line not in moved]
    return tuple(dict.fromkeys(selected))


def render_update_notes(updates: Sequence[Mapping[str, Any]], repo_sha: str) -> list[str]:
    """Render what is new for the reviewer of the request, as lines of Markdown."""
    old_shas = sorted({str(update["previous_sha"]) for update in updates if update.get("previous_sha")})
    changed = [update for update in updates if update["change"] != "unchanged"]
    unchanged_count = len(updates) - len(changed)
    edited_count = sum(bool(update["edited"]) for update in updates)
    since = f" since {', '.join(sha[:12] for sha in old_shas)}" if old_shas else ""
    lines = ["## What is new", "", f"The source is at {repo_sha[:12]}{since}.", ""]
    for update in changed:
        lines += _render_page_notes(update)
    if unchanged_count:
        lines += [f"{unchanged_count} pages say the same as before and were not changed.", ""]
    if edited_count:
        lines += [f"Edits by people on {edited_count} pages were kept.", ""]
    conflicts = [(update["path"], conflict) for update in updates for conflict in update.get("conflicts", ())]
    if conflicts:
        lines += ["## Conflicts", "", "People and the source changed the same lines. The text of people was kept.", ""]
        for path, conflict in conflicts:
            lines += [f"`{path}:{conflict['line']}`", "", "````diff"]
            lines += [f"-{line}" for line in conflict["drafted"].split("\n")]
            lines += [f"+{line}" for line in conflict["kept"].split("\n")]
            lines += ["````", ""]
    return lines


_CHANGE_LABELS: Mapping[str, str] = {
    "new": "new page",
    "changed": "changed",
    "removed": "removed, because the source no longer supports it",
    "obsolete": "no longer written; it stays because people edited it",
}


def _render_page_notes(update: Mapping[str, Any]) -> list[str]:
    lines = [f"- `{update['path']}`: {_CHANGE_LABELS[update['change']]}"]
    for sign, name in (("+", "added"), ("-", "removed")):
        changed_lines = update.get(name, ()) if update["change"] == "changed" else ()
        lines += [f"  - {sign} {_quote_line(line)}" for line in changed_lines[:MAX_LISTED_LINES]]
        if len(changed_lines) > MAX_LISTED_LINES:
            lines.append(f"  - {sign} {len(changed_lines) - MAX_LISTED_LINES} more lines")
    return [*lines, ""] if lines else []


def _quote_line(line: str) -> str:
    """Return a line as code, so that its Markdown has no effect in the request."""
    text = line.strip().removeprefix("- ")[:160]
    return f"`` {text} ``"
