"""The catalogue of snippets: each one once, the best source first, checked and tagged.

Sources are the examples, then the README, guides, docstrings and tests.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.snippets import doc_examples, syntax
from cleats.toolsets.launch.source.checkout import repository_layout
from cleats.toolsets.launch.source.checkout.safe_parsing import parse_python, walk_python
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import document_claims, document_sections
from cleats.toolsets.launch.source.text import code_blocks, documents
from cleats.toolsets.launch.source.text.code_blocks import compute_snippet_id, normalize_code
from cleats.toolsets.launch.source.text.documents import Block
from cleats.toolsets.launch.source.text.english import load_pattern

MAX_EXAMPLE_LINES: Final = 300
MAX_FENCE_LINES: Final = 150
MAX_TEST_LINES: Final = 30
MAX_TEST_SNIPPETS: Final = 20
"""Limits: longer code does not suit a page, and tests are shown only for lack of better code."""

MAX_CATALOGUE_SNIPPETS: Final = 400
"""The most snippets of a catalogue; pages show a few dozen."""

_MIN_GOOD_SNIPPETS: Final = 8
"""Snippets from better sources that make tests unnecessary."""

_DISTINCTIVE_NAME_PATTERN: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}|\w\.\w|_|::|!")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_EXCLUDED_SECTION_PATTERN: Final = load_pattern("excluded_section")
_STARTER_TITLE_PATTERN: Final = load_pattern("starter_title")
_DOCUMENT_TYPES: Final = frozenset({"readme", "guide", "document"})
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


@dataclass(frozen=True, slots=True)
class SnippetCandidate:
    """Code as it is in a file, without prompts and outputs. `kind` is example, readme, docs, docstring or test."""

    kind: str
    language: str
    code: str
    path: str
    start: int
    end: int
    title: str = ""
    """The heading above the code, or the title of the example."""
    tags: tuple[str, ...] = ()
    fault: str = ""
    """The reason why it does not parse."""
    dependencies: tuple[str, ...] = ()

    @property
    def snippet_id(self) -> str:
        return compute_snippet_id(self.language, self.code)

    def as_json(self) -> dict[str, Any]:
        is_checked = syntax.can_check(self.language)
        note = {} if is_checked else {"runtime_notes": "No parser is available to check this language."}
        lines = {"start_line": self.start, "end_line": max(self.start, self.end)}
        return {
            "snippet_id": self.snippet_id,
            "language": self.language,
            "tags": list(self.tags),
            "source": {"type": "repo_file", "path": self.path, **lines},
            "code": self.code,
            "requirements": {"dependencies": list(self.dependencies), **note},
            "validation": {"syntax_ok": is_checked and not self.fault, "runnable_ok": "unknown"},
        }


Distribution = Mapping[str, Any]
"""The names by which code refers to the product: its identifier, its import names and its commands."""


def choose_tags(candidate: SnippetCandidate, product: Distribution) -> list[str]:
    """Return the tags of a snippet: its source, its title, and its use."""
    chosen = [candidate.kind, document_claims.slugify_title(candidate.title)]
    starter = ["quickstart"] if _STARTER_TITLE_PATTERN.search(candidate.title) else []
    if candidate.language == "shell":
        if _INSTALL_COMMAND_PATTERN.search(candidate.code):
            chosen.append("install")
        if any(re.search(rf"(^|\s){re.escape(command)}\s", candidate.code) for command in product["commands"]):
            chosen += ["cli", *starter]
    elif uses_product(candidate, product):
        chosen += ["usage", *(starter if candidate.kind in ("example", "readme", "docs") else [])]
    return [tag for tag in dict.fromkeys(chosen) if tag]


def uses_product(candidate: SnippetCandidate, product: Distribution) -> bool:
    """Return True if the code imports the product or names its module."""
    if candidate.language == "python":
        attributes = [node.value for node in walk_python(candidate.code) if isinstance(node, ast.Attribute)]
        owners = [owner.id for owner in attributes if isinstance(owner, ast.Name)]  # as in `module.function`
        return bool(set(product["import_names"]) & {*_list_imports(candidate.code), *owners})
    if any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", candidate.code) for name in product["public_names"]):
        return True
    pattern = r"""["']{}(/[^"']*)?["']""" if candidate.language in repository_layout.SCRIPT_LANGUAGES else r"\b{}\b"
    return any(re.search(pattern.format(re.escape(name)), candidate.code) for name in product["import_names"])


def _list_distinctive_names(surface: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the public names that ordinary words and other packages hardly have, as programs write them."""
    names = [symbol["name"] for symbol in (*surface["classes"], *surface["functions"])]
    return tuple(name for name in names if _DISTINCTIVE_NAME_PATTERN.search(name))


def has_only_imports(candidate: SnippetCandidate) -> bool:
    """Return True if code contains nothing but imports."""
    if candidate.language == "python":
        module = parse_python(candidate.code)
        return module is not None and all(
            isinstance(statement, ast.Import | ast.ImportFrom)
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
            for statement in module.body
        )
    if candidate.language in repository_layout.SCRIPT_LANGUAGES:
        return not _IMPORT_LINES_PATTERN.sub("", candidate.code).strip()
    return False


