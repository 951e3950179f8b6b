"""The API documentation as one static page: no scripts, no external resources."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.transports.http.routes import MCP_PATH, ApiRoute

PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}

_STYLE_SHEET = """
:root { color-scheme: light dark; --edge: color-mix(in srgb, currentColor 22%, transparent) }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem } h3 { margin: 2rem 0 .25rem }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid var(--edge) }
code, pre { font: .88rem/1.45 ui-monospace, monospace }
pre { padding: .7rem .9rem; border: 1px solid var(--edge); border-radius: 6px; overflow-x: auto }
h3 code { font-size: 1.1rem; font-weight: 600 } .quiet { opacity: .7 } nav { columns: 18rem }
@media (max-width: 40rem) {
  th { display: none } tr { border-bottom: 1px solid var(--edge) }
  td { display: block; border: 0; padding: 0; overflow-wrap: anywhere }
  td:first-child { padding-top: .6rem }
}
"""


def render_page(registry: Registry, routes: Sequence[ApiRoute]) -> str:
    """Render the page."""
    return "".join(_render_parts(registry, routes))


def _render_parts(registry: Registry, routes: Sequence[ApiRoute]) -> Iterator[str]:
    yield (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'><title>Cleats API</title>"
        f"<style>{_STYLE_SHEET}</style><h1>Cleats API</h1>"
        f"<p class=quiet>Contract {SCHEMA_VERSION}, build {TOOLING_VERSION}. "
        "<a href=/openapi.json>openapi.json</a></p>"
        "<p>Every JSON answer is one envelope: <code>{ok, result | error, _meta}</code>. "
        "Streams send the events <code>start</code>, <code>progress</code>, "
        "<code>result</code> or <code>error</code>, and <code>done</code>, each with an envelope "
        "as its data. A client that disconnects cancels its call.</p>"
        "<h2>Routes</h2><table><tr><th>Method<th>Path<th></tr>"
    )
    for row in routes:
        yield (
            f"<tr><td>{escape(', '.join(row.methods))}<td><code>{escape(row.path)}</code><td>{escape(row.about)}</tr>"
        )
    for route in (toolset_route for toolset in registry.toolsets for toolset_route in toolset.routes):
        yield (f"<tr><td>{route.method}<td><code>{escape(route.path)}</code><td>{escape(route.about)}</tr>")
    yield f"<tr><td>any<td><code>{MCP_PATH}</code><td>MCP over streamable HTTP.</tr></table>"
    yield "<h2>Tools</h2><nav>"
    for tool in registry:
        yield f"<div><a href='#{escape(tool.name)}'>{escape(tool.name)}</a></div>"
    yield "</nav>"
    for tool in registry:
        yield from _render_tool(registry, tool)


def _render_tool(registry: Registry, tool: Tool) -> Iterator[str]:
    name = escape(tool.name)
    description = escape(tool.current_description.partition("\n\n")[0])
    yield (
        f"<h3 id='{name}'><code>{name}</code></h3>"
        f"<p class=quiet>{escape(registry.find_toolset_name(tool))}, version {tool.version}</p><p>{description}</p>"
    )
    properties: Mapping[str, Mapping[str, Any]] = tool.input.get("properties", {})
    if properties:
        yield "<table><tr><th>Argument<th>Type<th></tr>"
        required = tool.input.get("required", ())
        for argument, rule in properties.items():
            required_mark = " (required)" if argument in required else ""
            yield (
                f"<tr><td><code>{escape(argument)}</code>{required_mark}<td>{escape(_describe_type(rule))}"
                f"<td>{escape(str(rule.get('description', '')))}</tr>"
            )
        yield "</table>"
    arguments = tool.examples[0].get("arguments", {}) if tool.examples else {}
    body = msgspec.json.encode(arguments).decode().replace("'", "'\\''")
    yield (
        f"<pre>curl -s $URL/tools/{name} -H 'content-type: application/json' "
        f"-d '{escape(body)}'</pre>"
        f"<p class=quiet>Fails with: {', '.join(sorted(code.name for code in tool.codes))}</p>"
    )


def _describe_type(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return " | ".join(map(str, rule["enum"]))
    kind = rule.get("type")
    if kind is None:
        branches = (*rule.get("oneOf", ()), *rule.get("anyOf", ()))
        return " | ".join(dict.fromkeys(map(_describe_type, branches))) or "any"
    return kind if isinstance(kind, str) else " | ".join(kind)
