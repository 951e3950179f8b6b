"""Where code to show is found: examples, then the readme, guides, docstrings and tests."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from textwrap import dedent
from typing import Any, Final

from cleats.toolsets.launch.snippets import prompts
from cleats.toolsets.launch.snippets.model import normal
from cleats.toolsets.launch.source import documents, languages, programs
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.document_claims import (
    clean_title,
    is_readme,
    slug,
    spoken_in,
)
from cleats.toolsets.launch.source.tree import Tree

FILE_LINES: Final = 300
FENCE_LINES: Final = 150
TEST_LINES: Final = 30
TESTS: Final = 20
"""What is longer is no example for a page, and tests are only shown for want of better."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_NOT_SHOWN: Final = re.compile(
    r"\b(contribut\w*|development|changelog|release\w*|sponsor\w*|citing|citation|bibtex|license"
    r"|benchmarks?|running (the )?tests|upgrad\w*|migrat\w*)\b",
    re.IGNORECASE,
)
_DOCUMENTS: Final = frozenset({"readme", "guide", "document"})


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of code where it stands. `kind` is example, readme, docs, docstring or test."""

    kind: str
    language: str
    code: str
    path: str
    start: int
    end: int
    title: str = ""
    """The heading above it, or what the example is called."""


def examples(tree: Tree, facts: Mapping[str, Any], paths: Sequence[str]) -> Iterator[Found]:
    """Whole example programs."""
    titles = {each["path"]: each["title"] for each in facts["example_inventory"] if "path" in each}
    for path in sorted(paths, key=lambda each: (each not in titles, each)):
        text = tree.text(path)
        language = languages.of_path(path)
        if text and language and text.count("\n") <= FILE_LINES and text.strip():
            end = len(text.rstrip("\n").split("\n"))
            yield Found("example", language, normal(text), path, 1, end, titles.get(path, ""))


def fences(tree: Tree, entries: Sequence[Mapping[str, str]]) -> Iterator[Found]:
    """The code of documents; the readme comes first."""
    ranked = sorted(entries, key=lambda each: (not is_readme(each["path"]), each["path"]))
    for entry in ranked:
        if entry["doc_type"] in _DOCUMENTS:
            for block in documents.blocks(tree, entry["path"]):
                if block.kind == "code" and (found := _fence(block)):
                    yield found


def _fence(block: Block) -> Found | None:
    if any(_NOT_SHOWN.search(title) for title in block.section):
        return None
    language = spoken_in(block)
    code = dedent(block.text)
    if language == "python" and prompts.is_session(code):
        code = prompts.typed(code)
    elif language == "shell":
        code = prompts.commands(code)
    if not code.strip() or code.count("\n") > FENCE_LINES:
        return None
    kind = "readme" if is_readme(block.path) else "docs"
    title = clean_title(block.section[-1]) if block.section else ""
    return Found(kind, language, normal(code), block.path, block.line, block.end, title)


def docstrings(tree: Tree, facts: Mapping[str, Any]) -> Iterator[Found]:
    """The sessions in the docstrings of the public names."""
    surface = facts["api_surface_summary"]
    known: dict[str, dict[int, Definition]] = {}
    for symbol in (*surface["classes"], *surface["functions"]):
        path = symbol["path"]
        if path.endswith(".py"):
            if path not in known:
                known[path] = _definitions(tree, path)
            yield from _sessions(tree, symbol, known[path].get(symbol["line"]))


def _sessions(tree: Tree, symbol: Mapping[str, Any], node: Definition | None) -> Iterator[Found]:
    first = node.body[0] if node is not None and node.body else None
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
        return
    lines = (tree.text(symbol["path"]) or "").split("\n")[first.lineno - 1 : first.end_lineno]
    start = 0
    for number in range(len(lines) + 1):
        blank = number == len(lines) or not lines[number].strip(" \"'")
        if not blank:
            continue
        part = "\n".join(lines[start:number]) + "\n"
        if prompts.is_session(part) and (code := prompts.typed(part)).strip():
            place = (symbol["path"], first.lineno + start, first.lineno + number - 1)
            title = symbol["name"].rsplit(".", 1)[-1]
            yield Found("docstring", "python", normal(code), *place, title)
        start = number + 1


def _definitions(tree: Tree, path: str) -> dict[int, Definition]:
    """The classes and functions of a file by their lines."""
    module = programs.parse(tree.text(path))
    if module is None:
        return {}
    return {each.lineno: each for each in ast.walk(module) if isinstance(each, Definition)}


def tests(tree: Tree, roots: Sequence[str], imports: Sequence[str]) -> Iterator[Found]:
    """Short test functions that need no fixture."""
    found = 0
    for path in tree.below(*roots) if roots else ():
        name = PurePosixPath(path).name
        if not name.startswith("test") or not name.endswith(".py") or found >= TESTS:
            continue
        text = tree.text(path) or ""
        module = programs.parse(text)
        if module is None:
            continue
        lines = text.split("\n")
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and _is_plain(node, imports, found):
                end = node.end_lineno or node.lineno
                code = normal("\n".join(lines[node.lineno - 1 : end]))
                title = node.name.removeprefix("test_").replace("_", " ")
                yield Found("test", "python", code, path, node.lineno, end, title)
                found += 1


def _is_plain(node: ast.FunctionDef, imports: Sequence[str], found: int) -> bool:
    taken = node.args.args or node.args.posonlyargs or node.args.kwonlyargs or node.decorator_list
    long = (node.end_lineno or node.lineno) - node.lineno > TEST_LINES
    words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    uses = bool(words & set(imports))
    return found < TESTS and node.name.startswith("test") and not taken and not long and uses


def tag_of(found: Found) -> str:
    """The tag that a title gives."""
    return slug(found.title) if found.title else ""
