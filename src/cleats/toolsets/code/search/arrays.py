"""Named arrays in one file, which is mapped into memory and never copied.

A file is a line of JSON that says where each array is, then the arrays, aligned. The same arrays
make the same bytes. Who writes them needs no numpy; who maps them gets its arrays.
"""

import json
import sys
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALIGNED: Final = 64

_ORDER: Final = "<" if sys.byteorder == "little" else ">"


class Stored(NamedTuple):
    """An array as it is written."""

    kind: str
    """As numpy spells it: `<i4`."""
    raw: bytes


def numbers(values: "array[int]") -> Stored:
    """Whole numbers."""
    return Stored(f"{_ORDER}i{values.itemsize}", values.tobytes())


def letters(raw: bytes) -> Stored:
    """Bytes."""
    return Stored("|u1", raw)


def flags(raw: bytes) -> Stored:
    """Bytes that are 0 for no and 1 for yes."""
    return Stored("|b1", raw)


def save(path: Path, arrays: Mapping[str, Stored]) -> None:
    """Write them; a name may have dots, which group names."""
    table: dict[str, tuple[str, list[int], int]] = {}
    at = 0
    for name, (kind, raw) in arrays.items():
        table[name] = (kind, [len(raw) // int(kind[2:])], at)
        at += -(-len(raw) // ALIGNED) * ALIGNED
    head = json.dumps(table, separators=(",", ":")).encode() + b"\n"
    head = head.rjust(-(-len(head) // ALIGNED) * ALIGNED)
    with path.open("wb") as file:
        file.write(head)
        for _, raw in arrays.values():
            file.write(raw)
            file.write(b"\0" * (-len(raw) % ALIGNED))


def load(path: Path) -> "dict[str, NDArray[Any]]":
    """Map them."""
    import numpy as np  # noqa: PLC0415 - only for who reads

    whole = np.memmap(path, dtype=np.uint8, mode="r")
    with path.open("rb") as file:
        head = file.readline()
    return dict(_views(whole, len(head), json.loads(head)))


def _views(
    whole: "NDArray[np.uint8]", begin: int, table: Mapping[str, tuple[str, list[int], int]]
) -> "Iterator[tuple[str, NDArray[Any]]]":
    import numpy as np  # noqa: PLC0415

    plain = whole.view(np.ndarray)  # slices of a memmap drag a slow class along
    for name, (kind, [count], at) in table.items():
        dtype = np.dtype(kind)
        start = begin + at
        yield name, plain[start : start + count * dtype.itemsize].view(dtype)


def group(arrays: "Mapping[str, NDArray[Any]]") -> "dict[str, dict[str, NDArray[Any]]]":
    """The arrays by what is before the dot in their names."""
    grouped: dict[str, dict[str, NDArray[Any]]] = {}
    for name, found in arrays.items():
        before, dot, after = name.partition(".")
        if dot:
            grouped.setdefault(before, {})[after] = found
    return grouped
