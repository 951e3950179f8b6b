"""One walk over the syntax tree of a file, which fills the frames of its declarations.

The action at a node depends only on its kind: `plans` compiles a language table to one function per
kind. Values flow upwards: an expression is visited with the flow that it is part of, and adds its
names, calls and literal text to it. An expression without a flow is a statement and creates its own
step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from cleats.toolsets.code.analysis.facts import CallArgument, DataFlowStep, Invocation
from cleats.toolsets.code.analysis.languages.syntax import MAX_NAME_CHARS, NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import Language

MAX_TEXT_CHARS = 120
"""Characters of literal text that a step keeps, as `facts.Step.text` promises."""

ARM_FIELDS = frozenset({"consequence", "alternative", "body"})
"""Fields of a branch or a loop that do not always run."""

MIN_CHAIN_NODES = 8
"""Nodes from which a member may be a chain of calls and not just a few names."""

ARGUMENT_LIST_SUFFIXES = ("arguments", "argument_list")
"""Suffixes of the kinds that hold several arguments; any other kind is itself one argument."""


class ValueFlow(Struct, gc=False):
    """The names, calls and literal text that go into a value."""

    names: list[str] = []
    calls: list[int] = []
    text: str = ""

    def to_argument(self, keyword: str = "") -> CallArgument:
        """Return the argument of a call that has this value."""
        names = self.names if len(self.names) < 2 else deduplicate_names(self.names)
        return CallArgument(names, self.calls, self.text[:MAX_TEXT_CHARS], keyword)


T = TypeVar("T")
NodeAction: TypeAlias = "Callable[[SyntaxWalker, int, ValueFlow | None], object]"
NameReader: TypeAlias = "Callable[[SyntaxWalker, int, ValueFlow | None], str]"


class WalkPlan(NamedTuple):
    """The functions for the nodes of a language, by kind."""

    actions: Mapping[str, NodeAction]
    name_readers: Mapping[str, NameReader]
    """Functions that return the name of an expression; other kinds have no name."""


class SyntaxWalker(SyntaxTree):
    """A syntax tree that is walked: the position in it, and the facts found so far."""

    def __init__(self, language: Language, plan: WalkPlan, syntax: SyntaxTree, module: Frame) -> None:
        vars(self).update(vars(syntax))
        self.language = language
        self.actions, self.name_readers = plan
        self.module = module
        self.frame = module
        self.frames: list[Frame] = [module]
        self.calls: list[Invocation] = []
        """The calls of the current statement."""
        self.closure_depth = 0
        """The number of enclosing functions without a chunk: what they return or yield is not returned by the chunk."""
        self.block_number = 0
        """The enclosing branch or loop body, numbered as in `facts.Step.block`."""
        self.imports: dict[str, None] = {}
        self.exports: dict[str, None] = {}
        self.comments: list[tuple[int, Frame]] = []

    def visit(self, node: int, flow: ValueFlow | None) -> None:
        """Visit a node."""
        if (action := self.actions.get(self.kinds[node])) is None:
            self.visit_children(node, flow)
        else:
            action(self, node, flow)

    def visit_children(self, node: int, flow: ValueFlow | None) -> None:
        """Visit the direct children of a node."""
        kinds, stops, actions = self.kinds, self.stops, self.actions
        child, stop = node + 1, stops[node]
        while child < stop:
            action = actions.get(kinds[child])
            next_child = stops[child]
            if action is not None:
                action(self, child, flow)
            elif next_child - child > 1:
                self.visit_children(child, flow)
            child = next_child

    def visit_all(self, nodes: Iterable[int], flow: ValueFlow | None = None) -> None:
        """Visit some nodes, such as the children that need no special treatment."""
        for node in nodes:
            self.visit(node, flow)

    def visit_arms(self, nodes: Iterable[int]) -> None:
        """Visit the parts of a branch or loop; parts that do not always run are separate blocks.

        Parts that fill the same field, such as the statements of a `case`, form one block.
        """
        language, frame, outer_block = self.language, self.frame, self.block_number
        block_numbers: dict[str, int] = {}
        for node in nodes:
            field, kind = self.fields[node], self.kinds[node]
            if field in ARM_FIELDS or kind in language.arms:
                if (arm_key := field or str(node)) not in block_numbers:
                    frame.blocks += 1
                    block_numbers[arm_key] = frame.blocks
                self.block_number = block_numbers[arm_key]
                self.visit(node, None)
                self.block_number = outer_block
            else:
                self.visit(node, None)

    def visit_arm(self, node: int, flow: ValueFlow | None) -> None:
        """Visit the children of a node as a separate block."""
        outer_block = self.block_number
        self.frame.blocks += 1
        self.block_number = self.frame.blocks
        self.visit_children(node, flow)
        self.block_number = outer_block

    @contextmanager
    def open_step(self, node: int, targets: list[str]) -> Iterator[ValueFlow]:
        """Collect the value of a statement, and record the step that assigns it to the targets."""
        saved_calls, self.calls = self.calls, []
        yield (value := ValueFlow())
        self.record_step(node, targets, value)
        self.calls = saved_calls

    def visit_as_statement(self, action: "Callable[[SyntaxWalker, int, ValueFlow], T]", node: int) -> T:
        """Apply an action that needs a flow to a statement, and record the step."""
        with self.open_step(node, []) as value:
            return action(self, node, value)

    def record_read(self, name: str, flow: ValueFlow | None) -> None:
        """Record a name as read; its value goes into the flow."""
        self.frame.reads[name] = None
        if flow is not None:
            flow.names.append(name)

    def read_name(self, node: int, flow: ValueFlow | None) -> str:
        """Visit an expression and return its dotted name, or an empty string if it has none."""
        if node == NO_NODE:
            return ""
        if (read_node_name := self.name_readers.get(self.kinds[node])) is not None:
            return read_node_name(self, node, flow)
        self.visit(node, flow)
        return ""

    def read_call_name(self, node: int, flow: ValueFlow | None) -> str:
        """Visit a call and return the name of its result."""
        callee = self.visit_call(node, flow)
        return f"{callee}()" if callee else ""

    def read_wrapped_name(self, node: int, flow: ValueFlow | None) -> str:
        """Return the name inside a cast or parentheses; record the use of a type next to it."""
        comments, name = self.language.comments, ""
        inner = self.find_child(node, "value")
        for child in self.children(node):
            if inner == NO_NODE and self.kinds[child] not in comments:
                inner = child
            if child == inner:
                name = self.read_name(child, flow)
            else:
                self.visit(child, None)
        if name and self.kinds[node] in self.language.awaits:
            self.frame.awaits[name.removesuffix("()")] = None
        return name

    def visit_call(self, node: int, flow: ValueFlow | None) -> str:
        """Visit a call with everything in it and return its callee."""
        if flow is None:
            return self.visit_as_statement(SyntaxWalker.visit_call, node)
        kinds, fields, stops = self.kinds, self.fields, self.stops
        row = self.language.calls[kinds[node]]
        callee = receiver = ""
        arguments: list[CallArgument] = []
        child, stop = node + 1, stops[node]
        while child < stop:
            field, kind = fields[child], kinds[child]
            if row.receiver and (field in row.receiver or kind in row.receiver):
                receiver = self.read_name(child, flow)
            elif field in row.function or kind in row.function:
                callee = self.read_name(child, flow)
            elif field in row.arguments or kind in row.arguments:
                self._read_arguments(child, arguments)
            else:
                self.visit(child, flow)
            child = stops[child]
        if receiver:
            callee = f"{receiver}{row.joint}{callee}"
        # In PHP, a leading backslash marks a name outside the current namespace.
        if callee[:1] == "\\":
            callee = callee[1:]
        self.record_call(node, callee, arguments, flow, row.prefix)
        return callee

    def record_call(
        self, node: int, callee: str, arguments: list[CallArgument], flow: ValueFlow, prefix: str = ""
    ) -> None:
        """Record a call whose parts have been read."""
        frame, calls = self.frame, self.calls
        flow.calls.append(len(calls))
        calls.append(Invocation(prefix + callee, arguments, self.line_number(self.starts[node])))
        if callee:
            frame.calls[callee] = None
            if receiver := callee.rpartition(".")[0]:
                frame.reads[receiver] = None
            if callee in self.language.panics:
                frame.throws[callee] = None

    def read_argument(self, node: int, keyword: str = "") -> CallArgument:
        """Visit one argument of a call and return it."""
        if (action := self.actions.get(self.kinds[node])) is not None:
            action(self, node, flow := ValueFlow())
        elif self.stops[node] - node > 1:
            self.visit_children(node, flow := ValueFlow())
        else:
            return CallArgument([], [], "", keyword)
        return flow.to_argument(keyword)

    def _read_arguments(self, node: int, arguments: list[CallArgument]) -> None:
        language = self.language
        kinds, stops = self.kinds, self.stops
        if kinds[node] in language.suffixes:
            for child in self.children(node):
                self._read_arguments(child, arguments)
            return
        if not kinds[node].endswith(ARGUMENT_LIST_SUFFIXES):
            arguments.append(self.read_argument(node))
            return
        comments, keywords = language.comments, language.keywords
        child, stop = node + 1, stops[node]
        while child < stop:
            if (kind := kinds[child]) in comments:
                self.visit(child, None)
            elif kind in keywords:
                arguments.append(self._read_keyword_argument(child, *keywords[kind]))
            else:
                arguments.append(self.read_argument(child))
            child = stops[child]

    def _read_keyword_argument(self, node: int, name_label: str, value_label: str) -> CallArgument:
        name_node, value_node = self.find_child(node, name_label), self.find_child(node, value_label)
        keyword = self.text(name_node) if name_node != NO_NODE else ""
        if value_node == NO_NODE:
            value_node = self.stops[name_node] if name_node != NO_NODE else node + 1
        return self.read_argument(value_node, keyword) if value_node < self.stops[node] else self.read_argument(node)

    def read_member_name(self, node: int, flow: ValueFlow | None) -> str:
        """Return the dotted name of a member."""
        language = self.language
        # Do not copy the text of a long chain of calls with all of its arguments.
        if self.stops[node] - node < MIN_CHAIN_NODES or not self.contains_text(node, b"("):
            text = self.text(node)
            if text.replace(".", "").replace("::", "").isidentifier():
                return text
        object_label, member_label = language.members[self.kinds[node]]
        base = self.read_name(self.find_child(node, object_label), flow)
        member_node = self.find_child(node, member_label) if member_label else self.last_child(node)
        if member_node == NO_NODE:
            return base
        name = self.text(member_node).lstrip(".")
        if self.kinds[member_node] in language.transparent or self.kinds[member_node] in language.members:
            name = self.read_name(member_node, flow)
        joint = language.joints.get(self.kinds[node], ".")
        return f"{base}{joint}{name}" if base else name

    def read_index_name(self, node: int, flow: ValueFlow | None) -> str:
        """Return the name of the indexed object, followed by `[]`."""
        object_node = self.find_child(node, self.language.indexes[self.kinds[node]])
        object_node = node + 1 if object_node == NO_NODE else object_node
        base = ""
        for child in self.children(node):
            if child == object_node:
                base = self.read_name(child, flow)
            else:
                self.visit(child, ValueFlow())
        return f"{base}[]"

    def record_step(self, node: int, targets: list[str], value: ValueFlow) -> None:
        """Record a statement, unless no value flows through it."""
        if targets or self.calls:
            names = value.names
            self.frame.steps.append(
                DataFlowStep(
                    self.line_number(self.starts[node]),
                    deduplicate_names(targets) if len(targets) > 1 else targets,
                    deduplicate_names(names) if len(names) > 1 else names,
                    self.calls,
                    value.calls,
                    value.text[:MAX_TEXT_CHARS],
                    self.block_number,
                )
            )

    def visit_returned(self, node: int) -> None:
        """Visit a returned value."""
        with self.open_step(node, [] if self.closure_depth else ["return"]) as value:
            self.visit(node, value)

    def export_public(self, *excluded_kinds: str, in_namespaces: bool = False) -> None:
        """Export the public declarations of the file, and those directly in its namespaces."""
        for frame in self.frames:
            is_outer = frame.is_top_level or (
                in_namespaces and frame.parent is not None and frame.parent.kind == "namespace"
            )
            if is_outer and frame.visibility == "public" and frame.kind not in excluded_kinds:
                self.exports[frame.name] = None

    def record_uses(self, node: int) -> None:
        """Record names that are only referred to, such as those in a type."""
        language = self.language
        names, type_names, ignored = language.names, language.type_names, language.ignored
        kinds, uses = self.kinds, self.frame.uses
        starts, ends = self.starts, self.ends
        descendant, stop = node, self.stops[node]
        while descendant < stop:
            kind = kinds[descendant]
            if (kind in names or kind in type_names) and ends[descendant] - starts[descendant] < MAX_NAME_CHARS:
                uses[self.text(descendant)] = None
            descendant = self.stops[descendant] if kind in ignored else descendant + 1


def deduplicate_names(names: list[str]) -> list[str]:
    """Return the names without duplicates, in order."""
    return list(dict.fromkeys(names))
