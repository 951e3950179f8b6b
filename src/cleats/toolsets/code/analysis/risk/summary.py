"""The risk summary of one function: a small graph of values, and the risk derived from it.

A value comes from a parameter, a source or a call. These are the nodes, numbered in this order:
parameters first, then sources, then calls. A call has inputs, a sink has values that reach it, and the function returns
values; each is a list of the nodes it can come from. The behaviour of a call is not guessed here: it is resolved when
functions are linked, and a call of unknown code is assumed to return its inputs.

While the steps of a function are walked, a `ValueGraph` collects the nodes, and a set of nodes is an integer with one
bit per node: first the parameters, then sources and calls in the order of discovery. A node is created once, however
often a step is walked.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from cleats.toolsets.code.analysis.facts import Invocation
    from cleats.toolsets.code.analysis.risk.rules import SanitizerRule, SinkRule, SourceRule

MAX_GRAPH_NODES = 400
"""The largest graph of a function; larger ones are generated code or tables."""
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


CallPosition: TypeAlias = tuple[int, int]
"""The position of a call: its step, and its index in the step."""
NodePosition: TypeAlias = CallPosition | tuple[int, int, str]
"""The position at which a node is created: a call, or a name that a call checks."""


class ValueGraph:
    """The nodes and sinks of a function that were discovered so far."""

    def __init__(self, param_count: int, *, is_callable: bool) -> None:
        self.param_count = param_count
        self.is_callable = is_callable
        self.capped = False
        self.returned_nodes = 0
        self.source_nodes = 0
        """The nodes of all sources."""
        self._next_bit = 1 << param_count
        self._sources: dict[tuple[str, int], tuple[int, RiskSource]] = {}
        self._calls: dict[NodePosition, tuple[int, Invocation, dict[tuple[int, str], int]]] = {}
        self._cleans: dict[int, list[str]] = {}
        self._sanitizers: dict[str, RiskSanitizer] = {}
        self._sinks: dict[tuple[str, int], tuple[SinkRule, int]] = {}

    def _allocate_node(self) -> int:
        bit = self._next_bit
        if bit.bit_length() - self.param_count > MAX_GRAPH_NODES:
            self.capped = True
            return 0
        self._next_bit = bit << 1
        return bit

    def add_source(self, rule: "SourceRule", line: int) -> int:
        key = (rule.name, line)
        entry = self._sources.get(key)
        if entry is None:
            source = RiskSource(rule.name, rule.category, rule.tags, rule.confidence, line, rule.except_categories)
            entry = self._sources[key] = (self._allocate_node(), source)
            self.source_nodes |= entry[0]
        return entry[0]

    def add_sink(self, rule: "SinkRule", line: int, value: int) -> None:
        first_rule, known_value = self._sinks.get((rule.name, line), (rule, 0))
        if rule.category == first_rule.category:
            self._sinks[rule.name, line] = (first_rule, known_value | value)

    def add_sanitizer(self, rule: "SanitizerRule") -> None:
        self._sanitizers.setdefault(rule.name, RiskSanitizer(rule.name, rule.category, rule.tags))

    def add_cleaning_call(self, position: NodePosition, call: "Invocation", value: int, cleans: list[str]) -> int:
        """Add a node for the value after a call has made it harmless for some categories."""
        if not value or "*" in cleans:
            return 0
        result = self.add_call(position, call, value, [])
        if not self.capped:
            self._cleans[result] = cleans
        return result

    def add_call(self, call_position: NodePosition, call: "Invocation", receiver: int, arguments: list[int]) -> int:
        entry = self._calls.get(call_position)
        if entry is None:
            entry = self._calls[call_position] = (self._allocate_node(), call, {})
        bit, _, inputs = entry
        if receiver:
            key = (RECEIVER_POSITION, "")
            inputs[key] = inputs.get(key, 0) | receiver
        for position, value in enumerate(arguments):
            if value:
                key = (position, call.arguments[position].keyword)
                inputs[key] = inputs.get(key, 0) | value
        return bit or join_values(receiver, arguments)

    def summarize(self) -> FunctionSummary | None:
        """Return the summary, which numbers sources and calls with uses or inputs."""
        used_nodes = join_values(self.returned_nodes, (value for _, value in self._sinks.values()))
        for _, _, inputs in self._calls.values():
            used_nodes = join_values(used_nodes, inputs.values())
        sources = list(self._sources.values())
        calls = [entry for entry in self._calls.values() if entry[0] & used_nodes or entry[2]]
        if not (sources or self._sinks or self._sanitizers or calls or self.is_callable):
            return None
        bits = [1 << param for param in range(self.param_count)]
        bits += [bit for bit, _ in sources] + [bit for bit, _, _ in calls if bit]
        nodes = partial(_list_nodes, {bit: number for number, bit in enumerate(bits)})
        return FunctionSummary(
            params=self.param_count,
            sources=[source for _, source in sources],
            sinks=[
                RiskSink(
                    rule.name, rule.category, rule.tags, rule.severity, rule.confidence, line, nodes(value), rule.alone
                )
                for (_, line), (rule, value) in self._sinks.items()
                if rule.alone or value
            ],
            sanitizers=list(self._sanitizers.values()),
            calls=[
                CallNode(
                    call.callee,
                    call.line,
                    len(call.arguments),
                    [CallInput(position, nodes(value), keyword) for (position, keyword), value in inputs.items()],
                    self._cleans.get(bit, []),
                )
                for bit, call, inputs in calls
                if bit
            ],
            returns=nodes(self.returned_nodes),
            is_callable=self.is_callable,
            capped=self.capped,
        )


def join_values(value: int, others: Iterable[int]) -> int:
    """Return the union of sets of nodes."""
    for other in others:
        value |= other
    return value


def _list_nodes(numbers: Mapping[int, int], value: int) -> list[int]:
    nodes = []
    while value:
        bit = value & -value
        value ^= bit
        if bit in numbers:
            nodes.append(numbers[bit])
    return nodes
