"""The update of a shard's columns: some files leave, others come, and the rest is copied as arrays.

The result has the same bytes as columns written from all the files, in a fraction of the time: values are only
looked at one by one where the set of values changes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cleats.toolsets.code.index.column_writer import (
    CONTENT_FILE_NAME,
    FILE_NUMBER_ARRAYS,
    PERMANENT_COLUMNS,
    VALUE_SEPARATOR,
    WORD_COLUMN,
    ContentColumns,
    PackedArray,
    write_arrays,
)
from cleats.toolsets.code.index.columns import FILE_COLUMNS, Vocabulary, group_arrays, map_arrays

_Arrays = Mapping[str, NDArray[Any]]


class _OwnerMap(Struct, frozen=True):
    """The new numbers of owners: those of the earlier shard, then those of the new files; -1 for owners that leave."""

    numbers: NDArray[np.int64]
    earlier_count: int
    count: int

    @classmethod
    def from_order(cls, order: NDArray[np.int64], earlier_count: int, added_count: int) -> "_OwnerMap":
        numbers = np.full(earlier_count + added_count, -1, np.int64)
        numbers[order] = np.arange(len(order))
        return cls(numbers, earlier_count, len(order))


def read_paths(shard: Path) -> list[str]:
    """Return the paths of the files of a shard, in their order."""
    return Vocabulary(group_arrays(map_arrays(shard / CONTENT_FILE_NAME)).get("path", {})).values()


def update_columns(previous: Path, folder: Path, added: ContentColumns, file_order: Sequence[int]) -> None:
    """Write the columns of a shard from those of an earlier one and of the files that were added.

    `file_order` has the number of each file in the order of paths; added files count from the number of earlier ones.
    """
    earlier, new = map_arrays(previous / CONTENT_FILE_NAME), _read_arrays(added.pack())
    order = np.asarray(file_order, np.int64)
    sizes = np.concatenate([np.diff(arrays["ends"], prepend=0) for arrays in (earlier, new)])
    starts = np.cumsum(sizes) - sizes
    ends = np.cumsum(sizes[order])
    chunk_order = np.arange(sizes[order].sum()) + np.repeat(starts[order] - (ends - sizes[order]), sizes[order])
    files = _OwnerMap.from_order(order, len(earlier["ends"]), len(new["ends"]))
    chunks = _OwnerMap.from_order(chunk_order, len(earlier["modes"]), len(new["modes"]))
    packed: dict[str, PackedArray] = {}
    for name in (name for name in earlier if "." not in name):
        owner_order = order if name in FILE_NUMBER_ARRAYS else chunk_order
        packed[name] = _pack(ends.astype(np.int32) if name == "ends" else _join(earlier, new, name)[owner_order])
    lengths = packed.pop("lengths")
    earlier_columns, new_columns = group_arrays(earlier), group_arrays(new)
    for name in sorted({*earlier_columns, *new_columns}, key=lambda name: (name == WORD_COLUMN, name)):
        owners = files if name in FILE_COLUMNS else chunks
        column = dict(_update_column(earlier_columns.get(name, {}), new_columns.get(name, {}), owners))
        if len(column["starts"].raw) or name in PERMANENT_COLUMNS:
            packed |= {f"{name}.{part}": array for part, array in column.items()}
    write_arrays(folder / CONTENT_FILE_NAME, packed | {"lengths": lengths})


def _read_arrays(packed: Mapping[str, PackedArray]) -> dict[str, NDArray[Any]]:
    return {name: np.frombuffer(raw, np.dtype(dtype)) for name, (dtype, raw) in packed.items()}


def _pack(values: NDArray[Any]) -> PackedArray:
    return PackedArray(values.dtype.str, values.tobytes())


def _join(earlier: _Arrays, new: _Arrays, name: str) -> NDArray[Any]:
    return np.concatenate([arrays[name] for arrays in (earlier, new) if name in arrays])


_TEXT_PARTS: Final = ("text", "starts", "lower", "lower_starts")


def _update_column(earlier: _Arrays, new: _Arrays, owners: _OwnerMap) -> Iterator[tuple[str, PackedArray]]:
    """Yield the parts of a column in the order in which they are written."""
    earlier_values, new_values = Vocabulary(earlier).values(), Vocabulary(new).values()
    numbers, kept_owners, is_kept = _map_postings(earlier, owners.numbers[: owners.earlier_count])
    new_numbers, new_owners, _ = _map_postings(new, owners.numbers[owners.earlier_count :])
    used = np.zeros(len(earlier_values), np.bool_)
    used[numbers] = True
    used_places = np.cumsum(used) - 1
    if used.all():
        remaining = earlier_values
    else:
        remaining = [value for value, is_used in zip(earlier_values, used.tolist(), strict=True) if is_used]
    missing = [(bisect_left(remaining, value), value) for value in new_values]
    missing = [(place, value) for place, value in missing if remaining[place : place + 1] != [value]]
    values = sorted([*remaining, *(value for _, value in missing)]) if missing else remaining
    if earlier and values is earlier_values:
        yield from ((part, _pack(earlier[part])) for part in _TEXT_PARTS if part in earlier)
    else:
        yield from _pack_texts(values)
    shifts = np.searchsorted([place for place, _ in missing], np.arange(len(remaining)), "right")
    place_of = (np.arange(len(remaining)) + shifts)[used_places] if remaining else used_places
    new_place_of = np.fromiter((bisect_left(values, value) for value in new_values), np.int64, len(new_values))
    # Owners of a value follow each other in ascending order, in the earlier column as in the new one.
    keys = place_of[numbers] * owners.count + kept_owners
    new_keys = new_place_of[new_numbers] * owners.count + new_owners
    ranks = np.argsort(new_keys, kind="stable")
    insertions = np.searchsorted(keys, new_keys[ranks])
    keys = np.insert(keys, insertions, new_keys[ranks])
    yield "postings", _pack((keys % max(1, owners.count)).astype(np.int32))
    if "counts" in earlier or "counts" in new:
        counts = earlier["counts"][is_kept] if earlier else np.zeros(0, np.uint8)
        new_counts = new["counts"][ranks] if new else np.zeros(0, np.uint8)
        yield "counts", _pack(np.insert(counts, insertions, new_counts))
    per_value = np.bincount(keys // max(1, owners.count), minlength=len(values))
    yield "bounds", _pack(np.concatenate([[0], np.cumsum(per_value)]).astype(np.int32))


def _pack_texts(values: Sequence[str]) -> Iterator[tuple[str, PackedArray]]:
    """Return the parts of a vocabulary as `column_writer` writes them, in less time."""
    text = f"{VALUE_SEPARATOR}{VALUE_SEPARATOR.join(values)}{VALUE_SEPARATOR}"
    for name, content in zip(("text", "lower"), dict.fromkeys((text, text.lower())), strict=False):
        raw = np.frombuffer(content.encode(errors="surrogatepass"), np.uint8)
        yield name, _pack(raw)
        starts = np.flatnonzero(raw == 0)[: len(values)] + 1
        yield ("starts" if name == "text" else "lower_starts"), _pack(starts.astype(np.int32))


def _map_postings(column: _Arrays, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return value and new owner of each posting whose owner stays, and which these are."""
    if not column:
        empty = np.zeros(0, np.int64)
        return empty, empty, empty
    owners = numbers[column["postings"]]
    is_kept = np.flatnonzero(owners >= 0)
    values = np.repeat(np.arange(len(column["bounds"]) - 1), np.diff(column["bounds"]))
    return values[is_kept], owners[is_kept], is_kept
