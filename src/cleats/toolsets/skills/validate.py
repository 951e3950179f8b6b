"""The Agent Skills specification, to the letter: what an author should know before publishing.

Loading is lenient; this is not. An error breaks a rule of the specification, a warning an advice
of it or a limit of some agent.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cleats.contract.skills import MOST_BYTES, MOST_FILES
from cleats.toolsets.skills.files import walk
from cleats.toolsets.skills.frontmatter import BadHeaderError, Header, parse
from cleats.toolsets.skills.reading import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NAME,
    Place,
    read_skill,
    read_stamped,
)
from cleats.toolsets.skills.skill import FILE, Problem, Severity, Skill, Source

FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
CLAUDE_FIELDS = frozenset(
    {
        "agent",
        "argument-hint",
        "context",
        "disable-model-invocation",
        "hooks",
        "model",
        "user-invocable",
        "version",
        "when_to_use",
    }
)
"""What Claude Code reads besides; other agents ignore or refuse it."""

LONGEST_COMPATIBILITY = 500
MOST_LINES = 500
"""The specification's advice for the length of a SKILL.md."""

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s#?]+)[^)]*\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def validate(path: str) -> list[Problem]:
    """Everything that is wrong with the SKILL.md at a path."""
    return list(_Check(path).findings())


class _Check:
    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._folder = self._path.parent

    def findings(self) -> Iterator[Problem]:
        if self._path.name != FILE:
            yield self._error("file-name", f"the file is not called {FILE}", f"Call it {FILE}.")
        try:
            text = read_stamped(str(self._path))[0].decode()
            header = parse(text)
        except OSError as error:
            yield self._error("unreadable", f"it cannot be read: {error.strerror}", "Check it.")
            return
        except UnicodeDecodeError as error:
            where = f"it is not UTF-8 at byte {error.start}"
            yield self._error("not-utf8", where, "Save it as UTF-8.")
            return
        except BadHeaderError as error:
            yield self._error("front-matter", str(error), error.fix)
            return
        yield from self._header(header)
        yield from self._name(header.fields.get("name"))
        yield from self._description(header.fields.get("description"))
        yield from self._optional(header.fields)
        yield from self._text(text)
        yield from self._files()

    def _header(self, header: Header) -> Iterator[Problem]:
        if not header.strict:
            fix = header.fix or 'Put the value in quotes: description: "Use when: …".'
            yield self._error("yaml", f"the front matter is not YAML: {header.complaint}", fix)
        for field in sorted(header.fields.keys() - FIELDS):
            if field in CLAUDE_FIELDS:
                yield self._warning(
                    "field", f"only Claude Code knows {field!r}", "Keep it if that is who reads it."
                )
            else:
                yield self._error(
                    "field",
                    f"the specification has no field {field!r}",
                    "Move it under `metadata`, or remove it.",
                )

    def _name(self, name: object) -> Iterator[Problem]:
        if not isinstance(name, str) or not name.strip():
            fix = f"Add `name: {self._folder.name}`."
            if name is not None and not isinstance(name, str):
                fix = f'Put it in quotes: name: "{name}".'
            yield self._error("name", "it has no name that is text", fix)
            return
        if len(name) > LONGEST_NAME:
            yield self._long("name", len(name), LONGEST_NAME)
        if not NAME.fullmatch(name):
            yield self._error(
                "name",
                f"the name {name!r} is not made of lower-case letters, digits and single hyphens, "
                "with a letter or a digit at both ends",
                f"Call it {_suggested(name)!r}.",
            )
        folder = self._folder.name
        if name != folder:
            fix = f"Call both {_suggested(name)!r}."
            if NAME.fullmatch(name):
                other = f", or the skill to {folder!r}" if NAME.fullmatch(folder) else ""
                fix = f"Rename the folder to {name!r}{other}."
            yield self._error("name", f"its name is {name!r} and its folder's {folder!r}", fix)

    def _description(self, description: object) -> Iterator[Problem]:
        if not isinstance(description, str) or not description.strip():
            fix = "Say what the skill does and when to use it, with the words people will use."
            yield self._error("description", "it has no description that is text", fix)
        elif len(description) > LONGEST_DESCRIPTION:
            yield self._long("description", len(description), LONGEST_DESCRIPTION)

    def _optional(self, fields: Mapping[str, Any]) -> Iterator[Problem]:
        for field in ("license", "compatibility", "allowed-tools"):
            value = fields.get(field)
            if field in fields and (not isinstance(value, str) or not value.strip()):
                fix = "Write one line of text."
                if field == "allowed-tools":
                    fix = "Write the tools in one line with spaces: Bash(git:*) Read."
                yield self._error(field, f"{field!r} is not text", fix)
        compatibility = fields.get("compatibility")
        if isinstance(compatibility, str) and len(compatibility) > LONGEST_COMPATIBILITY:
            yield self._long("compatibility", len(compatibility), LONGEST_COMPATIBILITY)
        metadata = fields.get("metadata", {})
        if not isinstance(metadata, dict):
            yield self._error("metadata", "'metadata' is not a map", "Write `key: value` below it.")
            return
        for key, value in metadata.items():
            if not isinstance(value, str):
                fix = f'Put it in quotes: {key}: "{value}".'
                yield self._error("metadata", f"the value of metadata {key!r} is not text", fix)

    def _text(self, text: str) -> Iterator[Problem]:
        lines = text.count("\n") + 1
        if lines > MOST_LINES:
            fix = "Move details into files beside it and link to them."
            yield self._warning("length", f"it has {lines} lines; {MOST_LINES} is enough", fix)
        for target in dict.fromkeys(_LINK.findall(_CODE.sub("", text))):
            elsewhere = ":" in target or target.startswith(("/", "<"))
            if not elsewhere and not (self._folder / target).exists():
                fix = "Add the file, or correct the link."
                yield self._warning("link", f"it links to {target}, which is not there", fix)

    def _files(self) -> Iterator[Problem]:
        source = Source(path=str(self._folder), scope="custom", label="validate")
        skill = read_skill(Place(str(self._folder), FILE, source, (), (0, 0)))
        if isinstance(skill, Skill):
            files = walk(skill, MOST_FILES)
            if len(files) > MOST_FILES or sum(file.size for file in files) > MOST_BYTES:
                yield self._warning(
                    "size",
                    f"it has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB, "
                    "so it cannot be published over MCP",
                    "Move what is not needed out of its folder.",
                )

    def _long(self, field: str, size: int, most: int) -> Problem:
        return self._error(field, f"the {field} has {size} characters of {most}", "Shorten it.")

    def _error(self, code: str, message: str, fix: str) -> Problem:
        return self._finding("error", code, message, fix)

    def _warning(self, code: str, message: str, fix: str) -> Problem:
        return self._finding("warning", code, message, fix)

    def _finding(self, severity: Severity, code: str, message: str, fix: str) -> Problem:
        return Problem(severity, code, message, fix, str(self._path))


def _suggested(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:LONGEST_NAME] or "my-skill"
