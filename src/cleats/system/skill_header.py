"""The front matter of a SKILL.md, read as leniently as the client guide asks.

Most headers are plain `key: value` lines, for which a YAML parser costs twenty times too much. The others go to the C
parser with the resolvers of YAML 1.2, so that `no` and `2024-01-01` stay text, as in every other implementation. Common
mistakes that it refuses are repaired, and then `strict` is false: another reader of the same file may not agree.

The YAML parser is imported where it is used: a server that only lists skills does not need it.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import msgspec

from cleats.system.front_matter import FrontMatterError

MAX_HEADER_CHARS = 64 << 10
"""The maximum length of a header; the fields that agents read have a few hundred characters."""

MAX_HEADER_VALUES = 10_000
"""The maximum number of values in a header after alias expansion: a dozen lines can ask for billions."""

MAX_HEADER_LEVELS = 50
"""The maximum nesting depth of a header; an alias to its own ancestor is infinitely deep."""

_HEADER_PATTERN = re.compile(r"\ufeff?\s*?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_KEY_PATTERN = re.compile(r"[A-Za-z_][\w-]*")
_ENTRY_PATTERN = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*\r?")
_QUOTE_CHARS = frozenset("\"'")
_YAML_KEYWORDS = frozenset({"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"})
_TAG_PREFIX = "tag:yaml.org,2002:"
_MISSING_HEADER_FIX = "Begin the file with ---, name: …, description: …, ---."
_KEY_FIX = "Put the key in quotes."
_FLOAT_PATTERN = (
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


@dataclass(frozen=True, slots=True)
class SkillHeader:
    """The fields of a header, and whether they are correct YAML."""

    fields: Mapping[str, Any]
    strict: bool = True
    complaint: str = ""
    fix: str = ""
    """The recommended correction; if empty, a value has to be put in quotes."""


def parse_skill_header(text: str) -> SkillHeader:
    """Parse the front matter of a SKILL.md.

    Raises:
        FrontMatterError: There is no header, or it cannot be parsed.
    """
    match = _HEADER_PATTERN.match(text)
    if match is None:
        message = "it has no front matter: a block of YAML between two lines of ---"
        raise FrontMatterError(message, fix=_MISSING_HEADER_FIX)
    block = match[1]
    if len(block) > MAX_HEADER_CHARS:
        message = f"its front matter has more than {MAX_HEADER_CHARS} characters"
        raise FrontMatterError(message, fix="Leave some out.")
    fields = _parse_plain(block)
    header = SkillHeader(fields) if fields is not None else _recover_header(block)
    if not text.startswith(("---", "\ufeff---")):
        complaint, fix = "it begins with empty lines", "Begin the file with ---."
        return SkillHeader(header.fields, strict=False, complaint=complaint, fix=fix)
    return header


def _parse_plain(block: str) -> dict[str, Any] | None:
    """Return the fields of a header with only plain lines, or None if it has others."""
    fields: dict[str, Any] = {}
    for line in block.split("\n")[:-1]:
        key, _, value = line.partition(": ")
        value = value.strip(" \r")
        first = value[:1]
        if first.isalpha():  # YAML reads these as text, with these exceptions
            is_valid = not (": " in value or " #" in value or value[-1] == ":" or value in _YAML_KEYWORDS)
        else:
            is_valid = first in _QUOTE_CHARS and value[-1] == first and len(value) > 1
            value = value[1:-1]
            is_valid = is_valid and first not in value and "\\" not in value
        if not is_valid or key in fields or key in _YAML_KEYWORDS:
            return None
        if not value.isprintable() or not _KEY_PATTERN.fullmatch(key):
            return None
        fields[key] = value
    return fields or None


def _recover_header(block: str) -> SkillHeader:
    """Load a header as YAML; else with its values in quotes; else the lines that can be read."""
    try:
        return _load_header(block)
    except FrontMatterError as error:
        complaint, fix = str(error), error.fix
    repaired = "\n".join(map(_quote_value, block.split("\n")))
    try:
        fields = _load_header(repaired).fields
    except FrontMatterError:
        fields = dict(_salvage_entries(block))
    if not fields:
        raise FrontMatterError(f"its front matter is not YAML: {complaint}", fix=fix or _MISSING_HEADER_FIX)
    return SkillHeader(fields, strict=False, complaint=complaint, fix=fix)


def _load_header(block: str) -> SkillHeader:
    value, complaint, fix = _load_yaml(block)
    if not isinstance(value, dict):
        raise FrontMatterError("its front matter is not a list of `key: value` lines")
    fields = _convert_to_json(value, iter(range(MAX_HEADER_VALUES)))
    return SkillHeader(fields, strict=not complaint, complaint=complaint, fix=fix)


def _quote_value(line: str) -> str:
    match = _ENTRY_PATTERN.fullmatch(line)
    if match is None or match[2][0] in "\"'|>[{":
        return line
    return f"{match[1]}: {json.dumps(match[2], ensure_ascii=False)}"


def _salvage_entries(block: str) -> Iterator[tuple[str, str]]:
    """Yield the unindented `key: value` lines of a header that no parser accepts."""
    for line in block.split("\n"):
        if (match := _ENTRY_PATTERN.fullmatch(line)) is not None:
            try:  # JSON strings may have escapes that YAML does not know
                yield match[1], msgspec.json.decode(match[2], type=str)
            except ValueError:
                yield match[1], match[2].strip("\"'")


def _convert_to_json(value: Any, budget: Iterator[int], level: int = 0) -> Any:
    """Return a YAML value as JSON; every value takes one from the budget."""
    if next(budget, None) is None:
        raise FrontMatterError("its front matter has too many values", fix="Leave some out.")
    if level > MAX_HEADER_LEVELS:
        raise FrontMatterError("its front matter is nested too deeply", fix="Nest less.")
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise FrontMatterError("its front matter has a key that is not text", fix=_KEY_FIX)
        return {key: _convert_to_json(item, budget, level + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_convert_to_json(item, budget, level + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise FrontMatterError("its front matter has a number that JSON cannot represent")
    return value


def _load_yaml(block: str) -> tuple[Any, str, str]:
    """Return the value of a YAML text, a complaint about its keys, and the correction."""
    import yaml  # noqa: PLC0415 - see the top

    loader = _core_schema_loader()(block)
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        position = f" (line {mark.line + 2})" if mark is not None else ""
        fix = loader.fix
        if mark is not None and "".join(block.split("\n")[mark.line :][:1]).lstrip(" ").startswith("\t"):
            problem, fix = "a tab indents a line", "Indent with spaces; YAML does not allow tabs."
        raise FrontMatterError(f"{problem}{position}", fix=fix) from None
    finally:
        loader.dispose()
    return value, loader.complaint, loader.fix


@cache
def _core_schema_loader() -> Any:
    import yaml  # noqa: PLC0415 - see the top

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    string_tag = f"{_TAG_PREFIX}str"

    class Loader(base):  # type: ignore[misc]
        """A YAML 1.2 core loader: only values that look like JSON are anything but text."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
        complaint = fix = ""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen_keys = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen_keys:
                        self.complaint = f"{key.value!r} occurs twice"
                        self.fix = "Keep one of the two."
                    if key.tag != string_tag:  # JSON knows no other keys
                        self.complaint = f"the key {key.value!r} is not text"
                        self.fix = _KEY_FIX
                        key.tag = string_tag
                    seen_keys.add(key.value)
            return super().construct_mapping(node, deep)

        def construct_undefined(self, node: Any) -> Any:
            self.fix = "Remove the tag; a text that begins with ! needs quotes."
            return super().construct_undefined(node)

        def construct_integer(self, node: Any) -> int:
            text: str = self.construct_scalar(node)
            return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)

    core = {
        "null": (r"~|null|Null|NULL|", [*"~nN", ""]),
        "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
        "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
        "float": (_FLOAT_PATTERN, [*"-+0123456789."]),
    }
    for kind, (pattern, starts) in core.items():
        Loader.add_implicit_resolver(f"{_TAG_PREFIX}{kind}", re.compile(rf"^(?:{pattern})$"), starts)
    Loader.add_constructor(f"{_TAG_PREFIX}int", Loader.construct_integer)
    Loader.add_constructor(None, Loader.construct_undefined)
    return Loader
