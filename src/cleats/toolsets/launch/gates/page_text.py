"""The statements of a page, and the comparison of texts by their words.

A text supports another when they share what carries meaning: words by their stem, compound names
split into words (`loadScene`, `load_scene`), numbers as a whole.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import Stemmer  # type: ignore[import-not-found]

from cleats.toolsets.launch.gates.site import PageFile
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.english import load_words

LIST_ITEM_PATTERN = re.compile(r"^(\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+)")
CODE_SPAN_PATTERN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
"""Code within a line, as Markdown delimits it."""
NAMED_CODE_PATTERN = re.compile(r"`([^`]+)`")
_LINK_PATTERN = re.compile(r"\[[^\]]*\]\([^)]*\)|<https?://[^>]*>|\{\{[<%].*?[%>]\}\}")
_TASK_BOX_PATTERN = re.compile(r"^\[[ xX]\]\s+")
_MARKUP_PATTERN = re.compile(r"[*_`~#>|]")
_CODE_SPAN_PATTERN = re.compile(r"`[^`]*`")
_SENTENCE_BREAK_PATTERN = re.compile(r"(?<=[.!?])\s+")
_SUBJECT_PATTERN = re.compile(r"(?i)(?:it|the (?:library|package|product|tool|sdk|api|program|project))\b")
_PRODUCT_VERB_PATTERN = english.load_expression("product_verb")
_LEAD_IN_PATTERN = english.load_expression("lead_in")
_LINK_TAIL_PATTERN = re.compile(r"(?:[\u2013\u2014:-].*)?$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line that states something. `kind` is bullet, row (of a table) or text."""

    line: int
    text: str
    claim_ids: tuple[str, ...]
    kind: str


def list_statements(file: PageFile) -> list[Statement]:
    """Return all lines of text of a page that are not code, headings, table rules or comments."""
    heading_lines = {heading.line for heading in file.headings}
    rows = {file.body_line + number - 1 for number in pages.find_table_row_lines(file.body)}
    page_statements = []
    for number, line in file.prose:
        if number in heading_lines:
            continue
        claim_ids = tuple(pages.CLAIM_MARKER_PATTERN.findall(line))
        unmarked_line = pages.CLAIM_MARKER_PATTERN.sub("", line).rstrip()
        item = LIST_ITEM_PATTERN.match(unmarked_line)
        text = _TASK_BOX_PATTERN.sub("", unmarked_line[item.end() if item else 0 :].strip())
        kind = "row" if number in rows else "bullet" if item else "text"
        if text.strip("|-: "):
            page_statements.append(Statement(number, text, claim_ids, kind))
    return page_statements


def has_only_names(text: str) -> bool:
    """Return whether a table row only names things: code and links, with hardly any other words."""
    remaining_text = _LINK_PATTERN.sub(" ", _CODE_SPAN_PATTERN.sub(" ", text))
    return len(re.findall(r"[^\W\d_]{2,}", remaining_text)) < 3


def find_product_sentence(product: str, text: str) -> str:
    """Return the first sentence that says what the product is or does, or an empty string."""
    for sentence in _SENTENCE_BREAK_PATTERN.split(text):
        subject = sentence.removeprefix(product) if product else sentence
        if subject == sentence or not product:
            subject_match = _SUBJECT_PATTERN.match(sentence)
            subject = sentence[subject_match.end() :] if subject_match else ""
        if _PRODUCT_VERB_PATTERN.match(subject):
            return sentence
    return ""


def is_navigation_item(text: str) -> bool:
    """Return whether a bullet is only navigation: a link, perhaps with a description."""
    text = _LEAD_IN_PATTERN.sub("", text.lstrip("*_ ")).lstrip("*_ ")
    link = _LINK_PATTERN.match(text)
    return link is not None and bool(_LINK_TAIL_PATTERN.fullmatch(text[link.end() :].strip("*_. ")))


def strip_markup(text: str) -> str:
    """Return a statement as it is read, without code marks, link targets and emphasis."""
    return _MARKUP_PATTERN.sub("", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)).strip()


