"""Values within one function: the parameters, sources and calls that reach its sinks and calls.

Steps are walked in source order, those in loops twice. A variable holds the set of nodes (see
`summary`) from which its value can come, as bits of an integer, so that a union is one operation
and a function without anything of interest costs almost nothing. For example:

    def show(name, page):             # name is node 0, page is node 1
        text = request.args["q"]      # a source, node 2:             text = 0b0100
        text = merge(text, name)      # a call, node 3, of 2 and 0:   text = 0b1000
        os.system(text)               # a sink that 0b1000 reaches
        return page                   # the function returns 0b0010

The summary lists the nodes of each set: the call has the inputs [2] and [0], the sink has [3], and
the function returns [1]. These lists are the edges of the graph. Whether node 3 contains nodes 0
and 2 is known when `merge` is resolved; only then is there a flow from the source to the sink.

- An assignment replaces the value of a variable; in a branch it does so only if the same branch
  assigned it. A write to a field or an element adds to the whole object.
- A read through a variable (`x.y`, `x[]`, `x.trim()`) has the value of the variable.
- The result of a sink is not followed any further: the harm is done and reported there.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from cleats.toolsets.code.analysis.facts import CallArgument, Chunk, DataFlowStep, Invocation
from cleats.toolsets.code.analysis.risk.name_patterns import is_imported
from cleats.toolsets.code.analysis.risk.rule_lookup import (
    SELF_NAMES,
    CalleeRules,
    LanguageRules,
    compile_rules,
    find_checked_names,
    find_checked_parts,
    find_enclosing_value,
    find_untrusted_parameters,
    has_fixed_host,
    has_nameless_receiver,
    is_format_call,
    is_handler_registration,
)
from cleats.toolsets.code.analysis.risk.rules import CallRule, RiskRules, SinkRule, SourceRule
from cleats.toolsets.code.analysis.risk.summary import (
    RECEIVER_POSITION,
    CallPosition,
    FunctionSummary,
    ValueGraph,
    join_values,
)

MAX_FUNCTION_STEPS = 3_000
"""The most steps of a function; longer ones are generated code or tables."""

R = TypeVar("R")
_RESULT_TARGETS = frozenset({"return", "yield"})
_LENGTH_SUFFIXES = (".length", ".Length", ".byteLength")
"""Members that are numbers, unless they are request data themselves: `req.query.length`."""
_HARMLESS_PATH_SUFFIXES = ("Path().name", "Path().stem", "Path().suffix")
"""Members of a path that cannot lead to another folder."""
_CALLABLE_KINDS = frozenset({"function", "method", "constructor", "property", "macro"})


def summarize_chunk(chunk: Chunk, lang: str, rules: RiskRules, imports: Sequence[str] = ()) -> FunctionSummary | None:
    """Summarize a chunk by its own text; return None if there is nothing to report.

    A function without anything of interest still has a summary: its result does not contain its arguments.
    Rules about imported names (`run@subprocess`) need the imports of the file.
    """
    if not chunk.steps:
        return None
    walk = _FunctionWalk(chunk, compile_rules(rules, chunk.lang or lang), imports)
    steps = chunk.steps[:MAX_FUNCTION_STEPS]
    for number in _repeat_blocks(steps) if chunk.loops else range(len(steps)):
        walk.walk_step(number, steps[number])
    return walk.graph.summarize()


def _repeat_blocks(steps: Sequence[DataFlowStep]) -> Iterator[int]:
    """Yield the numbers of the steps, those of branches and loops again with the values of the first pass."""
    for is_block, group in groupby(range(len(steps)), key=lambda number: steps[number].block > 0):
        numbers = list(group)
        yield from numbers * 2 if is_block else numbers


class _FunctionWalk:
    def __init__(self, chunk: Chunk, rules: LanguageRules, imports: Sequence[str]) -> None:
        self.rules = rules
        self.imports = imports
        self.decorators = chunk.decorators
        self.steps = chunk.steps
        self.graph = ValueGraph(len(chunk.params), is_callable=chunk.kind in _CALLABLE_KINDS)
        self.graph.capped = len(chunk.steps) > MAX_FUNCTION_STEPS
        self.values: dict[str, int] = {}
        self.parts: dict[str, int] = {}
        """Values that were written to parts of a variable, by variable."""
        self.blocks: dict[str, int] = {}
        """The branch that assigned a variable, by variable."""
        self.texts: dict[str, str] = {}
        self.fixed_names: set[str] = set()
        """Names whose value begins with a trusted host or path."""
        self.checked_names: set[str] = set()
        """Names that a check has made harmless."""
        self.calls: list[Invocation] = []
        """The calls of the current step."""
        self.results: list[int] = []
        """The results of those of them that were walked."""
        self.chained_calls: set[int] = set()
        """Calls of the step whose results are only receivers of other calls: `a()` in `a().b()`."""
        for position, name in enumerate(chunk.params):
            value = 0 if name.lstrip("&") in SELF_NAMES else 1 << position
            self.values[name.lstrip("*&.$")] = self.values[name] = value
        for name, rule in find_untrusted_parameters(chunk, rules):
            self.values[name] = self.graph.add_source(rule, chunk.start_line)

    def walk_step(self, number: int, step: DataFlowStep) -> None:
        calls = step.calls
        if calls:
            self.calls = calls
            self.results = []
            self.chained_calls.clear()
            for position, call in enumerate(calls):
                self.results.append(self._walk_call((number, position), call))
        if not step.targets:
            if self.checked_names and calls and is_handler_registration(calls[-1]):
                self.checked_names.clear()  # the next handler receives another request
            return
        value = self._evaluate(step.names, step.outer, step.line)
        for target in step.targets:
            self._assign(target, value, step)

    def _evaluate(self, names: Iterable[str], calls: Iterable[int], line: int) -> int:
        value = 0
        for name in names:
            value |= self._read(name, line)
        for position in calls:
            if position not in self.chained_calls:
                value |= self.results[position]
        return value

    def _assign(self, target: str, value: int, step: DataFlowStep) -> None:
        for pattern, rule in self.rules.assignment_lookup[target]:
            if not pattern.module or is_imported(pattern.module, self.imports):
                self._assign_to_sink(rule, value, step)
        if target in _RESULT_TARGETS:
            self.graph.returned_nodes |= value
            return
        if target.endswith("[]"):
            self._add_value(target[:-2], value)
            return
        replaces = not step.block or self.blocks.get(target, step.block) == step.block
        self.values[target] = value if replaces else self.values.get(target, 0) | value
        if value or replaces:
            self.blocks[target] = step.block
        if replaces and self.parts.pop(target, 0):
            self.values = {name: value for name, value in self.values.items() if not name.startswith(f"{target}.")}
        if value and "." in target:
            self._add_to_owners(target, value)
        if value and (self.fixed_names or "/" in step.text or (step.outer and is_format_call(step))):
            self._update_fixed_names(target, step, replaces=replaces)
        if step.text:
            self.texts[target] = step.text
        else:
            self.texts.pop(target, None)

    def _update_fixed_names(self, target: str, step: DataFlowStep, *, replaces: bool) -> None:
        if not self._has_fixed_host(step.line, step.names, step.outer, step.text):
            self.fixed_names.discard(target)
        elif replaces:
            self.fixed_names.add(target)

    def _assign_to_sink(self, rule: SinkRule, value: int, step: DataFlowStep) -> None:
        if rule.beginning and self._has_fixed_host(step.line, step.names, step.outer, step.text):
            return
        step_arguments = [CallArgument(step.names, [], step.text)]
        if self.rules.applies_to(rule, self.decorators) and self._meets_conditions(rule, step_arguments):
            self.graph.add_sink(rule, step.line, value)

    def _add_to_owners(self, target: str, value: int) -> None:
        cut = target.rfind(".")
        while value and cut > 0:
            owner = target[:cut]
            self.parts[owner] = self.parts.get(owner, 0) | value
            cut = target.rfind(".", 0, cut)

    def _add_value(self, name: str, value: int) -> None:
        self.values[name] = self._find_value(name) | value
        self._add_to_owners(name, value)

    def _find_value(self, name: str) -> int:
        prefix = name
        while prefix:
            value = self.values.get(prefix)
            if value is not None:
                return value
            prefix = prefix[: max(prefix.rfind("."), prefix.rfind("["), 0)]
        if name.endswith(_HARMLESS_PATH_SUFFIXES):
            # The result of the call does not go into the step: only a harmless member of it is used.
            callee = name.rpartition("().")[0]
            self.chained_calls.update(position for position, call in enumerate(self.calls) if call.callee == callee)
        return 0

    def _read(self, name: str, line: int) -> int:
        if name.endswith(_LENGTH_SUFFIXES):
            owner = name.rpartition(".")[0]
            if not any(pattern.matches_exactly(owner) for pattern, _ in self.rules.read_lookup[owner]):
                return 0
        for pattern, rule in self.rules.read_lookup[name]:
            if name in self.checked_names and name in self.values:
                return self.values[name]
            # A plain variable that was assigned here shadows the global of that name.
            shadowed = name in self.blocks and "." not in name and "[" not in name
            if not shadowed and (not pattern.module or is_imported(pattern.module, self.imports)):
                return self.graph.add_source(rule, line)
        value = self.values.get(name)
        if value is None:
            value = self._find_value(name)
        return value | self.parts.get(name, 0) if self.parts else value

    def _walk_call(self, call_position: CallPosition, call: Invocation) -> int:
        callee_rules = self.rules.callees[call.callee]
        arguments = [
            self._evaluate(argument.names, argument.calls, call.line) if argument.names or argument.calls else 0
            for argument in call.arguments
        ]
        receiver = self._evaluate_receiver(callee_rules, call.line)
        if callee_rules.has_no_rules:
            return self.graph.add_call(call_position, call, receiver, arguments)
        # Most calls have rules of one kind only; filtering no rules costs as much as filtering one.
        for rule in self._filter_rules(callee_rules.writes) if callee_rules.writes else ():
            self._write_arguments(rule, call, receiver, arguments)
            if isinstance(rule, CallRule) and rule.checks and (receiver or any(arguments)):
                self._apply_check(rule, call_position, call, callee_rules.receiver, arguments)
        if callee_rules.checks_receiver and has_nameless_receiver(call, self.calls):
            number, position = call_position
            enclosing = find_enclosing_value(self.steps[number], position)
            calls = enclosing.outer if isinstance(enclosing, DataFlowStep) else enclosing.calls
            receiver |= self._evaluate(enclosing.names, [inner for inner in calls if inner < position], call.line)
        reached_sink = callee_rules.sinks and self._reaches_sink(callee_rules, call, receiver, arguments)
        # A dropped value stays dropped for a source too: the length of a header is not the header.
        if reached_sink or callee_rules.effect == "drops":
            return 0
        for source in self._filter_rules(callee_rules.sources) if callee_rules.sources else ():
            if self._meets_conditions(source, call.arguments):
                return self.graph.add_source(source, call.line)
        for sanitizer in self._filter_rules(callee_rules.sanitizers) if callee_rules.sanitizers else ():
            self.graph.add_sanitizer(sanitizer)
            value = join_values(receiver, arguments)
            return self.graph.add_cleaning_call(call_position, call, value, sanitizer.cleans)
        if callee_rules.effect:
            value, cleans = self._apply_effect(callee_rules, receiver, arguments), callee_rules.cleans
            return self.graph.add_cleaning_call(call_position, call, value, cleans) if cleans else value
        return self.graph.add_call(call_position, call, receiver, arguments)

    def _filter_rules(self, rules: Iterable[tuple[str, R]]) -> Iterator[R]:
        return (rule for module, rule in rules if not module or is_imported(module, self.imports))

    def _apply_effect(self, callee_rules: CalleeRules, receiver: int, arguments: list[int]) -> int:
        value = join_values(0, arguments[1:] if callee_rules.effect == "picks" else arguments)
        if callee_rules.effect == "fills" and value and callee_rules.receiver:
            self._add_value(callee_rules.receiver, value)
        return receiver | value

    def _write_arguments(
        self, rule: SourceRule | CallRule, call: Invocation, receiver: int, arguments: list[int]
    ) -> None:
        if isinstance(rule, SourceRule):
            value = self.graph.add_source(rule, call.line)
        else:
            others = (argument for position, argument in enumerate(arguments) if position not in rule.into)
            value = join_values(receiver, others)
        for position in rule.into:
            if value and position < len(call.arguments):
                target_argument = call.arguments[position]
                # A shell names the variable that it writes as plain text.
                for name in target_argument.names or [target_argument.text]:
                    self._add_value(name, value)

    def _apply_check(
        self, rule: CallRule, call_position: CallPosition, call: Invocation, receiver: str, arguments: list[int]
    ) -> None:
        for value, base_name, cleans in find_checked_parts(call, self.calls, arguments):
            base_value = value | self._read(base_name, call.line)
            for name in [name for name, held_value in self.values.items() if held_value & base_value]:
                self._clean_name(name, self.values[name], call_position, call, cleans)
        allowed_values = join_values(
            0 if RECEIVER_POSITION in rule.checks else self._read(receiver, call.line),
            (value for position, value in enumerate(arguments) if position not in rule.checks),
        )
        if allowed_values & self.graph.source_nodes:
            return  # a comparison with untrusted values proves nothing
        for name in find_checked_names(rule, call, receiver):
            if value := self._read(name, call.line):
                self._clean_name(name, value, call_position, call, rule.cleans or ["*"])

    def _clean_name(
        self, name: str, value: int, call_position: CallPosition, call: Invocation, cleans: list[str]
    ) -> None:
        self.values[name] = self.graph.add_cleaning_call((*call_position, name), call, value, cleans)
        self.parts.pop(name, 0)
        self.checked_names.add(name)

    def _evaluate_receiver(self, callee_rules: CalleeRules, line: int) -> int:
        if callee_rules.chained_callee:
            for position in range(len(self.results) - 1, -1, -1):
                if self.calls[position].callee.removeprefix("new ") == callee_rules.chained_callee:
                    self.chained_calls.add(position)
                    return self.results[position]
            return 0
        if not callee_rules.receiver or (callee_rules.sources and not callee_rules.sinks):
            return 0
        return self._read(callee_rules.receiver, line)

    def _has_fixed_host(self, line: int, names: list[str], calls: list[int], text: str) -> bool:
        if not (text or calls or names):
            return False
        value_calls = [self.calls[position] for position in calls]
        return has_fixed_host(names, value_calls, text, self.fixed_names, lambda name: not self._read(name, line))

    def _meets_conditions(self, rule: SourceRule | SinkRule, arguments: Sequence[CallArgument]) -> bool:
        conditions = self.rules.conditions.get(rule.id, ())
        return all(condition.is_met(arguments, self.texts) for condition in conditions)

    def _reaches_sink(self, callee_rules: CalleeRules, call: Invocation, receiver: int, arguments: list[int]) -> bool:
        reached = False
        for rule in self._filter_rules(callee_rules.sinks):
            is_safe_import = any(is_imported(name, self.imports) for name in rule.unless)
            if is_safe_import or not self._meets_conditions(rule, call.arguments):
                continue
            reached = True
            value = receiver if rule.receiver else 0
            takes_all_arguments = not (rule.arguments or rule.keywords or rule.receiver)
            for position, argument in enumerate(call.arguments):
                keyword = argument.keyword
                if rule.beginning and self._has_fixed_host(call.line, argument.names, argument.calls, argument.text):
                    continue
                if takes_all_arguments or (keyword in rule.keywords if keyword else position in rule.arguments):
                    value |= arguments[position]
            self.graph.add_sink(rule, call.line, value)
        return reached
