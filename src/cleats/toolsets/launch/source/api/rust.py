"""The public API of a Rust crate: the public names of its root, of public modules and of re-exports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.api.declarations import (
    CLASS_LABELS,
    Declaration,
    FileDeclarations,
    make_members,
    make_symbol,
    read_declarations,
)
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_REEXPORT_PATTERN: Final = re.compile(r"((?:#\[[^\n]*\]\s*)*)^[ \t]*pub\s+use\s+([^;]+);", re.MULTILINE)
_MODULE_PATTERN: Final = re.compile(r"((?:#\[[^\n]*\]\s*)*)^[ \t]*pub\s+mod\s+(\w+)\s*;", re.MULTILINE)
_COMMENT_PATTERN: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINK_PATTERN: Final = re.compile(r"\[(`[^`\]]+`|[\w:]+)\](?:\([^)]*\)|\[[^\]]*\])?")
_MAX_REEXPORT_HOPS: Final = 6
"""Re-exports that are followed to find the declaration of a name."""


def read_surface(tree: CheckoutTree, manifest: PackageManifest) -> ApiSurface:
    """Return the names that a program can use from a crate."""
    root = next((path for path in manifest.entry_files if path in tree.path_set), "")
    if not root:
        return ApiSurface()
    folder = str(PurePosixPath(root).parent)
    paths = [path for path in tree.paths_below("" if folder == "." else folder) if path.endswith(".rs")]
    crate = _Crate(tree, root, read_declarations(tree, paths, "rust"))
    symbols: dict[str, Symbol] = {}
    modules: list[tuple[str, str]] = []
    for prefix, path in crate.iter_modules(root):
        modules.append((prefix or manifest.imports[0].value, path))
        for name, declaration in crate.iter_public(path):
            full_name = f"{prefix}::{name}" if prefix else name
            if declaration.own_name not in ("", "self") and (symbol := crate.make_symbol(full_name, declaration)):
                known = {(item.path, item.line) for item in symbols.values()}
                if (symbol.path, symbol.line) not in known:
                    symbols.setdefault(full_name, symbol)
    return ApiSurface(tuple(symbols.values()), tuple(modules))


@dataclass
class _Crate:
    tree: CheckoutTree
    root: str
    files: dict[str, FileDeclarations]
    codes: dict[str, str] = field(default_factory=dict)

    def read_code(self, path: str) -> str:
        """Return the text of a file without comments."""
        if path not in self.codes:
            self.codes[path] = _COMMENT_PATTERN.sub("", self.tree.read_text(path) or "")
        return self.codes[path]

    def iter_modules(self, path: str, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Yield the root and every public module below it, with their names."""
        yield prefix, path
        for attributes, name in _MODULE_PATTERN.findall(self.read_code(path)):
            inner = self.find_module_file(path, name)
            if inner and not _is_hidden(attributes):
                yield from self.iter_modules(inner, f"{prefix}::{name}" if prefix else name)

    def find_module_file(self, path: str, name: str) -> str:
        pure_path = PurePosixPath(path)
        owns_folder = pure_path.stem in ("lib", "mod", "main") or path == self.root
        folder = pure_path.parent if owns_folder else pure_path.with_suffix("")
        candidates = (str(folder / f"{name}.rs"), str(folder / name / "mod.rs"))
        return next((candidate for candidate in candidates if candidate in self.files), "")

    def iter_public(self, path: str, hops: int = _MAX_REEXPORT_HOPS) -> Iterator[tuple[str, Declaration]]:
        """Yield the public names of a module with their declarations."""
        for declaration in self.files[path].declarations if path in self.files else ():
            if _is_public(declaration) and not declaration.owner:
                yield declaration.own_name, declaration
        for attributes, tree_text in _REEXPORT_PATTERN.findall(self.read_code(path)) if hops else ():
            if _is_hidden(attributes):
                continue
            for names, alias in _expand_use_tree(tree_text):
                yield from self._resolve_reexport(path, names, alias, hops - 1)

    def _resolve_reexport(
        self, path: str, names: list[str], alias: str, hops: int
    ) -> Iterator[tuple[str, Declaration]]:
        current = path
        while names and names[0] in ("crate", "self", "super"):
            current = {"crate": self.root, "self": current, "super": self._find_parent(current)}[names[0]]
            names = names[1:]
        while len(names) > 1 and (inner := self.find_module_file(current, names[0])):
            current, names = inner, names[1:]
        if len(names) != 1:
            return
        for name, declaration in self.iter_public(current, hops):
            if names[0] in ("*", name):
                yield (alias or name), declaration

    def _find_parent(self, path: str) -> str:
        pure_path = PurePosixPath(path)
        folder = pure_path.parent.parent if pure_path.stem == "mod" else pure_path.parent
        candidates = (f"{folder}.rs", str(folder / "mod.rs"), self.root)
        return next(candidate for candidate in candidates if candidate in self.files)

    def make_symbol(self, name: str, declaration: Declaration) -> Symbol | None:
        """Return a declaration under its public name, with the public methods of a type."""
        if declaration.kind == "macro":
            return make_symbol(declaration, f"{name}!", "function", _clean_doc)
        if declaration.kind in ("function", "constant"):
            return make_symbol(declaration, name, declaration.kind, _clean_doc)
        if declaration.kind not in CLASS_LABELS:
            return None
        is_trait = declaration.kind == "trait"
        methods = [
            item
            for path, file in self.files.items()
            for item in file.declarations
            if item.owner == declaration.own_name and item.kind in ("method", "constructor", "function")
            if (is_trait and path == declaration.path) or _is_public(item)
        ]
        members = make_members(methods, name, _clean_doc, separator="::")
        return make_symbol(declaration, name, "class", _clean_doc, members=members)


def _is_public(declaration: Declaration) -> bool:
    attributes = " ".join(declaration.decorators)
    is_exported = declaration.kind == "macro" and "macro_export" in attributes
    return ("pub" in declaration.modifiers or is_exported) and not _is_hidden(attributes)


def _is_hidden(attributes: str) -> bool:
    return bool(re.search(r"doc\s*\(\s*hidden|cfg\s*\(\s*test|\bcfg\s*\(\s*doc\s*\)", attributes))


def _expand_use_tree(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield each path of `a::{b, c as d}` as a list of names, with its alias."""
    text = " ".join(text.split())
    head, brace, rest = text.partition("{")
    if brace:
        prefix = [name.strip() for name in head.split("::") if name.strip()]
        for part in _split_list(rest.rpartition("}")[0]):
            for names, alias in _expand_use_tree(part):
                yield ([*prefix] if names == ["self"] else [*prefix, *names]), alias
    elif text:
        path, _, alias = text.partition(" as ")
        yield [name.strip() for name in path.split("::") if name.strip()], alias.strip()


def _split_list(text: str) -> list[str]:
    """Split a list at the commas that are not inside braces."""
    parts, depth = [""], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _clean_doc(doc: str, _name: str) -> str:
    """Show links to other names as code."""
    return _LINK_PATTERN.sub(lambda match: f"`{match[1].strip('`')}`" if match[1][0] == "`" else match[1], doc)
