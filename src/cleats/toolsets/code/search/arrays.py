"""Named arrays in one file, which is mapped into memory and never copied.

A file is a line of JSON that says where each array is, then the arrays, aligned. The same arrays
make the same bytes.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALIGNED: Final = 64


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write them; a name may have dots, which group names."""
    table: dict[str, tuple[str, list[int], int]] = {}
    at = 0
    for name, array in arrays.items():
        table[name] = (array.dtype.str, list(array.shape), at)
        at += -(-array.nbytes // ALIGNED) * ALIGNED
    head = json.dumps(table, separators=(",", ":")).encode() + b"\n"
    head = head.rjust(-(-len(head) // ALIGNED) * ALIGNED)
    with path.open("wb") as file:
        file.write(head)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())
            file.write(b"\0" * (-array.nbytes % ALIGNED))


def load(path: Path) -> dict[str, NDArray[Any]]:
    """Map them."""
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    with path.open("rb") as file:
        head = file.readline()
    return dict(_views(whole, len(head), json.loads(head)))


def _views(
    whole: NDArray[np.uint8], begin: int, table: Mapping[str, tuple[str, list[int], int]]
) -> Iterator[tuple[str, NDArray[Any]]]:
    plain = whole.view(np.ndarray)  # slices of a memmap drag a slow class along
    for name, (kind, shape, at) in table.items():
        dtype = np.dtype(kind)
        size = dtype.itemsize * int(np.prod(shape))
        yield name, plain[begin + at : begin + at + size].view(dtype).reshape(shape)


def group(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """The arrays by what is before the dot in their names."""
    grouped: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        before, dot, after = name.partition(".")
        if dot:
            grouped.setdefault(before, {})[after] = array
    return grouped
