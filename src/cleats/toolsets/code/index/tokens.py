"""Tokenization: texts as words, in the forms that the index compares.

`HTTPServer`, `http_server` and `http server` are the same two words. Each text produces four
streams, in the order of the text:

- words: lower case, unstemmed; phrases are matched on it;
- stems: the same words by their English stem, so that `parsing` finds `parse`;
- cased: the same words as they are written;
- whole: identifiers of more than one word, unsplit.

Everything is indexed, stop words included: only the ranking of a plain question ignores them. The
same word occurs thousands of times, so its forms are memoized together.
"""

import re
import threading
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, Final, NamedTuple

WORD_PATTERN: Final = re.compile(r"\w+")

TEXT_BREAK: Final = "\0"
"""Separates texts that are split together; no word contains it."""

_WORD_OR_BREAK_PATTERN = re.compile(rf"\w+|{TEXT_BREAK}")
_ASCII_SPACING_TABLE = "".join(s if WORD_PATTERN.match(s) or s == TEXT_BREAK else " " for s in map(chr, range(128)))
"""Replacement for each ASCII character, so that only words and breaks are left between spaces."""

MAX_WORD_CHARS: Final = 128
"""Characters of the longest word: anything longer is data, such as a key or an image."""

MAX_MEMO_WORDS: Final = 200_000
"""Words that a memo holds before it is cleared: a large repository has about as many."""

_WORD_PARTS_PATTERN = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # URLs, IDs: a plural, not `UR Ls`
    r"|[A-Z]+(?![a-z])"  # an acronym up to the capital that begins the next word
    r"|[A-Z]?[a-z]+|[0-9]+"
    r"|\."  # in a shape: a sign that is a word by itself
)
_UNSPACED_SCRIPT_RANGES: Final = ("\u3040\u30ff", "\u3400\u4dbf", "\u4e00\u9fff", "\uac00\ud7af", "\uf900\ufaff")
"""Scripts without spaces: each character is a word, and several are a phrase."""

STOP_WORDS: Final = frozenset(
    WORD_PATTERN.findall(
        """
    a about an and any are as at be been being but by can could did do does doing done for from
    had has have having how i if in into is it its me my no not of off on once one only
    or our out over own same she should so some such than that the their them then there these
    they this those through to too under until up us very was we were what when where which while
    who whom why will with would you your please
        """
    )
)
"""Words that show how a question is asked, not what it is about."""

REPAIR_WORDS: Final = frozenset({"fix", "fixes", "fixed", "fixing", "bug", "issue"})
"""Words that show that something has to be repaired; the place to repair does not have them."""


class WordForms(NamedTuple):
    """One word in the forms that texts are made of."""

    cased: str
    """Its parts as they are written, with a space between them."""
    stems: str
    identifier: str
    """The unsplit word in lower case; empty if it has only one part."""
    rows: bytes
    """The rows of its parts in the word table."""


_get_cased, _get_stems, _get_identifier, _get_rows = map(itemgetter, range(4))


class TokenStreams(NamedTuple):
    """One text in its forms, each with a space between words."""

    stems: str
    cased: str
    whole: str

    @property
    def words(self) -> str:
        """The words in lower case."""
        return self.cased.lower()


def streams_from_forms(forms: Sequence[WordForms]) -> list[TokenStreams]:
    """Return each text in its forms, from the forms of the words that `split_texts` returns for all texts."""
    # Without empty strings, which nearly all identifiers are.
    joined = map(" ".join, (map(_get_stems, forms), map(_get_cased, forms), filter(None, map(_get_identifier, forms))))
    return list(map(TokenStreams, *map(_split_at_breaks, joined)))


def join_rows(forms: Iterable[WordForms]) -> bytes:
    """Return the rows of words in the word table."""
    return b"".join(map(_get_rows, forms))


def split_texts(texts: Sequence[str]) -> list[str]:
    """Split texts into words, with a `TEXT_BREAK` between two texts; identifiers stay unsplit."""
    separator = f" {TEXT_BREAK} "
    text = separator.join(texts)
    if text.count(TEXT_BREAK) >= len(texts):
        text = separator.join(part.replace(TEXT_BREAK, " ") for part in texts)
    if text.isascii():
        return text.translate(_ASCII_SPACING_TABLE).split()  # several times as fast as the expression
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return _WORD_OR_BREAK_PATTERN.findall(text)


