"""Claims from the readme, the guides and the examples of a repository."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout import repository_layout, safe_parsing
from cleats.toolsets.launch.source.checkout.repository_layout import EXAMPLE_FOLDERS
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger, ContradictionChecker
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.code_blocks import is_session
from cleats.toolsets.launch.source.text.documents import Block, strip_inline_markup
from cleats.toolsets.launch.source.text.sentences import (
    ProductSubject,
    begins_with_verb,
    build_item_sentence,
    build_limitation_sentences,
    extract_product_sentences,
    has_product_subject,
)

_FEATURE_HEADING_PATTERN: Final = english.load_pattern("feature_heading")
_LIMITATION_HEADING_PATTERN: Final = english.load_pattern("limitation_heading")
_UNRELATED_HEADING_PATTERN: Final = english.load_pattern("unrelated_heading")
_FEATURE_LEAD_PATTERN: Final = english.load_pattern("feature_lead")
_NON_FEATURE_LEAD_PATTERN: Final = english.load_pattern("non_feature_lead")
_OPENING_HEADING_PATTERN: Final = english.load_expression("opening_heading")
_STANDARD_HEADING_PATTERN: Final = english.load_expression("standard_heading")
"""Sections that every document has."""

_DENIAL_PATTERN: Final = english.load_expression("denial")
"""A sentence about what the product is not or cannot do is true, but not a feature."""

_STOP_STEMS: Final = english.load_words("stop_stems")
_DUPLICATE_WORD_SHARE: Final = 0.8
"""Two sentences are duplicates when they share this part of the words of the shorter one."""

_MAX_FEATURE_BLOCKS: Final = 600
"""Blocks read for features; later ones are not part of the introduction."""

MAX_DOCUMENT_WORKFLOWS: Final = 12
"""Workflows claimed from documents at most; one page for each would already be too many."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A task that a document or an example of the repository demonstrates."""

    tag: str
    title: str
    claim_id: str
    path: str
    description: str = ""


def claim_features(
    ledger: ClaimLedger, subject: ProductSubject, blocks: list[Block], checker: ContradictionChecker
) -> None:
    """Claim the statements of feature lists and opening paragraphs about the product."""
    lead = ""
    for block in blocks[:_MAX_FEATURE_BLOCKS]:
        sentences: list[str] = []
        if block.kind == "heading":
            lead = ""
        elif block.kind == "paragraph":
            lead = lead if block.quoted or not block.text else block.text
            is_at_top = len(block.section) <= 1 and _count_headings_before(block, blocks) <= 1
            if is_at_top or (block.section and _OPENING_HEADING_PATTERN.match(block.section[-1].strip())):
                sentences = extract_product_sentences(block, subject)
        elif block.kind == "item" and block.depth == 1 and _is_feature_list(block, lead, blocks, subject):
            items = [item for item in blocks if item.kind == "item" and item.section == block.section]
            is_task_list = sum(begins_with_verb(item.text) for item in items) * 3 > len(items)
            sentences = [build_item_sentence(block, subject, allow_phrases=not is_task_list)]
        for sentence in sentences:
            if not sentence or _DENIAL_PATTERN.search(sentence):
                continue
            is_resolved = checker.resolve_sentence(sentence, block, _cite_block(block).source)
            if not is_resolved and not _is_duplicate(ledger, sentence):
                ledger.add(sentence, "feature", [_cite_block(block)], group="key_features")


def _is_duplicate(ledger: ClaimLedger, sentence: str) -> bool:
    words = _stem_words(sentence)
    features = (claim.text for claim in ledger.claims if claim.kind == "feature" and claim.text != sentence)
    return any(
        other and len(words & other) >= _DUPLICATE_WORD_SHARE * min(len(words), len(other))
        for other in map(_stem_words, features)
    )


def _stem_words(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9]{2,}", text.lower())
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in words} - _STOP_STEMS


