"""The call graph of a repository, saved between builds, and the functions that a change affects.

A flow can cross files, so the result for a function depends on everything that it calls, and the target of a call
depends on the names of all functions. Both are updated from what has changed: calls of added or removed names are
resolved again, and a function is solved again if one of its callees has changed. The result equals that of a full
build, which is the same update with everything new.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.risk.call_resolution import Function, FunctionDirectory, split_callee
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary

FORMAT_VERSION: Final = 1


class LinkableFunction(NamedTuple):
    """A function as it is saved between builds."""

    key: int
    path: str
    name: str
    lang: str
    imports: Sequence[str]
    params: Sequence[str]
    summary: FunctionSummary | None


class LinkedCall(Struct, array_like=True, gc=False):
    """A call whose body can be in the repository."""

    position: int
    callee: str
    last_name: str
    """The last part of the callee, by which functions are looked up."""
    argument_count: int
    target: int | None = None
    """The key of the called function, if it is known."""


class FunctionNode(Struct, array_like=True, gc=False):
    """A function with the data that linking needs."""

    key: int
    name: str
    lang: str
    params: list[str]
    is_target: bool
    has_sources: bool
    has_sinks: bool
    calls: list[LinkedCall]
    is_on_flow: bool = False
    """True if a flow can go through the function."""

    @property
    def names(self) -> tuple[str, str]:
        """The names of its calls: its own, and that of the class that it may construct."""
        scope, _, last_name = self.name.rpartition(".")
        return last_name, scope.rpartition(".")[2]


class LinkedFile(Struct, array_like=True, gc=False):
    """The functions of a file."""

    imports: list[str]
    nodes: list[FunctionNode]


class LinkChange(NamedTuple):
    """The functions that have to be solved again."""

    affected: list[int]
    """The functions whose risk can differ now."""
    on_flow: list[int]
    """Those of them that a flow can go through, and all functions that they call."""


class CallGraph:
    """The functions of a repository and the calls between them."""

    def __init__(self, files: dict[str, LinkedFile] | None = None) -> None:
        self._files = files or {}
        self.nodes: dict[int, FunctionNode] = {}
        self.paths: dict[int, str] = {}
        for path, file in self._files.items():
            self._index_nodes(path, file)

    @classmethod
    def load(cls, data: bytes) -> "CallGraph | None":
        """Decode the output of `save`, or return None if it has another version or is damaged."""
        try:
            version, files = msgspec.msgpack.decode(data, type=tuple[int, dict[str, LinkedFile]])
        except msgspec.MsgspecError:
            return None
        return cls(files) if version == FORMAT_VERSION else None

    def save(self) -> bytes:
        return msgspec.msgpack.encode((FORMAT_VERSION, self._files))

    def _index_nodes(self, path: str, file: LinkedFile) -> None:
        for node in file.nodes:
            self.nodes[node.key] = node
            self.paths[node.key] = path

    def apply_change(self, removed_paths: Iterable[str], added_functions: Iterable[LinkableFunction]) -> LinkChange:
        """Remove files and add functions; all functions of a file must be added together."""
        names: set[str] = set()
        for path in removed_paths:
            for node in self._files.pop(path, LinkedFile([], [])).nodes:
                names.update(node.names)
                del self.nodes[node.key], self.paths[node.key]
        new_keys = self._add_functions(added_functions)
        for key in new_keys:
            names.update(self.nodes[key].names)
        names.discard("")  # a function outside of a class constructs nothing
        changed = new_keys | self._resolve_calls(new_keys, names)
        callers = self.find_callers(self.nodes)
        flipped_keys = self._mark_flow_nodes(callers)
        flow_keys = {key for key, node in self.nodes.items() if node.is_on_flow}
        # A function that no flow goes through has no facts that could affect its callers.
        affected = changed | flipped_keys | find_reachable(changed & flow_keys, callers.__getitem__)
        on_flow = find_reachable(affected & flow_keys, self.iter_targets)
        return LinkChange(sorted(affected, key=self._sort_key), sorted(on_flow, key=self._sort_key))

    def _sort_key(self, key: int) -> tuple[str, str, int]:
        return self.paths[key], self.nodes[key].name, key

    def _add_functions(self, functions: Iterable[LinkableFunction]) -> set[int]:
        new_files: dict[str, LinkedFile] = {}
        for function in functions:
            file = new_files.setdefault(function.path, LinkedFile(list(function.imports), []))
            file.nodes.append(_build_node(function))
        self._files |= new_files
        for path, file in new_files.items():
            self._index_nodes(path, file)
        return {node.key for file in new_files.values() for node in file.nodes}

    def _resolve_calls(self, new_keys: AbstractSet[int], names: AbstractSet[str]) -> set[int]:
        """Resolve calls of new functions and of the names; return the callers that changed."""
        pending_calls = [
            (key, call)
            for key, node in self.nodes.items()
            for call in node.calls
            if call.last_name in names or key in new_keys
        ]
        directory = self._build_directory(pending_calls)
        changed: set[int] = set()
        for key, call in pending_calls:
            previous, call.target = call.target, directory.find(key, call.callee, call.argument_count)
            if call.target != previous:
                changed.add(key)
        return changed

    def _build_directory(self, pending_calls: Sequence[tuple[int, LinkedCall]]) -> FunctionDirectory:
        """Return the functions with a called name, the callers, and the functions that enclose them."""
        names = {call.last_name for _, call in pending_calls} - {""}
        enclosing_scopes = {
            (self.paths[key], scope) for key, _ in pending_calls for scope in _iter_scopes(self.nodes[key].name)
        }
        keys = (
            key
            for key, node in self.nodes.items()
            if not names.isdisjoint(node.names) or (self.paths[key], node.name) in enclosing_scopes
        )
        functions = {}
        for key in sorted(keys, key=self._sort_key):
            node, path = self.nodes[key], self.paths[key]
            imports = self._files[path].imports
            functions[key] = Function(path, node.name, node.lang, imports, node.params, node.is_target)
        return FunctionDirectory(functions)

    def find_callers(self, keys: Iterable[int]) -> dict[int, list[int]]:
        """Return the callers of each function that are among some functions."""
        callers: dict[int, list[int]] = {key: [] for key in self.nodes}
        for key in keys:
            for target in self.iter_targets(key):
                callers[target].append(key)
        return callers

    def iter_targets(self, key: int) -> Iterator[int]:
        """Yield the keys of the functions that a function calls."""
        for call in self.nodes[key].calls:
            if call.target is not None:
                yield call.target

    def _mark_flow_nodes(self, callers: Mapping[int, Sequence[int]]) -> set[int]:
        """Mark the functions that a flow can go through; return those whose mark changed.

        The ends of a flow meet in a function from which calls lead both to a source and to a sink;
        the flow goes through that function and through everything it calls.
        """
        sources = [key for key, node in self.nodes.items() if node.has_sources]
        sinks = [key for key, node in self.nodes.items() if node.has_sinks]
        get_callers = callers.__getitem__
        meeting_keys = find_reachable(sources, get_callers) & find_reachable(sinks, get_callers)
        flow_keys = find_reachable(meeting_keys, self.iter_targets)
        changed_keys = {key for key, node in self.nodes.items() if node.is_on_flow != (key in flow_keys)}
        for key in changed_keys:
            self.nodes[key].is_on_flow = key in flow_keys
        return changed_keys


def _iter_scopes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def find_reachable(start: Iterable[int], get_successors: Callable[[int], Iterable[int]]) -> set[int]:
    """Return all nodes that are reachable from the start nodes, including these."""
    visited = set(start)
    pending = list(visited)
    while pending:
        for successor in get_successors(pending.pop()):
            if successor not in visited:
                visited.add(successor)
                pending.append(successor)
    return visited


def _build_node(function: LinkableFunction) -> FunctionNode:
    summary = function.summary or FunctionSummary(is_callable=False)
    calls = [
        LinkedCall(position, call.callee, split_callee(call.callee)[1], call.count)
        for position, call in enumerate(summary.calls)
        if not call.cleans
    ]
    return FunctionNode(
        function.key,
        function.name,
        function.lang,
        list(function.params),
        is_target=summary.is_callable,
        has_sources=bool(summary.sources),
        has_sinks=bool(summary.sinks),
        calls=calls,
    )
