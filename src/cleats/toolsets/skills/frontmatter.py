"""The YAML front matter of a SKILL.md, read as leniently as the client guide asks.

Most headers are plain `key: value` lines, for which a YAML parser costs twenty times too much. The
others go to the C parser with the resolvers of YAML 1.2, so that `no` and `2024-01-01` stay text,
as in every other implementation. Common mistakes that it refuses are repaired, and then `strict` is
false: another reader of the same file may not agree.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import msgspec

MAX_HEADER_CHARS = 64 << 10
"""The maximum length of a header; the fields that agents read have a few hundred characters."""

MAX_HEADER_VALUES = 10_000
"""The maximum number of values in a header after alias expansion: a dozen lines can ask for
billions."""

MAX_HEADER_LEVELS = 50
"""The maximum nesting depth of a header; an alias to its own ancestor is infinitely deep."""

_HEADER_PATTERN = re.compile(r"\ufeff?\s*?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_KEY_PATTERN = re.compile(r"[A-Za-z_][\w-]*")
_QUOTE_CHARS = frozenset("\"'")
_YAML_KEYWORDS = frozenset({"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"})
_ENTRY_PATTERN = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*\r?")


_STRING_TAG = "tag:yaml.org,2002:str"
_MISSING_HEADER_FIX = "Begin the file with ---, name: …, description: …, ---."
_KEY_FIX = "Put the key in quotes."
_FLOAT_PATTERN = (
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


class BadHeaderError(ValueError):
    """Raised when there is no usable header; the message says why."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix
        """The recommended correction."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields of a header, and whether they are correct YAML."""

    fields: Mapping[str, Any]
    strict: bool = True
    complaint: str = ""
    fix: str = ""
    """The recommended correction; if empty, a value has to be put in quotes."""


def parse_front_matter(text: str) -> FrontMatter:
    """Parse the front matter of a SKILL.md.

    Raises:
        BadHeaderError: There is no header, or it cannot be parsed.
    """
    match = _HEADER_PATTERN.match(text)
    if match is None:
        raise BadHeaderError("it has no front matter: a block of YAML between two lines of ---", _MISSING_HEADER_FIX)
    block = match[1]
    if len(block) > MAX_HEADER_CHARS:
        raise BadHeaderError(f"its front matter has more than {MAX_HEADER_CHARS} characters", "Leave some out.")
    fields = _parse_plain(block)
    header = FrontMatter(fields) if fields is not None else _parse_yaml(block)
    if not text.startswith(("---", "\ufeff---")):
        complaint, fix = "it begins with empty lines", "Begin the file with ---."
        return FrontMatter(header.fields, strict=False, complaint=complaint, fix=fix)
    return header


def _parse_plain(block: str) -> dict[str, Any] | None:
    """Return the fields of a header with only plain lines, or None if it has others."""
    fields: dict[str, Any] = {}
    for line in block.split("\n")[:-1]:
        key, _, value = line.partition(": ")
        value = value.strip(" \r")
        first = value[:1]
        if first.isalpha():
            is_valid = _is_plain_text(value)
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


def _is_plain_text(plain: str) -> bool:
    """Return whether YAML reads an unquoted value, which begins with a letter, as text."""
    return not (": " in plain or " #" in plain or plain[-1] == ":" or plain in _YAML_KEYWORDS)


def _parse_yaml(block: str) -> FrontMatter:
    try:
        return _parse_block(block)
    except BadHeaderError as error:
        complaint, fix = str(error), error.fix
    repaired = "\n".join(map(_quote_value, block.split("\n")))
    try:
        fields = _parse_block(repaired).fields
    except BadHeaderError:
        fields = dict(_salvage_entries(block))
    if not fields:
        raise BadHeaderError(f"its front matter is not YAML: {complaint}", fix or _MISSING_HEADER_FIX)
    return FrontMatter(fields, strict=False, complaint=complaint, fix=fix)


