"""Which function calls which, kept between builds, and what a change of some of them concerns.

A function can lead a flow from one file to another, so what is concluded about one depends on all
that it calls, and where a call goes depends on the names of all functions. Both are followed here
from what has changed: calls of a name that came or went are looked up again, and a function is
worked out again when something it calls has changed. The answer is the one that working out
everything gives, because that is the same with everything new.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cleats.toolsets.code.risk.resolution import Directory, Function, own_name
from cleats.toolsets.code.risk.summary import Summary

VERSION: Final = 1


class Linkable(NamedTuple):
    """A function as it is kept between builds."""

    key: int
    path: str
    name: str
    lang: str
    imports: Sequence[str]
    params: Sequence[str]
    summary: Summary | None


class Calling(Struct, array_like=True, gc=False):
    """A call whose body may be in the repository."""

    position: int
    callee: str
    name: str
    """The last part of it, by which functions are found."""
    count: int
    target: int | None = None
    """The key of the function it goes to, if that is known."""


class Node(Struct, array_like=True, gc=False):
    """A function, by what others need to know of it."""

    key: int
    name: str
    lang: str
    params: list[str]
    is_target: bool
    has_sources: bool
    has_sinks: bool
    calls: list[Calling]
    is_concerned: bool = False
    """A flow may go through it."""

    @property
    def names(self) -> tuple[str, str]:
        """By which it is called: its own name, and that of the class it may make."""
        scope, _, last = self.name.rpartition(".")
        return last, scope.rpartition(".")[2]


class File(Struct, array_like=True, gc=False):
    """The functions of a file."""

    imports: list[str]
    nodes: list[Node]


class _Book(Struct, array_like=True):
    version: int
    files: dict[str, File]


class Change(NamedTuple):
    """What has to be worked out again."""

    affected: list[int]
    """The functions about which something else may be concluded now."""
    within: list[int]
    """Those of them that a flow may go through, and all that they lead to."""


class Links:
    """The functions of a repository and the calls between them."""

    def __init__(self, files: dict[str, File] | None = None) -> None:
        self._files = files or {}
        self.nodes: dict[int, Node] = {}
        self.paths: dict[int, str] = {}
        for path, file in self._files.items():
            self._enter(path, file)

    @classmethod
    def load(cls, saved: bytes) -> "Links | None":
        """Read what `save` wrote; None when it is of another version, or damaged."""
        try:
            book = msgspec.msgpack.decode(saved, type=_Book)
        except msgspec.MsgspecError:
            return None
        return cls(book.files) if book.version == VERSION else None

    def save(self) -> bytes:
        return msgspec.msgpack.encode(_Book(VERSION, self._files))

    def _enter(self, path: str, file: File) -> None:
        for node in file.nodes:
            self.nodes[node.key] = node
            self.paths[node.key] = path

    def change(self, gone: Iterable[str], come: Iterable[Linkable]) -> Change:
        """Take files out and put functions in; those of a file come together."""
        names: set[str] = set()
        for path in gone:
            for node in self._files.pop(path, File([], [])).nodes:
                names.update(node.names)
                del self.nodes[node.key], self.paths[node.key]
        new = self._put(come)
        for key in new:
            names.update(self.nodes[key].names)
        names.discard("")  # what is in no class makes none
        changed = new | self._resolved(new, names)
        callers = self._callers()
        flipped = self._mark(callers)
        concerned = {key for key, node in self.nodes.items() if node.is_concerned}
        # What no flow goes through tells its callers nothing, and none of them is concerned.
        affected = changed | flipped | reached(changed & concerned, callers.__getitem__)
        within = reached(affected & concerned, self.targets)
        return Change(sorted(affected, key=self._order), sorted(within, key=self._order))

    def _order(self, key: int) -> tuple[str, str, int]:
        return self.paths[key], self.nodes[key].name, key

    def _put(self, come: Iterable[Linkable]) -> set[int]:
        new: dict[str, File] = {}
        for one in come:
            file = new.get(one.path)
            if file is None:
                file = new[one.path] = File(list(one.imports), [])
            file.nodes.append(_node(one))
        for path, file in new.items():
            self._files[path] = file
            self._enter(path, file)
        return {node.key for file in new.values() for node in file.nodes}

    def _resolved(self, new: AbstractSet[int], names: AbstractSet[str]) -> set[int]:
        """Look up the calls of new functions and of names; return whose go elsewhere now."""
        asked = [
            (key, call)
            for key, node in self.nodes.items()
            for call in node.calls
            if call.name in names or key in new
        ]
        directory, numbers, keys = self._directory(asked)
        changed: set[int] = set()
        for key, call in asked:
            number = directory.find(numbers[key], call.callee, call.count)
            target = None if number is None else keys[number]
            if target != call.target:
                call.target = target
                changed.add(key)
        return changed

    def _directory(
        self, asked: Sequence[tuple[int, Calling]]
    ) -> tuple[Directory, Mapping[int, int], Sequence[int]]:
        """The functions among which some calls are looked up, with their numbers and keys.

        Those of the names that are called, those that call, and those that these are nested in.
        """
        names = {call.name for _, call in asked} - {""}
        around = {
            (self.paths[key], scope) for key, _ in asked for scope in _scopes(self.nodes[key].name)
        }
        keys = sorted(
            (
                key
                for key, node in self.nodes.items()
                if not names.isdisjoint(node.names) or (self.paths[key], node.name) in around
            ),
            key=self._order,
        )
        directory = Directory([self._function(key) for key in keys])
        return directory, {key: number for number, key in enumerate(keys)}, keys

    def _function(self, key: int) -> Function:
        node, path = self.nodes[key], self.paths[key]
        imports = self._files[path].imports
        return Function(path, node.name, node.lang, imports, node.params, node.is_target)

    def _callers(self) -> dict[int, list[int]]:
        callers: dict[int, list[int]] = {key: [] for key in self.nodes}
        for key, node in self.nodes.items():
            for call in node.calls:
                if call.target is not None:
                    callers[call.target].append(key)
        return callers

    def targets(self, key: int) -> Iterator[int]:
        """The functions that one calls."""
        for call in self.nodes[key].calls:
            if call.target is not None:
                yield call.target

    def _mark(self, callers: Mapping[int, Sequence[int]]) -> set[int]:
        """Mark the functions that a flow may go through; return those that changed sides.

        Its ends meet in a function from which calls lead both to a source and to a sink; it goes
        through that one and through what calls lead to from there.
        """
        sources = [key for key, node in self.nodes.items() if node.has_sources]
        sinks = [key for key, node in self.nodes.items() if node.has_sinks]
        from_here = callers.__getitem__
        meeting = reached(sources, from_here) & reached(sinks, from_here)
        concerned = reached(meeting, self.targets)
        flipped = set()
        for key, node in self.nodes.items():
            if node.is_concerned != (key in concerned):
                node.is_concerned = key in concerned
                flipped.add(key)
        return flipped


def _scopes(name: str) -> Iterator[str]:
    """The name of a function, and of all that it may be nested in."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def reached(start: Iterable[int], steps: Callable[[int], Iterable[int]]) -> set[int]:
    """All that steps lead to from somewhere, with where they start."""
    seen = set(start)
    waiting = list(seen)
    while waiting:
        for following in steps(waiting.pop()):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen


def _node(one: Linkable) -> Node:
    summary = one.summary or Summary(is_callable=False)
    calls = [
        Calling(position, call.callee, own_name(call.callee), call.count)
        for position, call in enumerate(summary.calls)
        if not call.cleans
    ]
    return Node(
        one.key,
        one.name,
        one.lang,
        list(one.params),
        is_target=summary.is_callable,
        has_sources=bool(summary.sources),
        has_sinks=bool(summary.sinks),
        calls=calls,
    )
