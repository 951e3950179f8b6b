"""The two small languages of a profile: templates that are filled in, patterns that are matched.

A template has names in braces, `{root}/{family}/{slug}.md`. A name with a slash at its end,
`{locale/}`, stands for the value and a slash, or for nothing at all when there is no value.

A pattern is the path of a URL, segment by segment: `{family}/{locale?}/{platform}/{page*}`. `?` may
be left out, `*` is any number of segments and comes last; a segment without braces stands for
itself. What a segment may hold is the matcher's question, so that `{locale?}` can tell `de` from a
family.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"\{([a-z_]+)(/?)\}")
_SEGMENT: Final = re.compile(r"\{([a-z_]+)([?*]?)\}")


def names(template: str) -> frozenset[str]:
    """The names that a template needs values for."""
    return frozenset(name for name, _ in _NAME.findall(template))


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its values.

    Raises:
        KeyError: a name has none.
    """

    def put(found: re.Match[str]) -> str:
        value = values[found[1]]
        return f"{value}/" if found[2] and value else value

    return _NAME.sub(put, template)


class _Segment(NamedTuple):
    name: str
    times: str
    """"" for once, "?" for at most once, "*" for any number."""


@cache
def _segments(pattern: str) -> tuple[_Segment | str, ...]:
    made: list[_Segment | str] = []
    for part in filter(None, pattern.split("/")):
        found = _SEGMENT.fullmatch(part)
        made.append(_Segment(found[1], found[2]) if found else part)
    return tuple(made)


Fits = Callable[[str, str], str | None]
"""The value that a segment stands for under a name; None when it does not fit."""


def match(pattern: str, path: Sequence[str], fits: Fits) -> dict[str, str] | None:
    """The values of a path under a pattern; the first way that fits, optional parts taken first."""
    return next(_ways(_segments(pattern), tuple(path), fits), None)


def _ways(
    pattern: Sequence[_Segment | str], path: tuple[str, ...], fits: Fits
) -> Iterator[dict[str, str]]:
    if not pattern:
        if not path:
            yield {}
        return
    head, rest = pattern[0], pattern[1:]
    if isinstance(head, str):
        if path and path[0].lower() == head:
            yield from _ways(rest, path[1:], fits)
        return
    if head.times == "*":
        yield {head.name: "/".join(path)} if path else {}
        return
    if path and (value := fits(head.name, path[0])) is not None:
        yield from ({head.name: value, **more} for more in _ways(rest, path[1:], fits))
    if head.times == "?":
        yield from _ways(rest, path, fits)
