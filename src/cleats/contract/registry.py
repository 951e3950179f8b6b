"""The registry of tools by name, including their former names."""

from collections.abc import Iterable, Iterator

from cleats.contract.arguments import find_nearest_name
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Alias, Tool, Toolset


class Registry:
    """All tools that are served. Fixed at start-up; no two tools or aliases share a name."""

    def __init__(self, toolsets: Iterable[Toolset]) -> None:
        self.toolsets = tuple(toolsets)
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, Alias] = {}
        self._toolset_names: dict[str, str] = {}
        for toolset in self.toolsets:
            for tool in toolset.tools:
                self._add(tool.name, tool, toolset)
                for alias in tool.aliases:
                    self._add(alias.name, tool, toolset)
                    self._aliases[alias.name] = alias

    def _add(self, name: str, tool: Tool, toolset: Toolset) -> None:
        if name in self._tools:
            raise ValueError(f"two tools are called {name!r}")
        self._tools[name] = tool
        self._toolset_names[name] = toolset.name

    def __iter__(self) -> Iterator[Tool]:
        """Yield each tool once, sorted by name: the order of every listing."""
        for name in sorted(self._tools):
            if name not in self._aliases:
                yield self._tools[name]

    def find_toolset_name(self, tool: Tool) -> str:
        """Return the name of the toolset that a tool belongs to."""
        return self._toolset_names[tool.name]

    def has_tool(self, name: str) -> bool:
        """Return True if a tool has this name or alias."""
        return name in self._tools

    def find(self, name: str) -> Tool:
        """Return the tool with this name or alias.

        Raises:
            ToolError: UNKNOWN_TOOL.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(ErrorCode.UNKNOWN_TOOL, f"no tool is called {name!r}", hint=self._suggest_names(name))
        return tool

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name or alias, or None."""
        return self._tools.get(name)

    def _suggest_names(self, name: str) -> str:
        nearest_name = find_nearest_name(name, list(self._tools))
        question = f"Did you mean {nearest_name}? " if nearest_name else ""
        return f"{question}List the tools to see the names this server has."

    def find_alias(self, name: str) -> Alias | None:
        """Return the alias with this name, or None if the name is current or unknown."""
        return self._aliases.get(name)
