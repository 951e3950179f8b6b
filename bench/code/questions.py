"""Questions a person would ask, written by hand, and names looked up; with the places that answer.

A question may have several right answers; one of them is enough. Answers are written as
`end/of/path.py:Class.method` in `questions/*.json` and must each exist exactly once.
"""

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType

from bench.code.answers import Passage
from bench.code.corpora import Corpus
from bench.code.heldout import LONGEST

QUESTIONS = Path(__file__).parent / "questions"

SYMBOLS = 200
"""Names looked up in each corpus."""

SHORTEST = 5
"""Characters of a name that is looked up; shorter ones are words like any other."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and every place that answers it."""

    question: str
    answers: tuple[Passage, ...]

    def fits(self, found: Passage) -> bool:
        """Whether a result shows one of the answers, and not a whole file around it."""
        return any(
            found.path == each.path
            and found.first <= each.last
            and found.last >= each.first
            and found.last - found.first < max(LONGEST, 2 * (each.last - each.first + 1))
            for each in self.answers
        )


def by_hand(corpus: Corpus) -> list[Asked]:
    """The questions that were written for a corpus; none for some."""
    file = QUESTIONS / f"{corpus.name}.json"
    if not file.exists():
        return []
    declared = dict(_declarations(corpus))
    return [
        Asked(question, tuple(_only(declared, answer) for answer in answers))
        for question, answers in json.loads(file.read_text())
    ]


def symbols(corpus: Corpus) -> list[Asked]:
    """Names that are declared only once, each the answer to itself."""
    declared = [
        (name.rpartition(".")[2], passage)
        for (path, name), passage in _declarations(corpus, ast.FunctionDef | ast.ClassDef)
        if "test" not in path
    ]
    counts = Counter(name for name, _ in declared)
    chosen = [
        Asked(name, (passage,))
        for name, passage in declared
        if counts[name] == 1 and len(name) >= SHORTEST and not name.startswith("__")
    ]
    chosen.sort(key=lambda asked: hashlib.sha256(asked.question.encode()).digest())
    return chosen[:SYMBOLS]


def _only(declared: Mapping[tuple[str, str], Passage], answer: str) -> Passage:
    end, _, wanted = answer.partition(":")
    found = [
        passage
        for (path, name), passage in declared.items()
        if name == wanted and f"/{path}".endswith(f"/{end}") and "/tests/" not in path
    ]
    if len(found) != 1:
        raise ValueError(f"{answer} names {len(found)} declarations")
    return found[0]


def _declarations(
    corpus: Corpus, kinds: type[ast.stmt] | UnionType = ast.stmt
) -> Iterator[tuple[tuple[str, str], Passage]]:
    for file in corpus.files():
        if file.suffix == ".py":
            path = file.relative_to(corpus.folder).as_posix()
            try:
                tree = ast.parse(file.read_bytes())
            except (SyntaxError, ValueError):
                continue
            for name, node in _named(tree, ""):
                if isinstance(node, kinds):
                    passage = Passage(path, node.lineno, node.end_lineno or node.lineno)
                    yield (path, name), passage


def _named(parent: ast.AST, above: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield above + node.name, node
            yield from _named(node, f"{above}{node.name}.")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield above + node.targets[0].id, node
        elif isinstance(node, ast.If | ast.Try):
            yield from _named(node, above)
