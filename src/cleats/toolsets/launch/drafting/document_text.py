"""Text of a page from sections of the repository's documents: statements, lists, tables and code in their order."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting import code_leads, page_context
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import Symbol
from cleats.toolsets.launch.site.claim_markers import render_claim_marker
from cleats.toolsets.launch.source.evidence.document_sections import REFERRING_START_PATTERN, TOPIC_PATTERNS

Section = Mapping[str, Any]

MAX_GENERIC_TITLE_WORDS = 2
"""Words of a heading that says no more than the topic, such as `Configuration options`."""

_INSTALL_LINE_PATTERN = re.compile(
    r"\s*(?:sudo )?(?:pip3?|pipx|uv|conda|poetry|npm|yarn|pnpm|bun|brew|apt"
    r"|go (?:get|install)|cargo (?:add|install)|dotnet add|python3? -m pip)\b|\s*$"
)

_LEAD_IN_FOLLOWERS = frozenset({"code", "item", "row", "header"})
"""What a sentence that ends with a colon leads to."""


def list_sections(material: LaunchMaterial, *topics: str) -> list[Section]:
    """Return the sections of the documents about some topics, in the order of the documents."""
    return [section for section in material.facts.get("document_sections", ()) if section["topic"] in topics]


def list_section_snippets(material: LaunchMaterial, section: Section) -> list[PageSnippet]:
    """Return the code of a section that a page can show."""
    by_id = material.snippets_by_id
    return [by_id[part["snippet_id"]] for part in section["parts"] if part.get("snippet_id") in by_id]


def render_section(
    material: LaunchMaterial,
    section: Section,
    *,
    excluded_ids: Collection[str] = (),
    shown_ids: Collection[str] = (),
    with_code: bool = True,
) -> str:
    """Render the text and the code of a section; `excluded_ids` are snippets and claims shown elsewhere.

    With `shown_ids`, only these statements are rendered.
    """
    with_commands = section.get("topic") == "command_line"
    parts = [part for part in section["parts"] if _is_shown(material, part, excluded_ids, with_code, with_commands)]
    shown_parts = _drop_lost_leads(material, parts)
    if shown_ids:
        shown_parts = [part for part in section["parts"] if part.get("claim_id") in shown_ids]
    blocks: list[str] = []
    previous = ""
    for part in shown_parts:
        block = _render_part(material, part, has_header=previous in ("header", "row"))
        is_continued = part["kind"] == previous == "item" or (part["kind"] == "row" and previous in ("header", "row"))
        if is_continued:
            blocks[-1] += f"\n{block}"
        else:
            blocks.append(block)
        previous = part["kind"]
    return "\n\n".join(blocks)


def render_statements(material: LaunchMaterial, sections: Iterable[Section], *, excluded_ids: Collection[str]) -> str:
    """Render only the statements of some sections, without their headings and their code."""
    texts = (render_section(material, section, excluded_ids=excluded_ids, with_code=False) for section in sections)
    return "\n\n".join(text for text in texts if text)


def render_topic(material: LaunchMaterial, topic: str, max_lines: int) -> str:
    """Render the sections of the documents about a topic, each with its heading, as far as there is room."""
    texts: list[str] = []
    line_count = 0
    for section in list_sections(material, topic):
        body = render_section(material, section)
        line_count += count_lines(body)
        if body and line_count <= max_lines:
            body = code_leads.add_lead(material, body, list_section_snippets(material, section), section["path"])
            # The part of the page is about the same as a heading that only names the topic.
            is_generic = len(section["title"].split()) <= MAX_GENERIC_TITLE_WORDS and not texts
            is_generic = is_generic and bool(TOPIC_PATTERNS[topic].search(section["title"]))
            texts.append(body if is_generic else f"### {section['title']}\n\n{body}")
    return "\n\n".join(texts)


def count_lines(body: str) -> int:
    """Return the lines that a section adds to a page, with its heading and its entries in the list of evidence."""
    return body.count("\n") + body.count("<!-- claims:") + 4


def render_warnings(material: LaunchMaterial, snippets: Sequence[PageSnippet]) -> str:
    """Render the warnings of the public names that code uses, each in the words of its documentation."""
    notes = (render_notes(material, symbol) for symbol in code_leads.list_used_symbols(material, snippets))
    return "\n\n".join(dict.fromkeys(filter(None, notes)))


def render_notes(material: LaunchMaterial, symbol: Symbol) -> str:
    """Render the notes in the documentation of a name as a paragraph."""
    claim_ids = material.filter_stateable(symbol.get("note_claim_ids", ()))
    if not claim_ids:
        return ""
    notes = {claim_id: str(material.claims[claim_id]["claim_text"]).partition(" notes: ")[2] for claim_id in claim_ids}
    purpose = str(symbol.get("summary", "")).rstrip(".")
    notes = {claim_id: text for claim_id, text in notes.items() if text.rstrip(".") != purpose}
    if not notes:
        return ""
    call = "()" if symbol.get("kind") in ("function", "method") else ""
    return f"**Note on `{symbol['name']}{call}`:** {' '.join(notes.values())} {render_claim_marker(notes)}"


def _is_shown(
    material: LaunchMaterial,
    part: Mapping[str, Any],
    excluded_ids: Collection[str],
    with_code: bool,
    with_commands: bool,
) -> bool:
    if part["kind"] == "code":
        snippet = material.snippets_by_id.get(part["snippet_id"])
        if snippet is None or not page_context.is_short(snippet):
            return False
        # The page about the installation has the commands that install.
        is_use = with_commands and not all(map(_INSTALL_LINE_PATTERN.match, snippet.code.split("\n")))
        is_usable = "install" not in snippet.tags or is_use
        return with_code and is_usable and part["snippet_id"] not in excluded_ids
    return part["claim_id"] in material.claims and part["claim_id"] not in excluded_ids


def _pair_with_next(
    parts: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    for number, part in enumerate(parts):
        yield part, parts[number + 1] if number + 1 < len(parts) else None


def _drop_lost_leads(material: LaunchMaterial, parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drop sentences that lead to something that is not shown, and those that refer to it."""
    kept: list[Mapping[str, Any]] = []
    is_lost = False
    for part, following in _pair_with_next(parts):
        text = "" if part["kind"] == "code" else str(material.claims[part["claim_id"]]["claim_text"])
        refers_to_lost = is_lost and bool(REFERRING_START_PATTERN.match(text))
        is_lost = refers_to_lost or _is_lost_lead(material, part, following)
        if not is_lost:
            kept.append(part)
    return kept


