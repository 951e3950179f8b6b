"""One column of a shard on its way to the disk: its values, and who has each of them.

What is put in comes in the order of its owners, so nothing has to be sorted but the values. The
same content always makes the same bytes. Numpy could do no more here and takes a small update
longer to load than all columns to fill; `vocabulary` reads with it what is written here.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, islice

from cleats.toolsets.code.search.arrays import Stored, letters, numbers

END = "\0"
"""Between values; none has it, because no name or path does and other text loses it here."""


class Postings:
    """The owners of each value."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: defaultdict[str, list[int]] = defaultdict(list)

    def one(self, values: Iterable[str], owner: int) -> None:
        """An owner, not before the last one, and all it has."""
        for value in filter(None, values):
            having = self._owners[value]
            if not having or having[-1] != owner:
                having.append(owner)

    def add(self, values: Sequence[str], pairs: Iterable[tuple[int, int]], base: int) -> None:
        """Values, and pairs of an owner and the number of one of them, in the order of owners.

        Owners count from `base`.
        """
        known = [self._owners[value] for value in values]
        for owner, number in pairs:
            having = known[number]
            if not having or having[-1] != base + owner:
                having.append(base + owner)

    def stored(self) -> dict[str, Stored]:
        """The arrays that `vocabulary.Column` reads."""
        if END in "".join(self._owners):
            self._owners = _joined(self._owners)
        values = sorted(self._owners)
        owners = [self._owners[value] for value in values]
        arrays = _texts(values)
        arrays["postings"] = numbers(array("i", chain.from_iterable(owners)))
        arrays["bounds"] = numbers(array("i", accumulate(map(len, owners), initial=0)))
        return arrays


def _joined(owners: "defaultdict[str, list[int]]") -> "defaultdict[str, list[int]]":
    """Without the sign between values; two of them may be the same then."""
    joined: defaultdict[str, list[int]] = defaultdict(list)
    for value, having in owners.items():
        joined[value.replace(END, "")] += having
    for value, having in joined.items():
        joined[value] = sorted(set(having))
    return joined


def _texts(values: Sequence[str]) -> dict[str, Stored]:
    text = END + END.join(values) + END
    lowered = text.lower()
    arrays: dict[str, Stored] = {}
    arrays["text"], arrays["starts"] = _blob(text, len(values))
    if lowered != text:
        arrays["lower"], arrays["lower_starts"] = _blob(lowered, len(values))
    return arrays


def _blob(text: str, values: int) -> tuple[Stored, Stored]:
    raw = text.encode(errors="surrogatepass")
    pieces = islice(raw.split(b"\0"), 1, 1 + values)
    starts = islice(accumulate((len(piece) + 1 for piece in pieces), initial=1), values)
    return letters(raw), numbers(array("i", starts))
