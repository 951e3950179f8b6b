"""Strict validation against the Agent Skills specification, for authors before publishing.

Loading is lenient; this is not. An error breaks a rule of the specification, a warning a
recommendation of it or a limit of some agent.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cleats.contract.resources import MAX_SKILL_BYTES, MAX_SKILL_FILES
from cleats.system.front_matter import FrontMatterError
from cleats.system.skill_header import SkillHeader, parse_skill_header
from cleats.toolsets.skills.files import list_files
from cleats.toolsets.skills.skill import (
    MAX_DESCRIPTION_CHARS,
    MAX_NAME_CHARS,
    SKILL_FILE_NAME,
    SKILL_NAME_PATTERN,
    ProblemSeverity,
    Skill,
    SkillLocation,
    SkillProblem,
    SkillSource,
    read_skill,
    read_stamped,
)

SPEC_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
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
"""Further fields that Claude Code reads; other agents ignore or refuse them."""

MAX_COMPATIBILITY_CHARS = 500
MAX_ADVISED_LINES = 500
"""The specification's recommended maximum length of a SKILL.md."""

_LINK_PATTERN = re.compile(r"\[[^\]]*\]\(([^)\s#?]+)[^)]*\)")
_CODE_PATTERN = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def validate_skill(path: str) -> list[SkillProblem]:
    """Return every problem with the SKILL.md at a path."""
    return list(_SkillValidator(path).iter_problems())


class _SkillValidator:
    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._folder = self._path.parent

    def iter_problems(self) -> Iterator[SkillProblem]:
        if self._path.name != SKILL_FILE_NAME:
            yield self._build_error(
                "file-name", f"the file is not called {SKILL_FILE_NAME}", f"Call it {SKILL_FILE_NAME}."
            )
        try:
            text = read_stamped(str(self._path))[0].decode()
            header = parse_skill_header(text)
        except OSError as error:
            yield self._build_error("unreadable", f"it cannot be read: {error.strerror}", "Check it.")
            return
        except UnicodeDecodeError as error:
            message = f"it is not UTF-8 at byte {error.start}"
            yield self._build_error("not-utf8", message, "Save it as UTF-8.")
            return
        except FrontMatterError as error:
            yield self._build_error("front-matter", str(error), error.fix)
            return
        yield from self._check_header(header)
        yield from self._check_name(header.fields.get("name"))
        yield from self._check_description(header.fields.get("description"))
        yield from self._check_optional(header.fields)
        yield from self._check_text(text)
        yield from self._check_files()

    def _check_header(self, header: SkillHeader) -> Iterator[SkillProblem]:
        if not header.strict:
            fix = header.fix or 'Put the value in quotes: description: "Use when: …".'
            yield self._build_error("yaml", f"the front matter is not YAML: {header.complaint}", fix)
        for field in sorted(header.fields.keys() - SPEC_FIELDS):
            if field in CLAUDE_FIELDS:
                yield self._build_warning(
                    "field", f"only Claude Code knows {field!r}", "Keep it if that is who reads it."
                )
            else:
                yield self._build_error(
                    "field", f"the specification has no field {field!r}", "Move it under `metadata`, or remove it."
                )

    def _check_name(self, name: object) -> Iterator[SkillProblem]:
        if not isinstance(name, str) or not name.strip():
            fix = f"Add `name: {self._folder.name}`."
            if name is not None and not isinstance(name, str):
                fix = f'Put it in quotes: name: "{name}".'
            yield self._build_error("name", "it has no name that is text", fix)
            return
        if len(name) > MAX_NAME_CHARS:
            yield self._length_error("name", len(name), MAX_NAME_CHARS)
        if not SKILL_NAME_PATTERN.fullmatch(name):
            yield self._build_error(
                "name",
                f"the name {name!r} is not made of lower-case letters, digits and single hyphens, "
                "with a letter or a digit at both ends",
                f"Call it {_suggest_name(name)!r}.",
            )
        folder = self._folder.name
        if name != folder:
            fix = f"Call both {_suggest_name(name)!r}."
            if SKILL_NAME_PATTERN.fullmatch(name):
                alternative = f", or the skill to {folder!r}" if SKILL_NAME_PATTERN.fullmatch(folder) else ""
                fix = f"Rename the folder to {name!r}{alternative}."
            yield self._build_error("name", f"its name is {name!r} and its folder's {folder!r}", fix)

    def _check_description(self, description: object) -> Iterator[SkillProblem]:
        if not isinstance(description, str) or not description.strip():
            fix = "Say what the skill does and when to use it, with the words people will use."
            yield self._build_error("description", "it has no description that is text", fix)
        elif len(description) > MAX_DESCRIPTION_CHARS:
            yield self._length_error("description", len(description), MAX_DESCRIPTION_CHARS)

    def _check_optional(self, fields: Mapping[str, Any]) -> Iterator[SkillProblem]:
        for field in ("license", "compatibility", "allowed-tools"):
            value = fields.get(field)
            if field in fields and (not isinstance(value, str) or not value.strip()):
                fix = "Write one line of text."
                if field == "allowed-tools":
                    fix = "Write the tools in one line with spaces: Bash(git:*) Read."
                yield self._build_error(field, f"{field!r} is not text", fix)
        compatibility = fields.get("compatibility")
        if isinstance(compatibility, str) and len(compatibility) > MAX_COMPATIBILITY_CHARS:
            yield self._length_error("compatibility", len(compatibility), MAX_COMPATIBILITY_CHARS)
        metadata = fields.get("metadata", {})
        if not isinstance(metadata, dict):
            yield self._build_error("metadata", "'metadata' is not a map", "Write `key: value` below it.")
            return
        for key, value in metadata.items():
            if not isinstance(value, str):
                fix = f'Put it in quotes: {key}: "{value}".'
                yield self._build_error("metadata", f"the value of metadata {key!r} is not text", fix)

    def _check_text(self, text: str) -> Iterator[SkillProblem]:
        lines = text.count("\n") + 1
        if lines > MAX_ADVISED_LINES:
            fix = "Move details into files beside it and link to them."
            yield self._build_warning("length", f"it has {lines} lines; {MAX_ADVISED_LINES} is enough", fix)
        for target in dict.fromkeys(_LINK_PATTERN.findall(_CODE_PATTERN.sub("", text))):
            is_external = ":" in target or target.startswith(("/", "<"))
            if not is_external and not (self._folder / target).exists():
                fix = "Add the file, or correct the link."
                yield self._build_warning("link", f"it links to {target}, which is not there", fix)

    def _check_files(self) -> Iterator[SkillProblem]:
        source = SkillSource(path=str(self._folder), scope="custom", label="validate")
        skill = read_skill(SkillLocation(str(self._folder), SKILL_FILE_NAME, source, (), (0, 0)))
        if isinstance(skill, Skill):
            files = list_files(skill, MAX_SKILL_FILES)
            if len(files) > MAX_SKILL_FILES or sum(file.size for file in files) > MAX_SKILL_BYTES:
                yield self._build_warning(
                    "size",
                    f"it has more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES >> 20} MiB, "
                    "so it cannot be published over MCP",
                    "Move what is not needed out of its folder.",
                )

    def _length_error(self, field: str, size: int, limit: int) -> SkillProblem:
        return self._build_error(field, f"the {field} has {size} characters of {limit}", "Shorten it.")

    def _build_error(self, code: str, message: str, fix: str) -> SkillProblem:
        return self._build_problem("error", code, message, fix)

    def _build_warning(self, code: str, message: str, fix: str) -> SkillProblem:
        return self._build_problem("warning", code, message, fix)

    def _build_problem(self, severity: ProblemSeverity, code: str, message: str, fix: str) -> SkillProblem:
        return SkillProblem(severity, code, message, fix, str(self._path))


