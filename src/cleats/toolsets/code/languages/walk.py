"""One walk over the tree of a file, which fills the frames of its declarations.

What happens at a node is decided by its kind alone: `plans` turns a language's table into one
function per kind. Values flow upwards: an expression is visited with the flow it is part of, and
adds its names, calls and literal text to it. An expression without a flow is a statement and makes
a step of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from cleats.toolsets.code.facts import Argument, Invocation, Step
from cleats.toolsets.code.languages.frame import LONGEST_NAME, Frame
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Language

LONGEST_TEXT = 120
"""Characters of literal text that a step keeps, as `facts.Step.text` promises."""

ARMS = frozenset({"consequence", "alternative", "body"})
"""Fields of a branch or a loop that do not run always."""

MANY = 8
"""Nodes of a member that is more than a few names."""

LISTS = ("arguments", "argument_list")
"""How kinds end that hold arguments; anything else in their place is one argument itself."""


class Flow(Struct, gc=False):
    """What goes into a value."""

    names: list[str] = []
    calls: list[int] = []
    text: str = ""


Action: TypeAlias = "Callable[[Walk, int, Flow | None], None]"
Naming: TypeAlias = "Callable[[Walk, int, Flow | None], str]"


class Plan(NamedTuple):
    """What is done at the nodes of a language, by kind."""

    actions: Mapping[str, Action]
    namings: Mapping[str, Naming]
    """How an expression is named; kinds that are not here have no name."""


class Walk:
    """The state of the walk: where it is, and what it has found."""

    def __init__(self, language: Language, plan: Plan, syntax: Syntax, module: Frame) -> None:
        self.language = language
        self.actions, self.namings = plan
        self.syntax = syntax
        self.module = module
        self.frame = module
        self.frames: list[Frame] = [module]
        self.calls: list[Invocation] = []
        """The calls of the statement at hand."""
        self.silent = 0
        """How many functions without a chunk the walk is inside of: what they return or yield
        is not returned by the chunk."""
        self.block = 0
        """The branch or loop body the walk is in, as `facts.Step.block` counts them."""
        self.imports: dict[str, None] = {}
        self.exports: dict[str, None] = {}
        self.comments: list[tuple[int, Frame]] = []

    def visit(self, node: int, flow: Flow | None) -> None:
        """A node."""
        act = self.actions.get(self.syntax.kinds[node])
        if act is None:
            self.descend(node, flow)
        else:
            act(self, node, flow)

    def descend(self, node: int, flow: Flow | None) -> None:
        """Everything right below a node."""
        syntax = self.syntax
        kinds, stops, actions = syntax.kinds, syntax.stops, self.actions
        child, stop = node + 1, stops[node]
        while child < stop:
            act = actions.get(kinds[child])
            following = stops[child]
            if act is not None:
                act(self, child, flow)
            elif following - child > 1:
                self.descend(child, flow)
            child = following

    def arms(self, nodes: Iterable[int]) -> None:
        """Parts of a branch or loop, of which some do not run always and are blocks of their own.

        Parts that are the same field, such as the statements of a `case`, are one block.
        """
        syntax, language, frame, outside = self.syntax, self.language, self.frame, self.block
        numbers: dict[str, int] = {}
        for node in nodes:
            field, kind = syntax.fields[node], syntax.kinds[node]
            if field in ARMS or kind in language.arms:
                name = field or str(node)
                if name not in numbers:
                    frame.blocks += 1
                    numbers[name] = frame.blocks
                self.block = numbers[name]
                self.visit(node, None)
                self.block = outside
            else:
                self.visit(node, None)

    def arm(self, node: int, flow: Flow | None) -> None:
        """Everything right below a node that is a block of its own."""
        outside = self.block
        self.frame.blocks += 1
        self.block = self.frame.blocks
        self.descend(node, flow)
        self.block = outside

    def path(self, node: int, flow: Flow | None) -> str:
        """The dotted name of an expression, as far as it has one; what is in it is visited."""
        if node == NONE:
            return ""
        naming = self.namings.get(self.syntax.kinds[node])
        if naming is not None:
            return naming(self, node, flow)
        self.visit(node, flow)
        return ""

    def written(self, node: int, _flow: Flow | None) -> str:
        """The name that a name is."""
        return self.syntax.text(node)

    def called(self, node: int, flow: Flow | None) -> str:
        """The name of what a call gives."""
        callee = self.call(node, flow)
        return f"{callee}()" if callee else ""

    def within(self, node: int, flow: Flow | None) -> str:
        """The name of what a cast or parentheses are around; a type beside it is used."""
        syntax, comments, name = self.syntax, self.language.comments, ""
        inner = syntax.child(node, "value")
        for child in syntax.children(node):
            if inner == NONE and syntax.kinds[child] not in comments:
                inner = child
            if child == inner:
                name = self.path(child, flow)
            else:
                self.visit(child, None)
        if name and syntax.kinds[node] in self.language.awaits:
            self.frame.awaits[name.removesuffix("()")] = None
        return name

    def call(self, node: int, flow: Flow | None) -> str:
        """A call with all that is in it; gives its callee."""
        if flow is None:
            saved, self.calls = self.calls, []
            callee = self.call(node, value := Flow())
            self.step(node, [], value)
            self.calls = saved
            return callee
        syntax = self.syntax
        kinds, fields, stops = syntax.kinds, syntax.fields, syntax.stops
        row = self.language.calls[kinds[node]]
        callee = receiver = ""
        arguments: list[Argument] = []
        child, stop = node + 1, stops[node]
        while child < stop:
            field, kind = fields[child], kinds[child]
            if row.receiver and (field in row.receiver or kind in row.receiver):
                receiver = self.path(child, flow)
            elif field in row.function or kind in row.function:
                callee = self.path(child, flow)
            elif field in row.arguments or kind in row.arguments:
                self._arguments(child, arguments)
            else:
                self.visit(child, flow)
            child = stops[child]
        if receiver:
            callee = f"{receiver}{row.joint}{callee}"
        # A leading backslash says in PHP that a name is not of the namespace at hand.
        if callee[:1] == "\\":
            callee = callee[1:]
        self.record_call(node, callee, arguments, flow, row.prefix)
        return callee

    def record_call(
        self, node: int, callee: str, arguments: list[Argument], flow: Flow, prefix: str = ""
    ) -> None:
        """Note a call whose parts are known."""
        frame, syntax, calls = self.frame, self.syntax, self.calls
        flow.calls.append(len(calls))
        calls.append(Invocation(prefix + callee, arguments, syntax.line(syntax.starts[node])))
        if callee:
            frame.calls[callee] = None
            receiver = callee.rpartition(".")[0]
            if receiver:
                frame.reads[receiver] = None
            if callee in self.language.panics:
                frame.throws[callee] = None

    def argument(self, node: int, keyword: str = "") -> Argument:
        """One argument of a call."""
        syntax = self.syntax
        act = self.actions.get(syntax.kinds[node])
        if act is not None:
            act(self, node, flow := Flow())
        elif syntax.stops[node] - node > 1:
            self.descend(node, flow := Flow())
        else:
            return Argument([], [], "", keyword)
        names = flow.names
        if len(names) > 1:
            names = unique(names)
        return Argument(names, flow.calls, flow.text[:LONGEST_TEXT], keyword)

    def _arguments(self, node: int, into: list[Argument]) -> None:
        syntax, language = self.syntax, self.language
        kinds, stops = syntax.kinds, syntax.stops
        if kinds[node] in language.suffixes:
            for child in syntax.children(node):
                self._arguments(child, into)
            return
        if not kinds[node].endswith(LISTS):
            into.append(self.argument(node))
            return
        comments, keywords = language.comments, language.keywords
        child, stop = node + 1, stops[node]
        while child < stop:
            kind = kinds[child]
            if kind in comments:
                self.visit(child, None)
            elif kind in keywords:
                into.append(self._keyword(child, *keywords[kind]))
            else:
                into.append(self.argument(child))
            child = stops[child]

    def _keyword(self, node: int, name: str, value: str) -> Argument:
        syntax = self.syntax
        named, given = syntax.child(node, name), syntax.child(node, value)
        keyword = syntax.text(named) if named != NONE else ""
        if given == NONE:
            given = syntax.stops[named] if named != NONE else node + 1
        return self.argument(given, keyword) if given < syntax.stops[node] else self.argument(node)

    def member(self, node: int, flow: Flow | None) -> str:
        """The dotted name of a member."""
        syntax, language = self.syntax, self.language
        # The text of a chain of calls, with all that is in their arguments, is not worth making.
        if syntax.stops[node] - node < MANY or not syntax.has(node, b"("):
            text = syntax.text(node)
            if text.replace(".", "").replace("::", "").isidentifier():
                return text
        of, member = language.members[syntax.kinds[node]]
        base = self.path(syntax.child(node, of), flow)
        named = syntax.child(node, member) if member else syntax.last(node)
        if named == NONE:
            return base
        name = syntax.text(named).lstrip(".")
        if syntax.kinds[named] in language.transparent or syntax.kinds[named] in language.members:
            name = self.path(named, flow)
        joint = language.joints.get(syntax.kinds[node], ".")
        return f"{base}{joint}{name}" if base else name

    def index(self, node: int, flow: Flow | None) -> str:
        """The name of what is indexed, with `[]`."""
        syntax = self.syntax
        of = syntax.child(node, self.language.indexes[syntax.kinds[node]])
        if of == NONE:
            of = node + 1
        base = ""
        for child in syntax.children(node):
            if child == of:
                base = self.path(child, flow)
            else:
                self.visit(child, Flow())
        return f"{base}[]"

    def step(self, node: int, targets: list[str], value: Flow) -> None:
        """Note a statement, unless no value flows anywhere in it."""
        if targets or self.calls:
            syntax = self.syntax
            names = value.names
            self.frame.steps.append(
                Step(
                    syntax.line(syntax.starts[node]),
                    unique(targets) if len(targets) > 1 else targets,
                    unique(names) if len(names) > 1 else names,
                    self.calls,
                    value.calls,
                    value.text[:LONGEST_TEXT],
                    self.block,
                )
            )

    def give(self, node: int) -> None:
        """A value that is returned."""
        saved, self.calls = self.calls, []
        self.visit(node, value := Flow())
        self.step(node, [] if self.silent else ["return"], value)
        self.calls = saved

    def use(self, node: int) -> None:
        """Names that are only referred to, such as those in a type."""
        syntax, language = self.syntax, self.language
        names, type_names, ignored = language.names, language.type_names, language.ignored
        kinds, uses = syntax.kinds, self.frame.uses
        starts, ends = syntax.starts, syntax.ends
        at, stop = node, syntax.stops[node]
        while at < stop:
            kind = kinds[at]
            if (kind in names or kind in type_names) and ends[at] - starts[at] < LONGEST_NAME:
                uses[syntax.text(at)] = None
            at = syntax.stops[at] if kind in ignored else at + 1


def unique(names: list[str]) -> list[str]:
    """Without duplicates, in order."""
    return list(dict.fromkeys(names))
