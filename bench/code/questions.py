"""Questions that a person would ask, written by hand, and names to look up, with their answers.

A question may have several correct answers; one of them is enough. Answers are written as
`end/of/path.py:Class.method` in `questions/*.json` and must each exist in exactly one file. If
Python's own parser cannot read a file, ours finds its declarations; overloads of one name are one
answer.
"""

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType

from bench.code.answers import ResultPassage
from bench.code.corpora import Corpus
from bench.code.heldout import MAX_PASSAGE_LINES
from cleats.toolsets.code.analysis.extract import extract_facts

QUESTIONS_FOLDER = Path(__file__).parent / "questions"

LANGUAGES_BY_SUFFIX: Mapping[str, str] = {".ts": "typescript", ".js": "javascript", ".java": "java"}
"""The languages of answers that are not in Python, by suffix."""

_COPY_PATH_PATTERN = re.compile(r"(^|/)(dist|build)/|\.d\.ts$")
"""Paths of built copies that packages have next to their sources."""

MAX_SYMBOLS = 200
"""The number of names looked up in each corpus."""

MIN_NAME_CHARACTERS = 5
"""Characters of the shortest name that is looked up; shorter ones are ordinary words."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question and every location that answers it."""

    question: str
    answers: tuple[ResultPassage, ...]

    def matches(self, passage: ResultPassage) -> bool:
        """Test whether a result shows one of the answers, and not a whole file around it."""
        return any(
            passage.path == answer.path
            and passage.first <= answer.last
            and passage.last >= answer.first
            and passage.last - passage.first < max(MAX_PASSAGE_LINES, 2 * (answer.last - answer.first + 1))
            for answer in self.answers
        )


def load_questions(corpus: Corpus) -> list[AnsweredQuestion]:
    """Load the questions that were written for a corpus, if there are any."""
    file = QUESTIONS_FOLDER / f"{corpus.name}.json"
    if not file.exists():
        return []
    declarations = list(_iterate_declarations(corpus))
    return [
        AnsweredQuestion(
            question, tuple(passage for answer in answers for passage in _find_declaration(declarations, answer))
        )
        for question, answers in json.loads(file.read_text())
    ]


def choose_symbols(corpus: Corpus) -> list[AnsweredQuestion]:
    """Choose names of functions and classes that are declared only once, not counting copies."""
    return _choose_names(_iterate_declarations(corpus, ast.FunctionDef | ast.ClassDef))


def choose_constants(corpus: Corpus) -> list[AnsweredQuestion]:
    """Choose names of constants that are declared only once, not counting copies."""
    return _choose_names(
        ((path, name), passage)
        for (path, name), passage in _iterate_declarations(corpus, ast.Assign, {"constant"})
        if name.rpartition(".")[2].isupper()
    )


def _choose_names(found: Iterable[tuple[tuple[str, str], ResultPassage]]) -> list[AnsweredQuestion]:
    declarations = [
        (name.rpartition(".")[2], passage)
        for (path, name), passage in found
        if "test" not in path and not _COPY_PATH_PATTERN.search(path)
    ]
    counts = Counter(name for name, _ in declarations)
    chosen = [
        AnsweredQuestion(name, (passage,))
        for name, passage in declarations
        if counts[name] == 1 and len(name) >= MIN_NAME_CHARACTERS and not name.startswith("__")
    ]
    chosen.sort(key=lambda question: hashlib.sha256(question.question.encode()).digest())
    return chosen[:MAX_SYMBOLS]


def _find_declaration(
    declarations: Sequence[tuple[tuple[str, str], ResultPassage]], answer: str
) -> list[ResultPassage]:
    path_suffix, _, qualified_name = answer.partition(":")
    passages = [
        passage
        for (path, name), passage in declarations
        if name == qualified_name and f"/{path}".endswith(f"/{path_suffix}") and "/tests/" not in path
    ]
    if len({passage.path for passage in passages}) != 1:
        raise ValueError(f"{answer} names {len(passages)} declarations")
    return passages


def _iterate_declarations(
    corpus: Corpus,
    kinds: type[ast.stmt] | UnionType = ast.stmt,
    chunk_kinds: Collection[str] = ("function", "method", "class"),
) -> Iterator[tuple[tuple[str, str], ResultPassage]]:
    for file in corpus.iterate_files():
        if file.suffix == ".py":
            path = file.relative_to(corpus.folder).as_posix()
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):
                continue
            for name, node in _iterate_named_nodes(tree, ""):
                if isinstance(node, kinds):
                    passage = ResultPassage(path, node.lineno, node.end_lineno or node.lineno)
                    yield (path, name), passage
        elif file.suffix in LANGUAGES_BY_SUFFIX:
            yield from _extract_declarations(file, corpus, None if kinds is ast.stmt else chunk_kinds)


def _extract_declarations(
    file: Path, corpus: Corpus, kinds: Collection[str] | None
) -> Iterator[tuple[tuple[str, str], ResultPassage]]:
    path = file.relative_to(corpus.folder).as_posix()
    for chunk in extract_facts(path, file.read_bytes(), LANGUAGES_BY_SUFFIX[file.suffix], "code").chunks:
        if chunk.name and (kinds is None or chunk.kind in kinds):
            yield (path, chunk.name), ResultPassage(path, chunk.start_line, chunk.end_line)


def _iterate_named_nodes(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name, node
            yield from _iterate_named_nodes(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield prefix + node.targets[0].id, node
        elif isinstance(node, ast.If | ast.Try):
            yield from _iterate_named_nodes(node, prefix)
