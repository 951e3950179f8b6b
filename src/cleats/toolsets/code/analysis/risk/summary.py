"""The risk summary of one function: a small graph of values, and the risk derived from it.

A value comes from a parameter, a source or a call. These are the nodes, numbered in this order:
parameters first, then sources, then calls. A call has inputs, a sink has values that reach it, and
the function returns values; each is a list of the nodes it can come from. The behaviour of a call
is not guessed here: it is resolved when functions are linked, and a call of unknown code is assumed
to return its inputs.
"""

from msgspec import Struct

RECEIVER_POSITION = -1
"""The position of the receiver of a method, as opposed to those of arguments."""


class RiskSource(Struct, array_like=True, frozen=True):
    """A place at which an untrusted value enters."""

    name: str
    category: str
    tags: list[str]
    confidence: float
    line: int
    cleaned: list[str] = []
    """Categories of sinks for which the value is harmless as it is."""


class RiskSink(Struct, array_like=True, frozen=True):
    """A dangerous operation, and the nodes whose values reach it."""

    name: str
    category: str
    tags: list[str]
    severity: str
    confidence: float
    line: int
    nodes: list[int]
    alone: bool = True
    """True if the sink is reported even if nothing reaches it."""


class RiskSanitizer(Struct, array_like=True, frozen=True):
    name: str
    category: str
    tags: list[str]


class CallInput(Struct, array_like=True, frozen=True):
    """The values that go into a call at one position."""

    position: int
    nodes: list[int]
    keyword: str = ""


class CallNode(Struct, array_like=True, frozen=True):
    """A call whose body can be in the repository, or one that makes values harmless."""

    callee: str
    line: int
    count: int
    """The number of arguments."""
    inputs: list[CallInput]
    cleans: list[str] = []
    """Categories of sinks for which its result is harmless; only for sanitizers."""


class FunctionSummary(Struct, omit_defaults=True):
    """The summary of one function, from its own text alone."""

    params: int = 0
    sources: list[RiskSource] = []
    sinks: list[RiskSink] = []
    sanitizers: list[RiskSanitizer] = []
    calls: list[CallNode] = []
    returns: list[int] = []
    """The nodes whose values it can return."""
    is_callable: bool = True
    """False for a class, or for the text of a file outside of declarations."""
    capped: bool = False
    """True if the function is too large and something was left out."""


class RiskFlow(Struct, omit_defaults=True, frozen=True):
    """An untrusted value that reaches a sink."""

    source: str
    sink: str
    category: str
    severity: str
    confidence: float
    source_line: int
    sink_line: int
    via: list[str] = []
    """The functions in between, as qualified names, in the order of the flow."""
    source_path: str = ""
    sink_path: str = ""
    """Files of the source and the sink, unless they are in the file of the function."""

    def __str__(self) -> str:
        return f"{self.source}->{self.sink}"


class Risk(Struct, omit_defaults=True):
    """The risk of one function."""

    sources: list[str] = []
    sinks: list[str] = []
    sanitizers: list[str] = []
    tags: list[str] = []
    categories: list[str] = []
    severity: str = ""
    flows: list[RiskFlow] = []
    capped: bool = False