def _parse_block(block: str) -> FrontMatter:
    value, complaint, fix = _load_yaml(block)
    if not isinstance(value, dict):
        raise BadHeaderError("its front matter is not a list of `key: value` lines")
    fields = _JsonConverter(MAX_HEADER_VALUES).convert(value)
    return FrontMatter(fields, strict=not complaint, complaint=complaint, fix=fix)


def _quote_value(line: str) -> str:
    """Return a line with its value in quotes, if it has a value that may need them."""
    match = _ENTRY_PATTERN.fullmatch(line)
    if match is None or match[2][0] in "\"'|>[{":
        return line
    return f"{match[1]}: {json.dumps(match[2], ensure_ascii=False)}"


def _salvage_entries(block: str) -> Iterator[tuple[str, str]]:
    """Yield the unindented `key: value` lines of a header that no parser accepts."""
    for line in block.split("\n"):
        if (match := _ENTRY_PATTERN.fullmatch(line)) is not None:
            yield match[1], _unquote_value(match[2])


def _unquote_value(value: str) -> str:
    """Return a value without its quotes; JSON strings may have escapes that YAML does not know."""
    try:
        return msgspec.json.decode(value, type=str)
    except ValueError:
        return value.strip("\"'")


class _JsonConverter:
    """A converter from YAML values to JSON with a limit on their number."""

    def __init__(self, values: int) -> None:
        self._remaining = values

    def convert(self, value: Any, level: int = 0) -> Any:
        self._remaining -= 1
        if self._remaining < 0:
            raise BadHeaderError("its front matter has too many values", "Leave some out.")
        if level > MAX_HEADER_LEVELS:
            raise BadHeaderError("its front matter is nested too deeply", "Nest less.")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise BadHeaderError("its front matter has a key that is not text", _KEY_FIX)
            return {key: self.convert(item, level + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.convert(item, level + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise BadHeaderError("its front matter has a number that JSON cannot say")
        return value


def _load_yaml(block: str) -> tuple[Any, str, str]:
    """Return the value of a YAML text, a complaint about its keys, and the correction."""
    import yaml  # noqa: PLC0415 - most headers never need it

    loader = _build_loader()(block)
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        position = f" (line {mark.line + 2})" if mark is not None else ""
        fix = loader.fix
        if mark is not None and _starts_with_tab(block.split("\n")[mark.line :]):
            problem, fix = "a tab indents a line", "Indent with spaces; YAML takes no tabs."
        raise BadHeaderError(f"{problem}{position}", fix) from None
    finally:
        loader.dispose()
    return value, loader.complaint, loader.fix


def _starts_with_tab(lines: Sequence[str]) -> bool:
    """Return whether the first of these lines has a tab before its first word."""
    return bool(lines) and lines[0].lstrip(" ").startswith("\t")


@cache
def _build_loader() -> Any:
    import yaml  # noqa: PLC0415

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """A YAML 1.2 core loader: only values that look like JSON are anything but text."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
        complaint = fix = ""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen_keys = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen_keys:
                        self.complaint = f"{key.value!r} is there twice"
                        self.fix = "Keep one of the two."
                    if key.tag != _STRING_TAG:  # JSON knows no other keys
                        self.complaint = f"the key {key.value!r} is not text"
                        self.fix = _KEY_FIX
                        key.tag = _STRING_TAG
                    seen_keys.add(key.value)
            return super().construct_mapping(node, deep)

        def construct_undefined(self, node: Any) -> Any:
            self.fix = "Remove the tag; a text that begins with ! needs quotes."
            return super().construct_undefined(node)

    core = {
        "null": (r"~|null|Null|NULL|", "~nN"),
        "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
        "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
        "float": (_FLOAT_PATTERN, "-+0123456789."),
    }
    for kind, (pattern, first) in core.items():
        starts = [*first, ""] if kind == "null" else list(first)
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})$"), starts)
    Loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)
    Loader.add_constructor(None, Loader.construct_undefined)
    return Loader


def _construct_integer(loader: Any, node: Any) -> int:
    text: str = loader.construct_scalar(node)
    base = 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10
    return int(text, base)
