"""The public API of a Go module: the exported names of its packages, those at the top first."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from cleats.toolsets.launch.source.api.declarations import (
    CLASS_LABELS,
    Declaration,
    make_members,
    make_symbol,
    read_declarations,
)
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_PACKAGE_PATTERN = re.compile(r"^package[ \t]+(\w+)", re.MULTILINE)
_HIDDEN_FOLDERS = frozenset({"internal", "testdata", "cmd", "vendor"})
"""Folders whose packages other modules cannot import, or have no reason to."""

_VARIABLE_PATTERN = re.compile(r"(?:var |(?P<group>\t))(?P<name>[A-Z]\w*)(?:\s+[\w.*\[\]]+)?\s*(?:=|//|$)")
_LINK_PATTERN = re.compile(r"(?<![\w\]*])\[(\*?[A-Za-z_][\w.]*)\](?![\[(:])")


def read_surface(tree: CheckoutTree, manifest: PackageManifest) -> ApiSurface:
    """Return the exported names of every package that a program can import."""
    root = manifest.path.removesuffix("go.mod")
    module = manifest.name.value if manifest.name else ""
    packages = _find_packages(tree, root)
    files = read_declarations(tree, packages, "go")
    by_package: dict[str, list[Declaration]] = {}
    for path, file in files.items():
        found = by_package.setdefault(packages[path], [])
        found += file.declarations
        found += _list_variables(path, tree.read_text(path) or "", {item.name for item in file.declarations})
    symbols: dict[str, Symbol] = {}
    for package, declarations in by_package.items():
        for symbol in _list_symbols(package, declarations):
            symbols.setdefault(symbol.name, symbol)
    folders = {path: str(PurePosixPath(path.removeprefix(root)).parent) for path in files}
    modules = tuple((module if folder == "." else f"{module}/{folder}", path) for path, folder in folders.items())
    return ApiSurface(tuple(symbols.values()), modules)


def _find_packages(tree: CheckoutTree, root: str) -> dict[str, str]:
    """Return the package of each file that belongs to the API, the files at the top first."""
    nested_modules = {
        path.removesuffix("go.mod") for path in tree.paths if path.endswith("/go.mod") and path != f"{root}go.mod"
    }
    packages: dict[str, str] = {}
    for path in sorted(tree.paths_below(root.rstrip("/")), key=lambda item: (item.count("/"), item)):
        folders = PurePosixPath(path).parts[:-1]
        if not path.endswith(".go") or classify_path(path) != "source" or _HIDDEN_FOLDERS.intersection(folders):
            continue
        clause = _PACKAGE_PATTERN.search(tree.read_text(path) or "")
        if clause and clause[1] != "main" and not path.startswith(tuple(nested_modules)):
            packages[path] = clause[1]
    return packages


def _list_symbols(package: str, declarations: list[Declaration]) -> list[Symbol]:
    exported = [item for item in declarations if item.visibility == "public" and item.own_name[:1].isupper()]
    methods: dict[str, list[Declaration]] = {}
    for item in exported:
        if item.kind == "method":
            methods.setdefault(item.owner, []).append(item)
    symbols = []
    for item in exported:
        if item.owner or item.kind == "method":
            continue
        name = f"{package}.{item.own_name}"
        if item.kind in CLASS_LABELS:
            members = make_members(methods.get(item.own_name, ()), name, _clean_doc)
            symbols.append(make_symbol(item, name, "class", _clean_doc, members=members))
        elif item.kind in ("function", "constant"):
            symbols.append(make_symbol(item, name, item.kind, _clean_doc))
    return symbols


def _list_variables(path: str, text: str, known: set[str]) -> Iterator[Declaration]:
    """Yield the exported variables that the analysis does not list because their values are calls, such as errors."""
    comments: list[str] = []
    in_group = False
    for number, line in enumerate(text.split("\n"), start=1):
        in_group = line.startswith("var (") or (in_group and not line.startswith(")"))
        match = _VARIABLE_PATTERN.match(line)
        if match and bool(match["group"]) == in_group and match["name"] not in known:
            name, doc = match["name"], "\n".join(comments)
            yield Declaration(
                "constant", name, path, number, number, name, [], doc, number - len(comments), "public", [], []
            )
        comments = [*comments, line.strip()[2:].strip()] if line.strip().startswith("//") else []


def _clean_doc(doc: str, name: str) -> str:
    """Remove the name with which Go documentation begins: `Parse decodes s` becomes `Decodes s`."""
    text = _LINK_PATTERN.sub(r"`\1`", doc)
    opening = re.match(rf"(?:(?:A|An|The)\s+)?{re.escape(name)}\s+(?=[a-z])(?:(?:is|are|was)\s+(?!not\b))?", text)
    rest = text[opening.end() :] if opening else text
    return rest[:1].upper() + rest[1:]
