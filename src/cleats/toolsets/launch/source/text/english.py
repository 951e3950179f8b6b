"""English sentences: the words by which they are recognised, and those that may be reused.

A sentence may be reused if it is complete, plain, about the product, and without praise.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

_TABLES: Final = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a list in a sentence: `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def load_words(name: str) -> frozenset[str]:
    """Return a list of words of the table."""
    return frozenset(_TABLES["words"][name].split())


class _LazyPattern:
    """A pattern that is compiled when it is first used: a step of a launch uses few of the many patterns."""

    def __init__(self, expression: str, flags: int = 0) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        pattern = re.compile(self._expression, self._flags)
        for method in ("search", "match", "fullmatch", "sub", "finditer", "split", "pattern"):
            setattr(self, method, getattr(pattern, method))
        return getattr(pattern, name)


def load_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the table, which matches whole words in any case."""
    expression = rf"\b({_TABLES['patterns'][name].replace(chr(10), '')})\b"
    return cast("re.Pattern[str]", _LazyPattern(expression, re.IGNORECASE))


def load_expression(name: str) -> re.Pattern[str]:
    """Return an expression of the table as it is written."""
    return cast("re.Pattern[str]", _LazyPattern(_TABLES["expressions"][name].replace("\n", "")))


BASE_VERBS: Final = load_words("base_verbs")
NOUN_LIKE_VERBS: Final = load_words("noun_like_verbs")
_IRREGULAR_VERBS: Final = {"be": "is", "have": "has", "do": "does", "go": "goes"}


def conjugate_third_person(base: str) -> str:
    """Return the third person of a verb: `parses`, `applies`, `searches`."""
    if base in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[base]
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{base}s"


THIRD_PERSON_VERBS: Final = frozenset({*map(conjugate_third_person, BASE_VERBS), *_IRREGULAR_VERBS.values(), "can"})
"""The third person, which needs a subject: `parses`."""

FINITE_VERBS: Final = THIRD_PERSON_VERBS | {
    *("are", "was", "were", "has", "have", "does", "do", "cannot"),
    *("include", "support", "provide", "work", "require", "use", "return", "accept", "contain"),
}
"""Words that turn the words around them into a sentence."""

MIN_SENTENCE_CHARACTERS: Final = 12
MAX_SENTENCE_CHARACTERS: Final = 320
"""Limits of a sentence: a shorter one says nothing, a longer one is not read."""

MAX_QUOTED_CHARACTERS: Final = 500
"""The longest sentence that a page quotes."""

_PRAISE_PATTERN: Final = cast(
    "re.Pattern[str]", _LazyPattern(rf"\b({'|'.join(sorted(load_words('praise')))})\b", re.IGNORECASE)
)
_STRONG_PRAISE_PATTERN: Final = load_expression("strong_praise")
_UNPROVEN_PATTERN: Final = load_pattern("unproven")
_SPECULATION_PATTERN: Final = load_pattern("speculation")
_PROMISE_PATTERN: Final = load_pattern("promise")
_POINTER_PATTERN: Final = load_expression("pointer")
_READER_INCLUDED_PATTERN: Final = load_expression("reader_included")
_LOOK_BACK_PATTERN: Final = load_expression("look_back")
_FIRST_PERSON_PATTERN: Final = re.compile(r"\b(?:we|us|ours?)\b", re.IGNORECASE)
_FIRST_PERSON_WORDS: Final = {"we": "you", "us": "you", "our": "your", "ours": "yours"}
_CHATTER_PATTERN: Final = load_pattern("chatter")
_PERSONAL_PATTERN: Final = load_pattern("personal")
_REMOVABLE_CLAIM_PATTERN: Final = load_expression("removable_claim")
"""Unproven adjectives that can be dropped before a noun, and adverbs before a verb. `secure` is
kept unless another adjective follows: without it a secure shell would be something else."""

_MARKUP_PATTERN: Final = load_expression("markup")
_UNUSUAL_CHARACTER_PATTERN: Final = re.compile(r"[^\x20-\x7e\u00a0-\u024f\u2010-\u2027\u20ac]")
_COMPARISON_PATTERN: Final = re.compile(r"\s[<>=]=?\s|[\u2070-\u209c\u2190-\u2193\u2260-\u2265]")
"""Signs of mathematics, which a quotation may have."""

