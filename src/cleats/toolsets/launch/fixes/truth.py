"""Fixes of statements: back to what the evidence says, or off the page. Never a new claim."""

import re
from collections.abc import Iterable

from cleats.toolsets.launch.fixes.model import Answer, Case, without
from cleats.toolsets.launch.gates.statements import plain
from cleats.toolsets.launch.pages import MARKER

_ITEM = re.compile(r"^(\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+)")


def unmarked(case: Case) -> Answer:
    """Give a bullet the marker it had, or that of the claim it repeats; else remove it."""
    known = _known(case)
    lines = (case.text or "").split("\n")
    gone = []
    for number in sorted(case.lines):
        line = lines[number - 1]
        claim_id = known.get(_words(MARKER.sub("", line)))
        if claim_id:
            lines[number - 1] = f"{MARKER.sub('', line).rstrip()} <!-- claim_id: {claim_id} -->"
        else:
            gone.append(number)
    return _without_items("\n".join(lines), gone)


def restated(case: Case) -> Answer:
    """Say again what the claim says, in the draft's words if it has some."""
    drafted = {
        claim.claim_id: claim.statement for claim in (case.drafted.claims if case.drafted else ())
    }
    lines = (case.text or "").split("\n")
    gone = []
    for number in sorted(case.lines):
        line = lines[number - 1]
        ids = [each for each in MARKER.findall(line) if each in case.site.evidence]
        lead = _ITEM.match(line)
        if len(ids) != 1:
            gone.append(number)
            continue
        said = drafted.get(ids[0], "")
        if not said or said == _statement(line):
            said = " ".join(str(case.site.evidence[ids[0]]["claim_text"]).split())
        made = f"{lead.group(1) if lead else ''}{said} <!-- claim_id: {ids[0]} -->"
        if made == line:
            gone.append(number)
        lines[number - 1] = made
    return _without_items("\n".join(lines), gone)


def removed(case: Case) -> Answer:
    """Take the statements away."""
    return _without_items(case.text or "", case.lines)


def _known(case: Case) -> dict[str, str]:
    """The claims by what they say: in the evidence, and in the draft."""
    found = {_words(claim["claim_text"]): name for name, claim in case.site.evidence.items()}
    for claim in case.drafted.claims if case.drafted else ():
        if claim.claim_id in case.site.evidence:
            found[_words(claim.statement)] = claim.claim_id
    return found


def _statement(line: str) -> str:
    return _ITEM.sub("", MARKER.sub("", line)).strip()


def _words(text: str) -> str:
    return " ".join(plain(_ITEM.sub("", text)).casefold().split()).rstrip(".")


def _without_items(text: str, numbers: Iterable[int]) -> str:
    """Remove lines, and for an item of a list also the lines that go on with it."""
    lines = text.split("\n")
    gone = set()
    for number in numbers:
        gone.add(number)
        lead = _ITEM.match(lines[number - 1])
        if lead is None:
            continue
        width = len(lead.group(1))
        below = number
        while below < len(lines):
            line = lines[below]
            if not line.strip() or len(line) - len(line.lstrip()) < width:
                break
            below += 1
            gone.add(below)
    return without(text, gone) if gone else text


RULES = {
    "GATE_TRUTH_UNMARKED": unmarked,
    "GATE_TRUTH_UNKNOWN_CLAIM": unmarked,
    "GATE_TRUTH_DRIFT": restated,
    "GATE_TRUTH_FIGURE": restated,
    "GATE_TRUTH_SPECULATION": restated,
    "GATE_TRUTH_SENTENCE": unmarked,
    "GATE_TRUTH_NAME": restated,
    "GATE_TRUTH_FORMAT": restated,
    "GATE_TRUTH_TOPIC": removed,
    "GATE_TRUTH_UNCITED": removed,
    "GATE_TRUTH_CITATION": removed,
    "GATE_TRUTH_UNSUPPORTED": removed,
    "GATE_TRUTH_INFERENCE": removed,
    "GATE_TRUTH_CONTRADICTED": removed,
    "GATE_TRUTH_CONTRADICTION": removed,
}
