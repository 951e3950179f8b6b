"""The package manifest: what a package declares about itself, each value with its line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and the place where it is written."""

    value: str
    path: str
    line: int = 1
    end: int = 0
    """The last line; 0 when the value has one line."""
    basis: str = "manifest"
    """The kind of source; a version is often only a constant in the code."""
    detail: str = ""
    """A supplement, such as the target that a command runs."""

    @property
    def last_line(self) -> int:
        return max(self.line, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageManifest:
    """The manifest of one package; a value that it leaves to its build tool is None, not empty."""

    ecosystem: str
    """`pip`, `npm`, `maven`, `nuget`, `cargo`, `go`, `composer`, `gem`, `swiftpm`, `source`."""
    path: str
    name: LocatedValue | None = None
    version: LocatedValue | None = None
    licence: LocatedValue | None = None
    """As the manifest writes it."""
    licence_file: str = ""
    description: LocatedValue | None = None
    requires: LocatedValue | None = None
    """The required versions of the language or runtime, as the manifest writes them."""
    dependencies: tuple[LocatedValue, ...] | None = ()
    optional: Mapping[str, tuple[LocatedValue, ...]] = field(default_factory=dict)
    dev: tuple[LocatedValue, ...] = ()
    commands: tuple[LocatedValue, ...] = ()
    classifiers: tuple[LocatedValue, ...] = ()
    keywords: tuple[str, ...] = ()
    imports: tuple[LocatedValue, ...] = ()
    """The names that a program imports, where the manifest declares them."""
    entry_files: tuple[str, ...] = ()
    """The files that an import reads first."""
    private: bool = False
    """True if the package declares that it is never published."""
    installable: bool = False
    """True if building from source also installs (CMake)."""


def find_toml_line(text: str, table: str, key: str = "") -> int:
    """Return the line of `key` in `[table]`, or of the table itself; 1 when it is not found."""
    current = ""
    key_pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*(=|\.)")
    full_name = f"{table}.{key}" if key else table
    parent, _, last = table.rpartition(".")
    nested_key_pattern = re.compile(rf"\s*{re.escape(last)}\s*\.\s*[\"']?{re.escape(key)}[\"']?\s*=")
    top_level_pattern = re.compile(rf"\s*{re.escape(full_name)}\s*=")
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            current = header[1].replace('"', "").replace("'", "").replace(" ", "")
            if current == full_name:
                return number
        elif (
            (key and current == table and key_pattern.match(line))
            or (not current and top_level_pattern.match(line))
            or (key and current == parent and nested_key_pattern.match(line))
        ):
            return number
    return find_toml_line(text, table) if key else 1


def find_item_line(text: str, start: int, value: str) -> int:
    """Return the first line from `start` on that holds a value in quotes; `start` without one."""
    lines = text.split("\n")
    for number in range(start, min(start + 400, len(lines)) + 1):
        if f'"{value}"' in lines[number - 1] or f"'{value}'" in lines[number - 1]:
            return number
    return start


def find_json_line(text: str, keys: Sequence[str]) -> int:
    """Return the line of a key in nested objects; 1 when it is not found."""
    depth, matched_keys, position = 0, 0, 0
    pattern = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')
    while match := pattern.search(text, position):
        position = match.end()
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            matched_keys = min(matched_keys, max(depth - 1, 0))
        elif match[2] and depth == matched_keys + 1 and match[1] == keys[matched_keys]:
            matched_keys += 1
            if matched_keys == len(keys):
                return text.count("\n", 0, match.start()) + 1
    return 1


def find_pattern_line(text: str, pattern: str) -> int:
    """Return the line of the first match; 1 without one."""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1
