"""What a public name does, said as a sentence from the first one of its documentation."""

import re

from cleats.toolsets.launch.source import prose
from cleats.toolsets.launch.source.api.model import Symbol
from cleats.toolsets.launch.source.verbs import NOUNS_TOO, PLAIN, THIRD, third

_SELF = re.compile(
    r"^(?:This|The) (?:function|method|class|command|decorator|object|type|exception) (\w+) ",
)


def described(symbol: Symbol) -> str:
    """The sentence, or "" when the documentation does not give a plain one."""
    doc = symbol.doc.strip().rstrip(".").strip()
    if not doc or symbol.deprecated:
        return ""
    predicate = _predicate(doc, symbol)
    made = f"{_called(symbol)} {predicate}." if predicate else ""
    return made if made and prose.is_statement(made) else ""


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
    is_order = word in PLAIN and (symbol.kind == "function" or word not in NOUNS_TOO)
    own = _SELF.match(doc)
    made = ""
    if is_order:
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
        return f"{match[1]}{third(word)}" if word in PLAIN else match[0]

    return re.sub(r"(\b(?:and|or)(?: then)?\s+)([A-Za-z-]+)(?=\s)", turned, rest)


def _has_clause(rest: str) -> bool:
    """Whether a verb of its own follows: `The thing is ...` is a sentence already."""
    head = re.split(r" (?:that|which|who|to|for|of|with) ", rest, maxsplit=1)[0]
    words = set(re.findall(r"[a-z]+", head.lower())[1:])
    return bool(words & (THIRD | {"are", "was", "were", "must", "have"}))
