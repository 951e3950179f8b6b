"""Every tool with a form made from its schema, the answer to a call, and the same call for other clients."""

import json
import shlex
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cleats.console.background_calls import BackgroundCall
from cleats.console.caller_console import CallerConsole, redirect_to
from cleats.console.highlighting import highlight_lines
from cleats.console.pages.calls import find_call
from cleats.console.rendering import format_json
from cleats.console.schema_form import FIELD_PREFIX, build_fields, read_arguments
from cleats.console.tool_calls import render_answer
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done
from cleats.contract.tools import Tool

QUICK_CALL_SECONDS: Final = 2.0
"""The time that a page waits for the answer; a longer call is shown with its progress."""

MAX_SHOWN_CHARS: Final = 400_000
"""The length at which a long answer is cut for the page."""


async def list_tools(console: CallerConsole, request: Request) -> Response:
    """List the tools by toolset."""
    toolsets = [
        (toolset, sorted(toolset.tools, key=lambda tool: tool.name)) for toolset in console.tools.registry.toolsets
    ]
    values = {"area": "tools", "tab": "tools", "title": "Tools", "toolsets": toolsets}
    return console.render(request, "tools.html", values)


async def show_tool(console: CallerConsole, request: Request) -> Response:
    """Show one tool with its form; the query fills fields in."""
    tool = _find_tool(console, request)
    texts = {
        name.removeprefix(FIELD_PREFIX): value
        for name, value in request.query_params.items()
        if name.startswith(FIELD_PREFIX)
    }
    if not texts and "example" in request.query_params and tool.examples:
        example = tool.examples[0]["arguments"]
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in example.items()}
    return _render_tool(console, request, tool, texts)


def _render_tool(
    console: CallerConsole, request: Request, tool: Tool, texts: dict[str, str], error: ToolError | None = None
) -> Response:
    description = tool.description() if callable(tool.description) else tool.description
    values = {
        "area": "tools",
        "title": tool.name,
        "tool": tool,
        "toolset": console.tools.registry.find_toolset_name(tool),
        "description": description,
        "fields": build_fields(tool, texts),
        "prefix": FIELD_PREFIX,
        "error": error,
        "schema_lines": highlight_lines(format_json(tool.input), language="json"),
    }
    return console.render(request, "tool.html", values, status=200 if error is None else 400)


async def call_tool(console: CallerConsole, request: Request) -> Response:
    """Call a tool with the arguments of its form."""
    tool = _find_tool(console, request)
    form = await console.read_form(request)
    texts: dict[str, str] = {}
    try:
        arguments, texts = read_arguments(tool, form)
        tool.bind(arguments)
    except ToolError as error:
        texts = texts or {field.name: form.get(FIELD_PREFIX + field.name) for field in build_fields(tool)}
        return _render_tool(console, request, tool, texts, error)
    background = console.background.start(tool.name, arguments, tool.name)
    await console.background.wait(background, QUICK_CALL_SECONDS)
    return redirect_to(f"/console/calls/{background.id}")


async def show_call(console: CallerConsole, request: Request) -> Response:
    """Show one call: its arguments, its progress or its answer, and the same call for other clients."""
    background = find_call(console, request)
    tool = console.tools.registry.find(background.call.tool)
    arguments = dict(background.call.arguments)
    values: dict[str, Any] = {
        "area": "tools",
        "title": f"Call of {tool.name}",
        "tool": tool,
        "call": background,
        "arguments": format_json(arguments),
        "answer_lines": None,
        "is_text": False,
        "is_cut": False,
        "ok": isinstance(background.outcome, Done),
        "curl": format_curl(tool, arguments, str(request.base_url).rstrip("/"), console.server.needs_token),
        "mcp": format_mcp_request(tool, arguments),
    }
    if background.outcome is not None:
        values |= _describe_answer(tool, background)
    return console.render(request, "call.html", values)


def _describe_answer(tool: Tool, background: BackgroundCall) -> dict[str, Any]:
    assert background.outcome is not None  # noqa: S101 - for the type checker
    answer = render_answer(tool, background.outcome, background.call.meta)
    is_text = isinstance(answer, str)
    text = answer if isinstance(answer, str) else format_json(answer)
    lines = highlight_lines(text[:MAX_SHOWN_CHARS], language="text" if is_text else "json")
    return {"answer_lines": lines, "answer_text": text, "is_text": is_text, "is_cut": len(text) > MAX_SHOWN_CHARS}


def format_curl(tool: Tool, arguments: dict[str, Any], base_url: str, needs_token: bool) -> str:
    """Return a call as a curl command; the token is left to the shell."""
    words = ["curl", "-s", f"{base_url}/tools/{tool.name}", "-H", "content-type: application/json"]
    command = shlex.join(words)
    if needs_token:
        command += ' -H "authorization: Bearer $CLEATS_HTTP_TOKEN"'
    return f"{command} -d {shlex.quote(json.dumps(arguments, ensure_ascii=False))}"


def format_mcp_request(tool: Tool, arguments: dict[str, Any]) -> str:
    """Return a call as a request of MCP."""
    params = {"name": tool.name, "arguments": arguments}
    return format_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def _find_tool(console: CallerConsole, request: Request) -> Tool:
    name = request.path_params["name"]
    if not console.tools.has_tools(name):
        raise HTTPException(404)
    return console.tools.registry.find(name)


ROUTES = (
    ("GET", "/console/tools", list_tools),
    ("GET", "/console/tools/{name}", show_tool),
    ("POST", "/console/tools/{name}", call_tool),
    ("GET", "/console/calls/{call_id}", show_call),
)
