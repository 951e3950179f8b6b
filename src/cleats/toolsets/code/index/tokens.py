"""Tokenization: texts as words, in the forms that the index compares.

`HTTPServer`, `http_server` and `http server` are the same two words. Each text produces four
streams, in the order of the text:

- words: lower case, unstemmed; phrases are matched on it;
- stems: the same words by their English stem, so that `parsing` finds `parse`;
- cased: the same words as they are written;
- whole: identifiers of more than one word, unsplit.

Everything is indexed, stop words included: only the ranking of a plain question ignores them. The
same word occurs thousands of times, so the forms of each are memoized.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

WORD_PATTERN: Final = re.compile(r"\w+")

TEXT_BREAK: Final = "\0"
"""Separates texts that are split together; no word contains it."""

_WORD_OR_BREAK_PATTERN = re.compile(rf"\w+|{TEXT_BREAK}")
_ASCII_SPACING_TABLE = "".join(s if WORD_PATTERN.match(s) or s == TEXT_BREAK else " " for s in map(chr, range(128)))
"""Replacement for each ASCII character, so that only words and breaks are left between spaces."""

_BYTE_SPACING_TABLE = _ASCII_SPACING_TABLE.encode() + bytes(range(128, 256))

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


class TokenStreams(NamedTuple):
    """One text in its four forms, each with a space between words."""

    words: str
    stems: str
    cased: str
    whole: str


def streams_from_words(words: Sequence[str]) -> list[TokenStreams]:
    """Return the four forms of each text, from what `split_texts` returns for all texts."""
    stems, cased, identifiers = (_map_words(memo, words) for memo in (_STEMS_MEMO, _CASED_MEMO, _IDENTIFIERS_MEMO))
    return list(map(TokenStreams, *map(_split_at_breaks, (cased.lower(), stems, cased, identifiers))))


def stem_texts(texts: Sequence[str]) -> list[str]:
    """Return the stems of each text, separated by spaces."""
    return _split_at_breaks(_map_words(_STEMS_MEMO, split_texts(texts)))


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
    # ASCII characters first, which most are; the expression only where there are others.
    spaced = text.encode(errors="surrogatepass").translate(_BYTE_SPACING_TABLE)
    pieces = spaced.decode(errors="surrogatepass").split()
    return list(chain.from_iterable(map(_SPLIT_MEMO.__getitem__, pieces)))


def _map_words(memo: "_WordFormMemo", words: Iterable[str]) -> str:
    return " ".join(map(memo.__getitem__, words))


def _split_at_breaks(joined: str) -> list[str]:
    return list(map(str.strip, joined.split(TEXT_BREAK)))


def split_text(text: str) -> list[str]:
    """Split a text into words; identifiers stay unsplit."""
    return split_texts((text,))


def tokenize_text(text: str) -> list[str]:
    """Return the words of a text, with identifiers split, in lower case."""
    return " ".join(map(_LOWERCASE_MEMO.__getitem__, split_text(text))).split()


def tokenize_word(word: str) -> list[str]:
    """Return the words in an identifier, in lower case."""
    return _CASED_MEMO[word].lower().split()


def tokenize_cased(text: str) -> list[str]:
    """Return the words of a text, with identifiers split, as they are written."""
    return " ".join(map(_CASED_MEMO.__getitem__, split_text(text))).split()


def stem_text(text: str) -> str:
    """Return the stems of a text, separated by spaces."""
    return " ".join(map(_STEMS_MEMO.__getitem__, split_text(text)))


def find_identifiers(text: str) -> list[str]:
    """Return the identifiers of a text that have more than one word, unsplit, in lower case."""
    return " ".join(map(_IDENTIFIERS_MEMO.__getitem__, split_text(text))).split()


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


class _WordSplitMemo(dict[str, tuple[str, ...]]):
    def __missing__(self, piece: str) -> tuple[str, ...]:
        if len(self) >= MAX_MEMO_WORDS:
            self.clear()
        words = self[piece] = (piece,) if piece.isascii() else tuple(_WORD_OR_BREAK_PATTERN.findall(piece))
        return words


class _WordFormMemo(dict[str, str]):
    """One form of each word, computed once."""

    def __init__(self, make_form: Callable[[tuple[str, ...]], str]) -> None:
        super().__init__()
        self.make_form = make_form
        self.linked: tuple[_WordFormMemo, ...] = (self,)

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_MEMO_WORDS:
            for memo in self.linked:
                memo.clear()
        parts = split_identifier(word)
        for memo in self.linked:
            memo[word] = word if word == TEXT_BREAK else memo.make_form(parts)
        return self[word]

    @staticmethod
    def link(*memos: "_WordFormMemo") -> None:
        """Let memos learn together: a word that needs one form needs all."""
        for memo in memos:
            memo.linked = memos


def _stem_parts(parts: tuple[str, ...]) -> str:
    return " ".join([stem_word(part.lower()) for part in parts])


def _join_parts(parts: tuple[str, ...]) -> str:
    # Without underscores, so that every spelling of a name is the same identifier.
    return "".join(parts).lower() if len(parts) > 1 else ""


_CHARACTER_SHAPES = _CharacterShapes()
_SPLIT_MEMO = _WordSplitMemo()
_LOWERCASE_MEMO = _WordFormMemo(lambda parts: " ".join(parts).lower())
_STEMS_MEMO = _WordFormMemo(_stem_parts)
_CASED_MEMO = _WordFormMemo(" ".join)
_IDENTIFIERS_MEMO = _WordFormMemo(_join_parts)
_WordFormMemo.link(_STEMS_MEMO, _CASED_MEMO, _IDENTIFIERS_MEMO)
