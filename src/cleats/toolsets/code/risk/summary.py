"""What one function says about risk: a small graph of values, and what was concluded from it.

A value comes from a parameter, a source or a call. These are the nodes, numbered in this order:
parameters first, then sources, then calls. A call has inputs, a sink has values that reach it, and
the function returns values; each is said as the numbers of the nodes it may come from. What goes on
within a call is nobody's guess here: it is looked up when functions are linked, and taken to pass
its inputs on when nobody in the repository knows it.
"""

from msgspec import Struct

RECEIVER = -1
"""The position of the object that a method is called on, beside those of arguments."""


class Source(Struct, array_like=True, frozen=True):
    """Where an untrusted value enters."""

    name: str
    category: str
    tags: list[str]
    confidence: float
    line: int
    cleaned: list[str] = []
    """Categories of sinks for which it is harmless as it is."""


class Sink(Struct, array_like=True, frozen=True):
    """Where a value can do harm, and the nodes whose values reach it."""

    name: str
    category: str
    tags: list[str]
    severity: str
    confidence: float
    line: int
    nodes: list[int]
    alone: bool = True
    """It is worth saying even if nothing reaches it."""


class Sanitizer(Struct, array_like=True, frozen=True):
    name: str
    category: str
    tags: list[str]


class Input(Struct, array_like=True, frozen=True):
    """What goes into a call at one place."""

    position: int
    nodes: list[int]
    keyword: str = ""


class Call(Struct, array_like=True, frozen=True):
    """A call whose body may be in the repository, or one that makes values harmless."""

    callee: str
    line: int
    count: int
    """How many arguments it has."""
    inputs: list[Input]
    cleans: list[str] = []
    """Categories of sinks for which its result is harmless; only of a sanitizer."""


class Summary(Struct, omit_defaults=True):
    """One function, from its own text alone."""

    params: int = 0
    sources: list[Source] = []
    sinks: list[Sink] = []
    sanitizers: list[Sanitizer] = []
    calls: list[Call] = []
    returns: list[int] = []
    """The nodes whose values it may return."""
    is_callable: bool = True
    """It can be called; a class or the text of a file outside of declarations cannot."""
    capped: bool = False
    """It is too large: something was left out."""


class Flow(Struct, omit_defaults=True, frozen=True):
    """An untrusted value that reaches a sink."""

    source: str
    sink: str
    category: str
    severity: str
    confidence: float
    source_line: int
    sink_line: int
    via: list[str] = []
    """The functions between, as qualified names, in the order the value goes through them."""
    source_path: str = ""
    sink_path: str = ""
    """Where they are, when not in the file of the function that the flow belongs to."""

    def __str__(self) -> str:
        return f"{self.source}->{self.sink}"


class Risk(Struct, omit_defaults=True):
    """What is concluded about one function."""

    sources: list[str] = []
    sinks: list[str] = []
    sanitizers: list[str] = []
    tags: list[str] = []
    categories: list[str] = []
    severity: str = ""
    flows: list[Flow] = []
    capped: bool = False
