"""Front matter: the block of metadata at the top of a page, read and edited as Hugo reads it.

It is YAML, TOML or JSON, and every fault is an error with its line. `skill_header` reads the front
matter of a SKILL.md, which is more lenient. The parsers of YAML and TOML are imported where they are
used, since many servers need neither.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

_FENCES = {"yaml": "---", "toml": "+++"}


class FrontMatterError(ValueError):
    """Raised when front matter cannot be used; `line` is the location of the error in a page."""

    def __init__(self, message: str, line: int = 1, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.fix = fix
        """The recommended correction of a header."""


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page, split into front matter and body."""

    front: dict[str, Any]
    front_kind: str
    """`yaml`, `toml`, `json`, or empty for a page without front matter."""
    body: str
    body_line: int


def parse_page(text: str) -> ParsedPage:
    """Split a page into front matter and body.

    Raises:
        FrontMatterError: the front matter is not closed, does not parse, repeats a key, or is not a mapping.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front: dict[str, Any] = {}
    kind, offset = "", 0
    if text.startswith("{"):
        kind = "json"
        front, end = _decode_json(text)
        offset = text.find("\n", end) + 1 or len(text)
    for fence_kind, fence in _FENCES.items():
        if re.match(re.escape(fence) + r"[ \t]*\n", text):
            closing = re.compile(rf"^{re.escape(fence)}[ \t]*$", re.MULTILINE).search(text, len(fence) + 1)
            if closing is None:
                raise FrontMatterError(f"the front matter has no closing {fence}")
            kind = fence_kind
            front = _load_block(text[text.index("\n") + 1 : closing.start()], kind)
            offset = min(closing.end() + 1, len(text))
    return ParsedPage(front, kind, text[offset:], text.count("\n", 0, offset) + 1)


def _decode_json(text: str) -> tuple[dict[str, Any], int]:
    try:
        front, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise FrontMatterError(str(error), getattr(error, "lineno", 1)) from error
    return dict(front), end


def _load_block(source: str, kind: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - see the top

    import yaml  # noqa: PLC0415 - see the top

    try:
        front = yaml.load(source, _unique_key_loader()) if kind == "yaml" else tomllib.loads(source)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise FrontMatterError(error.problem or "the YAML does not parse", line) from error
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(str(error).split("\n", 1)[0]) from error
    except (LookupError, AttributeError) as error:  # PyYAML, where a tag does not fit its value
        raise FrontMatterError("a value does not have the type of its tag") from error
    except RecursionError as error:
        raise FrontMatterError("the front matter is nested too deeply") from error
    if front is None:
        return {}
    if not isinstance(front, dict) or not all(isinstance(key, str) for key in front):
        raise FrontMatterError("the front matter is not a mapping of names to values")
    return front


@cache
def _unique_key_loader() -> Any:
    """Return a YAML loader that, like Hugo, rejects a repeated key instead of choosing one value."""
    import yaml  # noqa: PLC0415 - see the top

    def construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain value", key_node.start_mark)
            if key in mapping:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} occurs twice", key_node.start_mark
                )
            mapping[key] = loader.construct_object(value_node, deep=True)
        return mapping

    class Loader(yaml.SafeLoader):
        """A loader with constructors of its own."""

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, construct_mapping)
    return Loader


def render_page(front: Mapping[str, Any], body: str) -> str:
    """Render a page with YAML front matter: keys in the given order, one line feed at the end."""
    return f"---\n{render_front_matter(front)}---\n\n{body.strip(chr(10))}\n"


def render_front_matter(front: Mapping[str, Any]) -> str:
    """Render front matter as YAML that Hugo reads back to the same values."""
    import yaml  # noqa: PLC0415 - see the top

    class AliasFreeDumper(yaml.SafeDumper):
        """A YAML dumper without anchors: equal lists are written twice."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML gives it
            return True

    return yaml.dump(
        dict(front),
        Dumper=AliasFreeDumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=10**6,  # a folded line is hard to review and to patch
    )


def set_front_matter_keys(text: str, updates: Mapping[str, Any]) -> str:
    """Set keys of a page's front matter; None removes a key.

    A new key is added at the end. A page without front matter gets one in YAML.

    Raises:
        FrontMatterError: The existing front matter cannot be read, or its format cannot express a value.
    """
    page = parse_page(text)
    values = {key: value for key, value in {**page.front, **updates}.items() if value is not None}
    if not page.front_kind:
        return render_page(values, text) if values else text
    if page.front_kind == "json":
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n" + page.body
    lines = text.split("\n")
    fence = _FENCES[page.front_kind]
    closing_line = next(number for number, line in enumerate(lines[1:], start=1) if line.strip() == fence)
    front = lines[1:closing_line]
    for key, value in updates.items():
        front = _set_key(front, page.front_kind, key, value)
    new_text = "\n".join([lines[0], *front, *lines[closing_line:]])
    parse_page(new_text)
    return new_text


def _set_key(front: list[str], kind: str, key: str, value: Any) -> list[str]:
    new_lines = [] if value is None else _render_key(kind, key, value)
    name, separator = re.escape(key), ":" if kind == "yaml" else "="
    pattern = re.compile(rf"""(?:{name}|"{name}"|'{name}')\s*{separator}""")
    start = next((number for number, line in enumerate(front) if pattern.match(line)), None)
    if start is None:
        tables = (number for number, line in enumerate(front) if kind == "toml" and line.lstrip().startswith("["))
        end = next(tables, len(front))
        return [*front[:end], *new_lines, *front[end:]]
    end = start + 1
    for index, line in enumerate(front[end:], start=end):
        if line.strip() and not _is_continuation(line, kind, "\n".join(front[start:index])):
            break
        if line.strip():
            end = index + 1
    return [*front[:start], *new_lines, *front[end:]]


def _is_continuation(line: str, kind: str, value_text: str) -> bool:
    if kind == "yaml":
        # A list may have the same indentation as its key.
        return line.startswith((" ", "\t", "- ")) or line == "-"
    try:
        parse_page(f"+++\n{value_text}\n+++\n")
    except FrontMatterError:
        return True
    return False


def _render_key(kind: str, key: str, value: Any) -> list[str]:
    if kind == "yaml":
        return render_front_matter({key: value}).rstrip("\n").split("\n")
    if isinstance(value, Mapping) or not re.fullmatch(r"[A-Za-z0-9_-]+", key):
        raise FrontMatterError(f"{key!r} cannot be set in TOML front matter")
    # A JSON string, number, boolean or list of them is a TOML value too.
    return [f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}"]
