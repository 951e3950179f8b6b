"""The examples of a repository: one for each file, or for each folder that is one program."""

import ast
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout import repository_layout, safe_parsing
from cleats.toolsets.launch.source.checkout.repository_layout import EXAMPLE_FOLDERS
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.document_claims import slugify_title
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.text import documents, sentence_filters
from cleats.toolsets.launch.source.text.word_lists import BASE_VERBS, make_word_set

_MAIN_STEMS: Final = ("main", "app", "index", "program", "example", "demo", "__main__")
_LOWERCASE_WORDS: Final = make_word_set("a an and as at by for from in into of on or the to with via")
MAX_CLAIMED_EXAMPLES: Final = 40
"""Examples claimed at most; a gallery of hundreds is not described one by one."""


@dataclass(frozen=True, slots=True)
class RepositoryExample:
    """An example program of the repository."""

    path: str
    tag: str
    title: str
    description: str
    claim_id: str
    language: str


def claim_examples(
    ledger: ClaimLedger, product: str, tree: CheckoutTree, paths: list[str], language: str
) -> list[RepositoryExample]:
    """Claim that each example exists, and what its documentation says it shows."""
    examples: dict[str, RepositoryExample] = {}
    for path in _select_main_files(paths, language):
        title = _make_title(path)
        tag = slugify_title(title)
        if not tag or tag in examples or len(examples) >= MAX_CLAIMED_EXAMPLES:
            continue
        summary, line = _read_summary(tree, path)
        text = _format_claim(product, path, summary)
        lines = max(1, (tree.read_text(path) or "").count("\n"))
        citation = Citation(path, 1, min(lines, 40), "source_code")
        claim = ledger.add(text, "workflow", [citation], group="workflow_claims")
        examples[tag] = RepositoryExample(path, tag, title, summary if line else "", claim, language)
    return list(examples.values())


def _format_claim(product: str, path: str, summary: str) -> str:
    """Return what the example shows, if its docstring is an instruction; else that it exists."""
    first, _, rest = summary.rstrip(".").partition(" ")
    if first.lower() in BASE_VERBS and rest and not sentence_filters.is_speculative(summary):
        return f"The example `{path}` shows how to {first.lower()} {rest}."
    return f"The repository of {product} includes the example `{path}`."


def _select_main_files(paths: list[str], language: str) -> list[str]:
    """Return the files to show: in a folder of several, the one that starts the program."""
    candidates = [
        path
        for path in paths
        if not _NON_EXAMPLE_NAME_PATTERN.match(PurePosixPath(path).name) and "benchmark" not in path.lower()
        if repository_layout.is_compatible_language(repository_layout.detect_file_language(path), language)
    ]
    folders: dict[str, list[str]] = {}
    for path in candidates:
        folders.setdefault(str(PurePosixPath(path).parent), []).append(path)
    chosen: list[str] = []
    for folder, files in sorted(folders.items()):
        name = PurePosixPath(folder).name.lower()
        if name in EXAMPLE_FOLDERS or len(files) == 1:
            chosen += files
            continue
        by_name = {PurePosixPath(path).stem.lower(): path for path in files}
        start = next((by_name[stem] for stem in (name, *_MAIN_STEMS) if stem in by_name), "")
        chosen += [start] if start else files
    return chosen


_NON_EXAMPLE_NAME_PATTERN: Final = re.compile(r"(test_.*|.*_test|conftest|__init__|setup)\.\w+$")


def _make_title(path: str) -> str:
    """Return the file name in words; a file named like `main` uses the name of its folder."""
    pure_path = PurePosixPath(path)
    stem = pure_path.parent.name if pure_path.stem.lower() in _MAIN_STEMS else pure_path.stem
    stem = re.sub(r"^\d+[-_. ]+", "", stem)
    words = re.sub(r"[-_.]+|(?<=[a-z])(?=[A-Z])", " ", stem).split()
    lowered = [word.lower() if word.lower() in _LOWERCASE_WORDS or word.istitle() else word for word in words[1:]]
    return " ".join([*(word[:1].upper() + word[1:] for word in words[:1]), *lowered])


def _read_summary(tree: CheckoutTree, path: str) -> tuple[str, int]:
    """Return the first sentence of an example's docstring, and its line."""
    if not path.endswith(".py"):
        return "", 0
    module = safe_parsing.parse_python(tree.read_text(path))
    doc = ast.get_docstring(module) if module else None
    if not module or not doc:
        return "", 0
    first = sentence_filters.split_sentences(documents.strip_inline_markup(doc.split("\n\n")[0]))
    text = first[0] if first else ""
    text = text if text.endswith(".") else f"{text}."
    return (text, module.body[0].lineno) if sentence_filters.is_plain(text) else ("", 0)
