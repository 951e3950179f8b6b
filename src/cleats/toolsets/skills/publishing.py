"""The catalogue as resources, as entries of the skills extension, and as prompts.

Names are labels there and URIs are identity: `skill://<source>/<path>/<name>/SKILL.md`, the same
for as long as the folder stays where it is. Only skills that keep the Agent Skills specification
are published so, because hosts refuse the others; as a tool every skill can be loaded.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from anyio import to_thread

from cleats.contract.listing import Page, page
from cleats.contract.pathnames import LONGEST
from cleats.contract.prompts import Prompt, PromptArgument
from cleats.contract.resources import FOLDER, Contents, Resource, Template
from cleats.contract.skills import MOST_BYTES, MOST_FILES, SkillEntry, SkillFile
from cleats.toolsets.skills.catalogue import Catalogue
from cleats.toolsets.skills.errors import BundledFileError, UnreadableSkillError
from cleats.toolsets.skills.files import children, load_text, media_type, read_bundled, walk
from cleats.toolsets.skills.frontmatter import BadHeaderError, parse
from cleats.toolsets.skills.library import Library
from cleats.toolsets.skills.skill import FILE, Problem, Skill

log = logging.getLogger(__name__)

LONGEST_URI = 3 * LONGEST
"""Characters: every one of a path may be written as three."""

MARKDOWN = "text/markdown"
ARGUMENTS = "$ARGUMENTS"
"""Where a skill wants what the person typed behind its name."""


class Shelf(NamedTuple):
    """What one catalogue publishes: the listed skills by URI, and every skill by its root."""

    listed: Sequence[Skill]
    uris: Sequence[str]
    roots: Mapping[str, Skill]


def shelf(catalogue: Catalogue) -> Shelf:
    listed = sorted((s for s in catalogue.skills if s.publishable), key=lambda s: s.uri)
    hidden = [each.skill for each in catalogue.shadowed if each.skill.publishable]
    roots = {skill.root_uri: skill for skill in [*hidden, *listed]}
    return Shelf(listed, [skill.uri for skill in listed], roots)


class Publications:
    """Resources and entries, from whatever the library's catalogue is when they are asked for."""

    templates = (
        Template(
            uri="skill://{+path}",
            name="Skill file",
            description="A file of a skill, beside its SKILL.md; skills/list names them all.",
        ),
    )

    def __init__(self, library: Library) -> None:
        self._library = library
        self._shelved: tuple[Catalogue, Shelf] | None = None
        self.problems: dict[str, Problem] = {}
        """Why a skill that keeps the rules is not published all the same, by URI."""

    @property
    def shelf(self) -> Shelf:
        catalogue = self._library.catalogue
        if self._shelved is None or self._shelved[0] is not catalogue:
            self._shelved = (catalogue, shelf(catalogue))
        return self._shelved[1]

    async def list(self, after: str, limit: int) -> Page[Resource]:
        shelved = self.shelf
        part = page(shelved.listed, shelved.uris, after, limit)
        return Page([_resource(skill) for skill in part.items], part.after)

    async def read(self, uri: str) -> Contents | None:
        skill, below = self._locate(uri)
        if skill is None or not below:
            return None
        try:
            data = await to_thread.run_sync(read_bundled, skill, below, abandon_on_cancel=True)
        except BundledFileError:
            return None
        return Contents(uri, MARKDOWN if below == FILE else media_type(below), data)

    async def children(self, uri: str) -> Sequence[Resource] | None:
        skill, below = self._locate(uri)
        if skill is None:
            return self._above(uri)
        found = await to_thread.run_sync(children, skill, below, abandon_on_cancel=True)
        if found is None:
            return None
        return [
            _resource(skill)
            if not below and name == FILE
            else Resource(
                uri=f"{uri}/{quote(name)}",
                name=name,
                mime_type=FOLDER if is_folder else media_type(name),
                size=None if is_folder else size,
            )
            for name, is_folder, size in found
        ]

    def _above(self, uri: str) -> Sequence[Resource] | None:
        """The folders on the way to skills, which exist only in URIs."""
        prefix = f"{uri}/"
        names = {
            root.removeprefix(prefix).partition("/")[0]
            for root in self.shelf.roots
            if root.startswith(prefix)
        }
        folders = [
            Resource(uri=prefix + name, name=unquote(name), mime_type=FOLDER)
            for name in sorted(names)
        ]
        return folders or None

    def _locate(self, uri: str) -> tuple[Skill | None, str]:
        """The innermost skill that a URI is in, and the path within it."""
        if len(uri) > LONGEST_URI:
            return None, ""
        roots = self.shelf.roots
        root, below = uri, ""
        while root.count("/") > 2:
            if (skill := roots.get(root)) is not None:
                return skill, unquote(below)
            root, _, last = root.rpartition("/")
            below = f"{last}/{below}" if below else last
        return None, ""