def list_dependencies(candidate: SnippetCandidate, product: Distribution) -> list[str]:
    """Return the packages that the code needs: the product, and third-party modules."""
    packages = [product["identifier"]] if uses_product(candidate, product) else []
    if candidate.language == "python":
        known_names = {*sys.stdlib_module_names, *product["import_names"]}
        packages += [name for name in _list_imports(candidate.code) if name not in known_names]
    return list(dict.fromkeys(packages))


def _list_imports(code: str) -> list[str]:
    names: list[str] = []
    for node in walk_python(code):
        if isinstance(node, ast.Import):
            names += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.split(".")[0])
    return list(dict.fromkeys(names))


def build_catalogue(
    tree: CheckoutTree, inventory: Mapping[str, Any], facts: Mapping[str, Any], language: str
) -> dict[str, Any]:
    """Build the catalogue of a checkout, as an artifact."""
    unknown: Distribution = {"identifier": "", "import_names": (), "commands": ()}
    product: Distribution = {
        **unknown,
        **next(iter(facts.get("distribution", ())), {}),
        "public_names": _list_distinctive_names(facts["api_surface_summary"]),
    }
    candidates: list[SnippetCandidate] = [
        *_iter_examples(tree, facts, inventory["example_paths"]),
        *_iter_fences(tree, inventory["doc_entrypoint_details"], language, product["import_names"]),
        *_iter_docstrings(tree, facts),
        *_iter_doc_examples(tree, facts, language),
    ]
    good_count = sum(item.language == language for item in candidates)
    if good_count < _MIN_GOOD_SNIPPETS and language == "python":
        candidates += _iter_tests(tree, inventory["test_roots"], product["import_names"])
    meaningful = [item for item in candidates if not has_only_imports(item)]
    faults = syntax.find_faults((item.code, item.language) for item in meaningful)
    snippets = _merge_duplicates(
        replace(
            item,
            tags=tuple(choose_tags(item, product)),
            fault=fault,
            dependencies=tuple(list_dependencies(item, product)),
        )
        for item, fault in zip(meaningful, faults, strict=True)
    )
    snippets = _add_quickstart_tag(snippets, language)
    return {"schema_version": "1.0", "snippets": [item.as_json() for item in snippets[:MAX_CATALOGUE_SNIPPETS]]}


def _merge_duplicates(snippets: Iterable[SnippetCandidate]) -> list[SnippetCandidate]:
    """Keep the first occurrence of each code, with the tags of all."""
    snippets_by_id: dict[str, SnippetCandidate] = {}
    for snippet in snippets:
        earlier = snippets_by_id.setdefault(snippet.snippet_id, snippet)
        tags = tuple(dict.fromkeys([*earlier.tags, *snippet.tags]))
        snippets_by_id[snippet.snippet_id] = replace(earlier, tags=tags)
    return list(snippets_by_id.values())


def _rank_starter(snippet: SnippetCandidate) -> tuple[bool, bool, int]:
    """Rank code for new users: the readme's first, else the shortest example."""
    is_readme = "readme" in snippet.tags
    return not is_readme, "example" not in snippet.tags, 0 if is_readme else snippet.code.count("\n")


def _add_quickstart_tag(snippets: list[SnippetCandidate], language: str) -> list[SnippetCandidate]:
    """Tag the first snippet that uses the product as quickstart, if no document names one."""
    valid = [
        item
        for item in snippets
        if repository_layout.is_compatible_language(item.language, language) and not item.fault
    ]
    usable = [item for item in valid if "usage" in item.tags and "docstring" not in item.tags]
    if not usable or any("quickstart" in snippet.tags for snippet in usable):
        return snippets
    best = min(usable, key=_rank_starter)
    return [replace(item, tags=(*item.tags, "quickstart")) if item is best else item for item in snippets]


_LICENCE_HEADER_PATTERN: Final = re.compile(
    r"\s*(?:/\*(?=(?:(?!\*/).)*(?:[Cc]opyright|[Ll]icen[sc]e))(?:(?!\*/).)*\*/"
    r"|(?://[^\n]*\n)*?//[^\n]*(?:[Cc]opyright|[Ll]icen[sc]e)[^\n]*\n(?://[^\n]*\n)*)[ \t]*\n?",
    re.DOTALL,
)
"""The comment about the licence that a file begins with; it says nothing about the product."""


def _iter_examples(tree: CheckoutTree, facts: Mapping[str, Any], paths: Sequence[str]) -> Iterator[SnippetCandidate]:
    titles = {item["path"]: item["title"] for item in facts["example_inventory"] if "path" in item}
    for path in sorted(paths, key=lambda item: (item not in titles, item)):
        text = tree.read_text(path)
        language = repository_layout.detect_file_language(path)
        if text and language and text.count("\n") <= MAX_EXAMPLE_LINES and text.strip():
            end = len(text.rstrip("\n").split("\n"))
            header = _LICENCE_HEADER_PATTERN.match(text)
            code = text[header.end() :] if header and text[header.end() :].strip() else text
            start = 1 + text[: len(text) - len(code.lstrip("\n"))].count("\n")
            yield SnippetCandidate("example", language, normalize_code(code), path, start, end, titles.get(path, ""))


