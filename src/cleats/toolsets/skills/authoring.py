"""Strict validation against the Agent Skills specification, for authors before publishing.

Loading is lenient; this is not. An error breaks a rule of the specification, a warning a
recommendation of it or a limit of some agent.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

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
    {"agent", "argument-hint", "context", "hooks", "model", "version", "when_to_use"}
    | {"disable-model-invocation", "user-invocable"}
)
"""Further fields that Claude Code reads; other agents ignore or refuse them."""

MAX_COMPATIBILITY_CHARS = 500
MAX_ADVISED_LINES = 500
"""The specification's recommended maximum length of a SKILL.md."""

_LINK_PATTERN = re.compile(r"\[[^\]]*\]\(([^)\s#?]+)[^)]*\)")
_CODE_PATTERN = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


Finding: TypeAlias = tuple[ProblemSeverity, str, str, str]
"""The severity, code and message of a problem, and its fix."""


def validate_skill(path: str) -> list[SkillProblem]:
    """Return every problem with the SKILL.md at a path."""
    file = Path(path).absolute()
    return [SkillProblem(*finding, str(file)) for finding in _iter_findings(file)]


def _iter_findings(file: Path) -> Iterator[Finding]:
    if file.name != SKILL_FILE_NAME:
        yield "error", "file-name", f"the file is not called {SKILL_FILE_NAME}", f"Call it {SKILL_FILE_NAME}."
    try:
        text = read_stamped(str(file))[0].decode()
        header = parse_skill_header(text)
    except OSError as error:
        yield "error", "unreadable", f"it cannot be read: {error.strerror}", "Check its permissions."
        return
    except UnicodeDecodeError as error:
        yield "error", "not-utf8", f"it is not UTF-8 at byte {error.start}", "Save it as UTF-8."
        return
    except FrontMatterError as error:
        yield "error", "front-matter", str(error), error.fix
        return
    yield from _check_header(header)
    yield from _check_name(header.fields.get("name"), file.parent.name)
    yield from _check_description(header.fields.get("description"), str(header.fields.get("name")))
    yield from _check_optional(header.fields)
    yield from _check_text(text, file.parent)
    yield from _check_files(file.parent)


def _check_header(header: SkillHeader) -> Iterator[Finding]:
    if not header.strict:
        fix = header.fix or 'Put the value in quotes: description: "Use when: …".'
        yield "error", "yaml", f"the front matter is not YAML: {header.complaint}", fix
    for field in sorted(header.fields.keys() - SPEC_FIELDS):
        if field in CLAUDE_FIELDS:
            yield "warning", "field", f"only Claude Code knows {field!r}", "Keep it if only Claude Code uses the skill."
        else:
            message = f"the specification does not define the field {field!r}"
            yield "error", "field", message, "Move it under `metadata`, or remove it."


def _check_name(name: object, folder: str) -> Iterator[Finding]:
    if not isinstance(name, str) or not name.strip():
        is_number = name is not None and not isinstance(name, str)
        fix = f'Put it in quotes: name: "{name}".' if is_number else f"Add `name: {folder}`."
        yield "error", "name", "it has no name, or the name is not text", fix
        return
    yield from _check_length("name", name, MAX_NAME_CHARS)
    if not SKILL_NAME_PATTERN.fullmatch(name):
        message = (
            f"the name {name!r} is not made of lower-case letters, digits and single hyphens, "
            "with a letter or a digit at both ends"
        )
        yield "error", "name", message, f"Call it {_suggest_name(name)!r}."
    if name != folder:
        fix = f"Call both {_suggest_name(name)!r}."
        if SKILL_NAME_PATTERN.fullmatch(name):
            alternative = f", or the skill to {folder!r}" if SKILL_NAME_PATTERN.fullmatch(folder) else ""
            fix = f"Rename the folder to {name!r}{alternative}."
        yield "error", "name", f"the skill is called {name!r}, but its folder is called {folder!r}", fix


def _check_description(description: object, name: str) -> Iterator[Finding]:
    fix = "Say what the skill does and when to use it, with the words people will use."
    if not isinstance(description, str) or not description.strip():
        yield "error", "description", "it has no description, or it is not text", fix
        return
    yield from _check_length("description", description, MAX_DESCRIPTION_CHARS)
    if description == _default_description(name):
        yield "warning", "description", "the description is still the one of the template", fix


def _check_optional(fields: Mapping[str, Any]) -> Iterator[Finding]:
    for field in ("license", "compatibility", "allowed-tools"):
        value = fields.get(field)
        if field in fields and (not isinstance(value, str) or not value.strip()):
            fix = "Write one line of text."
            if field == "allowed-tools":
                fix = "Write the tools in one line with spaces: Bash(git:*) Read."
            yield "error", field, f"{field!r} is not text", fix
    if isinstance(compatibility := fields.get("compatibility"), str):
        yield from _check_length("compatibility", compatibility, MAX_COMPATIBILITY_CHARS)
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict):
        yield "error", "metadata", "'metadata' is not a map", "Write `key: value` below it."
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            fix = f'Put it in quotes: {key}: "{value}".'
            yield "error", "metadata", f"the value of metadata {key!r} is not text", fix


def _check_text(text: str, folder: Path) -> Iterator[Finding]:
    lines = text.count("\n") + 1
    if lines > MAX_ADVISED_LINES:
        fix = "Move details into other files of the folder and link to them."
        yield (
            "warning",
            "length",
            f"it has {lines} lines; the specification recommends at most {MAX_ADVISED_LINES}",
            fix,
        )
    for target in dict.fromkeys(_LINK_PATTERN.findall(_CODE_PATTERN.sub("", text))):
        is_external = ":" in target or target.startswith(("/", "<"))
        if not is_external and not (folder / target).exists():
            fix = "Add the file, or correct the link."
            yield "warning", "link", f"it links to {target}, which does not exist", fix


def _check_files(folder: Path) -> Iterator[Finding]:
    source = SkillSource(path=str(folder), scope="custom", label="validate")
    skill = read_skill(SkillLocation(str(folder), SKILL_FILE_NAME, source, (), (0, 0)))
    files = list_files(skill, MAX_SKILL_FILES) if isinstance(skill, Skill) else []
    if len(files) > MAX_SKILL_FILES or sum(file.size for file in files) > MAX_SKILL_BYTES:
        size = f"{MAX_SKILL_FILES} files or {MAX_SKILL_BYTES >> 20} MiB"
        fix = "Move what is not needed out of its folder."
        yield "warning", "size", f"it has more than {size}, so it cannot be published over MCP", fix


def _check_length(field: str, text: str, limit: int) -> Iterator[Finding]:
    if len(text) > limit:
        yield "error", field, f"the {field} has {len(text)} characters; the maximum is {limit}", "Shorten it."


def _suggest_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:MAX_NAME_CHARS] or "my-skill"


SKILL_TEMPLATE = Path(__file__).with_name("skill_template.md").read_text(encoding="utf-8")


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
    summary = " ".join(description.split()) or _default_description(name)
    text = SKILL_TEMPLATE.format(
        name=name, title=_make_title(name), description=json.dumps(summary, ensure_ascii=False)
    )
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise BadSkillError(f"{path} already exists.") from None
    return path


def _default_description(name: str) -> str:
    return f"{_make_title(name)}. Use when the user asks for it."


def _make_title(name: str) -> str:
    return name.replace("-", " ").capitalize()
