"""Each page must read well: short sentences, varied openings, headings that are phrases, no empty or raw parts."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.page_text import Statement
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.site.pages import PageHeading

MAX_SENTENCE_WORDS = 40
"""Longest sentence, in words. Plain-language guides advise 25; a list of formats needs more."""

MAX_EQUAL_OPENINGS = 6
"""The most statements in a row that may begin with the same two words; a list of features repeats some."""

MIN_PART_WORDS = 4
"""Fewest words of each sentence that a long one is split into."""

MAX_HEADING_WORDS = 12

_SENTENCE_PATTERN = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
_WORD_PATTERN = re.compile(r"[^\W\d_][\w'-]*")
_OPENING_PATTERN = re.compile(r"[A-Za-z']+ [A-Za-z']+")
_ABILITY_PATTERN = re.compile(r"^(\s*(?:[-*+]|\d+[.)])\s+)It can ([a-z])")
_HEADING_END_PATTERN = re.compile(r"(?<!\.)[.:;,]+\s*$")
_RAW_SOURCE_PATTERN = re.compile(
    r"^(?:>>> |\.\. [a-z-]+::|:(?:param|returns?|raises?|type|rtype)\b[^:]*:|@(?:param|return|throws)\b"
    r"|(?:from \S+ )?import [\w.]+(?: as \w+)?;?$|(?:async )?def \w+\(|class \w+[(:]|(?:public|private) \w+ \w+\("
    r"|#include\s*[<\"]|use [\w:]+;$|package [\w.]+;?$|(?:const|let|var) \w+ ?=|func \w+\(|\}\s*;?$)"
)
"""Lines of source code and markup of doc comments, which belong into a code block or nowhere."""


def check_readability(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        statements = page_text.list_statements(file)
        for statement in statements:
            yield from _check_statement(file, statement)
        yield from _check_openings(file, statements)
        yield from _check_headings(file)


def _check_statement(file: PageFile, statement: Statement) -> Iterator[IssueDraft]:
    if statement.kind == "row":
        return
    if _RAW_SOURCE_PATTERN.match(statement.text):
        yield RAW_SOURCE.draft("a line of source code stands in the text", file.path, statement.line)
        return
    longest = max(map(count_words, _SENTENCE_PATTERN.split(page_text.strip_markup(statement.text))))
    if longest > MAX_SENTENCE_WORDS:
        yield LONG_SENTENCE.draft(f"a sentence has {longest} words", file.path, statement.line)


def count_words(sentence: str) -> int:
    """Return the number of words of a sentence; numbers and signs do not count."""
    return len(_WORD_PATTERN.findall(sentence))


def _check_openings(file: PageFile, statements: list[Statement]) -> Iterator[IssueDraft]:
    for run in _group_openings(file, statements):
        opening = _OPENING_PATTERN.match(page_text.strip_markup(run[0].text))
        message = f"{len(run)} statements in a row begin with {opening.group() if opening else ''!r}"
        yield REPEATED_OPENING.draft(message, file.path, run[0].line)


def _group_openings(file: PageFile, statements: list[Statement]) -> list[list[Statement]]:
    """Return the runs of statements with one opening that are too long; a heading ends a run."""
    heading_lines = [heading.line for heading in file.headings]
    runs: list[list[Statement]] = []
    previous = ""
    for statement in statements:
        match = _OPENING_PATTERN.match(page_text.strip_markup(statement.text)) if statement.kind != "row" else None
        opening = match.group().casefold() if match else ""
        is_same_section = runs and not any(runs[-1][-1].line < line < statement.line for line in heading_lines)
        if opening and opening == previous and is_same_section:
            runs[-1].append(statement)
        else:
            runs.append([statement])
        previous = opening
    return [run for run in runs if len(run) > MAX_EQUAL_OPENINGS]


def _check_headings(file: PageFile) -> Iterator[IssueDraft]:
    for heading in _list_empty_sections(file):
        yield EMPTY_SECTION.draft(f"the section {heading.text!r} is empty", file.path, heading.line)
    for heading in file.headings:
        if is_poor_heading(heading.text):
            yield POOR_HEADING.draft(f"the heading {heading.text!r} is not a phrase", file.path, heading.line)


def _list_empty_sections(file: PageFile) -> list[PageHeading]:
    """Return the headings with nothing below them: no text, and no heading of a deeper level."""
    lines = file.text.split("\n")
    empty_headings = []
    for number, heading in enumerate(file.headings):
        following = file.headings[number + 1] if number + 1 < len(file.headings) else None
        end = following.line - 1 if following else len(lines)
        has_content = any(line.strip() for line in lines[heading.line : end])
        if not has_content and (following is None or following.level <= heading.level):
            empty_headings.append(heading)
    return empty_headings


def is_poor_heading(text: str) -> bool:
    """Return whether a heading is no phrase: a sentence, capitals only, or without a word."""
    words = _WORD_PATTERN.findall(text)
    is_shouted = len(words) > 1 and all(word.isupper() and len(word) > 1 for word in words)
    is_sentence = _HEADING_END_PATTERN.search(text) is not None or len(words) > MAX_HEADING_WORDS
    return bool(text) and (not any(character.isalpha() for character in text) or is_shouted or is_sentence)


def fix_long_sentences(case: FixCase) -> FixResult:
    """Split a sentence at its semicolons."""

    def split_line(number: int, line: str) -> str:
        parts = line.split("; ") if number in case.lines else [line]
        if len(parts) < 2 or not all(count_words(part) >= MIN_PART_WORDS and part[0] != "`" for part in parts):
            return line
        return ". ".join([parts[0], *(part[0].upper() + part[1:] for part in parts[1:])])

    return page_text.edit_lines(case.text, split_line)


def fix_openings(case: FixCase) -> FixResult:
    """Begin the items of a list of abilities with their verb: “It can convert” becomes “Convert”."""
    runs = _group_openings(case.file, page_text.list_statements(case.file))
    lines = {statement.line for run in runs if run[0].line in case.lines for statement in run}
    return page_text.edit_lines(
        case.text,
        lambda number, line: (
            _ABILITY_PATTERN.sub(lambda match: match[1] + match[2].upper(), line) if number in lines else line
        ),
    )


def fix_empty_sections(case: FixCase) -> FixResult:
    """Remove the headings without text, except those that the plan requires."""
    required = set(case.file.plan.get("required_headings", ()))
    headings = (heading for heading in _list_empty_sections(case.file) if heading.text not in required)
    return page_text.remove_lines(case.text, {heading.line for heading in headings} & case.lines)


def fix_headings(case: FixCase) -> FixResult:
    """Remove the punctuation at the end of a heading, and write capitals as a phrase."""
    required = set(case.file.plan.get("required_headings", ()))
    texts = {heading.line: heading.text for heading in case.file.headings if heading.text not in required}

    def edit_heading(number: int, line: str) -> str:
        if number not in case.lines or number not in texts:
            return line
        plain = _HEADING_END_PATTERN.sub("", line)
        marks, _, words = plain.partition(" ")
        return f"{marks} {words[:1]}{words[1:].lower()}" if words.isupper() else plain

    return page_text.edit_lines(case.text, edit_heading)


LONG_SENTENCE = IssueKind(
    "GATE_READABILITY_SENTENCE", "warn", "Make two sentences of it, or a list.", fix_long_sentences
)
REPEATED_OPENING = IssueKind(
    "GATE_READABILITY_OPENING", "warn", "Begin the statements with different words.", fix_openings
)
EMPTY_SECTION = IssueKind("GATE_READABILITY_EMPTY", "error", "Fill the section, or remove it.", fix_empty_sections)
POOR_HEADING = IssueKind(
    "GATE_READABILITY_HEADING",
    "warn",
    "Name what the section is about, in a few words without a full stop.",
    fix_headings,
)
RAW_SOURCE = IssueKind(
    "GATE_READABILITY_SOURCE",
    "error",
    "Put the code into a code block, or remove it.",
    lambda case: page_text.remove_lines(case.text, case.lines),
)

GATE = Gate("readability", __doc__, check_readability, reads_pages=True, local_seconds=30.0, strict_seconds=60.0)
