"""The statements of a page, the comparison of texts by their words, and the edits of a page that fixes share.

A text supports another when they share what carries meaning: words by their stem, compound names
split into words (`loadScene`, `load_scene`), numbers as a whole.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import Stemmer  # type: ignore[import-not-found]

from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.site import claim_markers, pages
from cleats.toolsets.launch.site.pages import CodeBlock
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.code_blocks import normalize_code
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
        claim_ids = claim_markers.find_claim_ids(line)
        unmarked_line = claim_markers.strip_claim_markers(line).rstrip()
        item = LIST_ITEM_PATTERN.match(unmarked_line)
        text = _TASK_BOX_PATTERN.sub("", unmarked_line[item.end() if item else 0 :].strip())
        kind = "row" if number in rows else "bullet" if item else "text"
        if text.strip("|-: "):
            page_statements.append(Statement(number, text, claim_ids, kind))
    return page_statements


def has_only_names(text: str) -> bool:
    """Return whether a statement only names things: code and links, with hardly any other words."""
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


def edit_lines(text: str, edit_line: Callable[[int, str], str | None]) -> str:
    """Edit a text line by line, counted from 1; None removes a line."""
    edited_lines = (edit_line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    return "\n".join(line for line in edited_lines if line is not None)


def edit_prose(case: FixCase, edit_line: Callable[[str], str | None]) -> str:
    """Edit each line of prose, and leave code and front matter alone; None removes a line."""
    prose = list_prose_lines(case.file)
    return edit_lines(case.text, lambda number, line: edit_line(line) if number in prose else line)


def edit_around(protected: re.Pattern[str], line: str, edit_piece: Callable[[str], str]) -> str:
    """Edit the pieces of a line that the pattern does not match."""
    pieces, end = [], 0
    for match in protected.finditer(line):
        pieces += [edit_piece(line[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*pieces, edit_piece(line[end:])])


def remove_lines(text: str, lines: Iterable[int]) -> str:
    """Remove some lines of a text, and the double blank lines that this would leave."""
    removed_lines = set(lines)
    if not removed_lines:
        return text
    remaining_lines: list[str] = []
    after_removal = False
    for number, line in enumerate(text.split("\n"), start=1):
        if number in removed_lines:
            after_removal = True
            continue
        if after_removal and not line.strip() and remaining_lines and not remaining_lines[-1].strip():
            continue
        after_removal = after_removal and not line.strip()
        remaining_lines.append(line)
    return end_with_newline("\n".join(remaining_lines))


def end_with_newline(text: str) -> str:
    """Return the text with exactly one line feed at its end."""
    return text.rstrip("\n") + "\n"


def list_prose_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of the body that are neither front matter nor code."""
    return frozenset(number for number, _ in file.prose)


def list_code_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of a file that are code, including fences."""
    return frozenset(file.body_line + number - 1 for number in pages.find_code_lines(file.body))


SHELL_LANGUAGES = frozenset({"", "bash", "bat", "cmd", "console", "powershell", "ps1", "sh", "shell", "zsh"})
INSTALL_COMMAND_PATTERN = re.compile(
    r"^\s*(?:[$>%#]\s+)?(?P<command>(?:python3?\s+-m\s+|py\s+-m\s+|sudo\s+)?"
    r"(?:pip3?\s+install|pipx\s+install|uv\s+(?:pip\s+install|add|tool\s+install)|poetry\s+add|"
    r"conda\s+install|npm\s+(?:install|i)|yarn\s+add|pnpm\s+(?:add|install)|"
    r"dotnet\s+add\s+package|nuget\s+install|Install-Package|cargo\s+(?:add|install)|"
    r"go\s+(?:get|install)|gem\s+install|composer\s+require|docker\s+pull)\s+\S.*?)\s*$"
)
LANGUAGE_ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("py", "python3", "pycon"), "python"),
    **dict.fromkeys(("cs", "c#"), "csharp"),
    **dict.fromkeys(("sh", "zsh", "shell", "console"), "bash"),
    "js": "javascript",
    "ts": "typescript",
    "c++": "cpp",
    "golang": "go",
    "rb": "ruby",
    "rs": "rust",
    "kt": "kotlin",
    "yml": "yaml",
}


def index_snippets(site: LaunchSite) -> dict[str, Mapping[str, Any]]:
    """Return the snippets of the catalogue, keyed by their normalised code."""
    snippets = site.load_document("snippet_catalog.json").get("snippets", ())
    return {normalize_code(snippet["code"]): snippet for snippet in snippets}


def normalise_language(fence: CodeBlock) -> str:
    """Return the language of a code block under the name that the catalogue uses."""
    return LANGUAGE_ALIASES.get(fence.language, fence.language)


def list_known_commands(facts: Mapping[str, Any]) -> list[str]:
    """Return the install commands that the manifests of the product support."""
    distributions = facts.get("distribution", ())
    return [command for distribution in distributions for command in distribution.get("install_commands", ())]


def _iter_extras(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands that install the package with an extra which its manifest declares."""
    extras = facts.get("dependencies", {}).get("optional", {})
    for command in list_known_commands(facts):
        if command.startswith("pip install "):
            yield from (f"{command}[{extra}]" for extra in extras)


def find_unknown_commands(code: str, language: str, facts: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the install commands in code of a shell that no manifest supports, with their lines in the code."""
    known_commands = {" ".join(command.split()) for command in (*list_known_commands(facts), *_iter_extras(facts))}
    for number, line in enumerate(code.splitlines() if language in SHELL_LANGUAGES else (), start=1):
        match = INSTALL_COMMAND_PATTERN.match(line)
        if match and re.sub("[\"']", "", " ".join(match["command"].split())) not in known_commands:
            yield number, match["command"]


def is_install_block(fence: CodeBlock) -> bool:
    """Return whether a code block contains only install commands."""
    lines = [line for line in fence.code.splitlines() if line.strip()]
    return bool(lines) and all(INSTALL_COMMAND_PATTERN.match(line) for line in lines)


def remove_code_blocks(case: FixCase) -> str:
    """Remove the code blocks that the issues name."""
    text = case.text
    for fence in reversed(case.file.fences):
        lines = find_block_lines(text, fence)
        if case.lines & set(lines):
            text = remove_lines(text, lines)
    return text


def find_block_lines(text: str, fence: CodeBlock) -> range:
    """Return the line numbers of a code block, including its fences."""
    last = fence.line + fence.code.count("\n")
    lines = text.split("\n")
    is_closed = last < len(lines) and lines[last].strip()[:3] in ("```", "~~~")
    return range(fence.line, last + 1 + is_closed)
