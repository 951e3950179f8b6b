"""The public API of a Node package: the exports of its entry file, type declarations first.

Files are parsed in another process: a grammar is native code, and damaged text may crash it or keep
it busy for minutes. The API of such a package is reported as unknown.
"""

import pickle
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final, TypeAlias

from tree_sitter import Node, Parser

from cleats.system.worker_pool import WEIGHT_PER_CPU_SECOND, LostTask, ProcessPool
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.safe_parsing import load_parser
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.text import english

_SYMBOL_KINDS: Final = {
    **dict.fromkeys(("function_declaration", "function_signature", "generator_function_declaration"), "function"),
    **dict.fromkeys(("class_declaration", "abstract_class_declaration"), "class"),
}
_SOURCE_SUFFIXES: Final = (".d.ts", ".ts", ".d.mts", ".mts", ".d.cts", ".js", ".mjs", ".cjs", ".tsx")
_MAX_FOLLOWED_FILES: Final = 200
"""Files followed from an entry; a larger package is represented by its first names."""

_MAX_CPU_SECONDS: Final = 30
"""CPU time for a package; the largest need two seconds."""

_ReadTask: TypeAlias = tuple[CheckoutTree, str, tuple[str, ...]]


@dataclass
class _ExportReader:
    tree: CheckoutTree
    visited: set[str] = field(default_factory=set)
    symbols: dict[str, Symbol] = field(default_factory=dict)

    def read_file(self, path: str, aliases: dict[str, str] | None = None) -> None:
        """Collect the exports of a file; `aliases` maps its names to the names outside."""
        visit_key = f"{path}|{sorted(aliases.items()) if aliases else ''}"
        if visit_key in self.visited or len(self.visited) > _MAX_FOLLOWED_FILES:
            return
        self.visited.add(visit_key)
        text = self.tree.read_text(path)
        if text is None:
            return
        data = text.encode()
        root = _parser(path).parse(data).root_node
        local: dict[str, str] = dict(aliases or {})
        exports = [node for node in root.children if node.type == "export_statement"]
        for node in exports:
            if not node.child_by_field_name("source"):
                local |= self._collect_renames(node, data, aliases)
        for node in root.children:
            is_export = node.type == "export_statement"
            inner = node.child_by_field_name("declaration") if is_export else node
            if inner is not None and inner.type == "ambient_declaration":
                inner = next((child for child in inner.children if child.type in _SYMBOL_KINDS), None)
            if inner is not None and inner.type in _SYMBOL_KINDS:
                self._add_declaration(node, inner, data, path, local if aliases or not is_export else None)
        for node in exports:
            if source := node.child_by_field_name("source"):
                target = _resolve_import(self.tree, path, _decode_node(source, data).strip("'\"`"))
                self._follow_export(node, target, data, aliases)

    def _follow_export(self, node: Node, target: str, data: bytes, aliases: dict[str, str] | None) -> None:
        """Follow a re-export of another file; a namespace export adds no names to the package."""
        kinds = {child.type for child in node.children}
        if not target or "namespace_export" in kinds:
            return
        if "export_clause" not in kinds:
            self.read_file(target, aliases)
        elif names := self._collect_renames(node, data, aliases):
            self.read_file(target, names)

    def _collect_renames(self, node: Node, data: bytes, aliases: dict[str, str] | None) -> dict[str, str]:
        renames: dict[str, str] = {}
        for clause in node.children:
            for specifier in clause.children if clause.type == "export_clause" else ():
                if specifier.type != "export_specifier" or _decode_node(specifier, data).startswith("type "):
                    continue
                inner, outer = specifier.child_by_field_name("name"), specifier.child_by_field_name("alias")
                name = _decode_node(inner, data) if inner else ""
                exported_name = _decode_node(outer, data) if outer else name
                if aliases is None or exported_name in aliases:
                    renames[name] = (aliases or {}).get(exported_name, exported_name)
        return renames

    def _add_declaration(self, node: Node, inner: Node, data: bytes, path: str, names: dict[str, str] | None) -> None:
        label = inner.child_by_field_name("name")
        declared_name = _decode_node(label, data) if label else ""
        name = declared_name if names is None else names.get(declared_name, "")
        if not name or name.startswith("_") or name == "default" or name in self.symbols:
            return
        raw, doc_line = _find_doc_comment(node, data)
        line = data.count(b"\n", 0, inner.start_byte) + 1
        parameters = inner.child_by_field_name("parameters")
        self.symbols[name] = Symbol(
            name=name,
            kind=_SYMBOL_KINDS[inner.type],
            path=path,
            line=line,
            end=line + (_decode_node(parameters, data).count("\n") if parameters else 0),
            signature=f"{name}{' '.join(_decode_node(parameters, data).split())}" if parameters else name,
            doc=_extract_first_sentence(raw),
            doc_line=doc_line or line,
            doc_end=doc_line + raw.count("\n") if raw else line,
            deprecated="@deprecated" in raw,
        )


