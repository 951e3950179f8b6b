"""The catalogue of snippets: each one once, the best source first, checked and tagged."""

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cleats.toolsets.launch.snippets import snippet_sources, syntax
from cleats.toolsets.launch.snippets.snippet_sources import SnippetCandidate
from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.repository_layout import SCRIPT_LANGUAGES, is_compatible_language
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.document_claims import slugify_title
from cleats.toolsets.launch.source.text.snippet_code import compute_snippet_id

_INSTALL_COMMAND_PATTERN: Final = re.compile(
    r"^\s*(?:sudo )?(?:python3? -m )?(pip3?|pipx|uv|npm|yarn|pnpm|cargo|go|gem|composer|dotnet"
    r"|conda|brew|apt(-get)?) (install|i|add|get|require|add package)\b",
    re.MULTILINE,
)
_IMPORT_LINES_PATTERN: Final = re.compile(
    r"^\s*(?:import\s[^;]*?['\"][^'\"]+['\"]|import\s*['\"][^'\"]+['\"]"
    r"|(?:const|let|var)\s[^=]*=\s*(?:await import|require)\([^)]*\)(?:\.\w+)?)\s*;?[ \t]*(?://.*)?$"
    r"|^\s*//.*$|^\s*/\*[\s\S]*?\*/",
    re.MULTILINE,
)
"""Imports and comments, which have no effect on their own."""

_STARTER_TITLE_PATTERN: Final = re.compile(
    r"\b(quick ?start|getting[- ]started|usage|basic (usage|example)|(simple|first|minimal) example"
    r"|example|tutorial|introduction|overview)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ProductIdentity:
    """The names by which code refers to the product."""

    identifier: str
    imports: Sequence[str]
    commands: Sequence[str]
    language: str


@dataclass(frozen=True, slots=True)
class CatalogueSnippet:
    """Code as it is in a file, without prompts and outputs."""

    candidate: SnippetCandidate
    tags: tuple[str, ...]
    fault: str = ""
    """The reason why it does not parse."""
    dependencies: tuple[str, ...] = ()

    @property
    def snippet_id(self) -> str:
        return compute_snippet_id(self.candidate.language, self.candidate.code)

    def as_json(self) -> dict[str, Any]:
        candidate = self.candidate
        is_checked = syntax.can_check(candidate.language)
        requirements: dict[str, Any] = {"dependencies": list(self.dependencies)}
        if not is_checked:
            requirements["runtime_notes"] = "There is no parser to check this language with."
        return {
            "snippet_id": self.snippet_id,
            "language": candidate.language,
            "tags": list(self.tags),
            "source": {
                "type": "repo_file",
                "path": candidate.path,
                "start_line": candidate.start,
                "end_line": max(candidate.start, candidate.end),
            },
            "code": candidate.code,
            "requirements": requirements,
            "validation": {"syntax_ok": is_checked and not self.fault, "runnable_ok": "unknown"},
        }


def choose_tags(candidate: SnippetCandidate, product: ProductIdentity) -> list[str]:
    """Return the tags of a snippet: its source, its title, and its use."""
    chosen = [candidate.kind, slugify_title(candidate.title)]
    is_product_code = uses_product(candidate, product)
    if candidate.language == "shell":
        if _INSTALL_COMMAND_PATTERN.search(candidate.code):
            chosen.append("install")
        if any(re.search(rf"(^|\s){re.escape(command)}\s", candidate.code) for command in product.commands):
            chosen.append("cli")
            if _STARTER_TITLE_PATTERN.search(candidate.title):
                chosen.append("quickstart")
    elif is_product_code:
        chosen.append("usage")
        if candidate.kind in ("example", "readme", "docs") and _STARTER_TITLE_PATTERN.search(candidate.title):
            chosen.append("quickstart")
    return [tag for tag in dict.fromkeys(chosen) if tag]


def uses_product(candidate: SnippetCandidate, product: ProductIdentity) -> bool:
    """Return True if the code imports the product or names its module."""
    if candidate.language == "python":
        return bool(set(product.imports) & {*_list_imports(candidate.code), *_list_attribute_owners(candidate.code)})
    quoted = [rf"""["']{re.escape(import_name)}(/[^"']*)?["']""" for import_name in product.imports]
    plain = [rf"\b{re.escape(import_name)}\b" for import_name in product.imports]
    patterns = quoted if candidate.language in SCRIPT_LANGUAGES else plain
    return any(re.search(pattern, candidate.code) for pattern in patterns)


def has_only_imports(candidate: SnippetCandidate) -> bool:
    """Return True if code contains nothing but imports."""
    if candidate.language == "python":
        module = safe_parsing.parse_python(candidate.code)
        statement_types = (ast.Import, ast.ImportFrom, ast.Expr)
        return module is not None and all(
            isinstance(statement, statement_types) and not _has_effect(statement) for statement in module.body
        )
    if candidate.language in SCRIPT_LANGUAGES:
        return not _IMPORT_LINES_PATTERN.sub("", candidate.code).strip()
    return False


def _has_effect(statement: ast.stmt) -> bool:
    """Return True if an expression is more than a literal."""
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)