def _suggest_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:MAX_NAME_CHARS] or "my-skill"


SKILL_TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

Say here what the agent should do, step by step. It reads this only once the description above has
made it choose the skill, so keep that one short and full of the words people will use.

1. First step.
2. Second step.

Longer material goes into files beside this one, such as references/ or scripts/; link to them, and
the agent reads them when it needs them.
"""


class BadSkillError(ValueError):
    """Raised when a skill cannot be written as requested; the message says what is allowed."""


def write_skill(folder: Path, name: str, description: str = "") -> Path:
    """Write the skeleton of a skill into a folder of skills.

    Raises:
        BadSkillError: The name or the description breaks a rule, or the skill exists.
        OSError: The skill cannot be written.
    """
    if not SKILL_NAME_PATTERN.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise BadSkillError(
            f"{name!r} cannot be a skill's name: use up to {MAX_NAME_CHARS} lower-case letters, "
            "digits and single hyphens, such as release-notes."
        )
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise BadSkillError(f"A description has at most {MAX_DESCRIPTION_CHARS} characters.")
    path = folder / name / SKILL_FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    title = name.replace("-", " ").capitalize()
    summary = " ".join(description.split()) or f"{title}. Use when the user asks for it."
    text = SKILL_TEMPLATE.format(name=name, title=title, description=json.dumps(summary, ensure_ascii=False))
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise BadSkillError(f"{path} is there already.") from None
    return path
