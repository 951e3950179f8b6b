"""Functions whose documentation was removed, with that documentation as the question.

The documentation of a function says in words what its code says in names, so it is a question with
a known answer. The functions are chosen by hash, their documentation is blanked out in a copy of
the corpus, and the copy is searched with it. The question never contains the name of the function.
"""

import ast
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.code.answers import ResultPassage
from bench.code.corpora import Corpus, commit_folder

MAX_QUESTIONS = 400
"""The number of questions per corpus: half to choose weights by, half to report."""

MIN_QUESTION_WORDS = 5
MIN_CODE_LINES = 3
"""Lines of code without the documentation; a shorter function has too little content to be
found."""

MAX_PASSAGE_LINES = 80
"""The most lines of a passage that still counts as pointing at a shorter function."""

IGNORED_PATTERNS = (".git", "dist", "*.d.ts", "*.map")
"""Patterns left out of the copy, because such files repeat documentation that is blanked
elsewhere."""

_WORD_PATTERN = re.compile(r"\w+")
_TEST_PATH_PATTERN = re.compile(r"(^|/)(tests?|testing|spec|examples?|docs|locale)(/|$)|(^|/)test_|\.d\.ts$")
_JSDOC_PATTERN = re.compile(
    r"^[ \t]*/\*\*(?P<doc>(?:(?!\*/).)*)\*/[ \t]*\n"
    r"(?P<head>(?:export |default |async |static |function |get |set |private |protected )*"
    r"(?:function )?(?P<name>[A-Za-z_$][\w$]*)[ \t]*(?:<[^()\n]*>)?\([^;{}]*\)[^;{}\n]*\{)",
    re.MULTILINE | re.DOTALL,
)
_KEYWORD_NAMES = frozenset({"if", "for", "while", "switch", "catch", "function"})


@dataclass(frozen=True, slots=True)
class HeldOutCase:
    """One question and the location of its answer."""

    question: str
    path: str
    name: str
    first: int
    last: int
    """The first and the last line of the function, counted from 1, both included."""

    def matches(self, passage: ResultPassage) -> bool:
        """Test whether a result shows the function without burying it, as a whole file would."""
        max_lines = max(MAX_PASSAGE_LINES, 2 * (self.last - self.first + 1))
        overlaps = passage.first <= self.last and passage.last >= self.first
        return passage.path == self.path and overlaps and passage.last - passage.first < max_lines


@dataclass(frozen=True, slots=True)
class _DocumentedFunction:
    doc: str
    name: str
    first: int
    last: int
    start: int
    end: int
    """The start and the end of the documentation, in characters."""


def prepare_cases(corpus: Corpus) -> tuple[Path, list[HeldOutCase]]:
    """Return the copy without the documentation, and its questions in an arbitrary order."""
    folder = corpus.folder.with_name(corpus.folder.name + "-heldout")
    cases_file = folder.with_name(f"{folder.name}.json")
    if not cases_file.exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(corpus.prepare(), folder, ignore=shutil.ignore_patterns(*IGNORED_PATTERNS))
        cases = _blank_documentation(folder, _choose_functions(folder))
        commit_folder(folder)
        cases_file.write_text(json.dumps([asdict(case) for case in cases], indent=1))
    return folder, [HeldOutCase(**fields) for fields in json.loads(cases_file.read_text())]


def _choose_functions(folder: Path) -> list[tuple[Path, _DocumentedFunction]]:
    functions = []
    for path in sorted(folder.rglob("*")):
        relative_path = path.relative_to(folder).as_posix()
        if _TEST_PATH_PATTERN.search(relative_path) or not path.is_file():
            continue
        text = _read_text(path)
        functions += [(path, function) for function in _find_documented(path, text)]
    doc_counts = Counter(function.doc for _, function in functions)
    unique_functions = [(path, function) for path, function in functions if doc_counts[function.doc] == 1]
    unique_functions.sort(key=lambda function: hashlib.sha256(function[1].doc.encode()).digest())
    return unique_functions[:MAX_QUESTIONS]


def _blank_documentation(folder: Path, chosen: Sequence[tuple[Path, _DocumentedFunction]]) -> list[HeldOutCase]:
    cases = []
    for path, function in chosen:
        text = _read_text(path)
        blanks = re.sub(r"[^\n]", " ", text[function.start : function.end])
        path.write_bytes((text[: function.start] + blanks + text[function.end :]).encode("latin-1"))
        cases.append(
            HeldOutCase(function.doc, path.relative_to(folder).as_posix(), function.name, function.first, function.last)
        )
    return cases


def _read_text(path: Path) -> str:
    # One character per byte, so that positions in the text are positions in the file.
    return path.read_bytes().decode("latin-1")


def _find_documented(path: Path, text: str) -> Iterator[_DocumentedFunction]:
    functions: Iterator[_DocumentedFunction] = iter(())
    if path.suffix == ".py":
        functions = _find_python_functions(text)
    elif path.suffix in {".js", ".mjs", ".ts"}:
        functions = _find_script_functions(text)
    for function in functions:
        if len(set(_WORD_PATTERN.findall(function.doc))) >= MIN_QUESTION_WORDS and function.doc.isascii():
            yield function


def _find_python_functions(text: str) -> Iterator[_DocumentedFunction]:
    try:
        tree = ast.parse(text.encode("latin-1"))
    except (SyntaxError, ValueError):
        return
    starts = [0]
    for line in text.encode("latin-1").split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or len(node.body) < 2:
            continue
        doc = ast.get_docstring(node)
        lines = (node.end_lineno or 0) - (node.body[0].end_lineno or 0)
        if doc is None or lines < MIN_CODE_LINES or node.name.startswith("test"):
            continue
        docstring = node.body[0]
        yield _DocumentedFunction(
            doc=_build_question(doc, node.name),
            name=node.name,
            first=node.lineno,
            last=node.end_lineno or node.lineno,
            start=starts[docstring.lineno - 1] + docstring.col_offset,
            end=starts[(docstring.end_lineno or 0) - 1] + (docstring.end_col_offset or 0),
        )


def _find_script_functions(text: str) -> Iterator[_DocumentedFunction]:
    for match in _JSDOC_PATTERN.finditer(text):
        end = _find_closing_brace(text, match.end())
        last = text.count("\n", 0, end) + 1
        first = text.count("\n", 0, match.start("head")) + 1
        if match["name"] in _KEYWORD_NAMES or last - first < MIN_CODE_LINES:
            continue
        doc = re.sub(r"^[ \t]*\*[ \t]?", "", match["doc"], flags=re.MULTILINE)
        doc = re.split(r"(?:^|\s)@\w+|^#|```", doc, maxsplit=1, flags=re.MULTILINE)[0]
        yield _DocumentedFunction(
            doc=_build_question(doc, match["name"]),
            name=match["name"],
            first=first,
            last=last,
            start=match.start(),
            end=match.start("head") - 1,
        )


def _find_closing_brace(text: str, start: int) -> int:
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return start + brace.end()
    return len(text)


def _build_question(doc: str, name: str) -> str:
    """Return the first paragraph as bare words, because a search would interpret punctuation."""
    first = doc.strip().split("\n\n")[0]
    bare = re.sub(r"\W+", " ", re.sub(rf"\b{re.escape(name)}\b", "", first))
    return re.sub(r"\b(AND|OR|NOT)\b", lambda word: word[0].lower(), bare).strip()