class Entries:
    """The skills extension's view of the same shelf."""

    def __init__(self, publications: Publications) -> None:
        self._publications = publications

    async def list(self, after: str, limit: int) -> Page[SkillEntry]:
        shelved = self._publications.shelf
        part = page(shelved.listed, shelved.uris, after, limit)
        entries = await to_thread.run_sync(self._entries, part.items, abandon_on_cancel=True)
        return Page(entries, part.after)

    async def get(self, uri: str) -> SkillEntry | None:
        skill = self._publications.shelf.roots.get(uri.removesuffix(f"/{FILE}"))
        if skill is None or not uri.endswith(f"/{FILE}"):
            return None
        entries = await to_thread.run_sync(self._entries, [skill], abandon_on_cancel=True)
        return entries[0] if entries else None

    def _entries(self, skills: Sequence[Skill]) -> Sequence[SkillEntry]:
        return [entry for skill in skills if (entry := self._entry(skill)) is not None]

    def _entry(self, skill: Skill) -> SkillEntry | None:
        files = walk(skill, MOST_FILES)
        size = sum(file.size for file in files)
        if len(files) > MOST_FILES or size > MOST_BYTES:
            self._too_large(skill)
            return None
        self._publications.problems.pop(skill.uri, None)
        try:
            read = {file.below: read_bundled(skill, file.below) for file in files}
            fields = parse(read[FILE].decode()).fields
        except (BundledFileError, BadHeaderError, UnicodeDecodeError, KeyError):
            return None  # it is being changed; the next catalogue knows what it has become
        listed = [
            SkillFile(
                f"{skill.root_uri}/{quote(below)}", hashlib.sha256(data).hexdigest(), len(data)
            )
            for below, data in read.items()
        ]
        return SkillEntry(skill.uri, fields, listed)

    def _too_large(self, skill: Skill) -> None:
        self._publications.problems[skill.uri] = Problem(
            "warning",
            "too-large",
            f"it has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB, so it is not "
            "published as a resource; the skill tool loads it",
            "Move what is not needed out of its folder.",
            skill.path,
        )


class SkillPrompts:
    """One prompt for each skill that a person may ask for."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def list(self, after: str, limit: int) -> Page[Prompt]:
        named = self._library.catalogue.for_people
        return page([*map(_prompt, named.values())], [*named], after, limit)

    async def get(self, name: str, arguments: Mapping[str, str]) -> str | None:
        skill = self._library.catalogue.for_people.get(name)
        if skill is None:
            return None
        try:
            text = await to_thread.run_sync(load_text, skill, abandon_on_cancel=True)
        except (FileNotFoundError, UnreadableSkillError):
            return None
        given = arguments.get("arguments", "")
        if ARGUMENTS in text:
            text = text.replace(ARGUMENTS, given)
        elif given:
            text = f"{text}\n\nARGUMENTS: {given}"
        return loaded(skill, text)


def loaded(skill: Skill, text: str) -> str:
    """A skill as an agent gets it: where its files are, then the file itself, untouched."""
    return f"Loading: {skill.full_name}\nBase directory: {skill.folder}\n\n{text}"


def fingerprint(catalogue: Catalogue) -> tuple[Iterator[object], Iterator[object]]:
    """What the lists of resources and prompts show of a catalogue, to tell two of them apart."""
    resources = ((s.uri, s.description, s.stamp.size) for s in catalogue.skills if s.publishable)
    prompts = ((name, s.description) for name, s in catalogue.for_people.items())
    return resources, prompts


def _resource(skill: Skill) -> Resource:
    return Resource(
        uri=skill.uri,
        name=skill.name,
        mime_type=MARKDOWN,
        description=skill.verbatim or skill.description,
        size=skill.stamp.size,
    )


def _prompt(skill: Skill) -> Prompt:
    argument = PromptArgument("arguments", "What the skill should work on.")
    return Prompt(skill.full_name, skill.description, (argument,))
