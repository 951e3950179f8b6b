"""Templates: Markdown with tokens, from which pages are made.

A token is `__UPPER_SNAKE__`. Alone on its line it stands for a block of text, within a line for a
few words. Tokens without a value leave no trace: a line with an empty token is removed, and so is a
heading under which every token is empty. So a template can offer everything that could be said
about a product, and a page states only what has evidence.

The base templates are next to this module; a profile's own template with the same name takes
precedence.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.site import pages

TOKEN_PATTERN = re.compile(r"__([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)__")
BASE_TEMPLATES_DIR = Path(__file__).parent / "templates"

_HEADING_PATTERN = re.compile(r"^(#{2,6})\s+(.*)$")


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """One template: its name, its front matter and its text."""

    name: str
    front: Mapping[str, Any]
    body: str

    @property
    def tokens(self) -> frozenset[str]:
        """The tokens of the text and the front matter."""
        texts = [self.body, *(str(value) for value in self.front.values())]
        return frozenset(token for text in texts for token in TOKEN_PATTERN.findall(text))

    def fill_front(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the front matter with its values, without keys whose token is empty."""
        front: dict[str, Any] = {}
        for key, value in self.front.items():
            if not isinstance(value, str):
                front[key] = value
            elif all(values[token] for token in TOKEN_PATTERN.findall(value)):
                front[key] = TOKEN_PATTERN.sub(lambda match: values[match.group(1)], value)
        return front

    def fill_body(self, values: Mapping[str, str]) -> str:
        """Return the text with its values, without empty parts.

        Raises:
            KeyError: A token is unknown.
        """
        filled_text = "\n".join(_fill_sections(_split_sections(self.body.split("\n")), values))
        return _collapse_blank_lines(filled_text).strip("\n") + "\n"


@dataclass(frozen=True, slots=True)
class _TemplateSection:
    """A heading and the text directly below it; the first section has no heading."""

    level: int
    lines: tuple[str, ...]


def find_template(
    section: str, slug: str, role: str, *, folder: Path, locale: str, variant: str
) -> PageTemplate | None:
    """Find the template of a page by its slug, else by its role; the profile's come first.

    The variant `name.rich.md` takes precedence over `name.md` if the launch has that tier.
    Languages other than English have only the templates of the profile.
    """
    names = [f"{section}/{slug}", slug, f"{section}/{role}", role]
    roots = [folder / locale, *([folder, BASE_TEMPLATES_DIR] if locale == "en" else [])]
    for name in names:
        for root in roots:
            for suffix in (f".{variant}.md", ".md"):
                file = root / f"{name}{suffix}"
                if file.is_file():
                    page = pages.parse_page(file.read_text(encoding="utf-8"))
                    return PageTemplate(f"{name}{suffix}", page.front, page.body)
    return None


def _collapse_blank_lines(text: str) -> str:
    """Remove the gaps that empty tokens left; blank lines in code are kept."""
    code_line_numbers = pages.find_code_lines(text)
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line or number in code_line_numbers or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)


def _split_sections(lines: Sequence[str]) -> list[_TemplateSection]:
    sections: list[_TemplateSection] = []
    level, section_lines = 0, list[str]()
    for line in lines:
        if heading := _HEADING_PATTERN.match(line):
            sections.append(_TemplateSection(level, tuple(section_lines)))
            level, section_lines = len(heading.group(1)), []
        section_lines.append(line)
    return [*sections, _TemplateSection(level, tuple(section_lines))]


def _fill_sections(sections: Sequence[_TemplateSection], values: Mapping[str, str]) -> Iterator[str]:
    for section in _drop_empty_sections(sections, values):
        for line in section.lines:
            tokens = TOKEN_PATTERN.findall(line)
            if all(values[token] for token in tokens):
                yield TOKEN_PATTERN.sub(lambda match: values[match.group(1)], line)


def _drop_empty_sections(sections: Sequence[_TemplateSection], values: Mapping[str, str]) -> list[_TemplateSection]:
    """Remove sections whose tokens are all empty, and headings with nothing below them."""
    remaining: list[_TemplateSection] = []
    for section in reversed(sections):
        tokens = [token for line in section.lines[1:] for token in TOKEN_PATTERN.findall(line)]
        heading_tokens = TOKEN_PATTERN.findall(section.lines[0]) if section.lines else []
        has_no_values = bool(tokens) and not any(values[token] for token in tokens)
        has_subsection = bool(remaining) and remaining[0].level > section.level
        has_no_text = not any(line.strip() for line in section.lines[1:])
        if section.level and (
            not all(values[token] for token in heading_tokens)
            or ((has_no_values or has_no_text) and not has_subsection)
        ):
            continue
        remaining.insert(0, section)
    return remaining
