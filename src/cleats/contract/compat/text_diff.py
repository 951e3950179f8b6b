"""Changed words: shown in full, and searched for what a model should not obey.

Models act on the descriptions of tools, so a server can change what an agent does without changing a schema.
"""

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final, NamedTuple

MAX_COMPARED_WORDS: Final = 4000
"""Longer texts are shown whole, before and after: comparing them word by word takes seconds."""

CONTEXT_WORDS: Final = 8
"""The number of unchanged words that are shown on each side of a change."""

VISIBLE_CONTROL_CHARACTERS: Final = "\n\r\t"

SUSPICIOUS_PATTERNS: Final = {
    "INSTRUCTION_ADDED": re.compile(
        r"\bignore\s+(?:all\s+|any\s+|the\s+)?(?:previous|prior|other|above|earlier)\b"
        r"|\b(?:do not|don't|never)\s+(?:tell|mention|inform|reveal|show|notify|ask)\b[^.\n]{0,60}"
        r"|<\s*/?\s*(?:important|system|secret|instructions?)\b[^>]{0,20}>?"
        r"|\b(?:before|after)\s+(?:using|calling|every|each|any)\b[^.\n]{0,60}"
        r"|\b(?:always|must|you should)\s+(?:first\s+)?"
        r"(?:call|run|use|read|send|include|pass|execute|upload)\b[^.\n]{0,60}",
        re.IGNORECASE,
    ),
    "SECRET_MENTIONED": re.compile(
        r"id_(?:rsa|ed25519)|\.ssh\b|\.aws\b|\.env\b|\.netrc\b|/etc/(?:passwd|shadow)|\bapi[_ -]?keys?\b|\bpasswords?\b"
        r"|\bcredentials?\b|\bprivate keys?\b|\b(?:access|auth|bearer)[_ -]tokens?\b|\bkeychain\b",
        re.IGNORECASE,
    ),
    "ADDRESS_ADDED": re.compile(r"\b(?:https?|ftp|wss?)://[^\s\"'<>)]+", re.IGNORECASE),
}


class TextChange(NamedTuple):
    """A text before and after."""

    old: str
    new: str


def describe_text_change(old: str | None, new: str | None) -> str:
    """Show every changed word: `[-removed-]` and `{+added+}`, with some words around them."""
    before, after = (re.findall(r"\s+|\S+", text or "") for text in (old, new))
    if max(len(before), len(after)) > 2 * MAX_COMPARED_WORDS:
        return f"[-{old}-] {{+{new}+}}"
    parts = []
    operations = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for position, (operation, start, end, new_start, new_end) in enumerate(operations):
        if operation == "equal":
            parts.append(_shorten_context(before[start:end], position == 0, position == len(operations) - 1))
            continue
        removed, added = "".join(before[start:end]), "".join(after[new_start:new_end])
        parts.append((f"[-{removed}-]" if removed else "") + (f"{{+{added}+}}" if added else ""))
    return "".join(parts).strip()


def _shorten_context(words: list[str], is_first: bool, is_last: bool) -> str:
    kept = 2 * CONTEXT_WORDS  # a word and the space behind it
    if len(words) <= 2 * kept:
        return "".join(words)
    head = "" if is_first else "".join(words[:kept])
    tail = "" if is_last else "".join(words[-kept:])
    return f"{head}…{tail}"


def find_suspicious_text(change: TextChange) -> Iterator[tuple[str, str]]:
    """Yield the security rules that new words touch, each with those words."""
    hidden = sorted({character for character in change.new if _is_hidden(character)} - set(change.old))
    if hidden:
        names = ", ".join(f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip() for character in hidden)
        yield "HIDDEN_TEXT_ADDED", f"Hidden characters: {names}."
    for rule, pattern in SUSPICIOUS_PATTERNS.items():
        known = {match[0].lower() for match in pattern.finditer(change.old)}
        found = dict.fromkeys(
            match[0].strip() for match in pattern.finditer(change.new) if match[0].lower() not in known
        )
        if found:
            yield rule, f"New words: {', '.join(repr(text) for text in found)}."


def _is_hidden(character: str) -> bool:
    is_control = unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn"}
    return is_control and character not in VISIBLE_CONTROL_CHARACTERS
