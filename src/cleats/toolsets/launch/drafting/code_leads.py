"""Sentences that lead to code for which the documents have none: they name what the code uses."""

import re
from collections.abc import Sequence

from cleats.toolsets.launch.drafting import page_context
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import Symbol
from cleats.toolsets.launch.drafting.used_names import find_used_names
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language
from cleats.toolsets.launch.source.text import english

MAX_LEAD_NAMES = 3
"""Names in a lead; more would be a list of the API."""

MIN_NAME_CHARACTERS = 3
"""A shorter name is in code by chance."""

_OPENING_FENCE_PATTERN = re.compile(r"`{3,}")


def list_used_symbols(material: LaunchMaterial, snippets: Sequence[PageSnippet]) -> list[Symbol]:
    """Return the public names that code uses."""
    code = "\n".join(snippet.code for snippet in snippets)
    if material.language == "python":
        names = find_used_names(code)
        return [symbol for symbol in material.symbols if symbol["name"] in names]
    words = set(re.findall(r"\w+", code))
    return [symbol for symbol in material.symbols if _get_own_name(symbol) in words]


def render_lead(material: LaunchMaterial, snippet: PageSnippet, path: str = "") -> str:
    """Return a sentence that leads to code: the public names that it uses, else where it comes from."""
    noun = "example" if is_compatible_language(snippet.language, material.language) else "command"
    plural = noun == "command" and "\n" in snippet.code
    subject = "These commands" if plural else f"This {noun}"
    names = _find_shown_names(material, snippet) if noun == "example" else []
    if names:
        return f"{subject} uses {english.join_words([f'`{name}`' for name in names])}:"
    return f"{subject} {'are' if plural else 'is'} from `{path or snippet.path}`:"


def render_code(material: LaunchMaterial, snippet: PageSnippet) -> str:
    """Render code below a sentence that leads to it."""
    return f"{render_lead(material, snippet)}\n\n{page_context.fence_code(snippet.language, snippet.code)}"


def add_lead(material: LaunchMaterial, body: str, snippets: Sequence[PageSnippet], path: str) -> str:
    """Return a body that begins with a sentence; one that begins with code gets a lead."""
    if not _OPENING_FENCE_PATTERN.match(body):
        return body
    shown = [snippet for snippet in snippets if snippet.code in body]
    first = min(shown, key=lambda snippet: body.index(snippet.code), default=None)
    return f"{render_lead(material, first, path)}\n\n{body}" if first else body


def _find_shown_names(material: LaunchMaterial, snippet: PageSnippet) -> list[str]:
    """Return the first public names that code calls or imports, in the order of their first use."""
    places: dict[str, int] = {}
    for symbol in material.symbols:
        name = _get_own_name(symbol)
        is_used = re.search(
            rf"(?<![\w.])(?:\w+(?:\.|::))?{re.escape(name)}(?=[(<.!:;{{]|$)", snippet.code, re.MULTILINE
        )
        if len(name) >= MIN_NAME_CHARACTERS and is_used:
            first = re.search(rf"\b{re.escape(name)}\b", snippet.code)
            places[name] = first.start() if first else 0
    if not places:
        members = {_get_own_name(member) for symbol in material.symbols for member in symbol.get("members", ())}
        calls = re.finditer(r"\.(\w+)(?=[(<])", snippet.code)
        places = {call[1]: call.start() for call in reversed([*calls]) if call[1] in members}
    return sorted(places, key=lambda name: places[name])[:MAX_LEAD_NAMES]


def _get_own_name(symbol: Symbol) -> str:
    return re.split(r"\W+", str(symbol["name"]).rstrip("!"))[-1]