def _is_lost_lead(material: LaunchMaterial, part: Mapping[str, Any], following: Mapping[str, Any] | None) -> bool:
    """Return whether a sentence leads to something that is not shown, or a header has no rows."""
    if part["kind"] == "header":
        return following is None or following["kind"] != "row"
    if part["kind"] == "code" or not str(material.claims[part["claim_id"]]["claim_text"]).endswith(":"):
        return False
    return following is None or following["kind"] not in _LEAD_IN_FOLLOWERS


def _render_part(material: LaunchMaterial, part: Mapping[str, Any], *, has_header: bool) -> str:
    if part["kind"] == "code":
        snippet = material.snippets_by_id[part["snippet_id"]]
        return page_context.fence_code(snippet.language, snippet.code)
    text = str(part.get("text") or material.claims[part["claim_id"]]["claim_text"])
    marker = render_claim_marker([part["claim_id"]])
    if part["kind"] in ("row", "header"):
        cells = [cell.strip() for cell in text.split("|")]
        row = f"| {' | '.join(cells)} {marker} |"
        rule = f"| {' | '.join(['---'] * len(cells))} |"
        if part["kind"] == "header":
            return f"{row}\n{rule}"
        return row if has_header else f"| {' | '.join([''] * len(cells))} |\n{rule}\n{row}"
    label = str(part.get("label", ""))
    if part["kind"] == "note":
        return f"**{label}:** {text} {marker}"
    if part["kind"] == "item":
        if label and text.startswith(label):
            text = f"**{label}**{text.removeprefix(label)}"
        return f"{'  ' * part.get('depth', 0)}- {text} {marker}"
    return f"{text} {marker}"
