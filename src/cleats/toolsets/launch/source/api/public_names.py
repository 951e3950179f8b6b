"""Public names of a package."""

import re
from dataclasses import dataclass

from cleats.toolsets.launch.source.text import english


@dataclass(frozen=True, slots=True)
class DocNote:
    """A warning or a note in the documentation of a symbol, with its lines."""

    text: str
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A public name of any language. `doc` is the first sentence of its documentation."""

    name: str
    """As a program would write it: `package.Thing`, for a member `package.Thing.method`."""
    kind: str
    """`class` (any type), `function` or `constant`; for a member `method` or `property`."""
    path: str
    line: int
    end: int
    signature: str = ""
    doc: str = ""
    doc_line: int = 0
    doc_end: int = 0
    doc_path: str = ""
    """The document that states the purpose; empty if the source does."""
    maker: tuple[int, int] = (0, 0)
    """The lines of the constructor of a class, which holds its parameters."""
    deprecated: bool = False
    exported: bool = True
    """True if the package itself declares the name as public; otherwise it is only not hidden."""
    label: str = ""
    """What the language calls it, such as `interface` or `struct`; empty if that is its kind."""
    members: "tuple[Symbol, ...]" = ()
    """The public methods and properties of a class, in the order of the source."""
    notes: tuple[DocNote, ...] = ()
    """The warnings and notes of its documentation."""

    @property
    def quoted_name(self) -> str:
        return f"`{self.name}()`" if self.kind in ("function", "method") else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class ApiSurface:
    """Every public name, those of the package itself first."""

    symbols: tuple[Symbol, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    """Pairs of module and file."""


_SELF_REFERENCE_PATTERN = english.load_expression("self_reference")


_SECOND_VERB_PATTERN = re.compile(r"(\b(?:and|or)(?: then| also| additionally| optionally)?\s+)([A-Za-z-]+)(?=\s)")
_SUBORDINATE_CLAUSE_PATTERN = english.load_expression("subordinate_clause")
_PREPOSITION_PREFIXES = ("to ", "with ", "for ", "in ", "on ", "from ")
_AUXILIARY_VERBS = english.load_words("auxiliary_verbs")
_UNAMBIGUOUS_VERBS = english.load_words("unambiguous_verbs")


def describe_symbol(symbol: Symbol, product: str = "") -> str:
    """Return a sentence about a symbol, or "" when its documentation gives no plain one.

    A sentence that spells the product's name differently is dropped: it would look careless.
    """
    doc = symbol.doc.strip().rstrip(".").strip()
    if not doc or symbol.deprecated or "?" in doc or "!" in doc:
        return ""
    predicate = _build_predicate(doc, symbol) if " " in doc else ""
    sentence = f"{symbol.quoted_name} {predicate}." if predicate else ""
    bare = re.sub(r"`[^`]*`", "", sentence)
    names = re.findall(rf"\b{re.escape(product)}\b", bare, re.IGNORECASE) if product else []
    is_misspelt = any(name != product for name in names)
    return sentence if sentence and not is_misspelt and english.is_statement(sentence) else ""


def quote_purpose(symbol: Symbol) -> str:
    """Return the first sentence of a symbol's documentation as a quotation, for one that makes no sentence about it."""
    doc = symbol.doc.strip().rstrip(".:").strip()
    is_usable = "?" not in doc and len(re.findall(r"\w{2,}", doc)) > 1 and english.is_quotable(f"{doc}.", is_item=True)
    return f"{symbol.quoted_name} is documented as: {doc}." if is_usable else ""


def _build_predicate(doc: str, symbol: Symbol) -> str:
    first, _, rest = doc.partition(" ")
    word = first.lower()
    # `Style was badly formatted` is not an imperative.
    is_imperative = word in english.BASE_VERBS and not _list_clause_words(rest) & _AUXILIARY_VERBS
    if symbol.kind == "class":  # describe the class, unless the text instructs its user
        is_imperative = (
            is_imperative and word not in english.NOUN_LIKE_VERBS and not rest.startswith(_PREPOSITION_PREFIXES)
        )
    self_reference = _SELF_REFERENCE_PATTERN.match(doc)
    if is_imperative and not _is_ambiguous(rest):
        return f"{english.conjugate_third_person(word)} {_conjugate_second_verbs(rest)}"
    if word in english.THIRD_PERSON_VERBS:
        return f"{word} {rest}"
    # `The thing is ...` is a sentence already.
    has_verb = bool(_list_clause_words(rest, skip=1) & (english.THIRD_PERSON_VERBS | _AUXILIARY_VERBS))
    if (word in ("a", "an", "the") and not has_verb) or (word == "raised" and symbol.kind == "class"):
        return f"is {word} {rest}"
    if doc.startswith(("This is a ", "This is an ", "This is the ")):
        return doc.removeprefix("This ")
    if self_reference and self_reference[1] in english.THIRD_PERSON_VERBS:
        return f"{self_reference[1]} {doc[self_reference.end() :]}"
    return ""


def _conjugate_second_verbs(rest: str) -> str:
    """Conjugate the second verb like the first: `Parse X and return Y`."""

    def conjugate_match(match: re.Match[str]) -> str:
        word = match[2].lower()
        return f"{match[1]}{english.conjugate_third_person(word)}" if word in _UNAMBIGUOUS_VERBS else match[0]

    return _SECOND_VERB_PATTERN.sub(conjugate_match, rest)


def _is_ambiguous(rest: str) -> bool:
    """Return whether a word after `and` could be a verb or a noun; then no sentence is built."""
    words = {match[2].lower() for match in _SECOND_VERB_PATTERN.finditer(rest)}
    listed_words = {match[1] for match in re.finditer(r", ([a-z-]+) (?:to|the|a|an|it|them)\b", rest)}
    return bool(words & (english.BASE_VERBS - _UNAMBIGUOUS_VERBS) or listed_words & english.BASE_VERBS)


def _list_clause_words(text: str, skip: int = 0) -> set[str]:
    """Return the words before the first subordinate clause."""
    head = _SUBORDINATE_CLAUSE_PATTERN.split(text, maxsplit=1)[0]
    return set(re.findall(r"[a-z]+", head.lower())[skip:])