_WORD_PATTERN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+|\d+")
_CAMEL_CASE_BREAK_PATTERN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NUMBER_PATTERN = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-])|(?<![\w.-])\d{2,}(?![\w-])")
"""A version or a figure, which nobody may invent. A single digit is a step or a size."""

_NEGATION_PATTERN = re.compile(r"(?i)\b(?:no|not|never|none|nothing|neither|cannot|without|\w+n['\u2019]t)\b")
_NAME_PATTERN = re.compile(r"[^\W\d]\w+")
_CALL_PATH_PATTERN = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:\(.*)?$", re.DOTALL)

STOP_WORDS = load_words("stop_words")
KNOWN_FORMATS = load_words("known_formats")
"""Words that a reader takes for a file format when they are in capitals."""
_FORMAT_NAME_PATTERN = re.compile(r"(?<![\w./-])(?:[A-Z0-9]{2,5}|[Gg][Ll][Tt][Ff]|LaTeX)(?![\w-])")


_STEMMER = Stemmer.Stemmer("english")


def stem_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning."""
    words = (word.lower() for piece in _WORD_PATTERN.findall(text) for word in _CAMEL_CASE_BREAK_PATTERN.split(piece))
    return frozenset(_STEMMER.stemWords([word for word in words if word not in STOP_WORDS]))


def weigh_words(texts: Iterable[str]) -> Callable[[str], float]:
    """Return the weight of each word: low for a word of every text, high for a word of a single text."""
    stem_sets = [stem_words(text) for text in texts]
    frequencies = Counter(word for words in stem_sets for word in words)
    return lambda word: math.log(1 + len(stem_sets) / max(frequencies[word], 0.5))


def measure_overlap(
    statement: str, evidence: str, *, ignored: str = "", weigh: Callable[[str], float] = lambda _word: 1.0
) -> float:
    """Return the weighted share of a statement's words that the evidence has, from 0 to 1.

    A statement without words scores 1. The words of `ignored` need no evidence and count for nothing.
    """
    words = stem_words(statement) - stem_words(ignored)
    if not words:
        return 1.0
    evidence_stems = stem_words(evidence)
    word_weights = {word: weigh(word) for word in words}
    matched_words = words & evidence_stems | {word for word in words if _has_prefix_match(word, evidence_stems)}
    return sum(word_weights[word] for word in matched_words) / sum(word_weights.values())


def find_numbers(text: str) -> frozenset[str]:
    """Return the versions and figures in a text."""
    return frozenset(NUMBER_PATTERN.findall(text))


def find_formats(text: str) -> set[str]:
    """Return the file formats that a text names."""
    return {name.upper() for name in _FORMAT_NAME_PATTERN.findall(text)} & KNOWN_FORMATS


def is_negated(text: str) -> bool:
    """Return whether a text denies something, not counting its code. Two negations cancel out."""
    return len(_NEGATION_PATTERN.findall(NAMED_CODE_PATTERN.sub(" ", text))) % 2 == 1


def find_unknown_names(text: str, evidence: str) -> list[str]:
    """Return the code spans of a text whose name the evidence does not contain.

    The name of `module.Class.method(argument)` is `method`; for a command line any word may match.
    """
    words = frozenset(_NAME_PATTERN.findall(evidence.lower()))
    unknown_spans = []
    for span in dict.fromkeys(NAMED_CODE_PATTERN.findall(text)):
        call_path = _CALL_PATH_PATTERN.match(span)
        names = _NAME_PATTERN.findall(call_path[1].rsplit(".", 1)[-1] if call_path else span)
        if names and not words.intersection(name.lower() for name in names):
            unknown_spans.append(span)
    return unknown_spans


def _has_prefix_match(word: str, candidates: frozenset[str]) -> bool:
    """Return whether a long word begins a candidate or the reverse: `serializ`, `serializer`."""
    pairs = (sorted((word, candidate), key=len) for candidate in candidates)
    return any(len(shorter) >= 4 and longer.startswith(shorter) for shorter, longer in pairs)
