"""The manifest of npm packages."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import ManifestFile, PackageManifest, Subpath

MAX_SUBPATHS: Final = 20
"""Paths of a package that are read besides its main one."""

_OPTIONAL_KINDS: Final = ("peerDependencies", "optionalDependencies")


def read_package_json(tree: CheckoutTree, path: str = "package.json") -> PackageManifest | None:
    """Read the package, or return None when it has no name."""
    file = ManifestFile.load(tree, path)
    name = file.read_text("name", strip=True)
    if name is None:
        return None
    dependencies = {
        kind: tuple(
            file.locate(f"{package}@{version}", kind, package)
            for package, version in sorted(file.find_table(kind).items())
        )
        for kind in ("dependencies", *_OPTIONAL_KINDS, "devDependencies")
    }
    licence = file.read_text("license", strip=True) or file.read_text("license", "type", strip=True)
    match file.document.get("licenses"):  # as old packages write it
        case [{**old_licence}] if licence is None:
            licence = file.locate(str(old_licence.get("type", "")), "licenses")
    binaries = file.document.get("bin")
    command = str(file.document["name"]).rsplit("/", 1)[-1]
    commands = file.locate_entries("bin")
    if isinstance(binaries, str):
        commands = (file.locate(command, "bin", detail=binaries),)
    return PackageManifest(
        ecosystem="npm",
        path=path,
        name=name,
        version=file.read_text("version", strip=True),
        licence=licence,
        description=file.read_text("description", strip=True),
        requires=file.read_text("engines", "node", strip=True),
        dependencies=dependencies["dependencies"],
        optional={kind: dependencies[kind] for kind in _OPTIONAL_KINDS if dependencies[kind]},
        dev=dependencies["devDependencies"],
        commands=commands,
        imports=(name,),
        entry_files=_find_entry_files(tree, file.document, path.removesuffix("package.json")),
        subpaths=tuple(_iter_subpaths(tree, file.document, path.removesuffix("package.json"))),
        private=file.document.get("private") is True,
    )


def _find_entry_files(tree: CheckoutTree, document: Mapping[str, Any], folder: str) -> tuple[str, ...]:
    """Return the files that an import reads first, type declarations before code.

    A built file that is not in the repository counts as the source it is built from.
    """
    exports = document.get("exports")
    root = exports.get(".", exports) if isinstance(exports, dict) else exports
    names = [document.get("types"), document.get("typings"), *_collect_export_files(root)]
    names += [document.get("source"), document.get("module"), document.get("main"), "index.js"]
    return _resolve_files(tree, [name for name in names if isinstance(name, str)], folder)


def _iter_subpaths(tree: CheckoutTree, document: Mapping[str, Any], folder: str) -> Iterator[Subpath]:
    """Yield the paths besides the package itself that programs can import, as `exports` names them."""
    exports = document.get("exports")
    targets: dict[str, Any] = exports if isinstance(exports, dict) else {}
    names = [name for name in targets if name.startswith("./")]
    for name in [item for item in names if "*" not in item][:MAX_SUBPATHS]:
        entry_files = _resolve_files(tree, _collect_export_files(targets[name]), folder)
        code_files = tuple(file for file in entry_files if file.endswith((*_TYPED_SUFFIXES, ".js", ".mjs", ".cjs")))
        if code_files:
            yield Subpath(re.sub(r"\.[cm]?js$", "", name.removeprefix("./")), code_files)


def _resolve_files(tree: CheckoutTree, names: Iterable[str], folder: str) -> tuple[str, ...]:
    files = [folder + name.removeprefix("./") for name in names if "*" not in name]
    files += [re.sub(r"\.([cm]?)js$", r".d.\1ts", file) for file in files]  # TypeScript reads them without a field
    built_files = [file for file in dict.fromkeys(files) if file not in tree.path_set]
    sources = [source for file in built_files for source in _list_source_files(file.removeprefix(folder), folder)]
    entry_files = [file for file in dict.fromkeys((*files, *sources)) if file in tree.path_set]
    is_types = (".d.ts", ".d.mts", ".d.cts")
    return tuple(
        sorted(entry_files, key=lambda file: (not file.endswith(is_types), not file.endswith(_TYPED_SUFFIXES)))
    )


_TYPED_SUFFIXES: Final = (".ts", ".mts", ".cts", ".tsx")
_SOURCE_FOLDERS: Final = ("src", "source", "lib", "")


def _list_source_files(built_file: str, folder: str) -> list[str]:
    """Return the files that `dist/esm/index.js` may be built from: `src/index.ts` and similar."""
    stem = re.sub(r"(\.min|\.d|\.umd|\.esm|\.cjs)?\.[cm]?[jt]sx?$", "", built_file.rpartition("/")[2])
    stems = dict.fromkeys((stem, "index"))
    prefixes = [f"{folder}{source}/" if source else folder for source in _SOURCE_FOLDERS]
    suffixes = (*_TYPED_SUFFIXES, ".js", ".mjs", ".cjs")
    return [f"{prefix}{name}{suffix}" for name in stems for prefix in prefixes for suffix in suffixes]


def _collect_export_files(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [item for key, item in value.items() if not str(key).startswith("./")]
    return [name for item in value for name in _collect_export_files(item)] if isinstance(value, list) else []
