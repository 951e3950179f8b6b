"""The tools of the skills toolset."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, Toolset
from cleats.settings import Settings
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.skills.catalogue import SkillNotFoundError
from cleats.toolsets.skills.descriptions import render_report
from cleats.toolsets.skills.files import (
    BundledFileError,
    guess_media_type,
    list_children,
    list_files,
    load_skill_text,
    read_bundled_file,
)
from cleats.toolsets.skills.library import SkillLibrary
from cleats.toolsets.skills.publishing import SkillExtensionEntries, SkillPrompts, SkillResources, render_skill
from cleats.toolsets.skills.refresh import LibraryRefresher
from cleats.toolsets.skills.search import SkillMatch, search_skills
from cleats.toolsets.skills.skill import Skill

MAX_LISTED_FILES = 200
"""The number of files that are listed for a folder."""

MAX_INLINE_BYTES = 1 << 20
"""The maximum size of a bundled file in an agent's context; larger ones are read from disk."""


class SkillTools:
    """The four tools over one library."""

    def __init__(self, settings: Settings) -> None:
        self.library = SkillLibrary(settings)
        self.refresher = LibraryRefresher(self.library, settings)
        self.resources = SkillResources(self.library)

    def find_skill(self, name: str) -> Skill:
        """Return the skill with this name.

        Raises:
            ToolError: No skill has the name, or several do.
        """
        try:
            return self.library.catalogue.find(name)
        except SkillNotFoundError:
            self.refresher.request_refresh()  # it may have been added after the last scan
            raise

    async def load_skill(self, args: Mapping[str, Any], _context: Context) -> str:
        skill = self.find_skill(args["name"])
        try:
            text = await to_thread.run_sync(load_skill_text, skill, abandon_on_cancel=True)
        except FileNotFoundError:
            self.refresher.request_refresh()
            catalogue = self.library.catalogue
            suggestions = [name for name in catalogue.suggest_names(skill.name) if name != skill.full_name]
            raise SkillNotFoundError(args["name"], suggestions) from None
        return render_skill(skill, text)

    async def search_skills(self, args: Mapping[str, Any], _context: Context) -> str:
        skills = self.library.catalogue.for_models
        matches = await to_thread.run_sync(search_skills, skills, args["query"], args["limit"], abandon_on_cancel=True)
        return "\n".join(_format_matches(matches)) or f"None of {len(skills)} skills matches."

    async def read_file(self, args: Mapping[str, Any], _context: Context) -> str | Sequence[Mapping[str, Any]]:
        skill = self.find_skill(args["name"])
        relative_path: str = args["path"].removeprefix("./").rstrip("/")
        if relative_path in {"", "."}:
            files = await to_thread.run_sync(list_files, skill, MAX_LISTED_FILES)
            names = [file.relative_path for file in files[:MAX_LISTED_FILES]]
            return "\n".join([*names, "..."] if len(files) > MAX_LISTED_FILES else names)
        listing = await to_thread.run_sync(list_children, skill, relative_path)
        if listing is not None:
            return "\n".join(name + "/" * folder for name, folder, _ in listing)
        data = await to_thread.run_sync(read_bundled_file, skill, relative_path, abandon_on_cancel=True)
        if len(data) > MAX_INLINE_BYTES:
            raise BundledFileError(
                ErrorCode.INVALID_REQUEST,
                f"{relative_path!r} has {len(data)} bytes; up to {MAX_INLINE_BYTES} can be read here.",
                hint=f"Its folder is {skill.folder}.",
            )
        return _render_content(skill, relative_path, data)

    async def diagnose_skills(self, args: Mapping[str, Any], _context: Context) -> str:
        catalogue = self.library.catalogue
        return render_report(catalogue, self.resources.problems.values(), args.get("name", ""))


def _format_matches(matches: Sequence[SkillMatch]) -> Iterator[str]:
    for match in matches:
        yield f"- {match.skill.full_name}: {match.skill.description}"
        if match.excerpt:
            yield f"  {match.excerpt}"


def _render_content(skill: Skill, relative_path: str, data: bytes) -> str | Sequence[Mapping[str, Any]]:
    """Return text as text, images and audio as such, and anything else as a resource."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        kind, encoded = guess_media_type(relative_path), base64.b64encode(data).decode()
    if kind.startswith(("image/", "audio/")):
        return [{"type": kind.partition("/")[0], "data": encoded, "mimeType": kind}]
    uri = f"{skill.root_uri}/{relative_path}"
    return [{"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": encoded}}]


def toolset(settings: Settings) -> Toolset:
    """Return the toolset over the skills of this machine."""
    skills = SkillTools(settings)
    table = ToolTable(Path(__file__).parent)
    described: Any = {"description": lambda: skills.library.edition.description, "payload": CONTENT}
    tools = [table.make_tool("skill", skills.load_skill, **described)]
    if settings.skills.tools == "all":
        handlers = {
            "skill_search": skills.search_skills,
            "skill_file": skills.read_file,
            "skill_diagnostics": skills.diagnose_skills,
        }
        tools += table.make_tools(handlers, payload=CONTENT)
    return Toolset(
        name="skills",
        purpose="Find and load the skills installed on this machine.",
        running=skills.refresher.run,
        changes=True,
        resources=skills.resources,
        skills=SkillExtensionEntries(skills.resources),
        prompts=SkillPrompts(skills.library),
        tools=tools,
    )
