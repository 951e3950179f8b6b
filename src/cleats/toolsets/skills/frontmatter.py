"""The block of YAML at the top of a SKILL.md, read as leniently as the client guide asks.

Most headers are plain `key: value` lines, for which a YAML parser costs twenty times too much.
The others go to the C parser with the resolvers of YAML 1.2, so that `no` and `2024-01-01` stay
text, as every other implementation reads them. What it refuses is repaired where the mistake is a
common one, and then `strict` is false: another reader of the same file may not agree.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import msgspec

LARGEST_HEADER = 64 << 10
"""Characters of a header; the fields that agents read have a few hundred."""

MOST_VALUES = 10_000
"""Values in a header once aliases are spelt out: a dozen lines can ask for billions."""

DEEPEST = 50
"""Levels in a header; an alias to what it stands in has no end of them."""

_BLOCK = re.compile(r"\ufeff?\s*?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"[A-Za-z_][\w-]*")
_QUOTES = frozenset("\"'")
_WORDS = frozenset({"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"})
_ENTRY = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*\r?")


_TEXT = "tag:yaml.org,2002:str"
_BEGIN = "Begin the file with ---, name: …, description: …, ---."
_KEY_FIX = "Put the key in quotes."
_FLOAT = (
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


class BadHeaderError(ValueError):
    """There is no header to read; the message says what there is."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix
        """What to do about it."""


@dataclass(frozen=True, slots=True)
class Header:
    """The fields, and whether the file says so in correct YAML."""

    fields: Mapping[str, Any]
    strict: bool = True
    complaint: str = ""
    fix: str = ""
    """What to do about the complaint; when it is empty, a value has to be put in quotes."""


def parse(text: str) -> Header:
    """Read the header of a SKILL.md.

    Raises:
        BadHeaderError: there is none, or nothing can be made of it.
    """
    found = _BLOCK.match(text)
    if found is None:
        raise BadHeaderError(
            "it has no front matter: a block of YAML between two lines of ---", _BEGIN
        )
    block = found[1]
    if len(block) > LARGEST_HEADER:
        raise BadHeaderError(
            f"its front matter has more than {LARGEST_HEADER} characters", "Leave some out."
        )
    fields = _plain(block)
    header = Header(fields) if fields is not None else _yaml(block)
    if not text.startswith(("---", "\ufeff---")):
        complaint, fix = "it begins with empty lines", "Begin the file with ---."
        return Header(header.fields, strict=False, complaint=complaint, fix=fix)
    return header


def _plain(block: str) -> dict[str, Any] | None:
    """The fields of a header that has only the plainest lines; None when it has others."""
    fields: dict[str, Any] = {}
    for line in block.split("\n")[:-1]:
        key, _, value = line.partition(": ")
        value = value.strip(" \r")
        first = value[:1]
        if first.isalpha():
            right = _is_text(value)
        else:
            right = first in _QUOTES and value[-1] == first and len(value) > 1
            value = value[1:-1]
            right = right and first not in value and "\\" not in value
        if not right or key in fields or key in _WORDS:
            return None
        if not value.isprintable() or not _KEY.fullmatch(key):
            return None
        fields[key] = value
    return fields or None


def _is_text(plain: str) -> bool:
    """Whether YAML reads an unquoted value, which begins with a letter, as the text it is."""
    return not (": " in plain or " #" in plain or plain[-1] == ":" or plain in _WORDS)


def _yaml(block: str) -> Header:
    try:
        return _header(block)
    except BadHeaderError as error:
        complaint, fix = str(error), error.fix
    repaired = "\n".join(map(_quoted, block.split("\n")))
    try:
        fields = _header(repaired).fields
    except BadHeaderError:
        fields = dict(_entries(block))
    if not fields:
        raise BadHeaderError(f"its front matter is not YAML: {complaint}", fix or _BEGIN)
    return Header(fields, strict=False, complaint=complaint, fix=fix)


def _header(block: str) -> Header:
    value, odd, fix = _loaded(block)
    if not isinstance(value, dict):
        raise BadHeaderError("its front matter is not a list of `key: value` lines")
    fields = _Budget(MOST_VALUES).json(value)
    return Header(fields, strict=not odd, complaint=odd, fix=fix)


def _quoted(line: str) -> str:
    """A line with its value in quotes, when it has one that could do with them."""
    found = _ENTRY.fullmatch(line)
    if found is None or found[2][0] in "\"'|>[{":
        return line
    return f"{found[1]}: {json.dumps(found[2], ensure_ascii=False)}"


def _entries(block: str) -> Iterator[tuple[str, str]]:
    """What can still be told from a header that no parser takes: its unindented lines."""
    for line in block.split("\n"):
        if (found := _ENTRY.fullmatch(line)) is not None:
            yield found[1], _unquoted(found[2])


def _unquoted(value: str) -> str:
    """A value without its quotes; one that JSON wrote may have escapes that YAML does not know."""
    try:
        return msgspec.json.decode(value, type=str)
    except ValueError:
        return value.strip("\"'")


class _Budget:
    """Turns what YAML gives into JSON, as long as there is not too much of it."""

    def __init__(self, values: int) -> None:
        self._left = values

    def json(self, value: Any, level: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise BadHeaderError("its front matter has too many values", "Leave some out.")
        if level > DEEPEST:
            raise BadHeaderError("its front matter is nested too deeply", "Nest less.")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise BadHeaderError("its front matter has a key that is not text", _KEY_FIX)
            return {key: self.json(item, level + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item, level + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise BadHeaderError("its front matter has a number that JSON cannot say")
        return value


def _loaded(block: str) -> tuple[Any, str, str]:
    """The value of a YAML text, what is odd about its keys, and what to do about that."""
    import yaml  # noqa: PLC0415 - most headers never need it

    loader = _loader()(block)
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark is not None else ""
        fix = loader.fix
        if mark is not None and _is_tabbed(block.split("\n")[mark.line :]):
            problem, fix = "a tab indents a line", "Indent with spaces; YAML takes no tabs."
        raise BadHeaderError(f"{problem}{where}", fix) from None
    finally:
        loader.dispose()
    return value, loader.complaint, loader.fix


def _is_tabbed(lines: Sequence[str]) -> bool:
    """Whether the first of these lines has a tab before its first word."""
    return bool(lines) and lines[0].lstrip(" ").startswith("\t")


@cache
def _loader() -> Any:
    import yaml  # noqa: PLC0415

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """YAML 1.2 core: only what looks like JSON is anything but text."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
        complaint = fix = ""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        self.complaint = f"{key.value!r} is there twice"
                        self.fix = "Keep one of the two."
                    if key.tag != _TEXT:  # JSON knows no other keys
                        self.complaint = f"the key {key.value!r} is not text"
                        self.fix = _KEY_FIX
                        key.tag = _TEXT
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

        def construct_undefined(self, node: Any) -> Any:
            self.fix = "Remove the tag; a text that begins with ! needs quotes."
            return super().construct_undefined(node)

    core = {
        "null": (r"~|null|Null|NULL|", "~nN"),
        "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
        "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
        "float": (_FLOAT, "-+0123456789."),
    }
    for kind, (pattern, first) in core.items():
        starts = [*first, ""] if kind == "null" else list(first)
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})$"), starts
        )
    Loader.add_constructor("tag:yaml.org,2002:int", _integer)
    Loader.add_constructor(None, Loader.construct_undefined)
    return Loader


def _integer(loader: Any, node: Any) -> int:
    text: str = loader.construct_scalar(node)
    base = 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10
    return int(text, base)
