"""The package manifest: what a package declares about itself, each value with its line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mapping, as_text, as_texts, parse_table
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and the place where it is written."""

    value: str
    path: str
    line: int = 1
    basis: str = "manifest"
    """The kind of source; a version is often only a constant in the code."""
    detail: str = ""
    """A supplement, such as the target that a command runs."""


@dataclass(frozen=True, slots=True)
class Subpath:
    """A path below a package that programs can import, such as `web` in `kettle/web`."""

    name: str
    entry_files: tuple[str, ...]
    """The files that an import of it reads first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageManifest:
    """The manifest of one package; a value that it leaves to its build tool is None, not empty."""

    ecosystem: str
    """`pip`, `npm`, `maven`, `nuget`, `cargo`, `go`, `composer`, `gem`, `swiftpm`, `source`."""
    path: str
    name: LocatedValue | None = None
    version: LocatedValue | None = None
    title: LocatedValue | None = None
    """The name for readers, where the manifest has one besides that of the package."""
    licence: LocatedValue | None = None
    """As the manifest writes it."""
    description: LocatedValue | None = None
    requires: LocatedValue | None = None
    """The required versions of the language or runtime, as the manifest writes them."""
    dependencies: tuple[LocatedValue, ...] | None = ()
    optional: Mapping[str, tuple[LocatedValue, ...]] = field(default_factory=dict)
    dev: tuple[LocatedValue, ...] = ()
    commands: tuple[LocatedValue, ...] = ()
    classifiers: tuple[LocatedValue, ...] = ()
    imports: tuple[LocatedValue, ...] = ()
    """The names that a program imports, where the manifest declares them."""
    entry_files: tuple[str, ...] = ()
    """The files that an import reads first."""
    subpaths: tuple[Subpath, ...] = ()
    """The other paths of the package that programs can import."""
    released_version: LocatedValue | None = None
    """The version that documents tell users to install, where the manifest states only the next one."""
    private: bool = False
    """True if the package declares that it is never published."""
    installable: bool = False
    """True if building from source also installs (CMake)."""


def fill_gaps(manifest: PackageManifest, other: PackageManifest, *fields: str) -> PackageManifest:
    """Return a manifest with its empty fields taken from another one of the same package."""
    return replace(manifest, **{name: getattr(manifest, name) or getattr(other, name) for name in fields})


@dataclass(frozen=True)
class ManifestFile:
    """A file that declares values; it knows the line of each."""

    path: str
    text: str
    basis: str = "manifest"

    @classmethod
    def load(cls, tree: CheckoutTree, path: str, basis: str = "manifest") -> Self:
        return cls(path, tree.read_text(path) or "", basis)

    def find(
        self, pattern: str, *, prefix: str = "", line_pattern: str = "", flags: re.RegexFlag = re.MULTILINE
    ) -> LocatedValue | None:
        """Return the first group of a pattern; `line_pattern` is for one that does not begin with its line."""
        match = re.search(pattern, self.text, flags)
        line = find_pattern_line(self.text, line_pattern or pattern)
        return LocatedValue(f"{prefix}{match[1]}", self.path, line, self.basis) if match else None

    def find_all(self, pattern: str, *, line_group: int = 0) -> tuple[LocatedValue, ...]:
        """Return the first group of every match, with the line of a group."""
        return tuple(
            LocatedValue(match[1], self.path, find_line(self.text, match.start(line_group)), self.basis)
            for match in re.finditer(pattern, self.text, re.MULTILINE)
        )

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The values of a TOML or JSON file; empty when it cannot be read."""
        return parse_table(self.path, self.text)

    def find_table(self, *keys: str) -> Mapping[str, Any]:
        """Return a nested table, empty when there is none."""
        table = self.document
        for key in keys:
            table = as_mapping(table.get(key))
        return table

    def read_text(self, *keys: str, strip: bool = False) -> LocatedValue | None:
        """Return the text at a path of keys; None for a blank one or any other value."""
        value = as_text(self.find_table(*keys[:-1]).get(keys[-1]))
        return self.locate(value.strip() if strip else value, *keys) if value else None

    def locate(self, value: str, *keys: str, detail: str = "") -> LocatedValue:
        """Return a value with the line of its path of keys."""
        is_json = self.path.endswith(".json")
        line = find_json_line(self.text, keys) if is_json else find_toml_line(self.text, ".".join(keys[:-1]), keys[-1])
        return LocatedValue(value, self.path, line, detail=detail)

    def locate_items(self, *keys: str) -> tuple[LocatedValue, ...]:
        """Return the texts of a TOML list, each with its own line."""
        start = find_toml_line(self.text, ".".join(keys[:-1]), keys[-1])
        items = as_texts(self.find_table(*keys[:-1]).get(keys[-1]))
        return tuple(LocatedValue(item, self.path, find_item_line(self.text, start, item)) for item in items)

    def locate_entries(self, *keys: str) -> tuple[LocatedValue, ...]:
        """Return the names of a table, sorted, with their values as details."""
        entries = sorted(self.find_table(*keys).items())
        return tuple(self.locate(name, *keys, name, detail=str(value)) for name, value in entries)


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
                return find_line(text, match.start())
    return 1


def find_line(text: str, offset: int) -> int:
    """Return the line of an offset."""
    return text.count("\n", 0, offset) + 1


def find_pattern_line(text: str, pattern: str) -> int:
    """Return the line of the first match; 1 without one."""
    match = re.search(pattern, text, re.MULTILINE)
    return find_line(text, match.start()) if match else 1
