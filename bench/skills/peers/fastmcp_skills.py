"""FastMCP's skills provider, which reads the disk for every request, and an echo."""

import sys

from fastmcp import FastMCP  # type: ignore[import-not-found]
from fastmcp.server.providers.skills import (  # type: ignore[import-not-found]
    SkillsDirectoryProvider,
)

server = FastMCP("fastmcp")


@server.tool  # type: ignore[untyped-decorator]
async def echo(text: str) -> str:
    """Answer the text."""
    return text


if __name__ == "__main__":
    server.add_provider(SkillsDirectoryProvider(sys.argv[1], reload=sys.argv[2] == "reload"))
    server.run(transport="stdio", show_banner=False)