_REFERENCE_PATTERN: Final = re.compile(
    r"\s*\((?:see\b[^()]*|(?:as |also |further |more )?(?:described|explained|documented|discussed)[^()]* here)\)",
    re.IGNORECASE,
)
_EMOTICON_PATTERN: Final = re.compile(r"(?<=[\w)`])\s+[:;]-?[)D](?=\s+[A-Z`]|$)|(?P<inner>\s+[:;]-?[)D](?=\s|$))")
_OPEN_END_WORDS: Final = load_words("open_ends")
_PARENTHESIS_PATTERN: Final = re.compile(r"^\([^)]*\)[ ,]*")
_INLINE_CODE_PATTERN: Final = re.compile(r"`[^`]*`")
_SENTENCE_END_PATTERN: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(`A-Z0-9])")
_ABBREVIATION_PATTERN: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|incl|resp|No|Fig|Mr|Dr|St)\.$")


def split_sentences(text: str) -> list[str]:
    """Split running text into sentences; abbreviations and code do not end one."""
    sentences: list[str] = []
    for part in _SENTENCE_END_PATTERN.split(" ".join(text.split())):
        if sentences and (_ABBREVIATION_PATTERN.search(sentences[-1]) or sentences[-1].count("`") % 2):
            sentences[-1] += f" {part}"
        else:
            sentences.append(part)
    return [part.strip() for part in sentences if part.strip()]


def is_clean(sentence: str) -> bool:
    """Return whether a sentence is complete and free of markup, links and unusual signs."""
    bare = _INLINE_CODE_PATTERN.sub("x", sentence)
    return (
        MIN_SENTENCE_CHARACTERS <= len(sentence) <= MAX_SENTENCE_CHARACTERS
        and sentence.endswith(".")
        and not sentence.endswith("..")
        and bool(re.match(r"[A-Z`\"'(0-9]|[a-z][\w.-]*\s(is|can|has|was|does|\w+s)\b", sentence))
        and not _MARKUP_PATTERN.search(bare)
        and not _UNUSUAL_CHARACTER_PATTERN.search(bare)
        and sentence.count("`") % 2 == 0
        and bare.count("(") == bare.count(")")
        and bare.count("[") == bare.count("]")
        and bare.count('"') % 2 == 0
        and not set(":;!?") & set(bare)
        and len(bare.split()) >= 3
        and bare.rstrip(".").split()[-1].lower() not in _OPEN_END_WORDS
    )


def is_praise(text: str) -> bool:
    """Return whether a text contains praise, which is never a fact."""
    return bool(_PRAISE_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def remove_praise(text: str) -> str:
    """Return a text without words of praise."""
    return _PRAISE_PATTERN.sub("", text)


def replace_emoticons(text: str) -> str:
    """Return a text in which a smiley at the end of a sentence is a full stop."""
    return _EMOTICON_PATTERN.sub(lambda match: "" if match["inner"] else ".", text)


def strip_leading_praise(text: str) -> str:
    """Drop praise at the beginning: `A fast and modern date library` becomes `a date library`."""
    article = re.match(r"(a|an) (?=\S)", text, re.IGNORECASE)
    rest = text[article.end() :] if article else text
    while praise := _PRAISE_PATTERN.match(rest) or _REMOVABLE_CLAIM_PATTERN.match(rest):
        if rest[praise.end() :][:1] not in (" ", ","):
            break
        rest = rest[praise.end() :].lstrip(" ,").removeprefix("and ")
        rest = _PARENTHESIS_PATTERN.sub("", rest)  # it explains the praise
    if not article or rest == text[article.end() :]:
        return rest
    return f"{'an' if rest[:1].lower() in 'aeio' else 'a'} {rest}"


def is_unproven(text: str) -> bool:
    """Return whether a text is about speed, safety or compliance, which needs separate evidence."""
    bare = _INLINE_CODE_PATTERN.sub("x", text)
    return bool(_UNPROVEN_PATTERN.search(bare)) or "100%" in bare


def is_speculative(text: str) -> bool:
    """Return whether a text says what could be, will be or is hoped for."""
    return bool(_SPECULATION_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def is_promise(text: str) -> bool:
    """Return whether a text says what its authors plan, hope for or only guess."""
    return bool(_PROMISE_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def address_reader(sentence: str) -> str:
    """Return a sentence of a tutorial without the author in it: `We can combine both` becomes `You can combine both`.

    A reference in brackets, which leads out of the page, is left out.
    """
    text = _REFERENCE_PATTERN.sub("", sentence)
    text = re.sub(r":\s+https?://\S+$", ".", _LOOK_BACK_PATTERN.sub("", text))
    text = re.sub(r"\b[Pp]lease (?=(?:be aware|note|make sure|ensure|remember|keep|use)\b)", "", text)
    if _READER_INCLUDED_PATTERN.search(text):
        text = re.sub(r"\b[Ll]et's (?:also )?", "", text)
        text = re.sub(
            r"\b(?:we|us|ours?)\b", lambda match: _FIRST_PERSON_WORDS[match[0].lower()], text, flags=re.IGNORECASE
        )
    return text if text == sentence else text[:1].upper() + text[1:]


def is_chatter(text: str) -> bool:
    """Return whether a text addresses its reader about the project or page, not the product."""
    return bool(_CHATTER_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def is_plain(sentence: str) -> bool:
    """Return whether a sentence is clean, and neither praise nor chatter."""
    return is_clean(sentence) and not is_praise(sentence) and not is_chatter(sentence)


def is_strong_praise(text: str) -> bool:
    """Return whether a text contains praise that no quotation excuses; `easily` is not."""
    return bool(_STRONG_PRAISE_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def is_quotable(sentence: str, *, is_item: bool = False) -> bool:
    """Return whether a sentence of a document, or an item of a list, can stand on a page that quotes it."""
    bare = _COMPARISON_PATTERN.sub(" ", _INLINE_CODE_PATTERN.sub("x", sentence))
    return (
        (3 if is_item or sentence.endswith(":") else MIN_SENTENCE_CHARACTERS) <= len(sentence) <= MAX_QUOTED_CHARACTERS
        and sentence.endswith((".", ":", "?"))
        and not sentence.endswith("..")
        and bool(re.match(r"[\w`\"'(.$-]", sentence))
        and not _MARKUP_PATTERN.search(bare)
        and not _UNUSUAL_CHARACTER_PATTERN.search(bare)
        and sentence.count("`") % 2 == 0
        and bare.count("(") == bare.count(")")
        and bare.count("[") == bare.count("]")
        and len(bare.split()) >= 2 - is_item
        and not _PERSONAL_PATTERN.search(bare)
        and not _POINTER_PATTERN.search(bare)
    )


def is_statement(sentence: str, *, allow_inference: bool = False) -> bool:
    """Return whether a sentence may be used on a page as it is."""
    return is_plain(sentence) and (allow_inference or not (is_speculative(sentence) or is_unproven(sentence)))
