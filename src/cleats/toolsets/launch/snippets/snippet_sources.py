"""Finds code to show: in examples, then the README, guides, docstrings and tests."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from textwrap import dedent
from typing import Any, Final

from cleats.toolsets.launch.source.checkout import repository_layout, safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.document_claims import (
    clean_title,
    detect_block_language,
    is_readme,
)
from cleats.toolsets.launch.source.text import documents, snippet_code
from cleats.toolsets.launch.source.text.documents import Block
from cleats.toolsets.launch.source.text.snippet_code import normalize_code

MAX_EXAMPLE_LINES: Final = 300
MAX_FENCE_LINES: Final = 150
MAX_TEST_LINES: Final = 30
MAX_TEST_SNIPPETS: Final = 20
"""Limits: longer code does not suit a page, and tests are shown only for lack of better code."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_EXCLUDED_SECTION_PATTERN: Final = re.compile(
    r"\b(contribut\w*|development|changelog|release\w*|sponsor\w*|citing|citation|bibtex|license"
    r"|benchmarks?|running (the )?tests|upgrad\w*|migrat\w*)\b",
    re.IGNORECASE,
)
_DOCUMENT_TYPES: Final = frozenset({"readme", "guide", "document"})


@dataclass(frozen=True, slots=True)
class SnippetCandidate:
    """A piece of code with its location. `kind` is example, readme, docs, docstring or test."""

    kind: str
    language: str
    code: str
    path: str
    start: int
    end: int
    title: str = ""
    """The heading above the code, or the title of the example."""


def iter_examples(tree: CheckoutTree, facts: Mapping[str, Any], paths: Sequence[str]) -> Iterator[SnippetCandidate]:
    """Yield complete example programs."""
    titles = {item["path"]: item["title"] for item in facts["example_inventory"] if "path" in item}
    for path in sorted(paths, key=lambda item: (item not in titles, item)):
        text = tree.read_text(path)
        language = repository_layout.detect_file_language(path)
        if text and language and text.count("\n") <= MAX_EXAMPLE_LINES and text.strip():
            end = len(text.rstrip("\n").split("\n"))
            yield SnippetCandidate("example", language, normalize_code(text), path, 1, end, titles.get(path, ""))


def iter_fences(tree: CheckoutTree, entries: Sequence[Mapping[str, str]]) -> Iterator[SnippetCandidate]:
    """Yield the code of documents, the README first."""
    ranked = sorted(entries, key=lambda doc_entry: (not is_readme(doc_entry["path"]), doc_entry["path"]))
    for entry in ranked:
        if entry["doc_type"] in _DOCUMENT_TYPES:
            for block in documents.read_blocks(tree, entry["path"]):
                if block.kind == "code" and (candidate := _read_fence(block)):
                    yield candidate


def _read_fence(block: Block) -> SnippetCandidate | None:
    if any(_EXCLUDED_SECTION_PATTERN.search(title) for title in block.section):
        return None
    language = detect_block_language(block)
    code = dedent(block.text)
    if language == "python" and snippet_code.is_session(code):
        code = snippet_code.extract_session_input(code)
    elif language == "shell":
        code = snippet_code.extract_commands(code)
    if not code.strip() or code.count("\n") > MAX_FENCE_LINES:
        return None
    kind = "readme" if is_readme(block.path) else "docs"
    title = clean_title(block.section[-1]) if block.section else ""
    return SnippetCandidate(kind, language, normalize_code(code), block.path, block.line, block.end, title)


def iter_docstrings(tree: CheckoutTree, facts: Mapping[str, Any]) -> Iterator[SnippetCandidate]:
    """Yield the interpreter sessions in the docstrings of public names."""
    surface = facts["api_surface_summary"]
    definitions_by_path: dict[str, dict[int, Definition]] = {}
    for symbol in (*surface["classes"], *surface["functions"]):
        path = symbol["path"]
        if path.endswith(".py"):
            if path not in definitions_by_path:
                definitions_by_path[path] = _find_definitions(tree, path)
            yield from _iter_sessions(tree, symbol, definitions_by_path[path].get(symbol["line"]))


def _iter_sessions(
    tree: CheckoutTree, symbol: Mapping[str, Any], node: Definition | None
) -> Iterator[SnippetCandidate]:
    docstring = node.body[0] if node is not None and node.body else None
    if not (isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)):
        return
    lines = (tree.read_text(symbol["path"]) or "").split("\n")[docstring.lineno - 1 : docstring.end_lineno]
    start = 0
    for number in range(len(lines) + 1):
        is_blank = number == len(lines) or not lines[number].strip(" \"'")
        if not is_blank:
            continue
        paragraph = "\n".join(lines[start:number]) + "\n"
        if snippet_code.is_session(paragraph) and (code := snippet_code.extract_session_input(paragraph)).strip():
            location = (symbol["path"], docstring.lineno + start, docstring.lineno + number - 1)
            title = symbol["name"].rsplit(".", 1)[-1]
            yield SnippetCandidate("docstring", "python", normalize_code(code), *location, title)
        start = number + 1


def _find_definitions(tree: CheckoutTree, path: str) -> dict[int, Definition]:
    """Return the classes and functions of a file by line."""
    module = safe_parsing.parse_python(tree.read_text(path))
    if module is None:
        return {}
    return {node.lineno: node for node in ast.walk(module) if isinstance(node, Definition)}


def iter_tests(tree: CheckoutTree, roots: Sequence[str], imports: Sequence[str]) -> Iterator[SnippetCandidate]:
    """Yield short test functions that need no fixture."""
    test_count = 0
    for path in tree.paths_below(*roots) if roots else ():
        name = PurePosixPath(path).name
        if not name.startswith("test") or not name.endswith(".py") or test_count >= MAX_TEST_SNIPPETS:
            continue
        text = tree.read_text(path) or ""
        module = safe_parsing.parse_python(text)
        if module is None:
            continue
        lines = text.split("\n")
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and _is_usable_test(node, imports, test_count):
                end = node.end_lineno or node.lineno
                code = normalize_code("\n".join(lines[node.lineno - 1 : end]))
                title = node.name.removeprefix("test_").replace("_", " ")
                yield SnippetCandidate("test", "python", code, path, node.lineno, end, title)
                test_count += 1


def _is_usable_test(node: ast.FunctionDef, imports: Sequence[str], test_count: int) -> bool:
    needs_fixture = node.args.args or node.args.posonlyargs or node.args.kwonlyargs or node.decorator_list
    is_long = (node.end_lineno or node.lineno) - node.lineno > MAX_TEST_LINES
    names = {name_node.id for name_node in ast.walk(node) if isinstance(name_node, ast.Name)}
    uses_product = bool(names & set(imports))
    return (
        test_count < MAX_TEST_SNIPPETS
        and node.name.startswith("test")
        and not needs_fixture
        and not is_long
        and uses_product
    )
