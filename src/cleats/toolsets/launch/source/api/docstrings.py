"""Documentation comments of any language: their first sentence is a purpose, their warnings are notes.

A language hands over the plain text of a comment, without its comment signs, and the line on which
that text begins.
"""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Final

from cleats.toolsets.launch.source.api.public_names import DocNote
from cleats.toolsets.launch.source.text import documents, english

_LOWERCASE_SENTENCE_END_PATTERN: Final = re.compile(r"(?<=\w\w\w)(?<!etc)\.\s+(?=[a-z])")
_MARKER_PATTERN: Final = r"[-*@] |:(?:param|return|rtype|type|raise|arg|ivar|cvar|meta)\w*|>>>|\.\. |\w+:\s*(?:\n|$)|# "
"""The beginning of what is no longer the summary: lists, fields, sessions, directives, headings."""

_NOTE_START_PATTERN: Final = re.compile(
    r"""^(?P<indent>\s*)(?:
        \.\.\s+(?:warning|caution|danger|attention|important|note)::\s*(?P<directive>.*)
        |(?:\*\*)?(?:warnings?|caution|danger|important|notes?)(?:\*\*)?:(?:\*\*)?\s*(?P<label>.*)
        |@(?:warning|note)\s+(?P<tag>.*)
        |\#+\s+(?:warnings?|caution|safety)\s*(?P<heading>)
        |(?:warnings?)\s*(?P<numpy>)$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_WARNING_PATTERN: Final = english.load_expression("warning")
"""Words by which a sentence in running text warns its reader."""

_SHOUT_PATTERN: Final = re.compile(r"\s*\(!+\)|(?<=\w)!+(?=\s|$)")
MAX_NOTE_SENTENCES: Final = 3
MAX_NOTES: Final = 3
"""Notes of one name; more would be a chapter, which belongs in the product's own documents."""


def extract_first_sentence(doc: str) -> str:
    """Return the first sentence of a documentation comment without markup; "" when it begins with none."""
    paragraph = re.split(rf"\n\s*\n|\n\s*(?={_MARKER_PATTERN})", doc.strip())[0]
    sentences = english.split_sentences(_strip_doc_markup(paragraph))
    if not sentences:
        return ""
    # An author who starts one sentence in lower case starts the next one so, too.
    starts_lowercase = sentences[0][:1].islower()
    return _LOWERCASE_SENTENCE_END_PATTERN.split(sentences[0], maxsplit=1)[0] if starts_lowercase else sentences[0]


def find_notes(doc: str, line: int) -> tuple[DocNote, ...]:
    """Return the warnings and notes of a documentation comment whose text begins on `line`."""
    lines = doc.split("\n")
    found: dict[str, DocNote] = {}
    for note in (*_iter_marked_notes(lines, line), *_iter_warning_sentences(lines, line)):
        if not any(note.text in other or other in note.text for other in found):
            found[note.text] = note
    return tuple(sorted(found.values(), key=lambda note: note.line))[:MAX_NOTES]


def _iter_marked_notes(lines: list[str], line: int) -> Iterator[DocNote]:
    for number, text in enumerate(lines):
        match = _NOTE_START_PATTERN.match(text)
        if match is None:
            continue
        first = next((match[name] for name in ("directive", "label", "tag") if match[name]), "")
        is_underlined = match["numpy"] is not None
        if is_underlined and not re.match(r"\s*-{3,}\s*$", "".join(lines[number + 1 : number + 2])):
            continue
        start = number + 1 + is_underlined
        end = start
        has_body = False
        for following in lines[start:]:
            is_inside = first or is_underlined or len(following) - len(following.lstrip()) > len(match["indent"])
            if (not following.strip() and (has_body or first)) or (following.strip() and not is_inside):
                break
            has_body = has_body or bool(following.strip())
            end += 1
        body = [first, *dedent("\n".join(lines[start:end])).split("\n")]
        if note_text := _format_note(" ".join(body)):
            yield DocNote(note_text, line + number, line + max(number, end - 1))


def _iter_warning_sentences(lines: list[str], line: int) -> Iterator[DocNote]:
    start = 0
    for number, text in enumerate([*lines, ""]):
        if text.strip():
            continue
        paragraph = lines[start:number]
        first = next((entry.strip() for entry in paragraph if entry.strip()), "")
        if first and not re.match(_MARKER_PATTERN, first) and not _NOTE_START_PATTERN.match(first):
            sentences = english.split_sentences(_strip_doc_markup("\n".join(paragraph)))
            marked = [sentence for sentence in sentences if _WARNING_PATTERN.search(sentence)]
            if marked and (note_text := _format_note(" ".join(marked))):
                yield DocNote(note_text, line + start, line + max(start, number - 1))
        start = number + 1


def _format_note(text: str) -> str:
    sentences = english.split_sentences(_strip_doc_markup(text))[:MAX_NOTE_SENTENCES]
    usable = [sentence for sentence in sentences if english.is_quotable(f"{sentence.rstrip('.:')}.")]
    note = " ".join(f"{sentence.rstrip('.:')}." for sentence in usable)
    first_word = note.partition(" ")[0]
    return f"{note[:1].upper()}{note[1:]}" if first_word.isalpha() else note


_URL_PATTERN: Final = re.compile(r"\s*\([^()<]*<https?://[^>\s]+>\)|\s*<https?://[^>\s]+>")
_MARKDOWN_LINK_PATTERN: Final = re.compile(r"\[([^\[\]]+)\]\((?:https?://|#|\.{0,2}/)[^()\s]*\)")


def _strip_doc_markup(text: str) -> str:
    text = _URL_PATTERN.sub("", _MARKDOWN_LINK_PATTERN.sub(r"\1", text))
    with_literals = re.sub(r"(?<![\w*`])\*([A-Za-z_]\w*)\*(?![\w*])", r"``\1``", text)
    plain = documents.strip_inline_markup(with_literals)
    return _SHOUT_PATTERN.sub(lambda match: "" if "(" in match[0] else ".", plain)
