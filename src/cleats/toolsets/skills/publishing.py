"""The catalogue as resources, as entries of the skills extension, and as prompts.

Names are labels there and URIs are identities: `skill://<source>/<path>/<name>/SKILL.md`, the same
for as long as the folder stays in place. Only skills that follow the Agent Skills specification are
published this way, because hosts refuse the others; the tool loads every skill.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from anyio import to_thread

from cleats.contract.resources import (
    DIRECTORY_MIME_TYPE,
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    ListPage,
    Prompt,
    PromptArgument,
    Resource,
    ResourceContents,
    ResourceTemplate,
    SkillEntry,
    SkillFile,
    slice_page,
)
from cleats.system.front_matter import FrontMatterError
from cleats.system.safe_paths import MAX_PATH_CHARACTERS
from cleats.system.skill_header import parse_skill_header
from cleats.toolsets.skills.files import (
    BundledFileError,
    UnreadableSkillError,
    guess_media_type,
    list_children,
    list_files,
    load_skill_text,
    read_bundled_file,
)
from cleats.toolsets.skills.library import SkillLibrary
from cleats.toolsets.skills.skill import SKILL_FILE_NAME, Skill, SkillProblem

log = logging.getLogger(__name__)

MAX_URI_CHARS = 3 * MAX_PATH_CHARACTERS
"""The maximum length of a URI: every character of a path may be escaped as three."""

MARKDOWN_MEDIA_TYPE = "text/markdown"
ARGUMENTS_PLACEHOLDER = "$ARGUMENTS"
"""The place in a skill for the text that the person typed after its name."""


class SkillResources:
    """The resources of the library's current catalogue."""

    templates = (
        ResourceTemplate(
            uri="skill://{+path}",
            name="Skill file",
            description="A file of a skill, beside its SKILL.md; skills/list names them all.",
        ),
    )

    def __init__(self, library: SkillLibrary) -> None:
        self.library = library
        self.problems: dict[str, SkillProblem] = {}
        """Reasons why a valid skill is not published, by URI."""

    async def list(self, after: str, limit: int) -> ListPage[Resource]:
        published = self.library.catalogue.published_skills
        skill_page = slice_page([*published.values()], [*published], after, limit)
        return ListPage([_build_resource(skill) for skill in skill_page.items], skill_page.after)

    async def read(self, uri: str) -> ResourceContents | None:
        skill, relative_path = self._locate_uri(uri)
        if skill is None or not relative_path:
            return None
        try:
            data = await to_thread.run_sync(read_bundled_file, skill, relative_path, abandon_on_cancel=True)
        except BundledFileError:
            return None
        return ResourceContents(
            uri, MARKDOWN_MEDIA_TYPE if relative_path == SKILL_FILE_NAME else guess_media_type(relative_path), data
        )

    async def list_children(self, uri: str) -> Sequence[Resource] | None:
        skill, relative_path = self._locate_uri(uri)
        if skill is None:
            return self._list_virtual_folders(uri)
        folder_entries = await to_thread.run_sync(list_children, skill, relative_path, abandon_on_cancel=True)
        if folder_entries is None:
            return None
        return [
            _build_resource(skill)
            if not relative_path and name == SKILL_FILE_NAME
            else Resource(
                uri=f"{uri}/{quote(name)}",
                name=name,
                mime_type=DIRECTORY_MIME_TYPE if is_folder else guess_media_type(name),
                size=None if is_folder else size,
            )
            for name, is_folder, size in folder_entries
        ]

    def _list_virtual_folders(self, uri: str) -> Sequence[Resource] | None:
        """Return the folders on the way to skills, which exist only in URIs."""
        prefix = f"{uri}/"
        names = {
            root.removeprefix(prefix).partition("/")[0]
            for root in self.library.catalogue.published_skills_by_root
            if root.startswith(prefix)
        }
        folders = [
            Resource(uri=prefix + name, name=unquote(name), mime_type=DIRECTORY_MIME_TYPE) for name in sorted(names)
        ]
        return folders or None

    def _locate_uri(self, uri: str) -> tuple[Skill | None, str]:
        """Return the innermost skill that contains a URI, and the path relative to it."""
        if len(uri) > MAX_URI_CHARS:
            return None, ""
        roots = self.library.catalogue.published_skills_by_root
        root, relative_path = uri, ""
        while root.count("/") > 2:
            if (skill := roots.get(root)) is not None:
                return skill, unquote(relative_path)
            root, _, last = root.rpartition("/")
            relative_path = f"{last}/{relative_path}" if relative_path else last
        return None, ""


