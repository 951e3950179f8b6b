"""Reader for `package.json`."""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import (
    LocatedValue,
    PackageManifest,
    find_json_line,
    find_pattern_line,
)


def read_package_json(tree: CheckoutTree, path: str = "package.json") -> PackageManifest | None:
    """Read the package, or return None when it has no name."""
    text = tree.read_text(path)
    document = safe_parsing.parse_table(path, text)
    if not safe_parsing.as_text(document.get("name")):
        return None

    def find_text(*keys: str) -> LocatedValue | None:
        value: Any = document
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str) or not value.strip():
            return None
        return LocatedValue(value.strip(), path, find_json_line(text or "", keys))

    def list_dependencies(key: str) -> tuple[LocatedValue, ...]:
        return tuple(
            LocatedValue(f"{name}@{version}", path, find_json_line(text or "", (key, name)))
            for name, version in sorted(safe_parsing.as_mapping(document.get(key)).items())
        )

    return PackageManifest(
        ecosystem="npm",
        path=path,
        name=find_text("name"),
        version=find_text("version"),
        licence=find_text("license") or find_text("license", "type") or _read_old_licence(document, path, text),
        description=find_text("description"),
        requires=find_text("engines", "node"),
        dependencies=list_dependencies("dependencies"),
        optional={
            key: dependencies
            for key in ("peerDependencies", "optionalDependencies")
            if (dependencies := list_dependencies(key))
        },
        dev=list_dependencies("devDependencies"),
        commands=_read_commands(document, path, text or ""),
        keywords=tuple(safe_parsing.as_texts(document.get("keywords"))),
        imports=tuple(filter(None, (find_text("name"),))),
        entry_files=_find_entry_files(tree, document, path),
        private=document.get("private") is True,
    )


def _read_old_licence(document: Mapping[str, Any], path: str, text: str | None) -> LocatedValue | None:
    licences = document.get("licenses")
    if isinstance(licences, list) and len(licences) == 1 and isinstance(licences[0], dict):
        return LocatedValue(str(licences[0].get("type", "")), path, find_json_line(text or "", ("licenses",)))
    return None


def _read_commands(document: Mapping[str, Any], path: str, text: str) -> tuple[LocatedValue, ...]:
    binaries = document.get("bin")
    line = find_json_line(text, ("bin",))
    if isinstance(binaries, str):
        return (LocatedValue(str(document["name"]).rsplit("/", 1)[-1], path, line, detail=binaries),)
    return tuple(
        LocatedValue(name, path, find_json_line(text, ("bin", name)), detail=str(target))
        for name, target in sorted(safe_parsing.as_mapping(binaries).items())
    )


def _find_entry_files(tree: CheckoutTree, document: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Return the files that an import of the package reads, type declarations first."""
    folder = path.removesuffix("package.json")
    exports = document.get("exports")
    root = exports.get(".", exports) if isinstance(exports, dict) else exports
    names = [document.get("types"), document.get("typings"), *_collect_export_files(root)]
    names += [document.get("source"), document.get("module"), document.get("main"), "index.js"]
    entry_files: list[str] = []
    for name in names:
        if isinstance(name, str) and "*" not in name:
            file = folder + name.removeprefix("./")
            if file in tree.path_set and file not in entry_files:
                entry_files.append(file)
    return tuple(sorted(entry_files, key=lambda file: not file.endswith((".d.ts", ".d.mts", ".d.cts"))))


def _collect_export_files(value: Any) -> list[str]:
    """Return the file names in the conditions of one export, outermost first."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [name for item in value for name in _collect_export_files(item)]
    if isinstance(value, dict):
        return [
            name for key, item in value.items() if not str(key).startswith("./") for name in _collect_export_files(item)
        ]
    return []


def read_composer(tree: CheckoutTree, path: str = "composer.json") -> PackageManifest | None:
    """Read the package; its name is `vendor/package`."""
    text = tree.read_text(path) or ""
    document = safe_parsing.parse_table(path, text)
    if not safe_parsing.as_text(document.get("name")):
        return None

    def read_field(key: str) -> LocatedValue | None:
        value: Any = document.get(key)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return LocatedValue(value, path, find_json_line(text, (key,))) if safe_parsing.as_text(value) else None

    requirements = safe_parsing.as_mapping(document.get("require"))
    autoload = safe_parsing.as_mapping(document.get("autoload"))
    namespaces = sorted(
        safe_parsing.as_mapping(autoload.get("psr-4")) or safe_parsing.as_mapping(autoload.get("psr-0"))
    )
    line = find_json_line(text, ("autoload",))
    return PackageManifest(
        ecosystem="composer",
        path=path,
        name=read_field("name"),
        version=read_field("version"),
        licence=read_field("license"),
        description=read_field("description"),
        requires=LocatedValue(str(requirements["php"]), path, find_json_line(text, ("require", "php")))
        if "php" in requirements
        else None,
        dependencies=tuple(
            LocatedValue(name, path, find_json_line(text, ("require", name)))
            for name in sorted(requirements)
            if "/" in name
        ),
        imports=tuple(LocatedValue(namespace.rstrip("\\"), path, line) for namespace in namespaces if namespace),
    )


def read_gem(tree: CheckoutTree) -> PackageManifest | None:
    """Read the gem; a version that is a constant is looked up in `lib/**/version.rb`."""
    path = next((name for name in tree.paths if name.endswith(".gemspec") and "/" not in name), "")
    text = tree.read_text(path) or ""

    def read_field(key: str) -> LocatedValue | None:
        pattern = rf"""^[ \t]*\w+\.{key}\s*=\s*\[?["']([^"'#]+)["']\]?(?:\.freeze)?\s*$"""
        match = re.search(pattern, text, re.MULTILINE)
        return LocatedValue(match[1], path, find_pattern_line(text, pattern)) if match else None

    name = read_field("name")
    if name is None:
        return None
    dependency_pattern = r"""^[ \t]*\w+\.add_(?:runtime_)?dependency[ (]+["']([^"']+)["']"""
    candidates = (name.value.replace("-", "/"), name.value)
    import_name = next((item for item in candidates if f"lib/{item}.rb" in tree.path_set), "")
    return PackageManifest(
        ecosystem="gem",
        path=path,
        name=name,
        version=read_field("version") or _find_gem_version(tree),
        licence=read_field("licenses?"),
        description=read_field("summary") or read_field("description"),
        requires=read_field("required_ruby_version"),
        dependencies=tuple(
            LocatedValue(item[1], path, text.count("\n", 0, item.start(1)) + 1)
            for item in re.finditer(dependency_pattern, text, re.MULTILINE)
        ),
        imports=(LocatedValue(import_name, f"lib/{import_name}.rb", basis="source_code"),) if import_name else (),
    )


def _find_gem_version(tree: CheckoutTree) -> LocatedValue | None:
    for path in tree.paths_below("lib"):
        if path.endswith("/version.rb"):
            text = tree.read_text(path) or ""
            if match := re.search(r"""\bVERSION\s*=\s*["']([^"']+)["']""", text):
                line = text.count("\n", 0, match.start()) + 1
                return LocatedValue(match[1], path, line, basis="source_code")
    return None
