"""What a public name does, said as a sentence from the first one of its documentation."""

import re

from cleats.toolsets.launch.source import prose
from cleats.toolsets.launch.source.api.model import Symbol
from cleats.toolsets.launch.source.verbs import NOUNS_TOO, PLAIN, THIRD, third, wordset

_SELF = re.compile(
    r"^(?:This|The) (?:function|method|class|command|decorator|object|type|exception) (\w+) ",
)


_SECOND = re.compile(
    r"(\b(?:and|or)(?: then| also| additionally| optionally)?\s+)([A-Za-z-]+)(?=\s)"
)
_SUBORDINATE = re.compile(
    r" (?:that|which|who|whose|to|for|of|with|if|when|whether|while|where|so|because|as|by) "
)
_ASIDE = ("to ", "with ", "for ", "in ", "on ", "from ")
_VERBS = wordset("is are was were has have had must cannot occurred happened failed did")
_SURE = wordset(
    """
    add append apply assign attach call close compute convert create decode delete emit encode
    ensure exit extract fill generate get insert invoke load make merge normalize open parse
    print raise read register remove replace resolve return save send set store strip
    update use validate wait write yield
    """
)
"""Verbs that hardly ever stand for a thing."""


def described(symbol: Symbol, product: str = "") -> str:
    """The sentence, or "" when the documentation does not give a plain one.

    One that spells the product's name otherwise would look careless on its pages.
    """
    doc = symbol.doc.strip().rstrip(".").strip()
    if not doc or symbol.deprecated or "?" in doc or "!" in doc:
        return ""
    predicate = _predicate(doc, symbol)
    made = f"{_called(symbol)} {predicate}." if predicate else ""
    bare = re.sub(r"`[^`]*`", "", made)
    names = re.findall(rf"\b{re.escape(product)}\b", bare, re.IGNORECASE) if product else []
    misspelt = any(name != product for name in names)
    return made if made and not misspelt and prose.is_statement(made) else ""


def listed(symbol: Symbol, product: str) -> str:
    """What is true of every public name, whatever its documentation says."""
    return f"{_called(symbol)} is a public {symbol.kind} of {product}."


def _called(symbol: Symbol) -> str:
    return f"`{symbol.name}()`" if symbol.kind == "function" else f"`{symbol.name}`"


def _predicate(doc: str, symbol: Symbol) -> str:
    first, _, rest = doc.partition(" ")
    word = first.lower()
    if not rest:
        return ""
    is_order = word in PLAIN and not _is_sentence(rest)
    if symbol.kind == "class":  # what a class does is said of it, unless its user is told to do it
        is_order = is_order and word not in NOUNS_TOO and not rest.startswith(_ASIDE)
    own = _SELF.match(doc)
    made = ""
    if is_order and not _is_doubtful(rest):
        made = f"{third(word)} {_conjugated(rest)}"
    elif word in THIRD:
        made = f"{word} {rest}"
    elif word in ("a", "an", "the") and not _has_clause(rest):
        made = f"is {word} {rest}"
    elif word == "raised" and symbol.kind == "class":
        made = f"is raised {rest}"
    elif doc.startswith(("This is a ", "This is an ", "This is the ")):
        made = doc.removeprefix("This ")
    elif own and own[1] in THIRD:
        made = f"{own[1]} {doc[own.end() :]}"
    return made


def _conjugated(rest: str) -> str:
    """`Parse X and return Y`: the second verb follows the first."""

    def turned(match: re.Match[str]) -> str:
        word = match[2].lower()
        return f"{match[1]}{third(word)}" if word in _SURE else match[0]

    return _SECOND.sub(turned, rest)


def _is_doubtful(rest: str) -> bool:
    """Whether a word after `and` could be a verb or a noun: then nothing is said."""
    words = {match[2].lower() for match in _SECOND.finditer(rest)}
    listed = {match[1] for match in re.finditer(r", ([a-z-]+) (?:to|the|a|an|it|them)\b", rest)}
    return bool(words & (PLAIN - _SURE) or listed & PLAIN)


def _has_clause(rest: str) -> bool:
    """Whether a verb of its own follows: `The thing is ...` is a sentence already."""
    head = _SUBORDINATE.split(rest, maxsplit=1)[0]
    words = re.findall(r"[a-z]+", head.lower())[1:]
    return bool(set(words) & (THIRD | _VERBS))


def _is_sentence(rest: str) -> bool:
    """`Style was badly formatted` is no order to style something."""
    head = _SUBORDINATE.split(rest, maxsplit=1)[0]
    return bool(set(re.findall(r"[a-z]+", head.lower())) & _VERBS)
