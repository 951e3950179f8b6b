"""A search as the address of its page states it: words, filters, repositories; and the same as a call or a command."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import QueryParams

from cleats.contract.tools import Tool

MODES: Final = (
    ("both", "Everything"),
    ("code", "Code"),
    ("prose", "Documents"),
    ("extracted-prose", "Comments"),
    ("records", "Findings"),
)
"""The values of `mode` that are offered, with a label for people."""

NON_FILTER_ARGUMENTS: Final = frozenset(
    {"query", "repoPath", "workspacePath", "mode", "output", "explain", "context", "top", "refresh", "metaJson"}
)
"""Arguments of the search tool that the page sets itself."""

COMMON_FILTERS: Final = ("lang", "path", "ext", "type", "calls", "author", "modifiedSince", "risk")
"""Filters that are offered first, because most people look for them."""

MAX_REPOSITORIES: Final = 8
"""The number of repositories that one search asks, one call each."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """One filter that is set."""

    name: str
    flag: str
    value: str

    @property
    def is_switch(self) -> bool:
        """True if it has no value on the command line."""
        return self.value == "true"

    @property
    def label(self) -> str:
        return self.flag if self.is_switch else f"{self.flag} {self.value}"


@dataclass(frozen=True, slots=True)
class FilterOption:
    """One filter that can be set."""

    name: str
    flag: str
    description: str
    kind: str
    """`text`, `number`, `switch` or `choice`."""
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search."""

    words: str
    mode: str
    filters: tuple[SearchFilter, ...]
    repositories: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to search for."""
        return not self.words and not self.filters

    def build_arguments(self, tool: Tool, repository: str | None) -> dict[str, Any]:
        """Return the arguments of the search tool, without what only concerns the page."""
        arguments: dict[str, Any] = {"query": self.words or "*"}
        if self.mode != "both":
            arguments["mode"] = self.mode
        for search_filter in self.filters:
            schema = tool.input["properties"][search_filter.name]
            value = _convert_value(search_filter.value, schema)
            if search_filter.name in arguments:
                earlier = arguments[search_filter.name]
                value = [*(earlier if isinstance(earlier, list) else [earlier]), value]
            arguments[search_filter.name] = value
        if repository:
            arguments["repoPath"] = repository
        return arguments

    def format_agent_call(self, tool: Tool) -> str:
        """Return the search as the parameters of an MCP `tools/call` request."""
        arguments = self.build_arguments(tool, self.repositories[0] if self.repositories else None)
        return json.dumps({"name": tool.name, "arguments": arguments}, ensure_ascii=False, indent=2)

    def format_command(self) -> str:
        """Return the search as a command."""
        words = ["cleats", "search", self.words or "*"]
        if self.mode != "both":
            words += ["--mode", self.mode]
        for search_filter in self.filters:
            words += [search_filter.flag] if search_filter.is_switch else [search_filter.flag, search_filter.value]
        if self.repositories:
            words += ["--repo", self.repositories[0]]
        return shlex.join(words)

    def list_pairs(self, *, without: SearchFilter | None = None) -> list[tuple[str, str]]:
        """Return the query of the page's address."""
        pairs = [("q", self.words)] if self.words else []
        if self.mode != "both":
            pairs.append(("mode", self.mode))
        pairs += [(item.name, item.value) for item in self.filters if item != without]
        return pairs + [("repo", repository) for repository in self.repositories]


def parse_search(params: QueryParams, tool: Tool, flags: Mapping[str, str]) -> SearchQuery:
    """Read a search from the address of a page; unknown names are ignored."""
    options = {option.name: option for option in list_filter_options(tool, flags)}
    filters = [
        SearchFilter(name, options[name].flag, value.strip())
        for name, value in params.multi_items()
        if name in options and value.strip()
    ]
    if (name := params.get("filter", "")) in options:  # the form without a script
        value = "true" if options[name].kind == "switch" else params.get("value", "").strip()
        filters += [SearchFilter(name, options[name].flag, value)] if value else []
    mode = params.get("mode", "both")
    return SearchQuery(
        words=params.get("q", "").strip(),
        mode=mode if mode in dict(MODES) else "both",
        filters=tuple(dict.fromkeys(filters)),
        repositories=tuple(dict.fromkeys(path for path in params.getlist("repo") if path))[:MAX_REPOSITORIES],
    )


def list_filter_options(tool: Tool, flags: Mapping[str, str]) -> list[FilterOption]:
    """Return every filter of the search tool."""
    return [
        FilterOption(name, flags[name].split("/")[0], schema.get("description", ""), *_describe_values(schema))
        for name, schema in tool.input["properties"].items()
        if name not in NON_FILTER_ARGUMENTS and flags.get(name)
    ]


def group_filter_options(options: Sequence[FilterOption]) -> list[tuple[str, list[FilterOption]]]:
    """Return the filters that are offered, the common ones first, each group with its label."""
    by_name = {option.name: option for option in options}
    common = [by_name[name] for name in COMMON_FILTERS if name in by_name]
    return [("Common", common), ("All others", [option for option in options if option not in common])]


def _describe_values(schema: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    if "enum" in schema:
        return "choice", schema["enum"]
    kind = schema.get("type")
    if kind == "boolean":
        return "switch", ()
    return ("number" if kind in {"integer", "number"} else "text"), ()


def _convert_value(value: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "boolean":
        return value == "true"
    if kind in {"integer", "number"} and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return float(value) if "." in value else int(value)
    return value
