"""Renderers for the tokens of a template.

Every function renders one block from the material, or returns an empty text if there is no evidence
for it. A statement of fact is one line that ends with its claim marker. Sentences without a marker
describe the page or what the reader can do, never the product.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from cleats.toolsets.launch.drafting import (
    api_overview,
    command_text,
    document_text,
    first_program,
    page_context,
    subject_text,
    tasks,
)
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext
from cleats.toolsets.launch.gates.page_text import measure_overlap
from cleats.toolsets.launch.site.claim_markers import render_claim_marker
from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES
from cleats.toolsets.launch.source.evidence.install_claims import detect_install_language
from cleats.toolsets.launch.source.text import english

MIN_REPEATED_SHARE = 0.8
"""The share of a statement's words from which another statement makes it superfluous."""

_REQUIREMENT_PATTERN = english.load_expression("requirement")

MIN_COVERED_SHARE = 0.5
"""The share of a tagline's words from which the introduction of the readme replaces it."""

MIN_FEATURE_ITEMS = 2
"""Items that make a list of features."""


def _find_intro_claim(context: PageContext) -> str:
    material = context.material
    product_claims = [
        claim_id
        for claim_id in material.list_group("key_features")
        if material.claims[claim_id]["claim_text"].startswith(material.product_name)
    ]
    positioning_claim = material.facts["positioning"].get("claim_id", "")
    return next(iter(material.filter_stateable([positioning_claim, *product_claims])), "")


def _state_optional_claim(context: PageContext, claim_id: str) -> str:
    return context.material.state_claim(claim_id) if claim_id in context.material.claims else ""


def _render_scope(context: PageContext, name: str = "") -> str:
    """Describe the first page of the documentation without promising more than it contains."""
    name = name or context.material.product_name
    if _find_intro_claim(context):
        return f"What {name} does, and the pages that show how to use it."
    return f"The pages that show how to use {name}."