def _split_at_breaks(joined: str) -> list[str]:
    return list(map(str.strip, joined.split(TEXT_BREAK)))


def split_text(text: str) -> list[str]:
    """Split a text into words; identifiers stay unsplit."""
    return split_texts((text,))


def tokenize_text(text: str) -> list[str]:
    """Return the words of a text, with identifiers split, in lower case."""
    return _join_forms(_get_cased, text).lower().split()


def tokenize_word(word: str) -> list[str]:
    """Return the words in an identifier, in lower case."""
    return _WORD_MEMO[word].cased.lower().split()


def tokenize_cased(text: str) -> list[str]:
    """Return the words of a text, with identifiers split, as they are written."""
    return _join_forms(_get_cased, text).split()


def stem_text(text: str) -> str:
    """Return the stems of a text, separated by spaces."""
    return _join_forms(_get_stems, text)


def find_identifiers(text: str) -> list[str]:
    """Return the identifiers of a text that have more than one word, unsplit, in lower case."""
    return _join_forms(_get_identifier, text).split()


def split_identifier(word: str) -> tuple[str, ...]:
    """Return the words in an identifier, as they are written."""
    if len(word) > MAX_WORD_CHARS:
        return ()
    if word.isascii():
        return tuple(_WORD_PARTS_PATTERN.findall(word))
    shape = word.translate(_CHARACTER_SHAPES)
    return tuple(word[matched.start() : matched.end()] for matched in _WORD_PARTS_PATTERN.finditer(shape))


@lru_cache(maxsize=1 << 16)  # there are more spellings of words than parts of them
def stem_word(word: str) -> str:
    """Return the stem of a word in lower case."""
    if len(word) < 3 or not word.isascii() or word[0] <= "9":
        return word
    stemmer, lock = _load_stemmer()
    with lock:  # a stemmer is not thread-safe
        result: str = stemmer.stemWord(word)
    return result


@cache
def _load_stemmer() -> tuple[Any, threading.Lock]:
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415 - only where needed

    return Stemmer.Stemmer("english", 0), threading.Lock()


class _CharacterShapes(dict[int, str]):
    """A letter for the class of each character, so that one pattern splits every script."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        if character.isupper():
            shape = "A"
        elif character.isdecimal():
            shape = "0"
        elif character == "_":
            shape = "_"
        else:
            shape = "." if any(first <= character <= last for first, last in _UNSPACED_SCRIPT_RANGES) else "a"
        self[number] = shape
        return shape


class WordMemo(dict[str, WordForms]):
    """The forms of each word, computed once: one lookup for all of them, since memory is slow."""

    def __init__(self, find_rows: Callable[[str], Iterable[int]] | None = None, break_rows: bytes = b"") -> None:
        """Set up a memo with a function that finds the rows of a part in lower case, and the rows of a break."""
        super().__init__()
        self._find_rows = find_rows
        self._break_forms = WordForms(TEXT_BREAK, TEXT_BREAK, TEXT_BREAK, break_rows)

    def __missing__(self, word: str) -> WordForms:
        if len(self) >= MAX_MEMO_WORDS:
            self.clear()
        forms = self[word] = self._break_forms if word == TEXT_BREAK else self._make_forms(word)
        return forms

    def get_forms(self, texts: Sequence[str]) -> list[WordForms]:
        """Return the forms of the words of texts, with those of a break between two texts."""
        return list(map(self.__getitem__, split_texts(texts)))

    def stem_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the stems of each text, separated by spaces."""
        return _split_at_breaks(" ".join(map(_get_stems, self.get_forms(texts))))

    def _make_forms(self, word: str) -> WordForms:
        parts = split_identifier(word)
        cased = " ".join(parts)
        lowered = cased.lower().split()
        return WordForms(
            cased,
            " ".join(map(stem_word, lowered)),
            # Without underscores, so that every spelling of a name is the same identifier.
            "".join(parts).lower() if len(parts) > 1 else "",
            array("i", chain.from_iterable(map(self._find_rows, lowered))).tobytes() if self._find_rows else b"",
        )


def _join_forms(get_form: "itemgetter[int]", text: str) -> str:
    return " ".join(map(get_form, map(_WORD_MEMO.__getitem__, split_text(text))))


_CHARACTER_SHAPES = _CharacterShapes()
_WORD_MEMO = WordMemo()
