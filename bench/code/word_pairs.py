"""The training data of a word table: functions paired with their documentation.

Every child of the given folders is one package. Tests, examples and built copies are skipped: they
repeat the same text.
"""

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from cleats.toolsets.code.index.tokens import tokenize_text

MAX_FILE_CHARACTERS = 400_000
"""Characters of a file; larger files are generated."""

MAX_PACKAGE_PAIRS = 15_000
"""Functions of one package, so that no package dominates."""

BLOCK_LINES = 40
"""Lines in which a word is counted once: about a function and its surroundings."""

MAX_DOC_WORDS, MAX_CODE_WORDS = 60, 400
"""Words kept of a pair."""

BRACED_SUFFIXES = (".js", ".mjs", ".ts", ".tsx", ".rs", ".c", ".cc", ".cpp", ".h", ".hpp", ".go", ".java")
TEXT_SUFFIXES = (".md", ".rst", ".txt")
SKIPPED_FOLDERS = frozenset(("test", "tests", "testing", "examples", "dist", "cjs", "umd", "esm5", "vendor", "locale"))

_DOCUMENTED_FUNCTION_PATTERN = re.compile(
    r"(?P<doc>(?:^[ \t]*///[^\n]*\n)+"
    r"|^[ \t]*/\*\*[\s\S]{3,3000}?\*/[ \t]*\n"
    r"|(?:^[ \t]*//(?!/)[^\n]*\n){2,})"
    r"(?:^[ \t]*[#@\[][^\n]*\n)*"
    r"(?P<head>^[ \t]*(?=[^\n]*[\w>)]\s*\()[A-Za-z_][^;{}]{0,600}?)(?P<open>[{;])",
    re.MULTILINE,
)
_BOILERPLATE_PATTERN = re.compile(r"copyright|licen[sc]e|eslint|istanbul|noqa", re.IGNORECASE)
_COMMENT_MARK_PATTERN = re.compile(r"^[ \t]*(?:/{2,3}!?|/\*\*+|\*+/|\*)[ \t]?", re.MULTILINE)
_DOC_TAG_PATTERN = re.compile(r"^\s*@\w+|^\s*# ", re.MULTILINE)
_NON_FUNCTION_PATTERN = re.compile(r"(?:if|for|while|switch|return|catch|import|use|mod|struct|class|interface|enum)\b")


@dataclass(slots=True)
class GatheredWords:
    """Pairs of documentation words and code words by package, and the frequency of words."""

    pairs: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    blocks: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """The number of blocks that contain a word."""
    packages: Counter[str] = field(default_factory=Counter)
    """The number of packages that contain a word."""


def gather_packages(folders: Iterable[Path], excluded_prefixes: tuple[str, ...], out: Path) -> None:
    """Read every package in the folders, except for names with an excluded prefix.

    Each package gets a file of its own in `out`; a package that already has one is not read again.
    """
    out.mkdir(exist_ok=True)
    packages = [
        child
        for folder in folders
        for child in sorted(folder.iterdir())
        if child.is_dir() and not child.name.startswith(excluded_prefixes) and not (out / f"{child.name}.json").exists()
    ]
    with Pool() as pool:
        for name in pool.imap_unordered(partial(_gather_package, out), packages):
            print(name, flush=True)


def load_gathered(folder: Path) -> GatheredWords:
    """Load the gathered data; if several packages have the same pair, the first one counts."""
    gathered = GatheredWords()
    known_pairs: set[tuple[str, ...]] = set()
    for file in sorted(folder.glob("*.json")):
        document = json.loads(file.read_text())
        gathered.blocks += document["blocks"]
        gathered.counts.update(document["counts"])
        gathered.packages.update(document["counts"].keys())
        for name, doc_words, code_words in document["pairs"][:MAX_PACKAGE_PAIRS]:
            key = (name, *doc_words[:12])
            if key not in known_pairs:
                known_pairs.add(key)
                gathered.pairs.append((file.stem, doc_words, code_words))
    return gathered


def _gather_package(out: Path, package: Path) -> str:
    counts: Counter[str] = Counter()
    pairs: list[tuple[str, list[str], list[str]]] = []
    blocks = 0
    for path, text in _iterate_texts(package):
        lines = text.split("\n")
        for start in range(0, len(lines), BLOCK_LINES):
            counts.update(set(tokenize_text("\n".join(lines[start : start + BLOCK_LINES]))))
            blocks += 1
        for name, code, doc in iterate_functions(path.suffix, text):
            doc_words, code_words = (
                tokenize_text(doc)[:MAX_DOC_WORDS],
                tokenize_text(f"{name}\n{code}")[:MAX_CODE_WORDS],
            )
            if len(doc_words) >= 4 and len(code_words) >= 6:
                pairs.append((name, doc_words, code_words))
    document = {"blocks": blocks, "counts": counts, "pairs": pairs}
    (out / f"{package.name}.json").write_text(json.dumps(document))
    return f"{package.name}: {len(pairs):,} pairs"


def _iterate_texts(package: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix not in (".py", *BRACED_SUFFIXES, *TEXT_SUFFIXES) or ".min." in name:
                continue
            text = path.read_text(errors="ignore") if path.is_file() else ""
            if len(text) <= MAX_FILE_CHARACTERS and len(text) <= 150 * (text.count("\n") + 1):
                yield path, text


def iterate_functions(suffix: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the code and the documentation of each documented function."""
    if suffix == ".py":
        yield from _iterate_python_functions(text)
    elif suffix in BRACED_SUFFIXES:
        yield from _iterate_braced_functions(text)


def _iterate_python_functions(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (doc := ast.get_docstring(node)):
            docstring = node.body[0]
            head = lines[node.lineno - 1 : docstring.lineno - 1]
            body = lines[docstring.end_lineno : node.end_lineno]
            yield node.name, "\n".join([*head, *body]), doc.split("\n\n")[0]


def _iterate_braced_functions(text: str) -> Iterator[tuple[str, str, str]]:
    for match in _DOCUMENTED_FUNCTION_PATTERN.finditer(text):
        head = match["head"].strip()
        if _BOILERPLATE_PATTERN.search(match["doc"][:300]) or _NON_FUNCTION_PATTERN.match(head):
            continue
        end = _find_closing_brace(text, match.start("open")) if match["open"] == "{" else match.end()
        name = re.search(r"(\w+)\s*(?:<[^>]*>)?\s*\(", head)
        doc = _COMMENT_MARK_PATTERN.sub("", match["doc"]).replace("*/", "").strip().split("\n\n")[0]
        yield name[1] if name else "", text[match.start("head") : end], _DOC_TAG_PATTERN.split(doc)[0]


def _find_closing_brace(text: str, start: int) -> int:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, start, start + 20_000):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.end()
    return min(len(text), start + 2_000)
