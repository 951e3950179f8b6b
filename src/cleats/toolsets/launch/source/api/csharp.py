"""The public API of a .NET library in C#: the public types of its project, parts of one class together."""

import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.api.declarations import read_declarations
from cleats.toolsets.launch.source.api.java import list_public_types
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_NAMESPACE_PATTERN: Final = re.compile(r"^\s*namespace\s+([\w.]+)", re.MULTILINE)
_BUILD_FOLDERS: Final = frozenset({"obj", "bin"})


def read_surface(tree: CheckoutTree, manifest: PackageManifest) -> ApiSurface:
    """Return the public types below the folder of the project."""
    folder = manifest.path.rpartition("/")[0]
    paths = [
        path
        for path in tree.paths_below(folder)
        if path.endswith(".cs")
        and not _BUILD_FOLDERS.intersection(PurePosixPath(path).parts)
        and classify_path(path) == "source"
    ]
    files = read_declarations(tree, paths, "csharp")
    symbols: dict[str, Symbol] = {}
    for path in sorted(files, key=lambda item: (item.count("/"), item)):
        for symbol in list_public_types(files[path].declarations, _clean_doc):
            known = symbols.get(symbol.name)
            symbols[symbol.name] = _merge_parts(known, symbol) if known else symbol
    modules = []
    for path in files:
        namespace = _NAMESPACE_PATTERN.search(tree.read_text(path) or "")
        modules.append((namespace[1] if namespace else manifest.imports[0].value, path))
    return ApiSurface(tuple(symbols.values()), tuple(modules))


def _merge_parts(first: Symbol, second: Symbol) -> Symbol:
    """Return a class that is declared in parts as one, documented where it is."""
    main, other = (second, first) if second.doc and not first.doc else (first, second)
    known_names = {member.name for member in main.members}
    return replace(main, members=(*main.members, *(item for item in other.members if item.name not in known_names)))


def _clean_doc(doc: str, _name: str) -> str:
    """Return the summary of a documentation comment, whose tags have been removed."""
    summary = re.split(r"\n\s*\n|<(?:example|code|remarks)\b", doc.strip())[0]
    return re.sub(r"</?[a-z]\w*[^<>]*>", "", summary).strip()
