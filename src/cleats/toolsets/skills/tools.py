"""The tools of the skills toolset."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.settings import Settings
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

_NAME_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "description": "Name of a skill as listed, full or short; case is ignored.",
}


class SkillTools:
    """The four tools over one library."""

    def __init__(self, settings: Settings) -> None:
        self.library = SkillLibrary(settings)
        self.refresher = LibraryRefresher(self.library, settings)
        self.resources = SkillResources(self.library)

    def describe_skills(self) -> str:
        return self.library.edition.description

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
        return "\n".join(_format_matches(matches)) or f"None of {len(skills)} skills fits."

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
                hint=f"It lies in {skill.folder}.",
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
    tools = _build_tools(skills)
    return Toolset(
        name="skills",
        purpose="Find and load the skills installed on this machine.",
        running=skills.refresher.run,
        changes=True,
        resources=skills.resources,
        skills=SkillExtensionEntries(skills.resources),
        prompts=SkillPrompts(skills.library),
        tools=tools if settings.skills.tools == "all" else tools[:1],
    )


def _build_tools(skills: SkillTools) -> list[Tool]:
    return [
        Tool(
            name="skill",
            version=2,
            title="Load a skill",
            description=skills.describe_skills,
            input=arguments({"name": _NAME_SCHEMA}, required=("name",)),
            payload=CONTENT,
            run=skills.load_skill,
            timeout=10.0,
            errors=(ErrorCode.NOT_FOUND,),
            examples=({"arguments": {"name": "pdf"}},),
        ),
        Tool(
            name="skill_search",
            version=2,
            title="Search skills",
            description=(
                "Find skills by what they are about. Looks for the words in the names, descriptions and texts of "
                "all skills, tolerates typos in names, and lists the best first. Load what you find with skill."
            ),
            input=arguments(
                {
                    "query": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Words that say what the skill should be about.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 100,
                        "default": 10,
                        "description": "How many to list.",
                    },
                },
                required=("query",),
            ),
            payload=CONTENT,
            run=skills.search_skills,
            timeout=30.0,
            examples=({"arguments": {"query": "fill in a PDF form"}},),
        ),
        Tool(
            name="skill_file",
            version=2,
            title="Read a skill's file",
            description=(
                "Read a file that comes with a skill, such as references/guide.md, by its path relative to the "
                "skill's base directory. A folder is answered with the names in it, and no path with all of them."
            ),
            input=arguments(
                {
                    "name": _NAME_SCHEMA,
                    "path": {
                        "type": "string",
                        "default": ".",
                        "description": "File or folder within the skill; `.` for everything.",
                    },
                },
                required=("name",),
            ),
            payload=CONTENT,
            run=skills.read_file,
            timeout=10.0,
            errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN),
            examples=({"arguments": {"name": "pdf", "path": "references/forms.md"}},),
        ),
        Tool(
            name="skill_diagnostics",
            version=2,
            title="Explain the skills",
            description=(
                "Say which folders were searched for skills, what was found in each, and "
                "what is wrong: skills that could not be loaded, that hide one another, that "
                "are switched off. Use it when a skill is missing or an unexpected one loads."
            ),
            input=arguments(
                {"name": {"type": "string", "description": "Only what concerns the skills of this name or path."}}
            ),
            payload=CONTENT,
            run=skills.diagnose_skills,
            timeout=10.0,
            examples=({"arguments": {}},),
        ),
    ]
