"""Questions a person would ask, written by hand, and names looked up; with the places that answer.

A question may have several right answers; one of them is enough. Answers are written as
`end/of/path.py:Class.method` in `questions/*.json` and must each exist in exactly one file. Where
Python's own parser cannot read a file, ours says where its declarations stand; overloads of one
name are one answer.
"""

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType

from bench.code.answers import Passage
from bench.code.corpora import Corpus
from bench.code.heldout import LONGEST
from cleats.toolsets.code.extract import extract

QUESTIONS = Path(__file__).parent / "questions"

LANGUAGES: Mapping[str, str] = {".ts": "typescript", ".js": "javascript", ".java": "java"}
"""Of the answers that are not in Python."""

_COPIES = re.compile(r"(^|/)(dist|build)/|\.d\.ts$")
"""What packages have beside their sources."""

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
    declared = list(_declarations(corpus))
    return [
        Asked(question, tuple(each for answer in answers for each in _only(declared, answer)))
        for question, answers in json.loads(file.read_text())
    ]


def symbols(corpus: Corpus) -> list[Asked]:
    """Names that are declared only once, not counting copies, each the answer to itself."""
    declared = [
        (name.rpartition(".")[2], passage)
        for (path, name), passage in _declarations(corpus, ast.FunctionDef | ast.ClassDef)
        if "test" not in path and not _COPIES.search(path)
    ]
    counts = Counter(name for name, _ in declared)
    chosen = [
        Asked(name, (passage,))
        for name, passage in declared
        if counts[name] == 1 and len(name) >= SHORTEST and not name.startswith("__")
    ]
    chosen.sort(key=lambda asked: hashlib.sha256(asked.question.encode()).digest())
    return chosen[:SYMBOLS]


def _only(declared: Sequence[tuple[tuple[str, str], Passage]], answer: str) -> list[Passage]:
    end, _, wanted = answer.partition(":")
    found = [
        passage
        for (path, name), passage in declared
        if name == wanted and f"/{path}".endswith(f"/{end}") and "/tests/" not in path
    ]
    if len({passage.path for passage in found}) != 1:
        raise ValueError(f"{answer} names {len(found)} declarations")
    return found


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
        elif file.suffix in LANGUAGES:
            wanted = None if kinds is ast.stmt else {"function", "method", "class"}
            yield from _extracted(file, corpus, wanted)


def _extracted(
    file: Path, corpus: Corpus, kinds: Collection[str] | None
) -> Iterator[tuple[tuple[str, str], Passage]]:
    path = file.relative_to(corpus.folder).as_posix()
    for chunk in extract(path, file.read_bytes(), LANGUAGES[file.suffix], "code").chunks:
        if chunk.name and (kinds is None or chunk.kind in kinds):
            yield (path, chunk.name), Passage(path, chunk.start_line, chunk.end_line)


def _named(parent: ast.AST, above: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield above + node.name, node
            yield from _named(node, f"{above}{node.name}.")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield above + node.targets[0].id, node
        elif isinstance(node, ast.If | ast.Try):
            yield from _named(node, above)
