"""The statements of a page: what it says line by line, and which lines must prove it.

A bullet states a fact unless it only leads on: a link with a few words, or a label. A line of a
paragraph states one that must be proved only when it speaks of what a launch may never guess.
"""

import re
from dataclasses import dataclass

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.gates.site import PageFile

_ITEM = re.compile(r"^(?P<lead>\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+)(?P<text>.*)$")
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)|<https?://[^>]*>|\{\{[<%].*?[%>]\}\}")
_TASK = re.compile(r"^\[[ xX]\]\s+")
_MARKUP = re.compile(r"[*_`~#>|]")
_ON_THE_WAY = re.compile(
    r"(?i)(?:see(?: also)?|read(?: about)?|next|back to|go to|continue with|more(?: about)?)\b:?\s*"
)
_LEADS_ON = re.compile(r"(?:[\u2013\u2014:-].*)?$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line that says something. `bullet` is whether it is an item of a list."""

    line: int
    text: str
    claim_ids: tuple[str, ...]
    bullet: bool


def statements(file: PageFile) -> list[Statement]:
    """Every line of text of a page that is neither code, heading, table rule nor comment."""
    heading_lines = {heading.line for heading in file.headings}
    found = []
    for number, line in file.prose:
        if number in heading_lines:
            continue
        ids = tuple(pages.MARKER.findall(line))
        bare = pages.MARKER.sub("", line).rstrip()
        item = _ITEM.match(bare)
        text = _TASK.sub("", (item.group("text") if item else bare).strip())
        if text.strip("|-: "):
            found.append(Statement(number, text, ids, item is not None))
    return found


def leads_on(text: str) -> bool:
    """Whether a bullet only points somewhere: a link, perhaps with what is behind it."""
    text = _after(text.lstrip("*_ ")).lstrip("*_ ")
    link = _LINK.match(text)
    return link is not None and bool(_LEADS_ON.fullmatch(text[link.end() :].strip("*_. ")))


def _after(text: str) -> str:
    lead = _ON_THE_WAY.match(text)
    return text[lead.end() :] if lead else text


def plain(text: str) -> str:
    """A statement as it is read: no code spans' marks, no link targets, no emphasis."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return _MARKUP.sub("", text).strip()
