"""Code in colour, line by line. Pygments is imported when the first code is shown."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from markupsafe import Markup

MAX_COLOURED_CHARS: Final = 200_000
"""The size of a text above which it is shown without colours: they take a second per megabyte or two."""

LEXER_NAMES: Final = {"c++": "cpp", "c#": "csharp", "csharp": "csharp", "shell": "bash", "objective-c": "objectivec"}
"""Languages that the lexers know by another name."""


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of code, ready for a page."""

    number: int
    html: "Markup"
    is_marked: bool = False


def highlight_lines(
    text: str, *, language: str = "", path: str = "", first_line: int = 1, marked_lines: Collection[int] = ()
) -> list[CodeLine]:
    """Return the lines of a text in colour; `marked_lines` stand out."""
    from markupsafe import Markup  # noqa: PLC0415 - with the first page

    lines = _colour_lines(text, language.lower(), path)
    return [
        CodeLine(number, Markup(line), number in marked_lines)  # noqa: S704 - `_colour_lines` escapes
        for number, line in enumerate(lines, first_line)
    ]


@lru_cache(maxsize=512)
def _colour_lines(text: str, language: str, path: str) -> Sequence[str]:
    """Return the lines of a text as HTML. The only markup is `<span class="…">` with a class of Pygments."""
    if len(text) > MAX_COLOURED_CHARS:
        return [escape(line) for line in text.split("\n")]
    lexer = _find_lexer(language, path)
    lines: list[list[str]] = [[]]
    for css_class, value in _read_tokens(lexer, text):
        for index, part in enumerate(value.split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append(f'<span class="{css_class}">{escape(part)}</span>' if css_class else escape(part))
    return ["".join(parts) for parts in lines]


def _read_tokens(lexer: Any, text: str) -> Iterable[tuple[str, str]]:
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415 - by the first code

    for kind, value in lexer.get_tokens(text):
        while kind not in STANDARD_TYPES:
            kind = kind.parent  # noqa: PLW2901 - the nearest kind that has a class
        css_class = STANDARD_TYPES[kind]
        yield ("" if css_class in {"w", "p"} else css_class), value


@lru_cache(maxsize=256)
def _find_lexer(language: str, path: str) -> Any:
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename  # noqa: PLC0415
    from pygments.lexers.special import TextLexer  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    options = {"stripnl": False, "ensurenl": False}
    try:
        if language:
            return get_lexer_by_name(LEXER_NAMES.get(language, language), **options)
        return get_lexer_for_filename(path, **options)
    except ClassNotFound:
        return TextLexer(**options)
