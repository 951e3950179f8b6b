"""FastMCP: the tool is a Python function, and its signature is the schema."""

import json

from fastmcp import FastMCP  # type: ignore[import-not-found]

server = FastMCP("fastmcp")


@server.tool  # type: ignore[untyped-decorator]
async def echo(text: str, n: int | None = None) -> str:
    """Answer the arguments as JSON text."""
    arguments = {"text": text} if n is None else {"text": text, "n": n}
    return json.dumps(arguments, separators=(",", ":"))


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
