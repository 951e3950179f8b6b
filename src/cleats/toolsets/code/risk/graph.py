"""The graph of a function's values while its steps are walked; see `summary` for what it becomes.

A set of nodes is one number with a bit for each: first those of the parameters, then those of
sources and calls in the order they are met. A node is made once, however often a step is taken.
"""

from cleats.toolsets.code.facts import Invocation
from cleats.toolsets.code.risk.rules import SanitizerRule, SinkRule, SourceRule
from cleats.toolsets.code.risk.summary import (
    RECEIVER,
    Call,
    Input,
    Sanitizer,
    Sink,
    Source,
    Summary,
)

MOST_NODES = 400
"""Of a function; what has more is generated, or a table written as code."""

Place = tuple[int, int]
"""Of a call: the step, and which of its calls."""
Spot = Place | tuple[int, int, str]
"""Where a node is made: by a call, or for a name that a call asks about."""


class Graph:
    """What was met so far."""

    def __init__(self, params: int, *, is_callable: bool) -> None:
        self.params = params
        self.is_callable = is_callable
        self.capped = False
        self.returned = 0
        self.entered = 0
        """The nodes of all sources."""
        self._next = 1 << params
        self._sources: dict[tuple[str, int], tuple[int, Source]] = {}
        self._calls: dict[Spot, tuple[int, Invocation, dict[tuple[int, str], int]]] = {}
        self._cleans: dict[int, list[str]] = {}
        self._sanitizers: dict[str, Sanitizer] = {}
        self._sinks: dict[tuple[str, int], tuple[SinkRule, int]] = {}

    def source(self, rule: SourceRule, line: int) -> int:
        key = (rule.name, line)
        known = self._sources.get(key)
        if known is None:
            source = Source(
                rule.name,
                rule.category,
                rule.tags,
                rule.confidence,
                line,
                rule.except_categories,
            )
            known = self._sources[key] = (self._node(), source)
            self.entered |= known[0]
        return known[0]

    def _node(self) -> int:
        bit = self._next
        if bit.bit_length() - self.params > MOST_NODES:
            self.capped = True
            return 0
        self._next = bit << 1
        return bit

    def sink(self, rule: SinkRule, line: int, value: int) -> None:
        key = (rule.name, line)
        known = self._sinks.get(key)
        if known is None or rule.category == known[0].category:
            self._sinks[key] = (known[0] if known else rule, (known[1] if known else 0) | value)

    def cleaned(
        self,
        place: Place,
        call: Invocation,
        receiver: int,
        arguments: list[int],
        rule: SanitizerRule,
    ) -> int:
        found = Sanitizer(rule.name, rule.category, rule.tags)
        self._sanitizers.setdefault(rule.name, found)
        value = receiver
        for argument in arguments:
            value |= argument
        return self.harmless(place, call, value, rule.cleans)

    def harmless(self, place: Spot, call: Invocation, value: int, cleans: list[str]) -> int:
        """The value, once a call has made it harmless for some categories."""
        if not value or "*" in cleans:
            return 0
        result = self.call(place, call, value, [])
        if not self.capped:
            self._cleans[result] = cleans
        return result

    def call(self, place: Spot, call: Invocation, receiver: int, arguments: list[int]) -> int:
        known = self._calls.get(place)
        if known is None:
            known = self._calls[place] = (self._node(), call, {})
        bit, _, inputs = known
        if receiver:
            key = (RECEIVER, "")
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

    def summary(self) -> Summary | None:
        """Number the nodes that matter: sources, and calls that take or give something."""
        used = self.returned
        for _, value in self._sinks.values():
            used |= value
        for _, _, inputs in self._calls.values():
            for value in inputs.values():
                used |= value
        sources = list(self._sources.values())
        calls = [known for known in self._calls.values() if known[0] & used or known[2]]
        if not (sources or self._sinks or self._sanitizers or calls or self.is_callable):
            return None
        bits = [bit for bit, _ in sources] + [bit for bit, _, _ in calls if bit]
        numbers = {bit: self.params + number for number, bit in enumerate(bits)}
        nodes = _Numbers(self.params, numbers)
        return Summary(
            params=self.params,
            sources=[source for _, source in sources],
            sinks=[
                _sink(rule, line, nodes(value))
                for (_, line), (rule, value) in self._sinks.items()
                if rule.alone or value
            ],
            sanitizers=list(self._sanitizers.values()),
            calls=[
                Call(
                    call.callee,
                    call.line,
                    len(call.arguments),
                    [
                        Input(position, nodes(value), keyword)
                        for (position, keyword), value in inputs.items()
                    ],
                    self._cleans.get(bit, []),
                )
                for bit, call, inputs in calls
                if bit
            ],
            returns=nodes(self.returned),
            is_callable=self.is_callable,
            capped=self.capped,
        )


class _Numbers:
    """From bits to the numbers of nodes."""

    def __init__(self, params: int, numbers: dict[int, int]) -> None:
        self._params = params
        self._numbers = numbers

    def __call__(self, value: int) -> list[int]:
        found = []
        while value:
            bit = value & -value
            value ^= bit
            position = bit.bit_length() - 1
            number = position if position < self._params else self._numbers.get(bit)
            if number is not None:
                found.append(number)
        return found


def _sink(rule: SinkRule, line: int, nodes: list[int]) -> Sink:
    return Sink(
        rule.name,
        rule.category,
        rule.tags,
        rule.severity,
        rule.confidence,
        line,
        nodes,
        rule.alone,
    )
