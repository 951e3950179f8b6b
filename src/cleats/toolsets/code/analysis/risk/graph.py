"""The value graph of a function while its steps are walked; see `summary` for the final form.

A set of nodes is an integer with one bit per node: first the parameters, then sources and calls in
the order of discovery. A node is created once, however often a step is walked.
"""

from cleats.toolsets.code.analysis.facts import Invocation
from cleats.toolsets.code.analysis.risk.rules import SanitizerRule, SinkRule, SourceRule
from cleats.toolsets.code.analysis.risk.summary import (
    RECEIVER_POSITION,
    CallInput,
    CallNode,
    FunctionSummary,
    RiskSanitizer,
    RiskSink,
    RiskSource,
)

MAX_GRAPH_NODES = 400
"""The largest graph of a function; larger ones are generated code or tables."""

CallPosition = tuple[int, int]
"""The position of a call: its step, and its index in the step."""
NodePosition = CallPosition | tuple[int, int, str]
"""The position at which a node is created: a call, or a name that a call checks."""


class ValueGraph:
    """The nodes and sinks that were discovered so far."""

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

    def add_source(self, rule: SourceRule, line: int) -> int:
        key = (rule.name, line)
        entry = self._sources.get(key)
        if entry is None:
            source = RiskSource(
                rule.name,
                rule.category,
                rule.tags,
                rule.confidence,
                line,
                rule.except_categories,
            )
            entry = self._sources[key] = (self._allocate_node(), source)
            self.source_nodes |= entry[0]
        return entry[0]

    def _allocate_node(self) -> int:
        bit = self._next_bit
        if bit.bit_length() - self.param_count > MAX_GRAPH_NODES:
            self.capped = True
            return 0
        self._next_bit = bit << 1
        return bit

    def add_sink(self, rule: SinkRule, line: int, value: int) -> None:
        key = (rule.name, line)
        entry = self._sinks.get(key)
        if entry is None or rule.category == entry[0].category:
            self._sinks[key] = (entry[0] if entry else rule, (entry[1] if entry else 0) | value)

    def add_sanitizer(
        self,
        position: CallPosition,
        call: Invocation,
        receiver: int,
        arguments: list[int],
        rule: SanitizerRule,
    ) -> int:
        sanitizer = RiskSanitizer(rule.name, rule.category, rule.tags)
        self._sanitizers.setdefault(rule.name, sanitizer)
        value = receiver
        for argument in arguments:
            value |= argument
        return self.add_cleaning_call(position, call, value, rule.cleans)

    def add_cleaning_call(self, position: NodePosition, call: Invocation, value: int, cleans: list[str]) -> int:
        """Add a node for the value after a call has made it harmless for some categories."""
        if not value or "*" in cleans:
            return 0
        result = self.add_call(position, call, value, [])
        if not self.capped:
            self._cleans[result] = cleans
        return result

    def add_call(self, call_position: NodePosition, call: Invocation, receiver: int, arguments: list[int]) -> int:
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
        if bit:
            return bit
        for value in arguments:
            receiver |= value
        return receiver

    def summarize(self) -> FunctionSummary | None:
        """Return the summary, which numbers sources and calls with uses or inputs."""
        used_nodes = self.returned_nodes
        for _, value in self._sinks.values():
            used_nodes |= value
        for _, _, inputs in self._calls.values():
            for value in inputs.values():
                used_nodes |= value
        sources = list(self._sources.values())
        calls = [entry for entry in self._calls.values() if entry[0] & used_nodes or entry[2]]
        if not (sources or self._sinks or self._sanitizers or calls or self.is_callable):
            return None
        bits = [bit for bit, _ in sources] + [bit for bit, _, _ in calls if bit]
        numbers = {bit: self.param_count + number for number, bit in enumerate(bits)}
        nodes = _NodeNumbering(self.param_count, numbers)
        return FunctionSummary(
            params=self.param_count,
            sources=[source for _, source in sources],
            sinks=[
                _build_sink(rule, line, nodes(value))
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


class _NodeNumbering:
    """Converts bits to the numbers of nodes."""

    def __init__(self, param_count: int, numbers: dict[int, int]) -> None:
        self._param_count = param_count
        self._numbers = numbers

    def __call__(self, value: int) -> list[int]:
        node_numbers = []
        while value:
            bit = value & -value
            value ^= bit
            position = bit.bit_length() - 1
            number = position if position < self._param_count else self._numbers.get(bit)
            if number is not None:
                node_numbers.append(number)
        return node_numbers


def _build_sink(rule: SinkRule, line: int, nodes: list[int]) -> RiskSink:
    return RiskSink(
        rule.name,
        rule.category,
        rule.tags,
        rule.severity,
        rule.confidence,
        line,
        nodes,
        rule.alone,
    )
