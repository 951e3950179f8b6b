"""The difference of two JSON values as a JSON Patch (RFC 6902) that always applies.

Objects are compared key by key; any other difference replaces the whole value, arrays too. So no
operation's path lies below another's, the operations commute, and sorting them is safe.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from cleats.contract.pointer import join_pointer

_encode = msgspec.json.Encoder().encode
_OPERATION_ORDER = {"remove": 0, "add": 1, "replace": 2}


def diff_values(base: Any, new: Any) -> list[dict[str, Any]]:
    """Return the operations that turn `base` into `new`, sorted by path."""
    return sorted(_iter_operations(base, new), key=lambda op: (op["path"], _OPERATION_ORDER[op["op"]]))


def _iter_operations(base: Any, new: Any) -> Iterator[dict[str, Any]]:
    pairs = [("", base, new)]  # a stack, because documents may be deeper than Python's call stack
    while pairs:
        path, old, updated = pairs.pop()
        if not (isinstance(old, dict) and isinstance(updated, dict)):
            if not is_same_json(old, updated):
                yield {"op": "replace", "path": path, "value": updated}
            continue
        for key in sorted(old.keys() | updated.keys()):
            key_path = path + join_pointer([key])
            if key not in updated:
                yield {"op": "remove", "path": key_path}
            elif key not in old:
                yield {"op": "add", "path": key_path, "value": updated[key]}
            else:
                pairs.append((key_path, old[key], updated[key]))


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 equals 1.0, but true does not equal 1."""
    if one != other:  # Python's own comparison is right about every difference that it sees
        return False
    if type(one) is type(other) and not isinstance(one, dict | list):
        return True
    if _encode(one) == _encode(other):  # by far the most frequent case, and by far the fastest
        return True
    pairs = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, bool) is not isinstance(b, bool):
            return False
        if isinstance(a, dict):
            pairs += ((a[key], b[key]) for key in a)
        elif isinstance(a, list):
            pairs += zip(a, b, strict=True)
    return True
