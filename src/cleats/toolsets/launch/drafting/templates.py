"""Templates: Markdown with tokens, which pages are made from.

A token is `__UPPER_SNAKE__`. Alone on its line it stands for a block of text, within a line for a
few words. What has no value leaves no trace: a line with an empty token goes, and so does a heading
under which every token was empty. So a template may offer all that could be said about a product,
and a page says what there is evidence for.

The base set lies beside this module; a profile's own template of the same name wins.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.toolsets.launch import pages

TOKEN = re.compile(r"__([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)__")
BASE = Path(__file__).parent / "templates"

_HEADING = re.compile(r"^(#{2,6})\s+(.*)$")


@dataclass(frozen=True, slots=True)
class Template:
    """One template: where it came from, its front matter, its text."""

    name: str
    front: Mapping[str, Any]
    body: str

    @property
    def tokens(self) -> frozenset[str]:
        """The tokens that it needs values for, those of the front matter included."""
        texts = [self.body, *(str(value) for value in self.front.values())]
        return frozenset(token for text in texts for token in TOKEN.findall(text))

    def filled_front(self, values: Mapping[str, str]) -> dict[str, Any]:
        """The front matter with its values; a key whose token is empty goes."""
        made: dict[str, Any] = {}
        for key, value in self.front.items():
            if not isinstance(value, str):
                made[key] = value
            elif all(values[token] for token in TOKEN.findall(value)):
                made[key] = TOKEN.sub(lambda found: values[found.group(1)], value)
        return made

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with its values, without what has none.

        Raises:
            KeyError: a token is unknown.
        """
        kept = "\n".join(_filled(_sections(self.body.split("\n")), values))
        return _spaced(kept).strip("\n") + "\n"


@dataclass(frozen=True, slots=True)
class _Part:
    """A heading and what stands directly under it; the first part has no heading."""

    level: int
    lines: tuple[str, ...]


def find(
    section: str, slug: str, role: str, *, folder: Path, locale: str, variant: str
) -> Template | None:
    """Find the template of a page: by its slug, else by its role; the profile's first.

    A variant `name.rich.md` wins over `name.md` when the launch is of that tier. Another language
    than the base set's has templates only where the profile brings them.
    """
    names = [f"{section}/{slug}", slug, f"{section}/{role}", role]
    roots = [folder / locale, *([folder, BASE] if locale == "en" else [])]
    for name in names:
        for root in roots:
            for ending in (f".{variant}.md", ".md"):
                file = root / f"{name}{ending}"
                if file.is_file():
                    page = pages.parse(file.read_text(encoding="utf-8"))
                    return Template(f"{name}{ending}", page.front, page.body)
    return None


def _spaced(text: str) -> str:
    """Close the gaps that empty tokens left; code keeps its own empty lines."""
    code = pages.code_lines(text)
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line or number in code or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)


def _sections(lines: Sequence[str]) -> list[_Part]:
    parts: list[_Part] = []
    level, kept = 0, list[str]()
    for line in lines:
        if heading := _HEADING.match(line):
            parts.append(_Part(level, tuple(kept)))
            level, kept = len(heading.group(1)), []
        kept.append(line)
    return [*parts, _Part(level, tuple(kept))]


def _filled(parts: Sequence[_Part], values: Mapping[str, str]) -> Iterator[str]:
    for part in _with_something(parts, values):
        for line in part.lines:
            tokens = TOKEN.findall(line)
            if all(values[token] for token in tokens):
                yield TOKEN.sub(lambda found: values[found.group(1)], line)


def _with_something(parts: Sequence[_Part], values: Mapping[str, str]) -> list[_Part]:
    """Leave out each part that has tokens and no value, and a heading left with nothing below."""
    kept: list[_Part] = []
    for part in reversed(parts):
        tokens = [token for line in part.lines[1:] for token in TOKEN.findall(line)]
        named = TOKEN.findall(part.lines[0]) if part.lines else []
        empty = bool(tokens) and not any(values[token] for token in tokens)
        below = bool(kept) and kept[0].level > part.level
        silent = not any(line.strip() for line in part.lines[1:])
        if part.level and (
            not all(values[token] for token in named) or ((empty or silent) and not below)
        ):
            continue
        kept.insert(0, part)
    return kept