def _iter_fences(
    tree: CheckoutTree, entries: Sequence[Mapping[str, str]], language: str, import_names: Sequence[str]
) -> Iterator[SnippetCandidate]:
    ranked = sorted(
        entries, key=lambda doc_entry: (not document_claims.is_readme(doc_entry["path"]), doc_entry["path"])
    )
    for entry in ranked:
        if entry["doc_type"] in _DOCUMENT_TYPES:
            blocks = documents.read_blocks(tree, entry["path"])
            for block in document_claims.infer_code_languages(blocks, language, import_names):
                if block.kind == "code" and (candidate := _read_fence(block)):
                    yield candidate


def _read_fence(block: Block) -> SnippetCandidate | None:
    if any(_EXCLUDED_SECTION_PATTERN.search(title) for title in block.section):
        return None
    language, code = document_sections.read_code(block)
    if not code.strip() or code.count("\n") > MAX_FENCE_LINES:
        return None
    kind = "readme" if document_claims.is_readme(block.path) else "docs"
    title = document_claims.clean_title(block.section[-1]) if block.section else ""
    return SnippetCandidate(kind, language, normalize_code(code), block.path, block.line, block.end, title)


def _iter_docstrings(tree: CheckoutTree, facts: Mapping[str, Any]) -> Iterator[SnippetCandidate]:
    surface = facts["api_surface_summary"]
    definitions_by_path: dict[str, dict[int, Definition]] = {}
    for symbol in (*surface["classes"], *surface["functions"]):
        path = symbol["path"]
        if path.endswith(".py"):
            if path not in definitions_by_path:
                nodes = walk_python(tree.read_text(path))
                definitions_by_path[path] = {node.lineno: node for node in nodes if isinstance(node, Definition)}
            yield from _iter_sessions(tree, symbol, definitions_by_path[path].get(symbol["line"]))


def _iter_doc_examples(tree: CheckoutTree, facts: Mapping[str, Any], language: str) -> Iterator[SnippetCandidate]:
    surface = facts["api_surface_summary"]
    entries = (*surface["modules"], *surface["classes"], *surface["functions"])
    paths = list(dict.fromkeys(entry["path"] for entry in entries))
    for example in doc_examples.find_doc_examples(tree, paths, language):
        code = normalize_code(example.code)
        yield SnippetCandidate("docstring", language, code, example.path, example.start, example.end, example.title)


def _iter_sessions(
    tree: CheckoutTree, symbol: Mapping[str, Any], node: Definition | None
) -> Iterator[SnippetCandidate]:
    docstring = node.body[0] if node is not None and node.body else None
    if not (isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)):
        return
    lines = (tree.read_text(symbol["path"]) or "").split("\n")[docstring.lineno - 1 : docstring.end_lineno]
    start = 0
    for number, line in enumerate([*lines, ""]):
        if line.strip(" \"'"):
            continue
        paragraph = "\n".join(lines[start:number]) + "\n"
        if code_blocks.is_session(paragraph) and (code := code_blocks.extract_session_input(paragraph)).strip():
            location = (symbol["path"], docstring.lineno + start, docstring.lineno + number - 1)
            title = symbol["name"].rsplit(".", 1)[-1]
            yield SnippetCandidate("docstring", "python", normalize_code(code), *location, title)
        start = number + 1


def _iter_tests(tree: CheckoutTree, roots: Sequence[str], imports: Sequence[str]) -> Iterator[SnippetCandidate]:
    test_count = 0
    for path in tree.paths_below(*roots) if roots else ():
        name = PurePosixPath(path).name
        if not name.startswith("test") or not name.endswith(".py") or test_count >= MAX_TEST_SNIPPETS:
            continue
        text = tree.read_text(path) or ""
        module = parse_python(text)
        lines = text.split("\n")
        for node in module.body if module else ():
            if isinstance(node, ast.FunctionDef) and _is_usable_test(node, imports, test_count):
                end = node.end_lineno or node.lineno
                code = normalize_code("\n".join(lines[node.lineno - 1 : end]))
                title = node.name.removeprefix("test_").replace("_", " ")
                yield SnippetCandidate("test", "python", code, path, node.lineno, end, title)
                test_count += 1


def _is_usable_test(node: ast.FunctionDef, imports: Sequence[str], test_count: int) -> bool:
    needs_fixture = node.args.args or node.args.posonlyargs or node.args.kwonlyargs or node.decorator_list
    is_short = (node.end_lineno or node.lineno) - node.lineno <= MAX_TEST_LINES
    names = {name_node.id for name_node in ast.walk(node) if isinstance(name_node, ast.Name)}
    is_plain = node.name.startswith("test") and not needs_fixture
    return test_count < MAX_TEST_SNIPPETS and is_plain and is_short and bool(names & set(imports))
