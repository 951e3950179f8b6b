"""The difference of two JSON values as a JSON Patch (RFC 6902) that always applies.

Objects are compared key by key; anything else that differs is replaced whole, arrays too. So no
operation's path lies below another's, the operations commute, and sorting them is safe.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from cleats.contract.pointer import pointer

_encode = msgspec.json.Encoder().encode
_ORDER = {"remove": 0, "add": 1, "replace": 2}


def diff(base: Any, new: Any) -> list[dict[str, Any]]:
    """The operations that turn `base` into `new`, by path."""
    return sorted(_operations(base, new), key=lambda op: (op["path"], _ORDER[op["op"]]))


def _operations(base: Any, new: Any) -> Iterator[dict[str, Any]]:
    pairs = [("", base, new)]  # a stack, because documents may be deeper than Python's
    while pairs:
        path, old, now = pairs.pop()
        if not (isinstance(old, dict) and isinstance(now, dict)):
            if not same(old, now):
                yield {"op": "replace", "path": path, "value": now}
            continue
        for key in sorted(old.keys() | now.keys()):
            where = path + pointer([key])
            if key not in now:
                yield {"op": "remove", "path": where}
            elif key not in old:
                yield {"op": "add", "path": where, "value": now[key]}
            else:
                pairs.append((where, old[key], now[key]))


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, but true is not 1."""
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