class SkillExtensionEntries:
    """The published skills as entries of the skills extension."""

    def __init__(self, resources: SkillResources) -> None:
        self._resources = resources

    async def list(self, after: str, limit: int) -> ListPage[SkillEntry]:
        published = self._resources.library.catalogue.published_skills
        skill_page = slice_page([*published.values()], [*published], after, limit)
        entries = await to_thread.run_sync(self._build_entries, skill_page.items, abandon_on_cancel=True)
        return ListPage(entries, skill_page.after)

    async def get(self, uri: str) -> SkillEntry | None:
        skill = self._resources.library.catalogue.published_skills_by_root.get(uri.removesuffix(f"/{SKILL_FILE_NAME}"))
        if skill is None or not uri.endswith(f"/{SKILL_FILE_NAME}"):
            return None
        entries = await to_thread.run_sync(self._build_entries, [skill], abandon_on_cancel=True)
        return entries[0] if entries else None

    def _build_entries(self, skills: Sequence[Skill]) -> Sequence[SkillEntry]:
        return [entry for skill in skills if (entry := self._build_entry(skill)) is not None]

    def _build_entry(self, skill: Skill) -> SkillEntry | None:
        files = list_files(skill, MAX_SKILL_FILES)
        size = sum(file.size for file in files)
        if len(files) > MAX_SKILL_FILES or size > MAX_SKILL_BYTES:
            message = (
                f"it has more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES >> 20} MiB, so it is not "
                "published as a resource; the skill tool loads it"
            )
            fix = "Move what is not needed out of its folder."
            self._resources.problems[skill.uri] = SkillProblem("warning", "too-large", message, fix, skill.path)
            return None
        self._resources.problems.pop(skill.uri, None)
        try:
            contents = {file.relative_path: read_bundled_file(skill, file.relative_path) for file in files}
            fields = parse_skill_header(contents[SKILL_FILE_NAME].decode()).fields
        except (BundledFileError, FrontMatterError, UnicodeDecodeError, KeyError):
            return None  # it is being changed; the next catalogue will have the result
        skill_files = [
            SkillFile(f"{skill.root_uri}/{quote(relative_path)}", hashlib.sha256(data).hexdigest(), len(data))
            for relative_path, data in contents.items()
        ]
        return SkillEntry(skill.uri, fields, skill_files)


class SkillPrompts:
    """One prompt for each skill that a person may ask for."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    async def list(self, after: str, limit: int) -> ListPage[Prompt]:
        argument = PromptArgument("arguments", "What the skill should work on.")
        skills_by_name = self._library.catalogue.for_people
        prompts = [Prompt(skill.full_name, skill.description, (argument,)) for skill in skills_by_name.values()]
        return slice_page(prompts, [*skills_by_name], after, limit)

    async def get(self, name: str, arguments: Mapping[str, str]) -> str | None:
        skill = self._library.catalogue.for_people.get(name)
        if skill is None:
            return None
        try:
            text = await to_thread.run_sync(load_skill_text, skill, abandon_on_cancel=True)
        except (FileNotFoundError, UnreadableSkillError):
            return None
        typed_text = arguments.get("arguments", "")
        if ARGUMENTS_PLACEHOLDER in text:
            text = text.replace(ARGUMENTS_PLACEHOLDER, typed_text)
        elif typed_text:
            text = f"{text}\n\nARGUMENTS: {typed_text}"
        return render_skill(skill, text)


def render_skill(skill: Skill, text: str) -> str:
    """Render a skill for an agent: its base directory, then the unchanged text of the file."""
    return f"Loading: {skill.full_name}\nBase directory: {skill.folder}\n\n{text}"


def _build_resource(skill: Skill) -> Resource:
    return Resource(
        uri=skill.uri,
        name=skill.name,
        mime_type=MARKDOWN_MEDIA_TYPE,
        description=skill.verbatim or skill.description,
        size=skill.stamp.size,
    )
