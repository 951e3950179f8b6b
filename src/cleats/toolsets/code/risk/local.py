"""Values within one function: which parameters, sources and calls reach which sinks and calls.

Steps are taken in the order they are written, those in loops twice. A variable holds the
set of nodes (see `summary`) that its value may come from, as the bits of one number, so that
joining two is one operation and a function without anything of interest costs next to nothing.

- An assignment replaces what a variable held; in a branch it does so only for what the same branch
  put there. A write to a field or an element adds to the object as a whole.
- What is read through a variable (`x.y`, `x[]`, `x.trim()`) has its value.
- The result of a sink is no longer followed: the harm is done and said there.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from cleats.toolsets.code.facts import Argument, Chunk, Invocation, Step
from cleats.toolsets.code.risk.addresses import is_formatted, is_rooted
from cleats.toolsets.code.risk.book import SELVES, Book, Callee, book_of
from cleats.toolsets.code.risk.checks import RECEIVER, asked, is_registered, vouched
from cleats.toolsets.code.risk.graph import Graph, Place
from cleats.toolsets.code.risk.parameters import untrusted
from cleats.toolsets.code.risk.patterns import imported
from cleats.toolsets.code.risk.receivers import around, is_nameless
from cleats.toolsets.code.risk.requirements import holds
from cleats.toolsets.code.risk.rules import CallRule, Rules, SinkRule, SourceRule
from cleats.toolsets.code.risk.summary import Summary

MOST_STEPS = 3_000
"""Of a function; what has more is generated, or a table written as code."""

R = TypeVar("R")
_RESULTS = frozenset({"return", "yield"})
_MEASURES = (".length", ".Length", ".byteLength")
"""Members that are numbers, unless they are what a stranger was asked for: `req.query.length`."""
_LAST_PARTS = ("Path().name", "Path().stem", "Path().suffix")
"""Members of a path that lead nowhere."""
_CALLABLE = frozenset({"function", "method", "constructor", "property", "macro"})


def assess(chunk: Chunk, lang: str, rules: Rules, imports: Sequence[str] = ()) -> Summary | None:
    """What a chunk's own text says; None when there is nothing to say.

    A function that is merely harmless is said to be so: what goes into it does not come out.

    `imports` are those of its file; rules about imported names (`run@subprocess`) need them.
    """
    if not chunk.steps:
        return None
    body = _Body(chunk, book_of(rules, chunk.lang or lang), imports)
    steps = chunk.steps[:MOST_STEPS]
    for number, step in enumerate(steps):
        if chunk.loops and not step.block:
            _repeat(body, steps, number)
        body.take(number, step)
    if chunk.loops:
        _repeat(body, steps, len(steps))
    return body.graph.summary()


def _repeat(body: "_Body", steps: Sequence[Step], end: int) -> None:
    """Take the branches and loops that end here again: what they leave, the next turn finds."""
    start = end
    while start and steps[start - 1].block:
        start -= 1
    for number in range(start, end):
        body.take(number, steps[number])


class _Body:
    """The state of a walk over steps. Nodes are bits: parameters, then the rest as it is met."""

    def __init__(self, chunk: Chunk, book: Book, imports: Sequence[str]) -> None:
        self.book = book
        self.imports = imports
        self.decorators = chunk.decorators
        self.steps = chunk.steps
        self.graph = Graph(len(chunk.params), is_callable=chunk.kind in _CALLABLE)
        self.graph.capped = len(chunk.steps) > MOST_STEPS
        self.values: dict[str, int] = {}
        self.parts: dict[str, int] = {}
        """By variable, what was put into parts of it."""
        self.blocks: dict[str, int] = {}
        """By variable, the branch that gave it its value."""
        self.texts: dict[str, str] = {}
        self.rooted: set[str] = set()
        """Names whose value begins with what nobody else chose."""
        self.checked: set[str] = set()
        """Names that somebody has asked something about that makes them harmless."""
        self.calls: list[Invocation] = []
        """Those of the step."""
        self.chained: set[int] = set()
        """Calls of the step that only another goes on from: `a()` in `a().b()`."""
        for position, name in enumerate(chunk.params):
            self.values[name.lstrip("*&.$")] = self.values[name] = (
                0 if name.lstrip("&") in SELVES else 1 << position
            )
        for name, rule in untrusted(chunk, book):
            self.values[name] = self.graph.source(rule, chunk.start_line)

    def take(self, number: int, step: Step) -> None:
        calls = step.calls
        results: list[int] = []
        if calls:
            self.calls = calls
            self.chained.clear()
            for position, call in enumerate(calls):
                results.append(self._call((number, position), call, calls, results))
        if not step.targets:
            if self.checked and calls and is_registered(calls[-1]):
                self.checked.clear()  # the next handler gets another request
            return
        value = 0
        for name in step.names:
            value |= self._read(name, step.line)
        for position in step.outer:
            if position not in self.chained:
                value |= results[position]
        for target in step.targets:
            self._assign(target, value, step)

    def _assign(self, target: str, value: int, step: Step) -> None:
        hits = self.book.targets.known.get(target)
        for pattern, rule in self.book.targets(target) if hits is None else hits:
            if not pattern.module or imported(pattern.module, self.imports):
                self._assign_sink(rule, value, step)
        if target in _RESULTS:
            self.graph.returned |= value
            return
        if target.endswith("[]"):
            self._put(target[:-2], value)
            return
        replaces = not step.block or self.blocks.get(target, step.block) == step.block
        self.values[target] = value if replaces else self.values.get(target, 0) | value
        if value or replaces:
            self.blocks[target] = step.block
        if replaces and self.parts.pop(target, 0):
            self._forget(f"{target}.")
        if value and "." in target:
            self._spill(target, value)
        if value and (self.rooted or "/" in step.text or (step.outer and is_formatted(step))):
            self._root(target, step, replaces=replaces)
        if step.text:
            self.texts[target] = step.text
        else:
            self.texts.pop(target, None)

    def _assign_sink(self, rule: SinkRule, value: int, step: Step) -> None:
        if rule.beginning and self._is_rooted(step.line, step.names, step.outer, step.text):
            return
        given = [Argument(step.names, [], step.text)]
        tests = self.book.tests.get(rule.id, ())
        if self.book.concerns(rule, self.decorators) and all(
            holds(test, given, self.texts) for test in tests
        ):
            self.graph.sink(rule, step.line, value)

    def _root(self, target: str, step: Step, *, replaces: bool) -> None:
        """Note what the new value of a name begins with."""
        if not self._is_rooted(step.line, step.names, step.outer, step.text):
            self.rooted.discard(target)
        elif replaces:
            self.rooted.add(target)

    def _forget(self, prefix: str) -> None:
        for name in [name for name in self.values if name.startswith(prefix)]:
            del self.values[name]

    def _spill(self, target: str, value: int) -> None:
        """What is in a part is in the whole, when the whole is passed on."""
        cut = target.rfind(".")
        while value and cut > 0:
            whole = target[:cut]
            self.parts[whole] = self.parts.get(whole, 0) | value
            cut = target.rfind(".", 0, cut)

    def _held(self, name: str) -> int:
        """What a name holds: its own value, or that of the longest part of it that has one."""
        values = self.values
        value = values.get(name)
        if value is not None:
            return value
        cut = max(name.rfind("."), name.rfind("["))
        while cut > 0:
            value = values.get(name[:cut])
            if value is not None:
                return value
            cut = max(name.rfind(".", 0, cut), name.rfind("[", 0, cut))
        if name.endswith(_LAST_PARTS):
            self._pass_over(name.rpartition(".")[0])
        return 0

    def _read(self, name: str, line: int) -> int:
        if name.endswith(_MEASURES) and not self._is_source(name.rpartition(".")[0]):
            return 0
        hits = self.book.reads.known.get(name)
        for pattern, rule in self.book.reads(name) if hits is None else hits:
            if name in self.checked and name in self.values:
                return self.values[name]
            # A plain variable that was given a value here is not the global of that name.
            shadowed = name in self.blocks and "." not in name and "[" not in name
            if not shadowed and (not pattern.module or imported(pattern.module, self.imports)):
                return self.graph.source(rule, line)
        value = self.values.get(name)
        if value is None:
            value = self._held(name)
        return value | self.parts.get(name, 0) if self.parts else value

    def _pass_over(self, made: str) -> None:
        """What a call made is not in the value of the step: only a member of it is."""
        for position, call in enumerate(self.calls):
            if made.endswith("()") and call.callee == made[:-2]:
                self.chained.add(position)

    def _is_source(self, name: str) -> bool:
        """Whether a name is a source as a whole, and not something in one."""
        return any(pattern.whole(name) for pattern, _ in self.book.reads(name))

    def _call(
        self,
        place: Place,
        call: Invocation,
        before: list[Invocation],
        results: list[int],
    ) -> int:
        callee = self.book.callee(call.callee)
        arguments = [
            self._argument(argument, call.line, results) if argument.names or argument.calls else 0
            for argument in call.arguments
        ]
        receiver = self._receiver(callee, call.line, before, results)
        if callee.plain:
            return self.graph.call(place, call, receiver, arguments)
        # Most calls have rules of one kind only; asking for none costs as much as asking for one.
        for rule in self._apply(callee.writes) if callee.writes else ():
            self._write(rule, call, receiver, arguments)
            if isinstance(rule, CallRule) and rule.checks and (receiver or any(arguments)):
                self._check(rule, place, call, callee.receiver, arguments)
        if callee.asks_receiver and is_nameless(call, before):
            receiver |= self._nameless(place, call.line, results)
        reached = callee.sinks and self._reaches_sink(callee, call, receiver, arguments)
        # What is dropped is so through a source as well: the length of a header is none of it.
        if reached or callee.effect == "drops":
            return 0
        for source in self._apply(callee.sources) if callee.sources else ():
            if self._holds(source, call):
                return self.graph.source(source, call.line)
        for sanitizer in self._apply(callee.sanitizers) if callee.sanitizers else ():
            return self.graph.cleaned(place, call, receiver, arguments, sanitizer)
        if callee.effect:
            value = self._known(callee, receiver, arguments)
            return (
                self.graph.harmless(place, call, value, callee.cleans) if callee.cleans else value
            )
        return self.graph.call(place, call, receiver, arguments)

    def _apply(self, rules: Iterable[tuple[str, R]]) -> Iterator[R]:
        """The rules that hold in this file."""
        return (rule for module, rule in rules if not module or imported(module, self.imports))

    def _known(self, callee: Callee, receiver: int, arguments: list[int]) -> int:
        value = 0
        for argument in arguments[1:] if callee.effect == "picks" else arguments:
            value |= argument
        if callee.effect == "fills" and value and callee.receiver:
            self._put(callee.receiver, value)
        return receiver | value

    def _write(
        self,
        rule: SourceRule | CallRule,
        call: Invocation,
        receiver: int,
        arguments: list[int],
    ) -> None:
        """Put into some arguments of a call what the others give."""
        value = receiver
        if isinstance(rule, SourceRule):
            value = self.graph.source(rule, call.line)
        else:
            for position, argument in enumerate(arguments):
                value |= 0 if position in rule.into else argument
        for position in rule.into:
            if value and position < len(call.arguments):
                filled = call.arguments[position]
                # A shell names what it reads into without reading it.
                for name in filled.names or [filled.text]:
                    self._put(name, value)

    def _check(
        self, rule: CallRule, place: Place, call: Invocation, receiver: str, arguments: list[int]
    ) -> None:
        """Somebody asks whether values are allowed, and goes on only if they are."""
        for value, whole, cleans in vouched(call, self.calls, arguments):
            whole_value = value | self._read(whole, call.line)
            for name in [name for name, held in self.values.items() if held & whole_value]:
                held = self.graph.harmless((*place, name), call, self.values[name], cleans)
                self._trust(name, held)
        among = 0 if RECEIVER in rule.checks else self._read(receiver, call.line)
        for position, value in enumerate(arguments):
            among |= 0 if position in rule.checks else value
        if among & self.graph.entered:
            return  # what a stranger sent allows nothing
        for name in asked(rule, call, receiver):
            value = self._read(name, call.line)
            if value:
                cleans = rule.cleans or ["*"]
                self._trust(name, self.graph.harmless((*place, name), call, value, cleans))

    def _trust(self, name: str, value: int) -> None:
        self.values[name] = value
        self.parts.pop(name, 0)
        self.checked.add(name)

    def _put(self, name: str, value: int) -> None:
        """Add to what a variable holds."""
        self.values[name] = self._held(name) | value
        self._spill(name, value)

    def _argument(self, argument: Argument, line: int, results: list[int]) -> int:
        value = 0
        for name in argument.names:
            value |= self._read(name, line)
        for position in argument.calls:
            if position not in self.chained:
                value |= results[position]
        return value

    def _receiver(
        self, callee: Callee, line: int, before: list[Invocation], results: list[int]
    ) -> int:
        if callee.chained:
            for position in range(len(results) - 1, -1, -1):
                if before[position].callee.removeprefix("new ") == callee.chained:
                    self.chained.add(position)
                    return results[position]
            return 0
        if not callee.receiver or (callee.sources and not callee.sinks):
            return 0
        return self._read(callee.receiver, line)

    def _nameless(self, place: Place, line: int, results: list[int]) -> int:
        number, position = place
        object_ = around(self.steps[number], position)
        value = 0
        for name in object_.names:
            value |= self._read(name, line)
        for inner in object_.outer if isinstance(object_, Step) else object_.calls:
            if inner < position and inner not in self.chained:
                value |= results[inner]
        return value

    def _is_rooted(self, line: int, names: list[str], calls: list[int], text: str) -> bool:
        if not (text or calls or names):
            return False
        made = [self.calls[position] for position in calls]
        return is_rooted(names, made, text, self.rooted, lambda name: not self._read(name, line))

    def _holds(self, rule: SourceRule | SinkRule, call: Invocation) -> bool:
        tests = self.book.tests.get(rule.id)
        if tests is None:
            return True
        if isinstance(rule, SinkRule) and any(imported(name, self.imports) for name in rule.unless):
            return False
        return all(holds(test, call.arguments, self.texts) for test in tests)

    def _reaches_sink(
        self, callee: Callee, call: Invocation, receiver: int, arguments: list[int]
    ) -> bool:
        met = False
        for rule in self._apply(callee.sinks):
            if not self._holds(rule, call):
                continue
            met = True
            value = receiver if rule.receiver else 0
            everything = not (rule.arguments or rule.keywords or rule.receiver)
            for position, argument in enumerate(call.arguments):
                keyword = argument.keyword
                if rule.beginning and self._is_rooted(
                    call.line, argument.names, argument.calls, argument.text
                ):
                    continue
                if everything or (
                    keyword in rule.keywords if keyword else position in rule.arguments
                ):
                    value |= arguments[position]
            self.graph.sink(rule, call.line, value)
        return met
