"""Functions whose documentation was taken away, and the question it answers.

A function's documentation says in words what its code says in names, so it is a question whose
answer is known. The functions are chosen by hash, their documentation is blanked out in a copy of
the corpus, and the copy is searched for it. A function's own name never stands in its question.
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

from bench.code.answers import Passage
from bench.code.corpora import Corpus, commit

MOST = 400
"""Questions per corpus: half of them to choose weights by, half to report."""

FEWEST_WORDS = 5
FEWEST_LINES = 3
"""Of code, beside the documentation; less has no content to be found by."""

LONGEST = 80
"""Lines of a passage that still counts as pointing at a shorter function."""

COPIES = (".git", "dist", "*.d.ts", "*.map")
"""Left out of the copy: they say again what was blanked out elsewhere."""

_WORD = re.compile(r"\w+")
_TESTS = re.compile(r"(^|/)(tests?|testing|spec|examples?|docs|locale)(/|$)|(^|/)test_|\.d\.ts$")
_JSDOC = re.compile(
    r"^[ \t]*/\*\*(?P<doc>(?:(?!\*/).)*)\*/[ \t]*\n"
    r"(?P<head>(?:export |default |async |static |function |get |set |private |protected )*"
    r"(?:function )?(?P<name>[A-Za-z_$][\w$]*)[ \t]*(?:<[^()\n]*>)?\([^;{}]*\)[^;{}\n]*\{)",
    re.MULTILINE | re.DOTALL,
)
_NO_NAMES = frozenset({"if", "for", "while", "switch", "catch", "function"})


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and where its answer stands."""

    question: str
    path: str
    name: str
    first: int
    last: int
    """Lines of the function, counted from 1, both included."""

    def fits(self, found: Passage) -> bool:
        """Whether a result shows the function without drowning it: not a whole file."""
        longest = max(LONGEST, 2 * (self.last - self.first + 1))
        overlaps = found.first <= self.last and found.last >= self.first
        return found.path == self.path and overlaps and found.last - found.first < longest


@dataclass(frozen=True, slots=True)
class _Documented:
    doc: str
    name: str
    first: int
    last: int
    start: int
    end: int
    """Where the documentation stands, in characters."""


def prepare(corpus: Corpus) -> tuple[Path, list[Case]]:
    """The copy without the documentation, and its questions in an order that says nothing."""
    folder = corpus.folder.with_name(corpus.folder.name + "-heldout")
    answers = folder.with_name(f"{folder.name}.json")
    if not answers.exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(corpus.prepare(), folder, ignore=shutil.ignore_patterns(*COPIES))
        cases = _blank(folder, _chosen(folder))
        commit(folder)
        answers.write_text(json.dumps([asdict(case) for case in cases], indent=1))
    return folder, [Case(**each) for each in json.loads(answers.read_text())]


def _chosen(folder: Path) -> list[tuple[Path, _Documented]]:
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if _TESTS.search(inside) or not path.is_file():
            continue
        text = _read(path)
        found += [(path, each) for each in _documented(path, text)]
    said = Counter(each.doc for _, each in found)
    alone = [(path, each) for path, each in found if said[each.doc] == 1]
    alone.sort(key=lambda each: hashlib.sha256(each[1].doc.encode()).digest())
    return alone[:MOST]


def _blank(folder: Path, chosen: Sequence[tuple[Path, _Documented]]) -> list[Case]:
    cases = []
    for path, each in chosen:
        text = _read(path)
        blank = re.sub(r"[^\n]", " ", text[each.start : each.end])
        path.write_bytes((text[: each.start] + blank + text[each.end :]).encode("latin-1"))
        cases.append(
            Case(each.doc, path.relative_to(folder).as_posix(), each.name, each.first, each.last)
        )
    return cases


def _read(path: Path) -> str:
    # One character per byte, so that places in the text are places in the file.
    return path.read_bytes().decode("latin-1")


def _documented(path: Path, text: str) -> Iterator[_Documented]:
    found: Iterator[_Documented] = iter(())
    if path.suffix == ".py":
        found = _python(text)
    elif path.suffix in {".js", ".mjs", ".ts"}:
        found = _script(text)
    for each in found:
        if len(set(_WORD.findall(each.doc))) >= FEWEST_WORDS and each.doc.isascii():
            yield each


def _python(text: str) -> Iterator[_Documented]:
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
        if doc is None or lines < FEWEST_LINES or node.name.startswith("test"):
            continue
        said = node.body[0]
        yield _Documented(
            doc=_question(doc, node.name),
            name=node.name,
            first=node.lineno,
            last=node.end_lineno or node.lineno,
            start=starts[said.lineno - 1] + said.col_offset,
            end=starts[(said.end_lineno or 0) - 1] + (said.end_col_offset or 0),
        )


def _script(text: str) -> Iterator[_Documented]:
    for match in _JSDOC.finditer(text):
        end = _closing(text, match.end())
        last = text.count("\n", 0, end) + 1
        first = text.count("\n", 0, match.start("head")) + 1
        if match["name"] in _NO_NAMES or last - first < FEWEST_LINES:
            continue
        doc = re.sub(r"^[ \t]*\*[ \t]?", "", match["doc"], flags=re.MULTILINE)
        doc = re.split(r"(?:^|\s)@\w+|^#|```", doc, maxsplit=1, flags=re.MULTILINE)[0]
        yield _Documented(
            doc=_question(doc, match["name"]),
            name=match["name"],
            first=first,
            last=last,
            start=match.start(),
            end=match.start("head") - 1,
        )


def _closing(text: str, start: int) -> int:
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return start + brace.end()
    return len(text)


def _question(doc: str, name: str) -> str:
    """The first paragraph as bare words: quotes and signs would mean something to a search."""
    first = doc.strip().split("\n\n")[0]
    bare = re.sub(r"\W+", " ", re.sub(rf"\b{re.escape(name)}\b", "", first))
    return re.sub(r"\b(AND|OR|NOT)\b", lambda word: word[0].lower(), bare).strip()
