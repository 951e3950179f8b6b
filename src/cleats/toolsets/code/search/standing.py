"""What a chunk counts by what it is and where it is, whatever a question asks for.

By its kind, by how much it does, by being of a test, and by being a copy of another one that was
found as well. Nothing is ever left out for it: it only stands lower, and says why.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search.vocabulary import Mask

KINDS: Final[Mapping[str, float]] = {"module": 0.6, "class": 0.9, "lines": 0.9, "entry": 0.9}
"""What a score in a list is multiplied with, by the kind of the chunk."""

TESTS: Final = 0.8
"""What a fused score is multiplied with in code of tests, unless the operator wants it the same or
the question is about tests: tests repeat the names of what they test."""

OF_TESTS: Final = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|testdata)/|(?:^|/)(?:test_|conftest\.)[^/]*$"
    r"|[._-](?:test|spec)\.[^/.]+$|_test\.[^/.]+$|Tests?\.[^/.]+$"
)

COPY: Final = 0.4
"""What a fused score is multiplied with in a copy, so that five of them do not hide the rest."""

_ENDINGS: Final = (
    *(".d.ts", ".d.mts", ".d.cts", ".pyi"),
    *(".min.js", "-min.js", ".min.mjs", ".min.cjs"),
)
_FOLDERS = re.compile(
    # All begin with the same sign, which is what makes it quick over thousands of paths.
    r"/(?:(?:dist|build|out|bundles?|umd|cjs|esm\d*)/.*\.(?:[cm]?js|jsx)$"
    r"|build/lib[^/]*/|(?:vendor|vendored|_vendor|third_party|node_modules)/)"
)

BODIED: Final = frozenset(
    ("function", "method", "constructor", "property", "constant", "type", "interface")
)
"""Kinds that say by the names they use how much they do; the others stay as they are."""

SLIGHT, RICH, HALFWAY = 0.8, 4 / 3, 5
"""What the points of lists are multiplied with in what uses no name and in what uses very many,
and how many names are halfway. An accessor has few words, so that each of them weighs much; but a
question is about what does the work. Three names count 1, as everything of another kind does."""

_DOTS: Final = str.maketrans(":#", "..")
"""What stands between the parts of a qualified name, as one sign."""


def repeats(path: str) -> bool:
    """Whether a file repeats others: declarations, what a build writes, what was taken over."""
    return path.endswith(_ENDINGS) or _FOLDERS.search(f"/{path}") is not None


def worth(uses: NDArray[np.int64]) -> NDArray[np.float32]:
    """What the points of something with a body are multiplied with, by how many names it uses."""
    share = uses / (uses + HALFWAY)
    return (SLIGHT + (RICH - SLIGHT) * share).astype(np.float32)


def copies(copied: Mask, of_tests: Mask, called: Sequence[str]) -> Mask:
    """Which of some chunks are copies of others among them.

    Args:
        copied: Who is in a file that repeats others.
        of_tests: Who is in one of tests; nothing is a copy of a test.
        called: Their own names.
    """
    known = zip(called, (copied | of_tests).tolist(), strict=True)
    originals = {name for name, left_out in known if name and not left_out}
    return copied & np.fromiter((name in originals for name in called), np.bool_)


def own_name(name: str) -> str:
    """The last part of a qualified name: a bundle has the same function under another owner."""
    return name if " " in name else name.translate(_DOTS).rpartition(".")[2]
