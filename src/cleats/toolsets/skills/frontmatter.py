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
_FLOAT = (
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)

_TAB = "a tab indents a line"


class BadHeaderError(ValueError):
    """There is no header to read; the message says what there is."""


@dataclass(frozen=True, slots=True)
class Header:
    """The fields, and whether the file says so in correct YAML."""

    fields: Mapping[str, Any]
    strict: bool = True
    complaint: str = ""


def parse(text: str) -> Header:
    """Read the header of a SKILL.md.

    Raises:
        BadHeaderError: there is none, or nothing can be made of it.
    """
    found = _BLOCK.match(text)
    if found is None:
        raise BadHeaderError("it has no front matter: a block of YAML between two lines of ---")
    block = found[1]
    if len(block) > LARGEST_HEADER:
        raise BadHeaderError(f"its front matter has more than {LARGEST_HEADER} characters")
    fields = _plain(block)
    header = Header(fields) if fields is not None else _yaml(block)
    if not text.startswith(("---", "\ufeff---")):
        return Header(header.fields, strict=False, complaint="it begins with empty lines")
    return header


def remedy(complaint: str, otherwise: str) -> str:
    """What to do about a header that is not YAML."""
    return "Indent with spaces; YAML takes no tabs." if _TAB in complaint else otherwise


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
        return _header(block, "")
    except BadHeaderError as error:
        complaint = str(error)
    repaired = "\n".join(map(_quoted, block.split("\n")))
    try:
        header = _header(repaired, complaint)
    except BadHeaderError:
        header = Header(dict(_entries(block)), strict=False, complaint=complaint)
    if not header.fields:
        raise BadHeaderError(f"its front matter is not YAML: {complaint}")
    return header


def _header(block: str, complaint: str) -> Header:
    value, odd = _loaded(block)
    if not isinstance(value, dict):
        raise BadHeaderError("its front matter is not a list of `key: value` lines")
    fields = _Budget(MOST_VALUES).json(value)
    complaint = complaint or odd
    return Header(fields, strict=not complaint, complaint=complaint)


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
            raise BadHeaderError("its front matter has too many values")
        if level > DEEPEST:
            raise BadHeaderError("its front matter is nested too deeply")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise BadHeaderError("its front matter has a key that is not text")
            return {key: self.json(item, level + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item, level + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise BadHeaderError("its front matter has a number that JSON cannot say")
        return value


def _loaded(block: str) -> tuple[Any, str]:
    """The value of a YAML text, and what is odd about its keys."""
    import yaml  # noqa: PLC0415 - most headers never need it

    loader = _loader()(block)
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark is not None else ""
        if mark is not None and _is_tabbed(block.split("\n")[mark.line :]):
            problem = _TAB
        raise BadHeaderError(f"{problem}{where}") from None
    finally:
        loader.dispose()
    return value, loader.complaint


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
        complaint = ""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        self.complaint = f"{key.value!r} is there twice"
                    if key.tag != _TEXT:  # JSON knows no other keys
                        self.complaint = f"the key {key.value!r} is not text"
                        key.tag = _TEXT
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

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
    return Loader


def _integer(loader: Any, node: Any) -> int:
    text: str = loader.construct_scalar(node)
    base = 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10
    return int(text, base)