def claim_limitations(ledger: ClaimLedger, subject: ProductSubject, blocks: Iterable[Block]) -> list[str]:
    """Claim the statements of sections about limitations; return the sentences."""
    sentences: list[str] = []
    for block in blocks:
        title = block.section[-1] if block.section else ""
        is_text = block.kind == "paragraph" or (block.kind == "item" and block.depth == 1)
        if not is_text or not _LIMITATION_HEADING_PATTERN.search(title) or re.search(r"\bfaq\b", title, re.IGNORECASE):
            continue
        only_limitations = bool(re.search(r"limitations?|not supported|unsupported", title, re.IGNORECASE))
        for sentence in build_limitation_sentences(block, subject, only_limitations=only_limitations):
            ledger.add(sentence, "limitation", [_cite_block(block)], group="limitations")
            sentences.append(sentence)
    return list(dict.fromkeys(sentences))


def claim_code_sections(
    ledger: ClaimLedger, subject: ProductSubject, blocks: Iterable[Block], language: str, workflows: dict[str, Workflow]
) -> None:
    """Add a workflow for each section with code in the language of the product."""
    headings: list[Block] = []
    for block in blocks:
        headings = [block] if block.kind == "heading" else headings
        if block.kind != "code" or not block.section or len(workflows) >= MAX_DOCUMENT_WORKFLOWS:
            continue
        title = clean_title(block.section[-1])
        tag = slugify_title(title)
        is_relevant = repository_layout.is_compatible_language(detect_block_language(block), language) and not (
            _UNRELATED_HEADING_PATTERN.search(title)
            or _STANDARD_HEADING_PATTERN.search(title)
            or _is_product_title(title, subject)
        )
        if not tag or tag in workflows or not is_relevant:
            continue
        document = "readme" if is_readme(block.path) else "documentation"
        text = f'The {document} of {subject.name} has a code example under the heading "{title}".'
        citations = [_cite_block(cited_block) for cited_block in (*headings, block)]
        claim = ledger.add(text, "workflow", citations, group="workflow_claims", is_fact=True)
        workflows[tag] = Workflow(tag, title, claim, block.path)


def slugify_title(title: str) -> str:
    """Return a title as a tag: `Parse a TOML string` becomes `parse-a-toml-string`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")


def clean_title(text: str) -> str:
    """Return a heading without the numbers and signs around it.

    Return "" for one that is a question, an exclamation or code, or uses a script that is not
    Latin.
    """
    text = re.sub(r"^(?:\d+\.(?:\d+\.?)*|\d{1,2})\s+(?!and |or )", "", text).replace("`", "")
    text = re.sub(r"^[^\w`.]+|[^\w`)+#]+$", "", text)
    unusual = re.search(r"[^\w`'()+#./,& -]|(?![\u0000-\u024f])\w", text)
    return text if re.search(r"[A-Za-z]{2}", text) and len(text) <= 80 and not unusual else ""


def is_readme(path: str) -> bool:
    return "/" not in path and PurePosixPath(path).stem.lower() == "readme"


def detect_block_language(block: Block) -> str:
    """Return the language of a code block, guessed only where its first line is unambiguous."""
    declared = repository_layout.resolve_language_name(block.language)
    if declared not in ("unknown", "text"):
        return declared
    if is_session(block.text):
        return "python"
    first = next((line.strip() for line in block.text.splitlines() if line.strip()), "")
    if re.match(r"\$ \S|(pip|npm|cargo|go|gem|composer|dotnet|brew|apt|git) \w", first):
        return "shell"
    if re.match(r"(from [\w.]+ import \w|import [\w.]+$)", first):
        return "python"
    return declared


def infer_code_languages(blocks: list[Block], language: str, import_names: Iterable[str]) -> list[Block]:
    """Return blocks in which unlabelled code that calls the package has the language of the product."""
    modules = "|".join(re.escape(re.split(r"[/:]", name)[-1]) for name in import_names if name)
    call_pattern = re.compile(rf"(?<![\w./-])(?:{modules})(?:\.|::)[\w.:]+\(")
    return [
        replace(block, language=language)
        if modules
        and block.kind == "code"
        and detect_block_language(block) == "unknown"
        and call_pattern.search(block.text)
        else block
        for block in blocks
    ]


def _is_product_title(title: str, subject: ProductSubject) -> bool:
    """Return whether a title is the product's name, perhaps with what it is; that is not a task."""
    name = re.split(r"\s+[-\u2013\u2014:]+\s+|:\s+", title, maxsplit=1)[0]
    return subject.is_named_by(name) or has_product_subject(f"{title}.", subject)


