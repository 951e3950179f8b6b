"""Which repositories a caller from the network may name.

The fence is around the tools and not around the routes, so that it also holds for calls that come
over `/mcp`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Handler, Tool, Toolset

REPOSITORY = "repoPath"
"""The argument that names a repository, in every tool that has one."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The default repository and the folders in which others may be."""

    repo: Path
    roots: Sequence[Path] = ()

    def around(self, toolset: Toolset) -> Toolset:
        """The toolset, whose tools refuse what is outside."""
        return replace(toolset, tools=[self._around(tool) for tool in toolset.tools])

    def _around(self, tool: Tool) -> Tool:
        if REPOSITORY not in tool.input.get("properties", {}):
            return tool
        errors = tuple(dict.fromkeys((*tool.errors, ErrorCode.FORBIDDEN)))
        return replace(tool, run=self._checked(tool.run), errors=errors)

    def _checked(self, run: Handler) -> Handler:
        async def checked(arguments: Mapping[str, Any], context: Context) -> Any:
            given = arguments.get(REPOSITORY)
            if given is not None:  # without one, tools take the server's own, or none at all
                arguments = {**arguments, REPOSITORY: str(self.find(given))}
            return await run(arguments, context)

        return checked

    def find(self, given: str) -> Path:
        """The repository that a caller named, wherever links lead.

        Raises:
            ToolError: FORBIDDEN outside the fence, whether or not it exists; INVALID_REQUEST inside
                it when it is no folder.
        """
        try:
            place = (self.repo / given).resolve()
            allowed = any(place.is_relative_to(root.resolve()) for root in (self.repo, *self.roots))
            is_folder = place.is_dir()
        except (OSError, ValueError, RuntimeError):  # a null byte, a loop of links, a long name
            raise ToolError(ErrorCode.INVALID_REQUEST, "repoPath is no usable path") from None
        if not allowed:
            raise ToolError(
                ErrorCode.FORBIDDEN,
                "repoPath is outside the folders that this server may serve",
                hint="The operator can allow more with CLEATS_HTTP_ROOTS.",
            )
        if not is_folder:
            raise ToolError(ErrorCode.INVALID_REQUEST, "repoPath is not an existing folder")
        return place
