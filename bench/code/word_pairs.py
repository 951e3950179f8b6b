"""What a word table learns from: functions beside what their authors say about them.

Folders are read whose every child is one package. Tests, examples and built copies are passed over:
they say the same again.
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

from cleats.toolsets.code.search.tokens import pieces

LARGEST = 400_000
"""Characters of a file; larger ones are generated."""

PER_PACKAGE = 15_000
"""Functions of one package, so that none sets the tone."""

BLOCK = 40
"""Lines in which a word is counted once: about a function and its surroundings."""

DOC_WORDS, CODE_WORDS = 60, 400
"""Words kept of a pair."""

BRACED = (".js", ".mjs", ".ts", ".tsx", ".rs", ".c", ".cc", ".cpp", ".h", ".hpp", ".go", ".java")
TEXT = (".md", ".rst", ".txt")
PASSED_OVER = frozenset(
    ("test", "tests", "testing", "examples", "dist", "cjs", "umd", "esm5", "vendor", "locale")
)

_DOCUMENTED = re.compile(
    r"(?P<doc>(?:^[ \t]*///[^\n]*\n)+"
    r"|^[ \t]*/\*\*[\s\S]{3,3000}?\*/[ \t]*\n"
    r"|(?:^[ \t]*//(?!/)[^\n]*\n){2,})"
    r"(?:^[ \t]*[#@\[][^\n]*\n)*"
    r"(?P<head>^[ \t]*(?=[^\n]*[\w>)]\s*\()[A-Za-z_][^;{}]{0,600}?)(?P<open>[{;])",
    re.MULTILINE,
)
_LEGAL = re.compile(r"copyright|licen[sc]e|eslint|istanbul|noqa", re.IGNORECASE)
_MARKS = re.compile(r"^[ \t]*(?:/{2,3}!?|/\*\*+|\*+/|\*)[ \t]?", re.MULTILINE)
_TAGS = re.compile(r"^\s*@\w+|^\s*# ", re.MULTILINE)
_NO_FUNCTION = re.compile(
    r"(?:if|for|while|switch|return|catch|import|use|mod|struct|class|interface|enum)\b"
)


@dataclass(slots=True)
class Gathered:
    """Pairs of words of documentation and words of code by package; and how common words are."""

    pairs: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    blocks: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """Blocks that hold a word."""
    packages: Counter[str] = field(default_factory=Counter)
    """Packages that hold a word."""


def gather(folders: Iterable[Path], left_out: tuple[str, ...], out: Path) -> None:
    """Read every package below the folders whose name does not begin with one left out.

    Each gets a file of its own in `out`; one that has it already is not read again.
    """
    out.mkdir(exist_ok=True)
    packages = [
        child
        for folder in folders
        for child in sorted(folder.iterdir())
        if child.is_dir()
        and not child.name.startswith(left_out)
        and not (out / f"{child.name}.json").exists()
    ]
    with Pool() as pool:
        for name in pool.imap_unordered(partial(_keep, out), packages):
            print(name, flush=True)


def load(folder: Path) -> Gathered:
    """What was gathered; of what several packages say alike, the first counts."""
    gathered = Gathered()
    seen: set[tuple[str, ...]] = set()
    for file in sorted(folder.glob("*.json")):
        kept = json.loads(file.read_text())
        gathered.blocks += kept["blocks"]
        gathered.counts.update(kept["counts"])
        gathered.packages.update(kept["counts"].keys())
        for name, said, written in kept["pairs"][:PER_PACKAGE]:
            key = (name, *said[:12])
            if key not in seen:
                seen.add(key)
                gathered.pairs.append((file.stem, said, written))
    return gathered


def _keep(out: Path, package: Path) -> str:
    counts: Counter[str] = Counter()
    pairs: list[tuple[str, list[str], list[str]]] = []
    blocks = 0
    for path, text in _texts(package):
        lines = text.split("\n")
        for start in range(0, len(lines), BLOCK):
            counts.update(set(pieces("\n".join(lines[start : start + BLOCK]))))
            blocks += 1
        for name, code, doc in functions(path.suffix, text):
            said, written = pieces(doc)[:DOC_WORDS], pieces(f"{name}\n{code}")[:CODE_WORDS]
            if len(said) >= 4 and len(written) >= 6:
                pairs.append((name, said, written))
    kept = {"blocks": blocks, "counts": counts, "pairs": pairs}
    (out / f"{package.name}.json").write_text(json.dumps(kept))
    return f"{package.name}: {len(pairs):,} pairs"


def _texts(package: Path) -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix not in (".py", *BRACED, *TEXT) or ".min." in name:
                continue
            text = path.read_text(errors="ignore") if path.is_file() else ""
            if len(text) <= LARGEST and len(text) <= 150 * (text.count("\n") + 1):
                yield path, text


def functions(suffix: str, text: str) -> Iterator[tuple[str, str, str]]:
    """The name, the code and the documentation of each function that has some."""
    if suffix == ".py":
        yield from _python(text)
    elif suffix in BRACED:
        yield from _braced(text)


def _python(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            doc := ast.get_docstring(node)
        ):
            said = node.body[0]
            head = lines[node.lineno - 1 : said.lineno - 1]
            body = lines[said.end_lineno : node.end_lineno]
            yield node.name, "\n".join([*head, *body]), doc.split("\n\n")[0]


def _braced(text: str) -> Iterator[tuple[str, str, str]]:
    for match in _DOCUMENTED.finditer(text):
        head = match["head"].strip()
        if _LEGAL.search(match["doc"][:300]) or _NO_FUNCTION.match(head):
            continue
        end = _closing(text, match.start("open")) if match["open"] == "{" else match.end()
        name = re.search(r"(\w+)\s*(?:<[^>]*>)?\s*\(", head)
        doc = _MARKS.sub("", match["doc"]).replace("*/", "").strip().split("\n\n")[0]
        yield name[1] if name else "", text[match.start("head") : end], _TAGS.split(doc)[0]


def _closing(text: str, start: int) -> int:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, start, start + 20_000):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return brace.end()
    return min(len(text), start + 2_000)
