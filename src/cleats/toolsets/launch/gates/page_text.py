"""The statements of a page, line by line, and the lines that must be proved.

A bullet states a fact unless it is only navigation: a link with a few words, or a label. A line of
a paragraph must be proved only when it speaks of something that a launch may never guess.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.gates.model import LaunchSite, PageFile
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.site.pages import CodeBlock

_LIST_ITEM_PATTERN = re.compile(r"^(?P<lead>\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+)(?P<text>.*)$")
_LINK_PATTERN = re.compile(r"\[[^\]]*\]\([^)]*\)|<https?://[^>]*>|\{\{[<%].*?[%>]\}\}")
_TASK_BOX_PATTERN = re.compile(r"^\[[ xX]\]\s+")
_MARKUP_PATTERN = re.compile(r"[*_`~#>|]")
_CODE_SPAN_PATTERN = re.compile(r"`[^`]*`")
_SENTENCE_BREAK_PATTERN = re.compile(r"(?<=[.!?])\s+")
_SUBJECT_PATTERN = re.compile(r"(?i)(?:it|the (?:library|package|product|tool|sdk|api|program|project))\b")
_PRODUCT_VERB_PATTERN = re.compile(
    r"\s+(?:also |always |never |only |automatically )?(?:is|are|can|has|does|supports?|provides?|"
    r"includes?|offers?|runs?|works?|requires?|reads?|writes?|stores?|converts?|exports?|imports?|"
    r"lets?|allows?|handles?|uses?|needs?|comes|ships|renders?|creates?|loads?|saves?)\b"
)
_LEAD_IN_PATTERN = re.compile(
    r"(?i)(?:see(?: also)?|read(?: about)?|next|back to|go to|continue with|more(?: about)?)\b:?\s*"
)
_LINK_TAIL_PATTERN = re.compile(r"(?:[\u2013\u2014:-].*)?$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line that states something. `kind` is bullet, row (of a table) or text."""

    line: int
    text: str
    claim_ids: tuple[str, ...]
    kind: str


def list_statements(file: PageFile) -> list[Statement]:
    """Return all lines of text of a page that are not code, headings, table rules or comments."""
    heading_lines = {heading.line for heading in file.headings}
    rows = {file.body_line + number - 1 for number in pages.find_table_row_lines(file.body)}
    page_statements = []
    for number, line in file.prose:
        if number in heading_lines:
            continue
        claim_ids = tuple(pages.CLAIM_MARKER_PATTERN.findall(line))
        unmarked_line = pages.CLAIM_MARKER_PATTERN.sub("", line).rstrip()
        item = _LIST_ITEM_PATTERN.match(unmarked_line)
        text = _TASK_BOX_PATTERN.sub("", (item.group("text") if item else unmarked_line).strip())
        kind = "row" if number in rows else "bullet" if item else "text"
        if text.strip("|-: "):
            page_statements.append(Statement(number, text, claim_ids, kind))
    return page_statements


def has_only_names(text: str) -> bool:
    """Return whether a table row only names things: code and links, with hardly any other words."""
    remaining_text = _LINK_PATTERN.sub(" ", _CODE_SPAN_PATTERN.sub(" ", text))
    return len(re.findall(r"[^\W\d_]{2,}", remaining_text)) < 3


def find_product_sentence(product: str, text: str) -> str:
    """Return the first sentence that says what the product is or does, or an empty string."""
    for sentence in _SENTENCE_BREAK_PATTERN.split(text):
        subject = sentence.removeprefix(product) if product else sentence
        if subject == sentence or not product:
            subject_match = _SUBJECT_PATTERN.match(sentence)
            subject = sentence[subject_match.end() :] if subject_match else ""
        if _PRODUCT_VERB_PATTERN.match(subject):
            return sentence
    return ""


def is_navigation_item(text: str) -> bool:
    """Return whether a bullet is only navigation: a link, perhaps with a description."""
    text = _strip_lead_in(text.lstrip("*_ ")).lstrip("*_ ")
    link = _LINK_PATTERN.match(text)
    return link is not None and bool(_LINK_TAIL_PATTERN.fullmatch(text[link.end() :].strip("*_. ")))


def _strip_lead_in(text: str) -> str:
    lead_in = _LEAD_IN_PATTERN.match(text)
    return text[lead_in.end() :] if lead_in else text


def strip_markup(text: str) -> str:
    """Return a statement as it is read, without code marks, link targets and emphasis."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return _MARKUP_PATTERN.sub("", text).strip()


LANGUAGE_ALIASES: Mapping[str, str] = {
    "py": "python",
    "python3": "python",
    "pycon": "python",
    "js": "javascript",
    "ts": "typescript",
    "cs": "csharp",
    "c#": "csharp",
    "c++": "cpp",
    "golang": "go",
    "rb": "ruby",
    "rs": "rust",
    "kt": "kotlin",
    "yml": "yaml",
    "sh": "bash",
    "zsh": "bash",
    "shell": "bash",
    "console": "bash",
}


def index_snippets(site: LaunchSite) -> dict[str, Mapping[str, Any]]:
    """Return the snippets of the catalogue, keyed by their normalised code."""
    snippets = site.load_document("snippet_catalog.json").get("snippets", ())
    return {normalise_code(snippet["code"]): snippet for snippet in snippets}


def normalise_code(code: str) -> str:
    """Strip trailing spaces and surrounding blank lines, so that code can be compared."""
    return "\n".join(line.rstrip() for line in code.splitlines()).strip("\n")


def normalise_language(fence: CodeBlock) -> str:
    """Return the language of a code block under the name that the catalogue uses."""
    return LANGUAGE_ALIASES.get(fence.language, fence.language)
