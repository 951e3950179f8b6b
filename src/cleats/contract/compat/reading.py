"""A snapshot on its way in: checked, and in one order whatever order it was written in."""

from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.pointer import pointer
from cleats.contract.snapshot import FORMAT

DEEPEST: Final = 100
"""Levels of nesting. A schema of another server is not ours to trust: recursion has to end."""


class SnapshotError(ValueError):
    """A file or a server gave something that is no snapshot."""


def admit(snapshot: Any) -> dict[str, Any]:
    """The snapshot as plain JSON with sorted keys.

    Raises:
        SnapshotError: it is none, or one of another format.
    """
    if not isinstance(snapshot, Mapping) or not isinstance(snapshot.get("tools"), Mapping):
        raise SnapshotError('not a snapshot: it has no "tools"')
    if snapshot.get("snapshot") != FORMAT:
        found = snapshot.get("snapshot")
        raise SnapshotError(f"a snapshot of format {found!r}, and only {FORMAT} is known")
    plain: dict[str, Any] = _plain(snapshot, ())
    for name, shape in TOP.items():
        _expect(plain, name, shape, "")
    for name, tool in plain["tools"].items():
        at = pointer(("tools", name))
        if not isinstance(tool, dict):
            raise SnapshotError(f"{at} is not an object")
        for key, shape in TOOL.items():
            _expect(tool, key, shape, at)
        if not all(isinstance(a, dict) and "name" in a for a in tool.get("aliases", [])):
            raise SnapshotError(f"{at}/aliases holds one without a name")
    return plain


Shape = type | tuple[type, ...]

TOP: Final[Mapping[str, Shape]] = {
    "schemaVersion": (str, type(None)),
    "semantics": dict,
    "envelope": (dict, bool),
    "errors": dict,
    "tools": dict,
}
TOOL: Final[Mapping[str, Shape]] = {
    "description": (str, type(None)),
    "schemaVersion": (int, type(None)),
    "inputSchema": (dict, bool),
    "outputSchema": (dict, bool),
    "annotations": dict,
    "timeoutMs": (int, float, type(None)),
    "aliases": list,
    "errors": list,
}


def _expect(entry: dict[str, Any], key: str, shape: Shape, at: str) -> None:
    if key in entry and not isinstance(entry[key], shape):
        raise SnapshotError(f"{at}/{key} has the wrong type")


def _plain(value: Any, path: tuple[str | int, ...]) -> Any:
    if len(path) > DEEPEST:
        raise SnapshotError(f"nested more than {DEEPEST} levels deep: {pointer(path[:4])}…")
    if isinstance(value, Mapping):
        return {key: _plain(value[key], (*path, key)) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_plain(part, (*path, place)) for place, part in enumerate(value)]
    return value