def _count_headings_before(block: Block, blocks: list[Block]) -> int:
    return sum(other.kind == "heading" and other.line < block.line for other in blocks)


def _is_feature_list(block: Block, lead: str, blocks: list[Block], subject: ProductSubject) -> bool:
    """Return whether a list is under a feature heading, or introduces the product at the top."""
    if block.section and _UNRELATED_HEADING_PATTERN.search(block.section[-1]):
        return False
    is_first = len(block.section) == 1 and _count_headings_before(block, blocks) <= 1
    headings = () if is_first else block.section[len(block.section) > 1 :]  # a title only names it
    if any(
        _NON_FEATURE_LEAD_PATTERN.search(phrase) or _LIMITATION_HEADING_PATTERN.search(phrase)
        for phrase in (*headings, lead)
    ):
        return False
    if block.section and _FEATURE_HEADING_PATTERN.search(block.section[-1]):
        return True
    is_introduction = bool(block.section) and (
        bool(_OPENING_HEADING_PATTERN.match(block.section[-1].strip())) or subject.is_named_by(block.section[-1])
    )
    if _count_headings_before(block, blocks) > 1 and not is_introduction:
        return False
    if not lead:
        return True
    last_sentence = english.split_sentences(lead)[-1]
    names_product = any(re.search(rf"\b{re.escape(phrase)}\b", last_sentence.lower()) for phrase in subject.aliases)
    return last_sentence.endswith(":") and (names_product or bool(_FEATURE_LEAD_PATTERN.search(last_sentence)))


def _cite_block(block: Block) -> Citation:
    source = "readme_technical" if is_readme(block.path) else "implementation_doc"
    return Citation.of_block(block, source)


_NON_EXAMPLE_NAME_PATTERN: Final = re.compile(r"(test_.*|.*_test|conftest|__init__|setup)\.\w+$")
_MAIN_STEMS: Final = ("main", "app", "index", "program", "example", "demo", "__main__")
_LOWERCASE_WORDS: Final = english.load_words("lowercase_in_titles")
MAX_CLAIMED_EXAMPLES: Final = 40
"""Examples claimed at most; a gallery of hundreds is not described one by one."""


def claim_examples(
    ledger: ClaimLedger, product: str, tree: CheckoutTree, paths: list[str], language: str
) -> list[Workflow]:
    """Claim that each example exists, and what its documentation says it shows."""
    examples: dict[str, Workflow] = {}
    for path in _select_main_files(paths, language):
        title = _make_title(path)
        tag = slugify_title(title)
        if not tag or tag in examples or len(examples) >= MAX_CLAIMED_EXAMPLES:
            continue
        summary = _read_summary(tree, path)
        lines = max(1, (tree.read_text(path) or "").count("\n"))
        citation = Citation(path, 1, min(lines, 40), "source_code")
        claim = ledger.add(_format_claim(product, path, summary), "workflow", [citation], group="workflow_claims")
        examples[tag] = Workflow(tag, title, claim, path, summary)
    return list(examples.values())


def _format_claim(product: str, path: str, summary: str) -> str:
    """Return what the example shows, if its docstring is an instruction; else that it exists."""
    first, _, rest = summary.rstrip(".").partition(" ")
    if first.lower() in english.BASE_VERBS and rest and not english.is_speculative(summary):
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


def _make_title(path: str) -> str:
    pure_path = PurePosixPath(path)
    stem = pure_path.parent.name if pure_path.stem.lower() in _MAIN_STEMS else pure_path.stem
    stem = re.sub(r"^\d+[-_. ]+", "", stem)
    words = re.sub(r"[-_.]+|(?<=[a-z0-9])(?=[A-Z])", " ", stem).split()
    lowered = [word.lower() if word.lower() in _LOWERCASE_WORDS or word.istitle() else word for word in words[1:]]
    return " ".join([*(word[:1].upper() + word[1:] for word in words[:1]), *lowered])


def _read_summary(tree: CheckoutTree, path: str) -> str:
    module = safe_parsing.parse_python(tree.read_text(path)) if path.endswith(".py") else None
    doc = ast.get_docstring(module) if module else None
    if not doc:
        return ""
    first = next(iter(english.split_sentences(strip_inline_markup(doc.split("\n\n")[0]))), "")
    text = f"{first.removesuffix('.')}."
    return text if english.is_plain(text) else ""
