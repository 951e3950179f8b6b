"""The public API of a Node package: what its entry file exports, types before code.

Files are parsed in another process: a grammar is native code, which damaged text may crash or keep
busy for minutes. A package that does so is one whose API is not known.
"""

import pickle
import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final, TypeAlias

from tree_sitter import Language, Node, Parser

from cleats.runtime.pool import RATE, Lost, Pool
from cleats.toolsets.launch.source import prose
from cleats.toolsets.launch.source.api.model import Surface, Symbol
from cleats.toolsets.launch.source.tree import Tree

_KINDS: Final = {
    "function_declaration": "function",
    "function_signature": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
}
_ENDINGS: Final = (".d.ts", ".ts", ".d.mts", ".mts", ".d.cts", ".js", ".mjs", ".cjs", ".tsx")
_FILES: Final = 200
"""Files followed from an entry; a larger package is known by its first names."""

_SECONDS: Final = 30
"""Of CPU for a package; the largest take two."""

_Asked: TypeAlias = tuple[Tree, str, tuple[str, ...]]


@dataclass
class _Reading:
    tree: Tree
    package: str
    seen: set[str] = field(default_factory=set)
    found: dict[str, Symbol] = field(default_factory=dict)

    def file(self, path: str, wanted: dict[str, str] | None = None) -> None:
        """Take what a file exports; `wanted` maps names there to names outside."""
        mark = f"{path}|{sorted(wanted.items()) if wanted else ''}"
        if mark in self.seen or len(self.seen) > _FILES:
            return
        self.seen.add(mark)
        text = self.tree.text(path)
        if text is None:
            return
        data = text.encode()
        root = _parser(path).parse(data).root_node
        local: dict[str, str] = dict(wanted or {})
        exports = [node for node in root.children if node.type == "export_statement"]
        for node in exports:
            if not node.child_by_field_name("source"):
                local |= self._renamed(node, data, wanted)
        for node in root.children:
            outer = node.type == "export_statement"
            inner = node.child_by_field_name("declaration") if outer else node
            if inner is not None and inner.type == "ambient_declaration":
                inner = next((each for each in inner.children if each.type in _KINDS), None)
            if inner is not None and inner.type in _KINDS:
                self._declaration(node, inner, data, path, local if wanted or not outer else None)
        for node in exports:
            if source := node.child_by_field_name("source"):
                place = _resolved(self.tree, path, _text(source, data).strip("'\"`"))
                self._from(node, place, data, wanted)

    def _from(self, node: Node, target: str, data: bytes, wanted: dict[str, str] | None) -> None:
        """Follow an export of another file's names; under a name of their own they are not ours."""
        kinds = {each.type for each in node.children}
        if not target or "namespace_export" in kinds:
            return
        if "export_clause" not in kinds:
            self.file(target, wanted)
        elif names := self._renamed(node, data, wanted):
            self.file(target, names)

    def _renamed(self, node: Node, data: bytes, wanted: dict[str, str] | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for clause in node.children:
            for each in clause.children if clause.type == "export_clause" else ():
                if each.type != "export_specifier" or _text(each, data).startswith("type "):
                    continue
                inner, outer = each.child_by_field_name("name"), each.child_by_field_name("alias")
                name = _text(inner, data) if inner else ""
                shown = _text(outer, data) if outer else name
                if wanted is None or shown in wanted:
                    found[name] = (wanted or {}).get(shown, shown)
        return found

    def _declaration(
        self, node: Node, inner: Node, data: bytes, path: str, names: dict[str, str] | None
    ) -> None:
        label = inner.child_by_field_name("name")
        own = _text(label, data) if label else ""
        name = own if names is None else names.get(own, "")
        if not name or name.startswith("_") or name == "default" or name in self.found:
            return
        raw, doc_line = _comment_above(node, data)
        line = data.count(b"\n", 0, inner.start_byte) + 1
        parameters = inner.child_by_field_name("parameters")
        self.found[name] = Symbol(
            name=name,
            kind=_KINDS[inner.type],
            path=path,
            line=line,
            end=line + (_text(parameters, data).count("\n") if parameters else 0),
            signature=f"{name}{' '.join(_text(parameters, data).split())}" if parameters else name,
            doc=_first_sentence(raw),
            doc_line=doc_line or line,
            doc_end=doc_line + raw.count("\n") if raw else line,
            deprecated="@deprecated" in raw,
        )


def surface(tree: Tree, package: str, entries: tuple[str, ...]) -> Surface:
    """The names that the first readable entry file exports."""
    asked = (replace(tree, _texts={}), package, entries)
    [(_, said)] = Pool(_read, 1).map([asked], lambda _: _SECONDS * RATE)
    if isinstance(said, Lost):
        return _unknown(package, entries)
    known: Surface = pickle.loads(said)  # noqa: S301 - from our own child
    return known


def _read(asked: _Asked) -> bytes:
    tree, package, entries = asked
    for entry in entries:
        reading = _Reading(tree, package)
        reading.file(entry)
        if reading.found:
            return pickle.dumps(Surface(tuple(reading.found.values()), ((package, entry),)))
    return pickle.dumps(_unknown(package, entries))


def _unknown(package: str, entries: tuple[str, ...]) -> Surface:
    return Surface((), tuple((package, entry) for entry in entries[:1]))


@cache
def _grammar(name: str) -> Parser:
    module, maker = {
        "typescript": ("tree_sitter_typescript", "language_typescript"),
        "tsx": ("tree_sitter_typescript", "language_tsx"),
        "javascript": ("tree_sitter_javascript", "language"),
    }[name]
    return Parser(Language(getattr(import_module(module), maker)()))


def _parser(path: str) -> Parser:
    suffix = PurePosixPath(path).suffix
    kinds = {".tsx": "tsx", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript"}
    return _grammar(kinds.get(suffix, "javascript"))


def _resolved(tree: Tree, path: str, source: str) -> str:
    if not source.startswith("."):
        return ""
    base = normpath(str(PurePosixPath(path).parent / source))
    stem = re.sub(r"\.[cm]?[jt]s$", "", base)
    places = [f"{stem}{end}" for end in _ENDINGS] + [f"{base}/index{end}" for end in _ENDINGS]
    beside = "declaration" if ".d." in path else "code"
    places.sort(key=lambda place: (".d." not in place) if beside == "declaration" else 0)
    return next((place for place in (base, *places) if place in tree.known), "")


def _comment_above(node: Node, data: bytes) -> tuple[str, int]:
    """The documentation right before a declaration, and its first line."""
    before = node.prev_sibling
    if before is None or before.type != "comment":
        return "", 0
    text = _text(before, data)
    line = data.count(b"\n", 0, before.start_byte) + 1
    return (text, line) if text.startswith("/**") else ("", 0)


def _first_sentence(comment: str) -> str:
    lines = [line.strip().lstrip("*").strip() for line in comment.strip("/*").splitlines()]
    text = "\n".join(lines).strip()
    text = re.sub(r"^@(name|category|summary|description)\b[^\n]*\n?", "", text, flags=re.MULTILINE)
    described = re.search(r"@description\s+(.+?)(?=\n\s*\n|\n@|$)", "\n".join(lines), re.DOTALL)
    if described:
        text = described[1]
    text = re.sub(r"\{@link\s+([^}|\s]+)[^}]*\}", r"`\1`", text)
    paragraph = re.split(r"\n\s*\n|\n@|^@", text.strip())[0]
    found = prose.sentences(paragraph)
    return found[0] if found else ""


def _text(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode(errors="replace")
