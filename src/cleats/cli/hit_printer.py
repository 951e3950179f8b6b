"""Hits of a search as lines of a terminal: the place, the lines that match, and flows of risk."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import click

from cleats.cli.output import clip_text, escape_controls, limit_to_terminal, line_width, style_heading
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.query.arguments import DEFAULT_TOP_HITS, FILTER_ARGUMENTS
from cleats.toolsets.code.query.parser import parse_query
from cleats.toolsets.code.query.tree import iterate_leaves

ANSWER_MODES: Final = ("code", "prose", "extractedProse", "records")

MAX_EXTRA_LINES: Final = 3
"""The most lines of a hit that are shown besides its first and those of its flows of risk."""

MAX_CONTEXT_LINES: Final = 60
"""The most lines of a hit that are shown together with its context."""

MAX_SHOWN_FLOWS: Final = 3
"""The most flows of risk that are shown for a hit."""

MATCHED_FILTERS: Final = tuple(
    argument.name
    for argument in FILTER_ARGUMENTS
    if argument.topic == "body" and argument.matcher in {"contains", "member", "module"}
)
"""The filters whose values occur in the lines of a hit."""


class HitPrinter:
    """A printer for the hits of an answer."""

    def __init__(self, answer: Mapping[str, Any], arguments: Mapping[str, Any], *, compact: bool, full: bool) -> None:
        self._answer = answer
        self._compact, self._full = compact, full
        self._has_context = bool(arguments.get("context"))
        self._max_hits = max(1, arguments.get("top") or DEFAULT_TOP_HITS)
        self._query_stems = {stem for text in _list_searched_texts(arguments) for stem in _stem_query(text)}

    def render(self) -> str:
        """Return the best hits of all modes together, best first, without comments of code that is a hit itself."""
        declared = {(hit["file"], hit["name"]) for hit in self._answer["code"]}
        hits = [
            hit
            for mode in ANSWER_MODES
            for hit in self._answer[mode]
            if mode != "extractedProse" or (hit["file"], hit["name"]) not in declared
        ]
        hits.sort(key=lambda hit: -hit["score"])
        render_hit = self._render_line if self._compact else self._render_block
        return "\n".join(map(render_hit, hits[: self._max_hits]))

    def _render_line(self, hit: Mapping[str, Any]) -> str:
        location = f"{_format_file(hit)}:{hit['startLine']}"
        title = escape_controls(f"{hit['kind']} {hit['name']}")
        headline_width = limit_to_terminal(max(20, line_width() - len(location) - len(title) - 6))
        return f"{_style_location(location)}: {style_heading(title)}  {clip_text(hit['headline'], headline_width)}"

    def _render_block(self, hit: Mapping[str, Any]) -> str:
        location = f"{_format_file(hit)}:{hit['startLine']}-{hit['endLine']}"
        title = style_heading(escape_controls(f"{hit['kind']} {hit['name']}"))
        score = f"  {hit['score']:.4g}" if "scoreBreakdown" in hit else ""
        lines = [f"{_style_location(location)}  {title}{score}"]
        lines += self._render_breakdown(hit)
        lines += _render_flows(hit)
        if self._full:
            lines += _render_facts(hit)
        lines += self._render_text(hit)
        return "\n".join(lines)

    def _render_text(self, hit: Mapping[str, Any]) -> Iterator[str]:
        if "text" not in hit:  # it was left out of a long answer
            yield "  " + clip_text(escape_controls(hit["headline"]), limit_to_terminal(line_width() - 2))
            return
        hit_lines = list(enumerate(hit["text"].split("\n"), hit["startLine"]))
        if self._has_context:
            first_number = hit["startLine"] - len(hit["preContext"])
            shown_lines = [*enumerate(hit["preContext"], first_number), *hit_lines[:MAX_CONTEXT_LINES]]
            if len(hit_lines) <= MAX_CONTEXT_LINES:
                shown_lines += enumerate(hit["postContext"], hit["endLine"] + 1)
        elif self._full:
            shown_lines = hit_lines
        else:
            shown_lines = self._select_lines(hit_lines, _find_flow_lines(hit))
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

    def _select_lines(self, hit_lines: list[tuple[int, str]], flow_lines: set[int]) -> list[tuple[int, str]]:
        first = next((candidate for candidate in hit_lines if any(map(str.isalnum, candidate[1]))), hit_lines[0])
        scored = [(-len(self._query_stems & _stem_words(line)), number) for number, line in hit_lines]
        best = sorted(candidate for candidate in scored if candidate[0] and candidate[1] != first[0])[:MAX_EXTRA_LINES]
        shown = {first[0], *(number for _, number in best), *flow_lines}
        return [(number, line) for number, line in hit_lines if number in shown]

    def _highlight_words(self, line: str) -> str:
        line_text = clip_end(escape_controls(line.expandtabs(4)), limit_to_terminal(line_width() - 10))
        boundaries = [0]
        for match in tokens.WORD_PATTERN.finditer(line_text):
            if self._query_stems & _stem_words(match[0]):
                boundaries += match.span()
        boundaries.append(len(line_text))
        parts = [line_text[start:end] for start, end in pairwise(boundaries)]
        parts[1::2] = [click.style(part, fg="red", bold=True) for part in parts[1::2]]
        return "".join(parts)

    def _render_breakdown(self, hit: Mapping[str, Any]) -> Iterator[str]:
        for part in hit.get("scoreBreakdown", {}).get("parts", []):
            rank = "" if part["rank"] is None else f"  rank {part['rank']}, {part['score']:.4g}"
            yield click.style(f"    {part['points']:.6f}  {part['name']}{rank}", dim=True)


def _list_searched_texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    yield from (leaf.text for leaf in iterate_leaves(parse_query(arguments["query"])))
    for name in MATCHED_FILTERS:
        value = arguments.get(name, ())
        yield from [value] if isinstance(value, str) else value


def _stem_query(text: str) -> Iterator[str]:
    words = tokens.tokenize_text(text)
    return map(tokens.stem_word, [word for word in words if word not in tokens.STOP_WORDS] or words)


def _list_flows(hit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    flows: list[Mapping[str, Any]] = (hit.get("risk") or {}).get("flows", [])
    return flows[:MAX_SHOWN_FLOWS]


def _find_flow_lines(hit: Mapping[str, Any]) -> set[int]:
    ends = [(flow, end) for flow in _list_flows(hit) for end in ("source", "sink")]
    return {flow[f"{end}Line"] for flow, end in ends if not flow.get(f"{end}Path")}


def _render_flows(hit: Mapping[str, Any]) -> Iterator[str]:
    for flow in _list_flows(hit):
        via = [f"{name}()" for name in flow.get("via", ())]
        path = " → ".join([_format_flow_end(flow, "source"), *via, _format_flow_end(flow, "sink")])
        yield click.style(f"  {flow['severity']} risk: {escape_controls(path)}", fg="yellow")


def _format_flow_end(flow: Mapping[str, Any], end: str) -> str:
    path = flow.get(f"{end}Path")
    return f"{flow[end]} ({f'{path}:' if path else 'line '}{flow[f'{end}Line']})"


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


def _stem_words(text: str) -> frozenset[str]:
    return frozenset(tokens.stem_text(text).split())


def _style_location(text: str) -> str:
    return click.style(text, fg="cyan")