def list_dependencies(candidate: SnippetCandidate, product: ProductIdentity) -> list[str]:
    """Return the packages that the code needs: the product, and third-party modules."""
    packages = [product.identifier] if uses_product(candidate, product) else []
    if candidate.language == "python":
        known_names = {*sys.stdlib_module_names, *product.imports}
        packages += [name for name in _list_imports(candidate.code) if name not in known_names]
    return list(dict.fromkeys(packages))


def _list_imports(code: str) -> list[str]:
    """Return the top-level names of the modules that code imports."""
    names: list[str] = []
    for node in _walk_nodes(code):
        if isinstance(node, ast.Import):
            names += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.split(".")[0])
    return list(dict.fromkeys(names))


def _list_attribute_owners(code: str) -> set[str]:
    """Return the names of which code reads an attribute, as `module.function` does."""
    return {
        node.value.id
        for node in _walk_nodes(code)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def _walk_nodes(code: str) -> list[ast.AST]:
    module = safe_parsing.parse_python(code)
    return list(ast.walk(module)) if module else []


MAX_CATALOGUE_SNIPPETS: Final = 400
"""The most snippets of a catalogue; pages show a few dozen."""

_MIN_GOOD_SNIPPETS: Final = 8
"""Snippets from better sources that make tests unnecessary."""


def build_catalogue(
    tree: CheckoutTree, inventory: Mapping[str, Any], facts: Mapping[str, Any], language: str
) -> dict[str, Any]:
    """Build the catalogue of a checkout, as an artifact."""
    product = identify_product(facts, language)
    candidates: list[SnippetCandidate] = [
        *snippet_sources.iter_examples(tree, facts, inventory["example_paths"]),
        *snippet_sources.iter_fences(tree, inventory["doc_entrypoint_details"]),
        *snippet_sources.iter_docstrings(tree, facts),
    ]
    good_count = sum(item.language == language for item in candidates)
    if good_count < _MIN_GOOD_SNIPPETS and language == "python":
        candidates += snippet_sources.iter_tests(tree, inventory["test_roots"], product.imports)
    meaningful = [item for item in candidates if not has_only_imports(item)]
    faults = syntax.find_faults((item.code, item.language) for item in meaningful)
    snippets = _merge_duplicates(
        CatalogueSnippet(item, tuple(choose_tags(item, product)), fault, tuple(list_dependencies(item, product)))
        for item, fault in zip(meaningful, faults, strict=True)
    )
    snippets = _add_quickstart_tag(snippets, language)
    return {"schema_version": "1.0", "snippets": [item.as_json() for item in snippets[:MAX_CATALOGUE_SNIPPETS]]}


def identify_product(facts: Mapping[str, Any], language: str) -> ProductIdentity:
    """Return the names by which code refers to the product."""
    distributions = facts.get("distribution") or [{}]
    return ProductIdentity(
        str(distributions[0].get("identifier", "")),
        tuple(distributions[0].get("import_names", ())),
        tuple(distributions[0].get("commands", ())),
        language,
    )


def _merge_duplicates(snippets: Iterable[CatalogueSnippet]) -> list[CatalogueSnippet]:
    """Keep the first occurrence of each code, with the tags of all."""
    snippets_by_id: dict[str, CatalogueSnippet] = {}
    for snippet in snippets:
        earlier = snippets_by_id.get(snippet.snippet_id)
        if earlier is None:
            snippets_by_id[snippet.snippet_id] = snippet
        else:
            tags = tuple(dict.fromkeys([*earlier.tags, *snippet.tags]))
            snippets_by_id[snippet.snippet_id] = replace(earlier, tags=tags)
    return list(snippets_by_id.values())


def _add_quickstart_tag(snippets: list[CatalogueSnippet], language: str) -> list[CatalogueSnippet]:
    """Tag the first snippet that uses the product as quickstart, if no document names one."""
    usable = [
        snippet
        for snippet in snippets
        if is_compatible_language(snippet.candidate.language, language)
        and not snippet.fault
        and "usage" in snippet.tags
    ]
    if not usable or any("quickstart" in snippet.tags for snippet in usable):
        return snippets
    ranked = sorted(usable, key=lambda snippet: ("readme" not in snippet.tags, "example" not in snippet.tags))
    quickstart_id = ranked[0].snippet_id
    return [
        replace(snippet, tags=(*snippet.tags, "quickstart")) if snippet.snippet_id == quickstart_id else snippet
        for snippet in snippets
    ]
