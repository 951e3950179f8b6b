"""Claims from the readme and the guides: features, limitations and sections with code."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout import repository_layout
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger, ContradictionChecker
from cleats.toolsets.launch.source.text import sentence_filters
from cleats.toolsets.launch.source.text.documents import Block
from cleats.toolsets.launch.source.text.sentences import (
    ProductSubject,
    begins_with_verb,
    build_item_sentence,
    build_limitation_sentences,
    extract_product_sentences,
    has_product_subject,
)
from cleats.toolsets.launch.source.text.snippet_code import is_session
from cleats.toolsets.launch.source.text.word_lists import make_word_set

_FEATURE_HEADING_PATTERN: Final = re.compile(
    r"\b(features?|highlights?|capabilit(y|ies)|functionality|what it (does|can do)"
    r"|what you can do|supported)\b",
    re.IGNORECASE,
)
_OPENING_HEADING_PATTERN: Final = re.compile(
    r"^(intro(duction)?|overview|about.*|what is .*|description|summary|features?|highlights?)\??$",
    re.IGNORECASE,
)
_LIMITATION_HEADING_PATTERN: Final = re.compile(
    r"\b(limitations?|known (issues|limitations|problems)|caveats?|not supported|unsupported"
    r"|what('s| is) missing|restrictions)\b",
    re.IGNORECASE,
)
_UNRELATED_HEADING_PATTERN: Final = re.compile(
    r"\b(contribut\w*|sponsor\w*|licen[sc]e|changelog|development|credits|acknowledg\w*|authors?"
    r"|community|related|alternatives|comparison|table of contents|contents|links|resources"
    r"|documentation|mailing list|support|donat\w*|why|benchmarks?|performance|faq|roadmap|todo)\b",
    re.IGNORECASE,
)
_STANDARD_HEADING_PATTERN: Final = re.compile(
    r"\b(install\w*|requirements?|setup|upgrad\w+|recap|summary|the basics|output|note)\b|^(what|why|who)\b",
    re.IGNORECASE,
)
"""Sections that every document has."""

_FEATURE_LEAD_PATTERN: Final = re.compile(
    r"\b(features?|supports?|provides?|includes?|offers?|points|capabilities|library|gives you)\b",
    re.IGNORECASE,
)
_NON_FEATURE_LEAD_PATTERN: Final = re.compile(
    r"\b(not|\w+n['\u2019]t|has no|no longer|lacks?|missing|unsupported|unimplemented|incomplete"
    r"|plan(s|ned)?|upcoming|coming|to come|future|soon|roadmap|to-?do|wish ?list|ideas|proposed"
    r"|request(s|ed)|removed|deprecated|dropped|unlike|differ\w*|instead"
    r"|uses (for|of)|use cases?|used (by|in|for|with)|users?|good for|projects?"
    r"|needs?|requires?|required|requirements?|depends?|dependencies|prerequisites)\b",
    re.IGNORECASE,
)
"""Words above a list of what the product lacks, needs or will have, or of who uses it."""

_DENIAL_PATTERN: Final = re.compile(
    r"\b(is|are) (not|no longer)\b|\b(isn|aren|can)['\u2019]t\b|\bcannot\b"
    r"|\bdo(es)? not (yet )?(support|work|handle|provide|include|implement)\b",
    re.IGNORECASE,
)
"""A sentence about what the product is not or cannot do is true, but not a feature."""

_STOP_STEMS: Final = make_word_set("the of and or to in for with featur includ support provid can it is an as on")
_DUPLICATE_WORD_SHARE: Final = 0.8
"""Two sentences are duplicates when they share this part of the words of the shorter one."""

_MAX_FEATURE_BLOCKS: Final = 600
"""Blocks read for features; later ones are not part of the introduction."""

MAX_DOCUMENT_WORKFLOWS: Final = 12
"""Workflows claimed from documents at most; one page for each would already be too many."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A task that the repository demonstrates."""

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
            sentences = extract_product_sentences(block, subject) if _is_opening(block, blocks) else []
        elif block.kind == "item" and block.depth == 1:
            is_feature = _is_feature_list(block, lead, blocks, subject)
            allow_phrases = not _is_task_list(block, blocks)
            sentences = [build_item_sentence(block, subject, allow_phrases=allow_phrases)] if is_feature else []
        for sentence in sentences:
            if _DENIAL_PATTERN.search(sentence):
                continue
            is_resolved = sentence and checker.resolve_sentence(sentence, block, _cite_block(block).source)
            if sentence and not is_resolved and not _is_duplicate(ledger, sentence):
                ledger.add(sentence, "feature", [_cite_block(block)], group="key_features")


def _is_task_list(block: Block, blocks: list[Block]) -> bool:
    """Return whether the list that contains an item mostly consists of instructions."""
    items = [item for item in blocks if item.kind == "item" and item.section == block.section]
    return sum(begins_with_verb(item.text) for item in items) * 3 > len(items)


def _is_duplicate(ledger: ClaimLedger, sentence: str) -> bool:
    """Return whether another feature says nearly the same in other words or another order."""
    words = _stem_words(sentence)
    for claim in ledger.claims:
        other_words = _stem_words(claim.text) if claim.kind == "feature" and claim.text != sentence else set()
        if other_words and len(words & other_words) >= _DUPLICATE_WORD_SHARE * min(len(words), len(other_words)):
            return True
    return False


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
    ledger: ClaimLedger,
    subject: ProductSubject,
    blocks: Iterable[Block],
    language: str,
    workflows: dict[str, Workflow],
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
    text = re.sub(r"^[\d.]+\s+", "", text).replace("`", "")
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


def _is_product_title(title: str, subject: ProductSubject) -> bool:
    """Return whether a title is the product's name, perhaps with what it is; that is not a task."""
    name = re.split(r"\s+[-\u2013\u2014:]+\s+|:\s+", title, maxsplit=1)[0]
    return subject.is_named_by(name) or has_product_subject(f"{title}.", subject)


def _is_opening(block: Block, blocks: list[Block]) -> bool:
    """Return whether a block is before the second heading or in an introductory section."""
    is_at_top = len(block.section) <= 1 and _count_headings_before(block, blocks) <= 1
    return is_at_top or (bool(block.section) and bool(_OPENING_HEADING_PATTERN.match(block.section[-1].strip())))


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
    last_sentence = sentence_filters.split_sentences(lead)[-1]
    names_product = any(re.search(rf"\b{re.escape(phrase)}\b", last_sentence.lower()) for phrase in subject.aliases)
    return last_sentence.endswith(":") and (names_product or bool(_FEATURE_LEAD_PATTERN.search(last_sentence)))


def _cite_block(block: Block) -> Citation:
    source = "readme_technical" if is_readme(block.path) else "implementation_doc"
    return Citation.of_block(block, source)
