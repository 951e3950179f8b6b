"""What a chunk counts by what it is and where it is, whatever a question asks for.

By its kind, by how much it does, by being of a test, and by being a copy of another one that was
found as well. Nothing is ever left out for it: it only stands lower, and says why.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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
    r"|(?:^|/)[tT]est[-_]?(?:[hH]elper|[uU]til)s?\.[^/]*$"
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

_BUILD = re.compile(
    r"[/.](?:dist|build|out|bundles?|umd|cjs|mjs|jsx?|esm?\d*|legacy|modern"
    r"|development|production|min|d|[cm]?ts)(?=[/.]|$)"
)
"""Parts of a path that tell one build of a file from another."""

_DOTS: Final = str.maketrans(":#", "..")
"""What stands between the parts of a qualified name, as one sign."""


def repeats(path: str) -> bool:
    """Whether a file repeats others: declarations, what a build writes, what was taken over."""
    return path.endswith(_ENDINGS) or _FOLDERS.search(f"/{path}") is not None


def worth(uses: NDArray[np.int64]) -> NDArray[np.float32]:
    """What the points of something with a body are multiplied with, by how many names it uses."""
    share = uses / (uses + HALFWAY)
    return (SLIGHT + (RICH - SLIGHT) * share).astype(np.float32)


class Called(NamedTuple):
    """What a chunk is called, as far as it tells copies."""

    own: str
    """The last part of its name: a bundle has the same function under another owner."""
    built: str
    """Its whole name, and its file without what tells one build from another."""
    path: str

    @classmethod
    def of(cls, name: str, path: str) -> "Called":
        built = f"{name} {_BUILD.sub('', f'/{path}')}" if name else ""
        return cls(own_name(name), built, path)


def copies(copied: Mask, of_tests: Mask, called: Sequence[Called]) -> Mask:
    """Which of some chunks, in their order, are copies of others among them.

    Of builds whose source is not among them the first stands for all.

    Args:
        copied: Who is in a file that repeats others.
        of_tests: Who is in one of tests; nothing is a copy of a test.
        called: What they are called.
    """
    known = zip(called, (copied | of_tests).tolist(), strict=True)
    originals = {each.own for each, left_out in known if each.own and not left_out}
    first: dict[str, str] = {}

    def repeated(each: Called) -> bool:
        if each.own in originals:
            return True
        return bool(each.built) and first.setdefault(each.built, each.path) != each.path

    found = zip(copied.tolist(), called, strict=True)
    return np.fromiter((is_one and repeated(each) for is_one, each in found), np.bool_)


def own_name(name: str) -> str:
    """The last part of a qualified name."""
    return name if " " in name else name.translate(_DOTS).rpartition(".")[2]
