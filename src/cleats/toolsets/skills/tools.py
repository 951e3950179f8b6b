"""The skills toolset's table of contents."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.settings import Settings
from cleats.toolsets.skills.diagnostics import report
from cleats.toolsets.skills.errors import BundledFileError, SkillNotFoundError
from cleats.toolsets.skills.files import children, load_text, media_type, read_bundled, walk
from cleats.toolsets.skills.keeping import Keeper
from cleats.toolsets.skills.library import Library
from cleats.toolsets.skills.publishing import Entries, Publications, SkillPrompts, loaded
from cleats.toolsets.skills.search import Match, search
from cleats.toolsets.skills.skill import Skill

LISTED = 200
"""Files that are named when a folder is asked for."""

MOST = 1 << 20
"""Bytes of a bundled file that are put into an agent's context; larger ones are on disk."""

_NAME = {
    "type": "string",
    "minLength": 1,
    "description": "Name of a skill as listed, full or short; case is ignored.",
}


class Skills:
    """The four tools over one library."""

    def __init__(self, settings: Settings) -> None:
        self.library = Library(settings)
        self.keeper = Keeper(self.library, settings)
        self.publications = Publications(self.library)

    def describe(self) -> str:
        return self.library.edition.description

    def find(self, name: str) -> Skill:
        """The skill with this name.

        Raises:
            ToolError: there is none, or several.
        """
        try:
            return self.library.catalogue.find(name)
        except SkillNotFoundError:
            self.keeper.ask()  # it may have come after the last look
            raise

    async def load(self, given: Mapping[str, Any], _context: Context) -> str:
        skill = self.find(given["name"])
        try:
            text = await to_thread.run_sync(load_text, skill, abandon_on_cancel=True)
        except FileNotFoundError:
            self.keeper.ask()
            catalogue = self.library.catalogue
            near = [name for name in catalogue.near(skill.name) if name != skill.full_name]
            raise SkillNotFoundError(given["name"], near) from None
        return loaded(skill, text)

    async def search(self, given: Mapping[str, Any], _context: Context) -> str:
        skills = self.library.catalogue.for_models
        found = await to_thread.run_sync(
            search, skills, given["query"], given["limit"], abandon_on_cancel=True
        )
        return "\n".join(_matches(found)) or f"None of {len(skills)} skills fits."

    async def file(
        self, given: Mapping[str, Any], _context: Context
    ) -> str | Sequence[Mapping[str, Any]]:
        skill = self.find(given["name"])
        below: str = given["path"].removeprefix("./").rstrip("/")
        if below in {"", "."}:
            files = await to_thread.run_sync(walk, skill, LISTED)
            names = [file.below for file in files[:LISTED]]
            return "\n".join([*names, "..."] if len(files) > LISTED else names)
        inside = await to_thread.run_sync(children, skill, below)
        if inside is not None:
            return "\n".join(name + "/" * folder for name, folder, _ in inside)
        data = await to_thread.run_sync(read_bundled, skill, below, abandon_on_cancel=True)
        if len(data) > MOST:
            raise BundledFileError(
                ErrorCode.INVALID_REQUEST,
                f"{below!r} has {len(data)} bytes; up to {MOST} can be read here.",
                hint=f"It lies in {skill.folder}.",
            )
        return _content(skill, below, data)

    async def diagnose(self, given: Mapping[str, Any], _context: Context) -> str:
        catalogue = self.library.catalogue
        return report(catalogue, self.publications.problems.values(), given.get("name", ""))


def _matches(found: Sequence[Match]) -> Iterator[str]:
    for match in found:
        yield f"- {match.skill.full_name}: {match.skill.description}"
        if match.excerpt:
            yield f"  {match.excerpt}"


def _content(skill: Skill, below: str, data: bytes) -> str | Sequence[Mapping[str, Any]]:
    """Text as text, a picture as a picture, anything else as it is."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        kind, encoded = media_type(below), base64.b64encode(data).decode()
    if kind.startswith(("image/", "audio/")):
        return [{"type": kind.partition("/")[0], "data": encoded, "mimeType": kind}]
    uri = f"{skill.root_uri}/{below}"
    return [{"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": encoded}}]


def toolset(settings: Settings) -> Toolset:
    """The tools, over the skills of this machine."""
    skills = Skills(settings)
    asking = (ErrorCode.NOT_FOUND,)
    return Toolset(
        name="skills",
        purpose="Find and load the skills installed on this machine.",
        running=skills.keeper.running,
        changes=True,
        resources=skills.publications,
        skills=Entries(skills.publications),
        prompts=SkillPrompts(skills.library),
        tools=(
            Tool(
                name="skill",
                version=2,
                title="Load a skill",
                description=skills.describe,
                input=arguments({"name": _NAME}, required=("name",)),
                payload=CONTENT,
                run=skills.load,
                timeout=10.0,
                errors=asking,
                examples=({"arguments": {"name": "pdf"}},),
            ),
            Tool(
                name="skill_search",
                version=2,
                title="Search skills",
                description=(
                    "Find skills by what they are about. Looks for the words in the names, "
                    "descriptions and texts of all skills, tolerates typos in names, and lists "
                    "the best first. Load what you find with skill."
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
                run=skills.search,
                timeout=30.0,
                examples=({"arguments": {"query": "fill in a PDF form"}},),
            ),
            Tool(
                name="skill_file",
                version=2,
                title="Read a skill's file",
                description=(
                    "Read a file that comes with a skill, such as references/guide.md, by its "
                    "path relative to the skill's base directory. A folder is answered with the "
                    "names in it, and no path with all of them."
                ),
                input=arguments(
                    {
                        "name": _NAME,
                        "path": {
                            "type": "string",
                            "default": ".",
                            "description": "File or folder within the skill; `.` for everything.",
                        },
                    },
                    required=("name",),
                ),
                payload=CONTENT,
                run=skills.file,
                timeout=10.0,
                errors=(*asking, ErrorCode.FORBIDDEN),
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
                    {
                        "name": {
                            "type": "string",
                            "description": "Only what concerns the skills of this name or path.",
                        }
                    }
                ),
                payload=CONTENT,
                run=skills.diagnose,
                timeout=10.0,
                examples=({"arguments": {}},),
            ),
        ),
    )
