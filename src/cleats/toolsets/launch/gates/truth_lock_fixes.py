"""Fixes for statements: restored to what the evidence says, or removed. No fix adds a claim."""

from collections.abc import Iterable

from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.page_edits import remove_lines
from cleats.toolsets.launch.gates.page_text import LIST_ITEM_PATTERN, strip_markup
from cleats.toolsets.launch.site.pages import CLAIM_MARKER_PATTERN


def fix_unmarked_statements(case: FixCase) -> str:
    """Restore the marker of a bullet, or mark the claim that it repeats; otherwise remove it."""
    claim_ids_by_text = _index_claims(case)
    lines = case.text.split("\n")
    removed_lines = []
    for number in sorted(case.lines):
        line = lines[number - 1]
        claim_id = claim_ids_by_text.get(_normalise_statement(CLAIM_MARKER_PATTERN.sub("", line)))
        if claim_id:
            lines[number - 1] = f"{CLAIM_MARKER_PATTERN.sub('', line).rstrip()} <!-- claim_id: {claim_id} -->"
        else:
            removed_lines.append(number)
    return _remove_items("\n".join(lines), removed_lines)


def fix_drifted_statements(case: FixCase) -> str:
    """Restate the claim, in the words of the draft if it has them."""
    drafted_statements = {
        claim.claim_id: claim.statement for claim in (case.drafted_file.claims if case.drafted_file else ())
    }
    lines = case.text.split("\n")
    removed_lines = []
    for number in sorted(case.lines):
        line = lines[number - 1]
        claim_ids = [claim_id for claim_id in CLAIM_MARKER_PATTERN.findall(line) if claim_id in case.site.evidence]
        item = LIST_ITEM_PATTERN.match(line)
        if len(claim_ids) != 1:
            removed_lines.append(number)
            continue
        statement = drafted_statements.get(claim_ids[0], "")
        if not statement or statement == LIST_ITEM_PATTERN.sub("", CLAIM_MARKER_PATTERN.sub("", line)).strip():
            statement = " ".join(str(case.site.evidence[claim_ids[0]]["claim_text"]).split())
        new_line = f"{item.group(1) if item else ''}{statement} <!-- claim_id: {claim_ids[0]} -->"
        if new_line == line:
            removed_lines.append(number)
        lines[number - 1] = new_line
    return _remove_items("\n".join(lines), removed_lines)


def remove_statements(case: FixCase) -> str:
    """Remove the statements."""
    return _remove_items(case.text, case.lines)


def _index_claims(case: FixCase) -> dict[str, str]:
    """Return the ids of the claims by their text, in the evidence and in the draft."""
    claim_ids_by_text = {
        _normalise_statement(claim["claim_text"]): claim_id for claim_id, claim in case.site.evidence.items()
    }
    for claim in case.drafted_file.claims if case.drafted_file else ():
        if claim.claim_id in case.site.evidence:
            claim_ids_by_text[_normalise_statement(claim.statement)] = claim.claim_id
    return claim_ids_by_text


def _normalise_statement(text: str) -> str:
    return " ".join(strip_markup(LIST_ITEM_PATTERN.sub("", text)).casefold().split()).rstrip(".")


def _remove_items(text: str, numbers: Iterable[int]) -> str:
    """Remove lines and, for an item of a list, also its continuation lines."""
    lines = text.split("\n")
    removed_lines = set()
    for number in numbers:
        removed_lines.add(number)
        item_match = LIST_ITEM_PATTERN.match(lines[number - 1])
        if item_match is None:
            continue
        width = len(item_match.group(1))
        last_line = number
        while last_line < len(lines):
            line = lines[last_line]
            if not line.strip() or len(line) - len(line.lstrip()) < width:
                break
            last_line += 1
            removed_lines.add(last_line)
    return remove_lines(text, removed_lines)