def _list_remaining_features(context: PageContext, part: int = 1) -> list[str]:
    """Return features that neither the introduction nor a task mentions, those about the product first."""
    material = context.material
    intro_claim = _find_intro_claim(context)
    task_places = {
        place
        for section in document_text.list_sections(material, "task")
        for part in section["parts"]
        if part.get("claim_id") in material.claims
        for place in _list_places(material.claims[part["claim_id"]])
    }
    about = _render_about(context)
    features = [
        claim_id
        for claim_id in material.list_group("key_features")
        if claim_id != intro_claim
        and not task_places.intersection(_list_places(material.claims[claim_id]))
        and not _is_repeated(str(material.claims[claim_id]["claim_text"]), about)
    ]
    name = material.product_name
    features.sort(key=lambda feature: not material.claims[feature]["claim_text"].startswith(name))
    return features[: context.max_items // part]


def _list_places(claim: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(citation["path"], citation["start_line"]) for citation in claim["citations"]]


def _render_install(context: PageContext) -> str:
    """Render the first installation method of the manifest, in the words of its claim."""
    material = context.material
    for distribution in material.facts.get("distribution", ()):
        if distribution.get("install_commands"):
            tool = PLATFORM_TABLES["ecosystems"].get(distribution["method"], {}).get("tool", "")
            lead = f"Install {material.product_name}" + (f" with {tool}:" if tool else ":")
            if distribution["method"] == "maven":
                lead = (
                    f"Add {material.product_name} to a Maven project as the dependency `{distribution['identifier']}`:"
                )
            if distribution.get("claim_id") in material.claims:
                lead = material.state_claim(distribution["claim_id"], lead)
            commands = distribution["install_commands"]
            shown = commands[: 2 if distribution["method"] == "maven" else 1]
            blocks = [page_context.fence_code(detect_install_language(command), command) for command in shown]
            return "\n\n".join([lead, f"\n\n{_GRADLE_LEAD}\n\n".join(blocks)])
    return ""


_GRADLE_LEAD = "In a Gradle build, add this line to the dependencies:"


def _render_formats(context: PageContext) -> str:
    rows = [
        f"| {row['format']} | {_LABELS_BY_DIRECTION[row.get('direction', 'unknown')]} "
        f"{render_claim_marker([row['claim_id']])} |"
        for row in context.material.facts["supported_formats"]
        if row["status"] == "implemented" and row["claim_id"] in context.material.claims
    ]
    header = ["| Format | Support |", "| --- | --- |"]
    return "\n".join([*header, *rows[: context.max_rows]]) if rows else ""


_LABELS_BY_DIRECTION = {"import": "Reads", "export": "Writes", "both": "Reads and writes", "unknown": "Known"}


def _list_import_names(context: PageContext) -> list[str]:
    distributions = context.material.facts.get("distribution", ())
    return list(dict.fromkeys(name for distribution in distributions for name in distribution.get("import_names", ())))


def _render_import_check(context: PageContext) -> str:
    names = _list_import_names(context)
    if not names or context.material.config.get("target_platform") != "python":
        return ""
    text = f"Import `{names[0]}`. The command prints nothing when the package is there:"
    return f"{text}\n\n" + page_context.fence_code("bash", f'python -c "import {names[0]}"')


def _render_import(context: PageContext) -> str:
    material = context.material
    names = _list_import_names(context)
    claim_ids = [
        claim_id
        for claim_id in material.list_group("quickstart_steps")
        if any(name in material.claims[claim_id]["claim_text"] for name in names)
    ]
    return page_context.render_claims(context, claim_ids[:1])


def _render_import_trouble(context: PageContext) -> str:
    install, import_text = _render_install(context), _render_import(context)
    if not install or not import_text:
        return ""
    return f"{import_text}\n\nMake sure that it is in the environment that runs the program.\n\n{install}"


def _render_known_errors(context: PageContext) -> str:
    material = context.material
    described_errors = [
        symbol
        for symbol in api_overview.split_errors(material.classes)[1]
        if api_overview.describe_symbol(material, symbol)
    ]
    return api_overview.render_symbols(material, described_errors, context.max_rows // 2, "What it means")


def _render_intro(context: PageContext) -> str:
    """Render the sentence that says what the product is, unless the introduction of the readme says it."""
    claim_id = _find_intro_claim(context)
    intro = _state_optional_claim(context, claim_id)
    text = str(context.material.claims.get(claim_id, {}).get("claim_text", ""))
    tagline = text.partition(" describes itself as ")[2]
    is_covered = measure_overlap(tagline, _render_about(context)) >= MIN_COVERED_SHARE
    return "" if tagline and is_covered else intro


def _render_about(context: PageContext) -> str:
    """Render the introduction of the readme, without what the first sentence of the page says."""
    material = context.material
    intro = str(material.claims.get(_find_intro_claim(context), {}).get("claim_text", ""))
    sections = [
        {"parts": [_shorten_part(material, part, intro) for part in section["parts"] if part["kind"] == "text"]}
        for section in document_text.list_sections(material, "introduction")[:1]
    ]
    excluded_ids = [
        part["claim_id"] for section in sections for part in section["parts"] if part.get("text", part["kind"]) == ""
    ]
    program = first_program.choose_first_program(material)
    lead_ids = first_program.find_program_lead(material, program)[1] if program else ()
    return document_text.render_statements(material, sections, excluded_ids=[*excluded_ids, *lead_ids])


def _shorten_part(material: LaunchMaterial, part: Mapping[str, Any], intro: str) -> Mapping[str, Any]:
    """Return a part of the introduction without the sentences that say the same as the first one of the page."""
    text = str(material.claims.get(str(part.get("claim_id")), {}).get("claim_text", ""))
    if part["kind"] != "text" or not text:
        return part
    sentences = english.split_sentences(text)
    return {**part, "text": " ".join(sentence for sentence in sentences if not _are_alike(sentence, intro))}


def _is_repeated(text: str, others: str) -> bool:
    return measure_overlap(text, others) >= MIN_REPEATED_SHARE


def _are_alike(text: str, other: str) -> bool:
    """Return whether two statements of about the same length say the same."""
    is_similar = _is_repeated(text, other) or _is_repeated(other, text)
    return bool(other) and is_similar and len(text) < 2 * len(other)


def _render_features(context: PageContext, part: int = 1) -> str:
    """Render the list of features as the repository has it, else the statements about the product."""
    material = context.material
    items = [
        entry
        for section in document_text.list_sections(material, "features")
        for entry in section["parts"]
        if entry["kind"] == "item" and entry["claim_id"] in material.claims
    ][: 2 * context.max_items // part]
    if len(items) >= MIN_FEATURE_ITEMS:
        return document_text.render_section(material, {"parts": items})
    if part == 1 and (items := _find_introduced_features(material)):
        return document_text.render_section(material, {"parts": items})
    features = _list_remaining_features(context, part)
    return page_context.render_claims(context, features) if len(features) >= MIN_FEATURE_ITEMS else ""


def _find_introduced_features(material: LaunchMaterial) -> list[Mapping[str, Any]]:
    """Return the list of the introduction that holds the features, as a whole."""
    places = {
        place for claim_id in material.list_group("key_features") for place in _list_places(material.claims[claim_id])
    }
    for section in document_text.list_sections(material, "introduction"):
        for kind, group in groupby(section["parts"], key=lambda part: str(part["kind"])):
            items = [part for part in group if part.get("claim_id") in material.claims]
            listed = [part for part in items if places.intersection(_list_places(material.claims[part["claim_id"]]))]
            if kind == "item" and len(listed) >= MIN_FEATURE_ITEMS:
                return items
    return []


def _render_requirements(context: PageContext) -> str:
    """Render the requirements of the manifest, then those that only the documents state."""
    material = context.material
    claims = page_context.render_claims(context, material.requirements[: context.max_items])
    sections = document_text.list_sections(material, "install")
    name = re.escape(material.product_name)
    install_pattern = re.compile(
        rf"(?i)(?:(?:install|add|download|get|reference)\b[^.]*\b{name}\b"
        rf"|{name} is available (?:using|via|from|on)\b)[^.]*\.$"
    )
    excluded_ids = [
        part["claim_id"]
        for section in sections
        for part in section["parts"]
        if "claim_id" in part
        and (text := str(material.claims.get(part["claim_id"], {}).get("claim_text", "")))
        and (
            _is_repeated(text, claims)
            or not _REQUIREMENT_PATTERN.search(text)
            or install_pattern.match(text)  # the next section does
        )
    ]
    notes = document_text.render_statements(material, sections, excluded_ids=excluded_ids)
    return "\n\n".join(filter(None, [claims, notes]))


def _render_limitations(context: PageContext) -> str:
    material = context.material
    if claims := page_context.render_claims(context, material.list_group("limitations")[: context.max_items]):
        return claims
    return document_text.render_statements(material, document_text.list_sections(material, "limits"), excluded_ids=())


def _render_topic(context: PageContext, topic: str) -> str:
    return document_text.render_topic(context.material, topic, context.max_topic_lines)


def _render_links(linked_pages: Sequence[LinkedPage]) -> str:
    lines = []
    for page in linked_pages:
        first_word, space, rest = page.purpose.partition(" ")
        is_plain = first_word[1:].islower() or len(first_word) == 1  # neither a name nor an abbreviation
        first_word = first_word[:1].lower() + first_word[1:] if is_plain else first_word
        lines.append(f"- [{page.title}]({page.url}): {first_word}{space}{rest}")
    return "\n".join(lines)


TOKEN_RENDERERS: Mapping[str, Callable[[PageContext], str]] = {
    "PRODUCT_NAME": lambda context: str(context.material.facts.get("product_name") or ""),
    "VERSION": lambda context: _state_optional_claim(context, context.material.version_claim_id),
    "INTRO": _render_intro,
    "SCOPE": _render_scope,
    "SCOPE_SHORT": lambda context: _render_scope(context, "it"),
    "ABOUT": _render_about,
    "FEATURES": _render_features,
    "FEATURES_SHORT": lambda context: _render_features(context, 2),
    "REQUIREMENTS": _render_requirements,
    "LIMITATIONS": _render_limitations,
    "CONFIGURATION": lambda context: _render_topic(context, "configuration"),
    "TROUBLESHOOTING": lambda context: _render_topic(context, "troubleshooting"),
    "QUESTIONS": lambda context: _render_topic(context, "questions"),
    "COMMAND_LINE": command_text.render_commands,
    "INSTALL_COMMANDS": _render_install,
    "IMPORT": _render_import,
    "IMPORT_CHECK": _render_import_check,
    "IMPORT_TROUBLE": _render_import_trouble,
    "LICENSE": lambda context: _state_optional_claim(
        context, context.material.facts.get("license", {}).get("claim_id", "")
    ),
    "FORMATS": _render_formats,
    "FIRST_EXAMPLE": first_program.render_first_program,
    "MORE_EXAMPLES": first_program.render_next_steps_code,
    "WORKFLOWS": tasks.render_tasks,
    "SUBJECT_TITLE": lambda context: context.subject.title if context.subject else "",
    "SUBJECT_LEAD": subject_text.render_subject_lead,
    "SUBJECT_CODE": subject_text.render_subject_code,
    "SUBJECT_SYMBOLS": subject_text.render_subject_symbols,
    "SUBJECT_NAMES": subject_text.list_subject_names,
    "SUBJECT_CLASSES": lambda context: subject_text.render_subject_part(context, "classes"),
    "SUBJECT_FUNCTIONS": lambda context: subject_text.render_subject_part(context, "functions"),
    "SUBJECT_ERRORS": lambda context: subject_text.render_subject_part(context, "errors"),
    "SUBJECT_CONSTANTS": lambda context: subject_text.render_subject_part(context, "constants"),
    "API_CLASSES_TITLE": lambda context: api_overview.title_classes(subject_text.list_api_symbols(context, "class")),
    "SUBJECT_CLASSES_TITLE": lambda context: api_overview.title_classes(
        [symbol for symbol in (context.subject.symbols if context.subject else ()) if symbol.get("kind") == "class"]
    ),
    "API_CLASSES": lambda context: subject_text.render_api_part(context, "classes"),
    "API_FUNCTIONS": lambda context: subject_text.render_api_part(context, "functions"),
    "API_ERRORS": lambda context: subject_text.render_api_part(context, "errors"),
    "API_CONSTANTS": lambda context: subject_text.render_api_part(context, "constants"),
    "KNOWN_ERRORS": _render_known_errors,
    "NEXT_STEPS": lambda context: _render_links(context.related),
    "CHILD_PAGES": lambda context: _render_links(context.children),
}
"""The renderers of all tokens that a template can use."""
