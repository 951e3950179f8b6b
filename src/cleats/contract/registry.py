"""Every tool by name, and by the names it used to have."""

from collections.abc import Iterable, Iterator

from cleats.contract.binding import nearest
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Alias, Tool, Toolset


class Registry:
    """Fixed at start-up; no two tools, aliases included, share a name."""

    def __init__(self, toolsets: Iterable[Toolset]) -> None:
        self.toolsets = tuple(toolsets)
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, Alias] = {}
        self._home: dict[str, str] = {}
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
        self._home[name] = toolset.name

    def __iter__(self) -> Iterator[Tool]:
        """The tools, each once, sorted by name: the order of every listing."""
        for name in sorted(self._tools):
            if name not in self._aliases:
                yield self._tools[name]

    def home(self, tool: Tool) -> str:
        """The name of the toolset that a tool belongs to."""
        return self._home[tool.name]

    def has(self, name: str) -> bool:
        """Whether a tool has this name or alias."""
        return name in self._tools

    def find(self, name: str) -> Tool:
        """The tool with this name or alias.

        Raises:
            ToolError: UNKNOWN_TOOL.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(
                ErrorCode.UNKNOWN_TOOL,
                f"no tool is called {name!r}",
                hint=self._advice(name),
            )
        return tool

    def _advice(self, name: str) -> str:
        near = nearest(name, list(self._tools))
        asked = f"Did you mean {near}? " if near else ""
        return f"{asked}List the tools to see the names this server has."

    def alias(self, name: str) -> Alias | None:
        """The alias that this name is; None for a current name."""
        return self._aliases.get(name)
