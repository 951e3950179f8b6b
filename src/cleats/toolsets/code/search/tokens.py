"""Text as words: what is written, in pieces, in the forms that the index compares.

`HTTPServer`, `http_server` and `http server` are the same two words. Each text gives four streams,
in the order of the text:

- words: lower case, unstemmed; phrases are matched on it;
- stems: the same words by their English stem, so that `parsing` finds `parse`;
- cased: the same words as they are written;
- whole: identifiers of more than one word, unsplit.

Nothing is left out of the index, stop words included: only the ranking of a plain question passes
over them. The same word occurs thousands of times, so what becomes of each is remembered.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

WORD: Final = re.compile(r"\w+")

BREAK: Final = "\0"
"""Between two texts that are taken apart together; it is in no word."""

_WORDS = re.compile(rf"\w+|{BREAK}")
_SPACED = "".join(s if WORD.match(s) or s == BREAK else " " for s in map(chr, range(128)))
"""What becomes of each sign of ASCII so that only words and breaks are left between spaces."""

_SPACED_BYTES = _SPACED.encode() + bytes(range(128, 256))

LONGEST: Final = 128
"""Characters of the longest word: beyond that it is data, such as a key or an image."""

MEMORY: Final = 200_000
"""Words that a memo holds before it starts anew: a large repository has about as many."""

_PARTS = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # URLs, IDs: a plural, not `UR Ls`
    r"|[A-Z]+(?![a-z])"  # an acronym up to the capital that begins the next word
    r"|[A-Z]?[a-z]+|[0-9]+"
    r"|\."  # in a shape: a sign that is a word by itself
)
_OWN_WORDS: Final = ("\u3040\u30ff", "\u3400\u4dbf", "\u4e00\u9fff", "\uac00\ud7af", "\uf900\ufaff")
"""Scripts without spaces: each sign is a word, and several are a phrase."""

STOP: Final = frozenset(
    WORD.findall(
        """
    a about an and any are as at be been being but by can could did do does doing done for from
    had has have having how i if in into is it its me my no not of off on once one only
    or our out over own same she should so some such than that the their them then there these
    they this those through to too under until up us very was we were what when where which while
    who whom why will with would you your please
        """
    )
)
"""Words that say how a question is asked, not what it is about."""


class Streams(NamedTuple):
    """One text in its four forms, each with a space between words."""

    words: str
    stems: str
    cased: str
    whole: str


def streams(texts: Sequence[str]) -> list[Streams]:
    """The four forms of each text; many small texts at once cost little more than one."""
    return forms(together(texts))


def forms(found: Sequence[str]) -> list[Streams]:
    """The four forms of each text, from the words of all."""
    stems, cased, whole = (_joined_by(memo, found) for memo in (_STEMS, _CASED, _WHOLE))
    return list(map(Streams, *map(_apart, (cased.lower(), stems, cased, whole))))


def stems(texts: Sequence[str]) -> list[str]:
    """The stems of each text, with spaces."""
    return _apart(_joined_by(_STEMS, together(texts)))


def together(texts: Sequence[str]) -> list[str]:
    """The words of texts before they are split, with a `BREAK` between two texts."""
    between = f" {BREAK} "
    text = between.join(texts)
    if text.count(BREAK) >= len(texts):
        text = between.join(each.replace(BREAK, " ") for each in texts)
    if text.isascii():
        return text.translate(_SPACED).split()  # several times as fast as the expression
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    # The signs of ASCII first, which most are, and the expression only for what others are in.
    spaced = text.encode(errors="surrogatepass").translate(_SPACED_BYTES)
    pieces = spaced.decode(errors="surrogatepass").split()
    return list(chain.from_iterable(map(_CUT.__getitem__, pieces)))


def _joined_by(memo: "_Memo", found: Iterable[str]) -> str:
    return " ".join(map(memo.__getitem__, found))


def _apart(joined: str) -> list[str]:
    return list(map(str.strip, joined.split(BREAK)))


def written(text: str) -> list[str]:
    """The words of a text before they are split."""
    return together((text,))


def pieces(text: str) -> list[str]:
    """The words of a text, split and in lower case."""
    return " ".join(map(_LOWER.__getitem__, written(text))).split()


def parts(word: str) -> list[str]:
    """The words in what is one word before it is split, in lower case."""
    return _CASED[word].lower().split()


def cased(text: str) -> list[str]:
    """The words of a text, split, as they are written."""
    return " ".join(map(_CASED.__getitem__, written(text))).split()


def stemmed(text: str) -> str:
    """The stems of a text, with spaces."""
    return " ".join(map(_STEMS.__getitem__, written(text)))


def wholes(text: str) -> list[str]:
    """The identifiers of a text that have more than one word, unsplit, in lower case."""
    return " ".join(map(_WHOLE.__getitem__, written(text))).split()


def split(word: str) -> tuple[str, ...]:
    """The words in an identifier, as they are written."""
    if len(word) > LONGEST:
        return ()
    if word.isascii():
        return tuple(_PARTS.findall(word))
    shape = word.translate(_SHAPES)
    return tuple(word[each.start() : each.end()] for each in _PARTS.finditer(shape))


@lru_cache(maxsize=1 << 16)  # words are written in more ways than there are parts of them
def stem(word: str) -> str:
    """What a word in lower case has in common with its other forms."""
    if len(word) < 3 or not word.isascii() or word[0] <= "9":
        return word
    stemmer, lock = _stemmer()
    with lock:  # a stemmer keeps its work in itself
        result: str = stemmer.stemWord(word)
    return result


@cache
def _stemmer() -> tuple[Any, threading.Lock]:
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415 - only where needed

    return Stemmer.Stemmer("english", 0), threading.Lock()


class _Shapes(dict[int, str]):
    """The letter that stands for a sign's kind, so that one pattern splits every script."""

    def __missing__(self, number: int) -> str:
        sign = chr(number)
        if sign.isupper():
            shape = "A"
        elif sign.isdecimal():
            shape = "0"
        elif sign == "_":
            shape = "_"
        else:
            shape = "." if any(first <= sign <= last for first, last in _OWN_WORDS) else "a"
        self[number] = shape
        return shape


