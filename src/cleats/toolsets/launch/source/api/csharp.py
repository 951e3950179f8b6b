"""The public API of a .NET library in C#: the public types of its project, parts of one class together."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.api.declarations import CLASS_LABELS, Declaration, read_declarations
from cleats.toolsets.launch.source.api.java import list_public_types
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_NAMESPACE_PATTERN: Final = re.compile(r"^\s*namespace\s+([\w.]+)", re.MULTILINE)
_PROPERTY_PATTERN: Final = re.compile(
    r"^(?P<indent>[ \t]+)(?P<words>(?:(?:public|static|virtual|abstract|required|new|sealed|readonly|extern) )*)"
    r"(?!return\b|override\b|internal\b|private\b|protected\b)[\w.<>\[\],? ]+? (?P<name>[A-Z]\w*)\s*"
    r"(?:\{\s*(?:get|set|init)\b|=>|$(?=\s*\{\s*(?:get|set|init)\b))",
    re.MULTILINE,
)
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
        declarations = files[path].declarations
        declarations = [*declarations, *_list_properties(path, tree.read_text(path) or "", declarations)]
        for symbol in list_public_types(declarations, _clean_doc):
            known = symbols.get(symbol.name)
            symbols[symbol.name] = _merge_parts(known, symbol) if known else symbol
    modules = []
    for path in files:
        namespace = _NAMESPACE_PATTERN.search(tree.read_text(path) or "")
        modules.append((namespace[1] if namespace else manifest.imports[0].value, path))
    return ApiSurface(tuple(symbols.values()), tuple(modules))


def _list_properties(path: str, text: str, declarations: list[Declaration]) -> Iterator[Declaration]:
    """Yield the properties that the analysis does not list because their accessors have no body."""
    types = [item for item in declarations if item.kind in CLASS_LABELS]
    known_names = {item.name for item in declarations}
    lines = text.split("\n")
    for match in _PROPERTY_PATTERN.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        owner = next(
            (item for item in reversed(types) if item.line < number and _is_outside(lines, item, match["indent"])), None
        )
        name = f"{owner.name}.{match['name']}" if owner else ""
        is_public = "public" in match["words"].split() or (owner is not None and owner.kind == "interface")
        if not name or name in known_names or not is_public:
            continue
        above = number - 1
        while above and lines[above - 1].strip().startswith(("///", "[")):
            above -= 1
        comment = [line.strip()[3:].strip() for line in lines[above : number - 1] if line.strip().startswith("///")]
        doc = re.sub(r"</?summary>", "", "\n".join(comment)).strip()
        yield Declaration("property", name, path, number, number, match["name"], [], doc, above + 1, "public", [], [])


def _is_outside(lines: list[str], declaration: Declaration, indent: str) -> bool:
    line = lines[declaration.line - 1]
    return len(line) - len(line.lstrip()) < len(indent)


def _merge_parts(first: Symbol, second: Symbol) -> Symbol:
    """Return a class that is declared in parts as one, documented where it is."""
    main, other = (second, first) if second.doc and not first.doc else (first, second)
    known_names = {member.name for member in main.members}
    return replace(main, members=(*main.members, *(item for item in other.members if item.name not in known_names)))


def _clean_doc(doc: str, _name: str) -> str:
    """Return the summary of a documentation comment, whose tags have been removed."""
    summary = re.split(r"\n\s*\n|<(?:example|code|remarks)\b", doc.strip())[0]
    named = re.sub(r"<(?:see|paramref|typeparamref)\s+\w+=\"(?:[A-Z]:)?([^\"]+)\"\s*/?>(?:</\w+>)?", r"`\1`", summary)
    return re.sub(r"</?[a-z]\w*[^<>]*>", "", named).strip()
