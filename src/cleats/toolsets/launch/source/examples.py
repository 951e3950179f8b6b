"""The examples of a repository: one for each file, or for each folder that is one program."""

import ast
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source import languages, programs, prose, rst
from cleats.toolsets.launch.source.claims import Citation, Ledger
from cleats.toolsets.launch.source.document_claims import slug
from cleats.toolsets.launch.source.roots import EXAMPLES
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.source.verbs import PLAIN, wordset

_MAIN: Final = ("main", "app", "index", "program", "example", "demo", "__main__")
_SMALL: Final = wordset("a an and as at by for from in into of on or the to with via")
MOST: Final = 40
"""Examples taken: a gallery of hundreds is not told one by one."""


@dataclass(frozen=True, slots=True)
class Example:
    """A program of the repository that shows something."""

    path: str
    tag: str
    title: str
    description: str
    claim_id: str
    language: str


def claim_examples(
    ledger: Ledger, product: str, tree: Tree, paths: list[str], language: str
) -> list[Example]:
    """Claim that each example is there, and what it says it shows."""
    made: dict[str, Example] = {}
    for path in _leading(paths, language):
        title = _title(path)
        tag = slug(title)
        if not tag or tag in made or len(made) >= MOST:
            continue
        said, line = _said(tree, path)
        text = _claimed(product, path, said)
        lines = max(1, (tree.text(path) or "").count("\n"))
        place = Citation(path, 1, min(lines, 40), "source_code")
        claim = ledger.add(text, "workflow", [place], group="workflow_claims")
        made[tag] = Example(path, tag, title, said if line else "", claim, language)
    return list(made.values())


def _claimed(product: str, path: str, said: str) -> str:
    """What the example shows, where its docstring says it as something to do; else that it is."""
    first, _, rest = said.rstrip(".").partition(" ")
    if first.lower() in PLAIN and rest and not prose.is_speculative(said):
        return f"The example `{path}` shows how to {first.lower()} {rest}."
    return f"The repository of {product} includes the example `{path}`."


def _leading(paths: list[str], language: str) -> list[str]:
    """The files to show: in a folder of several, the one that starts the program."""
    wanted = [
        path
        for path in paths
        if not _IS_TEST.match(PurePosixPath(path).name) and "benchmark" not in path.lower()
        if languages.of_path(path) == language
        or (language in ("javascript", "typescript") and languages.of_path(path) in _SCRIPTS)
    ]
    folders: dict[str, list[str]] = {}
    for path in wanted:
        folder = str(PurePosixPath(path).parent)
        folders.setdefault(folder, []).append(path)
    chosen: list[str] = []
    for folder, files in sorted(folders.items()):
        name = PurePosixPath(folder).name.lower()
        if name in EXAMPLES or len(files) == 1:
            chosen += files
            continue
        by_name = {PurePosixPath(path).stem.lower(): path for path in files}
        start = next((by_name[stem] for stem in (name, *_MAIN) if stem in by_name), "")
        chosen += [start] if start else files
    return chosen


_IS_TEST: Final = re.compile(r"(test_.*|.*_test|conftest|__init__|setup)\.\w+$")
_SCRIPTS: Final = ("javascript", "typescript")


def _title(path: str) -> str:
    """The file name in words; a file that is only called `main` takes its folder's name."""
    place = PurePosixPath(path)
    stem = place.parent.name if place.stem.lower() in _MAIN else place.stem
    stem = re.sub(r"^\d+[-_. ]+", "", stem)
    words = re.sub(r"[-_.]+|(?<=[a-z])(?=[A-Z])", " ", stem).split()
    if not words:
        return ""
    shown = [words[0][:1].upper() + words[0][1:], *words[1:]]
    return " ".join(word if place_ == 0 else _cased(word) for place_, word in enumerate(shown))


def _cased(word: str) -> str:
    return word.lower() if word.lower() in _SMALL or word.istitle() else word


def _said(tree: Tree, path: str) -> tuple[str, int]:
    """The first sentence of an example's own docstring, and its line."""
    if not path.endswith(".py"):
        return "", 0
    module = programs.parse(tree.text(path))
    doc = ast.get_docstring(module) if module else None
    if not module or not doc:
        return "", 0
    first = prose.sentences(rst.plain(doc.split("\n\n")[0]))
    text = first[0] if first else ""
    text = text if text.endswith(".") else f"{text}."
    usable = prose.is_clean(text) and not prose.is_praise(text) and not prose.is_chatter(text)
    return (text, module.body[0].lineno) if usable else ("", 0)
