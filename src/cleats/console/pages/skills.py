"""Skills: the catalogue by root, its diagnostics, and the text of a skill as an agent gets it."""

from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole
from cleats.console.page_preview import render_markdown
from cleats.contract.errors import ToolError
from cleats.contract.resources import SkillEntry

MAX_LISTED_SKILLS: Final = 500
URI_PREFIX: Final = "skill://"


async def list_skills(console: CallerConsole, request: Request) -> Response:
    """List the skills by root, with what is wrong."""
    console.require_area("skills")
    roots: dict[str, list[dict[str, Any]]] = {}
    for skill in map(_describe_skill, [entry async for entry in _read_catalogue(console)]):
        roots.setdefault(skill["root"], []).append(skill)
    report = None
    if console.tools.has_tools("skill_diagnostics"):
        report = await console.tools.run("skill_diagnostics")
    values = {
        "area": "skills",
        "title": "Skills",
        "roots": roots,
        "report": report,
        "description": _read_description(console),
    }
    return console.render(request, "skills.html", values)


def _read_description(console: CallerConsole) -> str:
    description = console.tools.registry.find("skill").description
    return description() if callable(description) else description


async def _read_catalogue(console: CallerConsole) -> AsyncIterator[SkillEntry]:
    for toolset in console.tools.registry.toolsets:
        if toolset.skills is not None:
            for entry in (await toolset.skills.list("", MAX_LISTED_SKILLS)).items:
                yield entry


def _describe_skill(entry: SkillEntry) -> dict[str, Any]:
    path = entry.uri.removeprefix(URI_PREFIX).rpartition("/")[0]
    root, _, folder = path.rpartition("/")
    name = str(entry.front_matter.get("name") or folder)
    return {
        "name": name,
        "root": root or "skills",
        "description": str(entry.front_matter.get("description") or ""),
        "files": [file.uri.removeprefix(f"{URI_PREFIX}{path}/") for file in entry.files],
    }


async def show_skill(console: CallerConsole, request: Request) -> Response:
    """Show the text of a skill, as it is and as an agent gets it."""
    console.require_area("skills")
    name = request.path_params["name"]
    try:
        text = await console.tools.run("skill", name=name)
    except ToolError as error:
        if error.code.http == 404:
            raise HTTPException(404) from None
        raise
    report = None
    if console.tools.has_tools("skill_diagnostics"):
        report = await console.tools.run("skill_diagnostics", name=name)
    values = {
        "area": "skills",
        "title": name,
        "name": name,
        "text": text,
        "preview": render_markdown(_strip_header(text)),
        "report": report,
    }
    return console.render(request, "skill.html", values)


def _strip_header(text: str) -> str:
    """Return a skill's instructions without the lines and the front matter above them."""
    parts = text.split("\n---\n", 2)
    return parts[2] if len(parts) == 3 else text


ROUTES = (
    ("GET", "/console/skills", list_skills),
    ("GET", "/console/skills/{name:path}", show_skill),
)
