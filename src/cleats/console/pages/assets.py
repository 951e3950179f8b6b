"""Assets: schemas and examples, validation with errors at their place, and the difference of two assets."""

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole
from cleats.console.highlighting import highlight_lines
from cleats.console.json_locations import locate_pointers
from cleats.console.rendering import format_json
from cleats.console.tool_calls import render_answer, unwrap_outcome
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done

MAX_ASSET_CHARS: Final = 500_000
"""The length of a pasted asset; the limit of a request's body is usually reached first."""


async def list_assets(console: CallerConsole, request: Request) -> Response:
    """List the schemas and the examples."""
    console.require_area("assets")
    schemas = (await console.tools.run("list_schemas"))["schemas"]
    examples = []
    if console.tools.has_tools("list_examples"):
        examples = (await console.tools.run("list_examples"))["examples"]
    values = {"area": "assets", "tab": "assets", "title": "Assets", "schemas": schemas, "examples": examples}
    return console.render(request, "assets.html", values)


async def show_schema(console: CallerConsole, request: Request) -> Response:
    """Show one schema."""
    console.require_area("assets")
    answer = await console.tools.run("get_schema", name=request.query_params.get("name", ""))
    values = {
        "area": "assets",
        "tab": "assets",
        "title": answer["name"] if "name" in answer else request.query_params.get("name", ""),
        "lines": highlight_lines(format_json(answer["schema"]), language="json"),
        "note": "",
    }
    return console.render(request, "asset_text.html", values)


async def show_example(console: CallerConsole, request: Request) -> Response:
    """Show one example, and whether it is valid."""
    console.require_area("assets")
    path = request.query_params.get("path", "")
    answer = await console.tools.run("get_example", path=path)
    validated = answer.get("validated")
    note = (
        "" if not answer.get("schema") else f"{'Valid' if validated else 'Not valid'} by the schema {answer['schema']}."
    )
    values = {
        "area": "assets",
        "tab": "assets",
        "title": path.rpartition("/")[2],
        "lines": highlight_lines(format_json(answer["example"]), language="json"),
        "note": note,
    }
    return console.render(request, "asset_text.html", values)


async def show_validation(console: CallerConsole, request: Request) -> Response:
    """Show the form that validates an asset."""
    console.require_area("assets")
    return await _render_validation(console, request, {"schema": request.query_params.get("schema", ""), "asset": ""})


async def validate(console: CallerConsole, request: Request) -> Response:
    """Validate a pasted asset, and show each error at its place."""
    console.require_area("assets")
    form = await console.read_form(request)
    fields = {"schema": form.get("schema"), "asset": form.get("asset").replace("\r\n", "\n")}
    asset, fault = _parse_asset(fields["asset"])
    if fault:
        return await _render_validation(console, request, fields, fault=fault)
    call = console.tools.create_call("validate_asset", {"asset": asset, "schema": fields["schema"]})
    outcome = await console.tools.dispatch(call)
    tool = console.tools.registry.find("validate_asset")
    answer = render_answer(tool, outcome, call.meta)
    errors = answer.get("errors") or []
    if not answer["ok"] and not errors:
        if not isinstance(outcome, Done):
            unwrap_outcome(outcome)
        errors = [{"path": "", "msg": answer.get("detail") or answer.get("reason", "")}]
    return await _render_validation(console, request, fields, errors=errors, is_valid=answer["ok"])


async def _render_validation(
    console: CallerConsole,
    request: Request,
    fields: dict[str, str],
    *,
    fault: str = "",
    errors: list[dict[str, Any]] | None = None,
    is_valid: bool = False,
) -> Response:
    schemas = (await console.tools.run("list_schemas"))["schemas"]
    places = locate_pointers(fields["asset"], [error["path"] for error in errors or ()])
    errors_by_line: dict[int, list[dict[str, Any]]] = {}
    for error in errors or ():
        errors_by_line.setdefault(places.get(error["path"], 1), []).append(error)
    lines = highlight_lines(fields["asset"], language="json", marked_lines=errors_by_line) if errors else []
    values = {
        "area": "assets",
        "tab": "validate",
        "title": "Validate an asset",
        "schemas": schemas,
        "fields": fields,
        "fault": fault,
        "errors": errors,
        "lines": lines,
        "errors_by_line": errors_by_line,
        "is_valid": is_valid,
    }
    return console.render(request, "asset_validate.html", values)


async def show_diff(console: CallerConsole, request: Request) -> Response:
    """Show the form that compares two assets."""
    console.require_area("assets")
    return _render_diff(console, request, {"base": "", "new": ""})


async def compare(console: CallerConsole, request: Request) -> Response:
    """Compare two pasted assets."""
    console.require_area("assets")
    form = await console.read_form(request)
    fields = {name: form.get(name).replace("\r\n", "\n") for name in ("base", "new")}
    assets = {}
    for name, text in fields.items():
        assets[name], fault = _parse_asset(text)
        if fault:
            return _render_diff(
                console, request, fields, fault=f"{'The first' if name == 'base' else 'The second'}: {fault}"
            )
    try:
        patch = (await console.tools.run("diff_assets", **assets))["patch"]
    except ToolError as error:
        return _render_diff(console, request, fields, fault=error.message)
    return _render_diff(console, request, fields, patch=patch)


def _render_diff(
    console: CallerConsole,
    request: Request,
    fields: dict[str, str],
    *,
    fault: str = "",
    patch: list[dict[str, Any]] | None = None,
) -> Response:
    values = {
        "area": "assets",
        "tab": "diff",
        "title": "Compare two assets",
        "fields": fields,
        "fault": fault,
        "patch": patch,
    }
    return console.render(request, "asset_diff.html", values)


def _parse_asset(text: str) -> tuple[Any, str]:
    """Return the value of a pasted text and an empty fault, or None and what is wrong with it."""
    if len(text) > MAX_ASSET_CHARS:
        return None, f"The text is longer than {MAX_ASSET_CHARS:,} characters."
    try:
        return json.loads(text), ""
    except json.JSONDecodeError as error:
        return None, f"Not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
    except (ValueError, RecursionError):
        return None, "This JSON cannot be read."


ROUTES = (
    ("GET", "/console/assets", list_assets),
    ("GET", "/console/assets/schema", show_schema),
    ("GET", "/console/assets/example", show_example),
    ("GET", "/console/assets/validate", show_validation),
    ("POST", "/console/assets/validate", validate),
    ("GET", "/console/assets/diff", show_diff),
    ("POST", "/console/assets/diff", compare),
)
