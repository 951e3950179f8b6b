"""`package.json`."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.manifests import values
from cleats.toolsets.launch.source.manifests.lines import json_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.tree import Tree


def read(tree: Tree, path: str = "package.json") -> Manifest | None:
    """The package, or None when it has no name."""
    text = tree.text(path)
    document = values.table(path, text)
    if not values.text(document.get("name")):
        return None

    def said(*keys: str) -> Said | None:
        value: Any = document
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str) or not value.strip():
            return None
        return Said(value.strip(), path, json_line(text or "", keys))

    def listed(key: str) -> tuple[Said, ...]:
        return tuple(
            Said(f"{name}@{version}", path, json_line(text or "", (key, name)))
            for name, version in sorted(values.mapping(document.get(key)).items())
        )

    return Manifest(
        ecosystem="npm",
        path=path,
        name=said("name"),
        version=said("version"),
        licence=said("license") or said("license", "type") or _old_licence(document, path, text),
        description=said("description"),
        requires=said("engines", "node"),
        dependencies=listed("dependencies"),
        optional={
            key: found
            for key in ("peerDependencies", "optionalDependencies")
            if (found := listed(key))
        },
        dev=listed("devDependencies"),
        commands=_commands(document, path, text or ""),
        keywords=tuple(values.texts(document.get("keywords"))),
        imports=tuple(filter(None, (said("name"),))),
        entry_files=_entries(tree, document, path),
        private=document.get("private") is True,
    )


def _old_licence(document: Mapping[str, Any], path: str, text: str | None) -> Said | None:
    given = document.get("licenses")
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], dict):
        return Said(str(given[0].get("type", "")), path, json_line(text or "", ("licenses",)))
    return None


def _commands(document: Mapping[str, Any], path: str, text: str) -> tuple[Said, ...]:
    given = document.get("bin")
    line = json_line(text, ("bin",))
    if isinstance(given, str):
        return (Said(str(document["name"]).rsplit("/", 1)[-1], path, line, detail=given),)
    return tuple(
        Said(name, path, json_line(text, ("bin", name)), detail=str(target))
        for name, target in sorted(values.mapping(given).items())
    )


def _entries(tree: Tree, document: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The files an import of the package reads, types first: they say the most."""
    folder = path.removesuffix("package.json")
    exports = document.get("exports")
    root = exports.get(".", exports) if isinstance(exports, dict) else exports
    wanted = [document.get("types"), document.get("typings"), *_strings(root)]
    wanted += [document.get("source"), document.get("module"), document.get("main"), "index.js"]
    found: list[str] = []
    for name in wanted:
        if isinstance(name, str) and "*" not in name:
            file = folder + name.removeprefix("./")
            if file in tree.known and file not in found:
                found.append(file)
    return tuple(sorted(found, key=lambda file: not file.endswith((".d.ts", ".d.mts", ".d.cts"))))


def _strings(value: Any) -> list[str]:
    """The file names in the conditions of one export, outermost first."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [name for item in value for name in _strings(item)]
    if isinstance(value, dict):
        return [
            name
            for key, item in value.items()
            if not str(key).startswith("./")
            for name in _strings(item)
        ]
    return []
