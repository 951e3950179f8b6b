"""Hits as lines of a terminal: location, kind, name, and the matching words."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import click

from cleats.cli.output import clip_text, escape_controls, limit_to_terminal, line_width, style_heading
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.query.parser import parse_query
from cleats.toolsets.code.query.tree import iterate_leaves

MODE_TITLES: Final[Mapping[str, str]] = {
    "code": "Code",
    "prose": "Documents",
    "extractedProse": "Comments and docstrings",
    "records": "Records",
}

MAX_EXTRA_LINES: Final = 3
"""The most lines of a hit that are shown besides its first."""

MAX_CONTEXT_LINES: Final = 60
"""The most lines of a hit that are shown together with its context."""


class HitPrinter:
    """A printer for the hits of an answer."""

    def __init__(self, answer: Mapping[str, Any], arguments: Mapping[str, Any], *, compact: bool, full: bool) -> None:
        self._answer = answer
        self._compact, self._full = compact, full
        self._has_context = bool(arguments.get("context"))
        words = (
            word for leaf in iterate_leaves(parse_query(arguments["query"])) for word in _significant_words(leaf.text)
        )
        self._query_stems = frozenset(map(tokens.stem_word, words))

    def show(self) -> None:
        """Print every hit."""
        modes = [mode for mode in MODE_TITLES if self._answer[mode]]
        for number, mode in enumerate(modes):
            if len(modes) > 1 and not self._compact:
                click.echo(("\n" if number else "") + style_heading(MODE_TITLES[mode]))
            for hit in self._answer[mode]:
                click.echo(self._render_line(hit) if self._compact else self._render_block(hit))

    def _render_line(self, hit: Mapping[str, Any]) -> str:
        location = f"{_format_file(hit)}:{hit['startLine']}"
        title = escape_controls(f"{hit['kind']} {hit['name']}")
        headline_width = limit_to_terminal(max(20, line_width() - len(location) - len(title) - 6))
        return f"{_style_location(location)}: {_style_name(title)}  {clip_text(hit['headline'], headline_width)}"

    def _render_block(self, hit: Mapping[str, Any]) -> str:
        location = f"{_format_file(hit)}:{hit['startLine']}-{hit['endLine']}"
        title = _style_name(escape_controls(f"{hit['kind']} {hit['name']}"))
        lines = [f"{_style_location(location)}  {title}  {hit['score']:.4g}"]
        lines += self._render_breakdown(hit)
        if self._full:
            lines += _render_facts(hit)
        lines += self._render_text(hit)
        return "\n".join(lines)

    def _render_text(self, hit: Mapping[str, Any]) -> Iterator[str]:
        hit_lines = list(enumerate(hit["text"].split("\n"), hit["startLine"]))
        if self._has_context:
            first_number = hit["startLine"] - len(hit["preContext"])
            shown_lines = [*enumerate(hit["preContext"], first_number), *hit_lines[:MAX_CONTEXT_LINES]]
            if len(hit_lines) <= MAX_CONTEXT_LINES:
                shown_lines += enumerate(hit["postContext"], hit["endLine"] + 1)
        elif self._full:
            shown_lines = hit_lines
        else:
            shown_lines = self._select_lines(hit_lines)
        digits = len(str(shown_lines[-1][0])) if shown_lines else 1
        last_number = None
        for number, line in shown_lines:
            if last_number is not None and number != last_number + 1:
                yield click.style("  " + " " * digits + " ⋮", dim=True)
            last_number = number
            margin = click.style(f"  {number:>{digits}} │ ", dim=True)
            yield (margin + self._highlight_words(line)).rstrip()
        if self._full and hit.get("truncated"):
            rest = f"{_format_file(hit)}:{hit['startLine'] + len(hit_lines)}-{hit['endLine']}"
            yield click.style(f"  The rest: cleats show {rest}", dim=True)

    def _select_lines(self, hit_lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the first line with any text, and the lines with the most query words."""
        first = next((candidate for candidate in hit_lines if any(map(str.isalnum, candidate[1]))), hit_lines[0])
        scored = [(-len(self._query_stems & _stem_words(line)), number, line) for number, line in hit_lines]
        best = sorted(candidate for candidate in scored if candidate[0] and candidate[1] != first[0])[:MAX_EXTRA_LINES]
        return sorted([first, *((number, line) for _, number, line in best)])

    def _highlight_words(self, line: str) -> str:
        """Highlight the words of the query in a line."""
        line_text = clip_end(escape_controls(line.expandtabs(4)), limit_to_terminal(line_width() - 10))
        boundaries = [0]
        for match in tokens.WORD_PATTERN.finditer(line_text):
            if self._query_stems & _stem_words(match[0]):
                boundaries += match.span()
        boundaries.append(len(line_text))
        parts = [line_text[start:end] for start, end in pairwise(boundaries)]
        return "".join(
            click.style(part, fg="red", bold=True) if number % 2 else part for number, part in enumerate(parts)
        )

    def _render_breakdown(self, hit: Mapping[str, Any]) -> Iterator[str]:
        for part in hit.get("scoreBreakdown", {}).get("parts", []):
            rank = "" if part["rank"] is None else f"  rank {part['rank']}, {part['score']:.4g}"
            yield click.style(f"    {part['points']:.6f}  {part['name']}{rank}", dim=True)


def _format_file(hit: Mapping[str, Any]) -> str:
    return escape_controls(f"{hit['repo']}:{hit['file']}" if "repo" in hit else hit["file"])


def _render_facts(hit: Mapping[str, Any]) -> Iterator[str]:
    facts = hit["docmeta"] | {"author": hit["lastAuthor"], "modified": hit["lastModified"]}
    for name, value in facts.items():
        if value and name not in {"doc", "comments", "own", "fields", "types"}:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield click.style("    " + clip_text(f"{name}: {text}", limit_to_terminal(line_width() - 4)), dim=True)


def clip_end(line: str, max_length: int | None) -> str:
    """Cut a line to at most this length, keeping its spaces."""
    return line if max_length is None or len(line) <= max_length else line[: max_length - 1] + "…"


def _significant_words(text: str) -> list[str]:
    words = tokens.tokenize_text(text)
    return [word for word in words if word not in tokens.STOP_WORDS] or words


def _stem_words(text: str) -> frozenset[str]:
    return frozenset(tokens.stem_text(text).split())


def _style_location(text: str) -> str:
    return click.style(text, fg="cyan")


def _style_name(text: str) -> str:
    return click.style(text, bold=True)
