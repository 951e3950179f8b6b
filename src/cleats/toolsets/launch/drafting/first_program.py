"""The first program of a product: the simplest public code, with the text and the import above it."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from cleats.toolsets.launch.drafting import code_leads, document_text, page_context
from cleats.toolsets.launch.drafting.document_text import Section
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.drafting.used_names import find_used_names
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language

CACHED_RESULTS = 4
"""Products whose first program is remembered; every page asks for it."""

STARTER_TAGS = ("quickstart", "quick-start", "getting-started", "basic-usage", "basic-example", "readme")
"""Tags of code for new users, the best first."""

MAX_FIRST_PROGRAM_LINES = 30
"""Lines of a first program at most, if there is any shorter code."""

_FAILURE_PATH_PATTERN = re.compile(r"(?:error|exception|fail|invalid)[^/]*$", re.IGNORECASE)
"""The file of an example that shows how something goes wrong."""

_IMPORT_LINE_PATTERN = re.compile(r"\s*(?:import|from|use|using|(?:const|let|var)\b.*\brequire\(|\")")

IMPORT_NOTE = "The example needs the import above."

MIN_OWN_PAGE_SNIPPETS = 6
"""Pieces of code from which a section of a document gets a page of its own."""


@lru_cache(maxsize=CACHED_RESULTS)
def choose_first_program(material: LaunchMaterial) -> PageSnippet | None:
    """Choose the simplest public code that covers the main entry point.

    It is short code with which the documents begin, else code with the public name that most of the code uses.
    Code that needs other packages, or that imports nothing of the product, comes last.
    """
    candidates = [item for item in material.snippets if is_compatible_language(item.language, material.language)]
    usable = [item for item in candidates if page_context.is_short(item)] or candidates[:1]
    uses = {item.snippet_id: find_public_names(material, item) for item in usable}
    counts: dict[str, int] = {}
    for names in uses.values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    public_names = [str(symbol["name"]) for symbol in material.symbols]
    main_name = max(counts, key=lambda name: counts[name], default="")

    positions = {entry["snippet_id"]: number for number, entry in enumerate(material.catalogue["snippets"])}
    first_ids = _list_first_section_code(material, [item for item in usable if uses[item.snippet_id]])

    def rank_program(item: PageSnippet) -> tuple[Any, ...]:
        lines = item.code.count("\n") + 1
        is_starter_code = bool(set(STARTER_TAGS[:-1]) & set(item.tags))
        kind = next((number for number, tag in enumerate(("readme", "example", "docs")) if tag in item.tags), 3)
        return (
            not uses[item.snippet_id] and "usage" not in item.tags,
            _is_signature(item, public_names),
            len(item.dependencies) > 1 or _imports_other_java_packages(material, item),
            bool(_FAILURE_PATH_PATTERN.search(item.path)),
            not uses[item.snippet_id],
            lines > MAX_FIRST_PROGRAM_LINES,
            not is_starter_code,
            kind > 1,
            main_name not in uses[item.snippet_id] and not is_starter_code and item.snippet_id not in first_ids,
            item.snippet_id not in first_ids,
            not _imports_product(material, item),
            kind,
            lines if kind == 1 else 0,
            -len(uses[item.snippet_id]) if "docstring" in item.tags else 0,
            lines < 2 and "(" not in item.code,
            positions[item.snippet_id],
        )

    return min(usable, key=rank_program, default=None)


def _list_first_section_code(material: LaunchMaterial, candidates: Sequence[PageSnippet]) -> frozenset[str]:
    """Return the code of the first section of the readme that uses the product."""
    usable_ids = {item.snippet_id for item in candidates if "readme" in item.tags}
    for section in document_text.list_sections(material, "introduction", "features", "task"):
        if ids := usable_ids & {part["snippet_id"] for part in section["parts"] if "snippet_id" in part}:
            return frozenset(ids)
    return frozenset()


def _is_signature(snippet: PageSnippet, names: Collection[str]) -> bool:
    """Return whether code only shows how a public name is declared."""
    first_line = snippet.code.partition("\n")[0]
    match = re.match(r"(?:async |export |public |static |pub )*(?:def|class|function|func|fn) (\w+)", first_line)
    is_indented = all(line[:1] in ("", " ", "\t", ")", "}") for line in snippet.code.split("\n")[1:])
    return match is not None and is_indented and any(re.split(r"\W+", name)[-1] == match[1] for name in names)


def _imports_product(material: LaunchMaterial, snippet: PageSnippet) -> bool:
    """Return whether code has a line that imports the product, in the way of any of the languages."""
    names = [name for item in material.facts.get("distribution", ()) for name in item.get("import_names", ())]
    import_lines = [line for line in snippet.code.split("\n") if _IMPORT_LINE_PATTERN.match(line)]
    paths = [f"{re.escape(name.replace('-', '_'))}::" for name in names]
    has_full_path = any(re.search(rf"\b{path}", snippet.code) for path in paths)
    return has_full_path or any(name in line for line in import_lines for name in names)


def find_public_names(material: LaunchMaterial, snippet: PageSnippet) -> frozenset[str]:
    if material.language == "python":
        return find_used_names(snippet.code) & frozenset(symbol["name"] for symbol in material.symbols)
    words = set(re.findall(r"\w+", snippet.code))
    return frozenset(
        symbol["name"] for symbol in material.symbols if re.split(r"\W+", symbol["name"].rstrip("!"))[-1] in words
    )


def render_first_program(context: PageContext) -> str:
    """Render the first program with the text of the section it comes from and the warnings of what it uses."""
    material = context.material
    program = choose_first_program(material)
    if program is None:
        return ""
    section, lead_ids = find_program_lead(material, program)
    lead = document_text.render_section(material, section, shown_ids=lead_ids, with_code=False) if section else ""
    preface = import_note = ""
    if not _imports_product(material, program):
        preface = _render_import_preface(material, program)
        import_note = "" if preface else _render_import_note(material, program)
    return "\n\n".join(filter(None, [preface, lead, render_with_warnings(material, [program], lead), import_note]))


def _render_import_note(material: LaunchMaterial, program: PageSnippet) -> str:
    """Render a sentence about the import that a program leaves out."""
    if material.language == "python":
        called = set(re.findall(r"(?<![\w.])(\w+)\(", program.code))
        places = (str(symbol["name"]).rpartition(".") for symbol in material.symbols)
        modules: dict[str, list[str]] = {}
        for module, _, name in places:
            if name in called and module:
                modules.setdefault(module, []).append(name)
        if len(modules) == 1:
            [(module, names)] = modules.items()
            return f"The example needs the import `from {module} import {', '.join(names)}`."
    return IMPORT_NOTE


def _imports_other_java_packages(material: LaunchMaterial, snippet: PageSnippet) -> bool:
    """Return whether Java code imports packages of neither the product nor the platform."""
    names = [name for item in material.facts.get("distribution", ()) for name in item.get("import_names", ())]
    imported = re.findall(r"^import (?:static )?([\w.]+);", snippet.code, re.MULTILINE)
    own_starts = ("java.", "javax.", *(f"{name}." for name in names))
    return material.language == "java" and any(not name.startswith(own_starts) for name in imported)


def _render_import_preface(material: LaunchMaterial, program: PageSnippet) -> str:
    """Render the import that the section of a program shows before it, with the text above."""
    for section in document_text.list_sections(material, "introduction", "features", "task"):
        parts = section["parts"]
        own_ids = [part.get("snippet_id", "") for part in parts]
        for number in range(own_ids.index(program.snippet_id) if program.snippet_id in own_ids else 0):
            snippet = material.snippets_by_id.get(own_ids[number])
            if snippet is not None and _has_only_imports(snippet) and _imports_product(material, snippet):
                above = list(takewhile(lambda part: part["kind"] == "text", reversed(parts[:number])))
                return document_text.render_section(material, {"parts": [*reversed(above), parts[number]]})
    return ""


def _has_only_imports(snippet: PageSnippet) -> bool:
    lines = [line for line in snippet.code.split("\n") if line.strip() and line.strip() not in (")", "import (")]
    return all(map(_IMPORT_LINE_PATTERN.match, lines))


@lru_cache(maxsize=CACHED_RESULTS)
def find_program_lead(material: LaunchMaterial, program: PageSnippet) -> tuple[Section | None, set[str]]:
    """Return the section that shows the program, and the claims of the sentences directly above it.

    What the first page says about the product leads to no program.
    """
    for section in document_text.list_sections(material, "task", "introduction", "features", "install"):
        parts = section["parts"]
        number = next((number for number, part in enumerate(parts) if part.get("snippet_id") == program.snippet_id), 0)
        above = list(takewhile(lambda part: part["kind"] == "text", reversed(parts[:number])))
        claim_ids = [part["claim_id"] for part in above if part["claim_id"] in material.claims]
        is_introduction = section["topic"] == "introduction"
        is_lead = bool(claim_ids) and str(material.claims[claim_ids[0]]["claim_text"]).endswith(":")
        if claim_ids and (is_lead or len(claim_ids) > 1 or not is_introduction):
            return section, set(claim_ids[:1] if is_introduction else claim_ids)
        if number:
            return None, set()
    return None, set()


@lru_cache(maxsize=CACHED_RESULTS)
def find_first_section(material: LaunchMaterial) -> Section | None:
    """Return the section of the documents that the first program comes from, if it is about getting started."""
    program = choose_first_program(material)
    for section in document_text.list_sections(material, "task", "introduction", "features", "install"):
        snippets = document_text.list_section_snippets(material, section)
        if program in snippets and len(snippets) <= MIN_OWN_PAGE_SNIPPETS and section["topic"] == "task":
            return section
    return None


def render_next_steps_code(context: PageContext) -> str:
    """Render the rest of the section that the first program comes from."""
    material = context.material
    section, program = find_first_section(material), choose_first_program(material)
    if section is None or program is None:
        return ""
    excluded_ids = {program.snippet_id, *find_program_lead(material, program)[1]}
    body = document_text.render_section(material, section, excluded_ids=excluded_ids)
    return code_leads.add_lead(material, body, document_text.list_section_snippets(material, section), section["path"])


def render_with_warnings(material: LaunchMaterial, snippets: Sequence[PageSnippet], lead: str = "") -> str:
    """Render code with the warnings of what it uses, below a sentence that leads to it unless there is one."""
    if not snippets:
        return ""
    leads = ["" if lead else code_leads.render_lead(material, item) for item in snippets[:1]]
    code = "\n\n".join(
        [*filter(None, leads), *(page_context.fence_code(item.language, item.code) for item in snippets)]
    )
    return "\n\n".join(filter(None, [code, document_text.render_warnings(material, snippets)]))
