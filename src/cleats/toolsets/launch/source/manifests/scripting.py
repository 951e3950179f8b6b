"""`composer.json` and gemspecs."""

import re
from typing import Any

from cleats.toolsets.launch.source.manifests import values
from cleats.toolsets.launch.source.manifests.lines import json_line, pattern_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.tree import Tree


def read_composer(tree: Tree, path: str = "composer.json") -> Manifest | None:
    """The package; its name is `vendor/package`."""
    text = tree.text(path) or ""
    document = values.table(path, text)
    if not values.text(document.get("name")):
        return None

    def said(key: str) -> Said | None:
        value: Any = document.get(key)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        return Said(value, path, json_line(text, (key,))) if values.text(value) else None

    needs = values.mapping(document.get("require"))
    autoload = values.mapping(document.get("autoload"))
    spaces = sorted(values.mapping(autoload.get("psr-4")) or values.mapping(autoload.get("psr-0")))
    line = json_line(text, ("autoload",))
    return Manifest(
        ecosystem="composer",
        path=path,
        name=said("name"),
        version=said("version"),
        licence=said("license"),
        description=said("description"),
        requires=Said(str(needs["php"]), path, json_line(text, ("require", "php")))
        if "php" in needs
        else None,
        dependencies=tuple(
            Said(name, path, json_line(text, ("require", name)))
            for name in sorted(needs)
            if "/" in name
        ),
        imports=tuple(Said(each.rstrip("\\"), path, line) for each in spaces if each),
    )


def read_gem(tree: Tree) -> Manifest | None:
    """The gem; a version that is a constant is looked up in `lib/**/version.rb`."""
    path = next((name for name in tree.paths if name.endswith(".gemspec") and "/" not in name), "")
    text = tree.text(path) or ""

    def said(key: str) -> Said | None:
        pattern = rf"""^[ \t]*\w+\.{key}\s*=\s*\[?["']([^"'#]+)["']\]?(?:\.freeze)?\s*$"""
        match = re.search(pattern, text, re.MULTILINE)
        return Said(match[1], path, pattern_line(text, pattern)) if match else None

    name = said("name")
    if name is None:
        return None
    needs = r"""^[ \t]*\w+\.add_(?:runtime_)?dependency[ (]+["']([^"']+)["']"""
    places = (name.value.replace("-", "/"), name.value)
    imported = next((each for each in places if f"lib/{each}.rb" in tree.known), "")
    return Manifest(
        ecosystem="gem",
        path=path,
        name=name,
        version=said("version") or _version(tree),
        licence=said("licenses?"),
        description=said("summary") or said("description"),
        requires=said("required_ruby_version"),
        dependencies=tuple(
            Said(each[1], path, text.count("\n", 0, each.start(1)) + 1)
            for each in re.finditer(needs, text, re.MULTILINE)
        ),
        imports=(Said(imported, f"lib/{imported}.rb", basis="source_code"),) if imported else (),
    )


def _version(tree: Tree) -> Said | None:
    for path in tree.below("lib"):
        if path.endswith("/version.rb"):
            text = tree.text(path) or ""
            if match := re.search(r"""\bVERSION\s*=\s*["']([^"']+)["']""", text):
                line = text.count("\n", 0, match.start()) + 1
                return Said(match[1], path, line, basis="source_code")
    return None