class _Cut(dict[str, tuple[str, ...]]):
    """The words in what stands between two spaces."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if len(self) >= MEMORY:
            self.clear()
        words = self[piece] = (piece,) if piece.isascii() else tuple(_WORDS.findall(piece))
        return words


class _Memo(dict[str, str]):
    """What becomes of a word, worked out once."""

    def __init__(self, form: Callable[[tuple[str, ...]], str]) -> None:
        super().__init__()
        self.form = form
        self.beside: tuple[_Memo, ...] = (self,)

    def __missing__(self, word: str) -> str:
        if len(self) >= MEMORY:
            for memo in self.beside:
                memo.clear()
        parts = split(word)
        for memo in self.beside:
            memo[word] = word if word == BREAK else memo.form(parts)
        return self[word]

    @staticmethod
    def tie(*memos: "_Memo") -> None:
        """Let memos learn together: who is asked for one form of a word is asked for all."""
        for memo in memos:
            memo.beside = memos


def _stemmed(parts: tuple[str, ...]) -> str:
    return " ".join([stem(part.lower()) for part in parts])


def _joined(parts: tuple[str, ...]) -> str:
    # Without underscores, so that every way to write a name is one whole.
    return "".join(parts).lower() if len(parts) > 1 else ""


_SHAPES = _Shapes()
_CUT = _Cut()
_LOWER = _Memo(lambda parts: " ".join(parts).lower())
_STEMS = _Memo(_stemmed)
_CASED = _Memo(" ".join)
_WHOLE = _Memo(_joined)
_Memo.tie(_STEMS, _CASED, _WHOLE)
