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
_SPAN = re.compile(r"`[^`]*`")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SUBJECT = re.compile(r"(?i)(?:it|the (?:library|package|product|tool|sdk|api|program|project))\b")
_DOES = re.compile(
    r"\s+(?:also |always |never |only |automatically )?(?:is|are|can|has|does|supports?|provides?|"
    r"includes?|offers?|runs?|works?|requires?|reads?|writes?|stores?|converts?|exports?|imports?|"
    r"lets?|allows?|handles?|uses?|needs?|comes|ships|renders?|creates?|loads?|saves?)\b"
)
_ON_THE_WAY = re.compile(
    r"(?i)(?:see(?: also)?|read(?: about)?|next|back to|go to|continue with|more(?: about)?)\b:?\s*"
)
_LEADS_ON = re.compile(r"(?:[\u2013\u2014:-].*)?$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line that says something. `kind` is bullet, row (of a table) or text."""

    line: int
    text: str
    claim_ids: tuple[str, ...]
    kind: str


def statements(file: PageFile) -> list[Statement]:
    """Every line of text of a page that is neither code, heading, table rule nor comment."""
    heading_lines = {heading.line for heading in file.headings}
    rows = {file.first + number - 1 for number in pages.row_lines(file.body)}
    found = []
    for number, line in file.prose:
        if number in heading_lines:
            continue
        ids = tuple(pages.MARKER.findall(line))
        bare = pages.MARKER.sub("", line).rstrip()
        item = _ITEM.match(bare)
        text = _TASK.sub("", (item.group("text") if item else bare).strip())
        kind = "row" if number in rows else "bullet" if item else "text"
        if text.strip("|-: "):
            found.append(Statement(number, text, ids, kind))
    return found


def names_only(text: str) -> bool:
    """Whether a row of a table only names things: code and links, and hardly a word beside."""
    rest = _LINK.sub(" ", _SPAN.sub(" ", text))
    return len(re.findall(r"[^\W\d_]{2,}", rest)) < 3


def about(product: str, text: str) -> str:
    """The first sentence that says what the product is or does; empty when there is none."""
    for sentence in _SENTENCE.split(text):
        subject = sentence.removeprefix(product) if product else sentence
        if subject == sentence or not product:
            found = _SUBJECT.match(sentence)
            subject = sentence[found.end() :] if found else ""
        if _DOES.match(subject):
            return sentence
    return ""


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
