"""The catalogue: every snippet once, best source first, checked and tagged."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from cleats.toolsets.launch.snippets import finding, syntax, tagging
from cleats.toolsets.launch.snippets.finding import Found
from cleats.toolsets.launch.snippets.model import Snippet
from cleats.toolsets.launch.source.document_claims import is_kin
from cleats.toolsets.launch.source.tree import Tree

MOST: Final = 400
"""Snippets kept; pages show a few dozen."""

_ENOUGH: Final = 8
"""Snippets of better kinds that make tests needless."""


def build(
    tree: Tree, inventory: Mapping[str, Any], facts: Mapping[str, Any], language: str
) -> dict[str, Any]:
    """The catalogue of a checkout, as the artifact."""
    product = product_of(facts, language)
    found: list[Found] = [
        *finding.examples(tree, facts, inventory["example_paths"]),
        *finding.fences(tree, inventory["doc_entrypoint_details"]),
        *finding.docstrings(tree, facts),
    ]
    good = sum(each.language == language for each in found)
    if good < _ENOUGH and language == "python":
        found += finding.tests(tree, inventory["test_roots"], product.imports)
    shown = [each for each in found if not tagging.only_imports(each)]
    faults = syntax.checks((each.code, each.language) for each in shown)
    kept = _once(_snippet(each, product, fault) for each, fault in zip(shown, faults, strict=True))
    kept = _with_quickstart(kept, language)
    return {"schema_version": "1.0", "snippets": [each.as_json() for each in kept[:MOST]]}


def product_of(facts: Mapping[str, Any], language: str) -> tagging.Product:
    """How the product shows up in code."""
    ways = facts.get("distribution") or [{}]
    return tagging.Product(
        str(ways[0].get("identifier", "")),
        tuple(ways[0].get("import_names", ())),
        tuple(ways[0].get("commands", ())),
        language,
    )


def _snippet(found: Found, product: tagging.Product, fault: str) -> Snippet:
    return Snippet(
        language=found.language,
        code=found.code,
        path=found.path,
        start=found.start,
        end=found.end,
        tags=tuple(tagging.tags(found, product)),
        fault=fault,
        checked=syntax.can_check(found.language),
        dependencies=tuple(tagging.dependencies(found, product)),
    )


def _once(snippets: Iterable[Snippet]) -> list[Snippet]:
    """The same code stays where it stood first; its other tags come along."""
    kept: dict[str, Snippet] = {}
    for snippet in snippets:
        old = kept.get(snippet.snippet_id)
        if old is None:
            kept[snippet.snippet_id] = snippet
        else:
            tags = tuple(dict.fromkeys([*old.tags, *snippet.tags]))
            kept[snippet.snippet_id] = replace(old, tags=tags)
    return list(kept.values())


def _with_quickstart(snippets: list[Snippet], language: str) -> list[Snippet]:
    """A product whose documents call nothing a start: the first code that uses it is one."""
    usable = [
        each
        for each in snippets
        if is_kin(each.language, language) and not each.fault and "usage" in each.tags
    ]
    if not usable or any("quickstart" in each.tags for each in usable):
        return snippets
    ranked = sorted(
        usable, key=lambda each: ("readme" not in each.tags, "example" not in each.tags)
    )
    first = ranked[0].snippet_id
    return [
        replace(each, tags=(*each.tags, "quickstart")) if each.snippet_id == first else each
        for each in snippets
    ]