def read_surface(tree: CheckoutTree, package: str, entries: tuple[str, ...]) -> ApiSurface:
    """Return the names that the first readable entry file exports."""
    task = (replace(tree, _texts={}), package, entries)
    [(_, result)] = ProcessPool(_read_entries, 1).map([task], lambda _: _MAX_CPU_SECONDS * WEIGHT_PER_CPU_SECOND)
    # The grammar may have crashed on the files.
    found = None if isinstance(result, LostTask) else pickle.loads(result)  # noqa: S301 - from our own child
    return found or ApiSurface((), tuple((package, entry) for entry in entries[:1]))


def _read_entries(task: _ReadTask) -> bytes:
    tree, package, entries = task
    for entry in entries:
        reader = _ExportReader(tree)
        reader.read_file(entry)
        if reader.symbols:
            return pickle.dumps(ApiSurface(tuple(reader.symbols.values()), ((package, entry),)))
    return pickle.dumps(None)


def _parser(path: str) -> Parser:
    kinds = {".tsx": "tsx", **dict.fromkeys((".ts", ".mts", ".cts"), "typescript")}
    return load_parser(kinds.get(PurePosixPath(path).suffix, "javascript"))


def _resolve_import(tree: CheckoutTree, path: str, source: str) -> str:
    if not source.startswith("."):
        return ""
    base = normpath(str(PurePosixPath(path).parent / source))
    stem = re.sub(r"\.[cm]?[jt]s$", "", base)
    candidates = [f"{stem}{end}" for end in _SOURCE_SUFFIXES] + [f"{base}/index{end}" for end in _SOURCE_SUFFIXES]
    candidates.sort(key=lambda candidate: ".d." in path and ".d." not in candidate)
    return next((candidate for candidate in (base, *candidates) if candidate in tree.path_set), "")


def _find_doc_comment(node: Node, data: bytes) -> tuple[str, int]:
    previous = node.prev_sibling
    if previous is None or previous.type != "comment":
        return "", 0
    text = _decode_node(previous, data)
    line = data.count(b"\n", 0, previous.start_byte) + 1
    return (text, line) if text.startswith("/**") else ("", 0)


def _extract_first_sentence(comment: str) -> str:
    lines = [line.strip().lstrip("*").strip() for line in comment.strip("/*").splitlines()]
    text = "\n".join(lines).strip()
    text = re.sub(r"^@(name|category|summary|description)\b[^\n]*\n?", "", text, flags=re.MULTILINE)
    description = re.search(r"@description\s+(.+?)(?=\n\s*\n|\n@|$)", "\n".join(lines), re.DOTALL)
    if description:
        text = description[1]
    text = re.sub(r"\{@link\s+([^}|\s]+)[^}]*\}", r"`\1`", text)
    paragraph = re.split(r"\n\s*\n|\n@|^@", text.strip())[0]
    sentences = english.split_sentences(paragraph)
    return sentences[0] if sentences else ""


def _decode_node(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode(errors="replace")
