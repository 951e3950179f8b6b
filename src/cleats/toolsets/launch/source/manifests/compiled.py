"""`go.mod`, `Cargo.toml`, `Package.swift` and CMake."""

import re
from typing import Any

from cleats.toolsets.launch.source.manifests import values
from cleats.toolsets.launch.source.manifests.lines import pattern_line, toml_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.tree import Tree


def read_go(tree: Tree, path: str = "go.mod") -> Manifest | None:
    """The module. A version of Go is a release tag, so the file has none."""
    text = tree.text(path) or ""
    module = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
    if module is None:
        return None
    name = Said(module[1], path, pattern_line(text, r"^module\s"))
    go = re.search(r"^go\s+([\d.]+)", text, re.MULTILINE)
    wanted = re.compile(
        r"^(?:require)?\s+([\w.-]+\.[\w./-]+)\s+v\S+(\s*// indirect)?", re.MULTILINE
    )
    return Manifest(
        ecosystem="go",
        path=path,
        name=name,
        requires=Said(f">={go[1]}", path, pattern_line(text, r"^go\s")) if go else None,
        dependencies=tuple(
            Said(each[1], path, text.count("\n", 0, each.start(1)) + 1)
            for each in wanted.finditer(text)
            if not each[2]
        ),
        imports=(name,),
    )


def read_cargo(tree: Tree, path: str = "Cargo.toml") -> Manifest | None:
    """The crate; what it takes from its workspace is looked up there."""
    text = tree.text(path) or ""
    document = values.table(path, text)
    package = values.mapping(document.get("package"))
    if not values.text(package.get("name")):
        return None
    shared = values.mapping(values.mapping(document.get("workspace")).get("package"))

    def said(key: str) -> Said | None:
        value: Any = package.get(key)
        table = "package"
        if isinstance(value, dict) and value.get("workspace"):
            value, table = shared.get(key), "workspace.package"
        return Said(value, path, toml_line(text, table, key)) if values.text(value) else None

    library = values.mapping(document.get("lib")).get("name")
    imported = str(library or package["name"]).replace("-", "_")
    needs = values.mapping(document.get("dependencies"))
    features = sorted(set(values.mapping(document.get("features"))) - {"default"})
    has_library = library is not None or "src/lib.rs" in tree.known
    return Manifest(
        ecosystem="cargo",
        path=path,
        name=said("name"),
        version=said("version"),
        licence=said("license"),
        licence_file=str(package.get("license-file") or ""),
        description=said("description"),
        requires=Said(f">={rust.value}", path, rust.line)
        if (rust := said("rust-version"))
        else None,
        dependencies=tuple(
            Said(name, path, toml_line(text, "dependencies", name))
            for name in sorted(needs)
            if not values.mapping(needs[name]).get("optional")
        ),
        optional=dict.fromkeys(features, ()),
        commands=tuple(
            Said(name, path, toml_line(text, "bin"))
            for each in values.mappings(document.get("bin"))
            if (name := values.text(each.get("name")))
        ),
        imports=(Said(imported, path, toml_line(text, "package", "name")),) if has_library else (),
        private=package.get("publish") is False,
    )


def read_swift(tree: Tree, path: str = "Package.swift") -> Manifest | None:
    """The package and the libraries it offers."""
    text = tree.text(path) or ""
    name = re.search(r"Package\(\s*name:\s*\"([^\"]+)\"", text)
    if name is None:
        return None
    tools = re.search(r"swift-tools-version:\s*([\d.]+)", text)
    products = re.finditer(r"\.library\(\s*name:\s*\"([^\"]+)\"", text)
    return Manifest(
        ecosystem="swiftpm",
        path=path,
        name=Said(name[1], path, text.count("\n", 0, name.start(1)) + 1),
        requires=Said(f">={tools[1]}", path, pattern_line(text, "swift-tools-version"))
        if tools
        else None,
        dependencies=tuple(
            Said(each[1], path, text.count("\n", 0, each.start()) + 1)
            for each in re.finditer(r"\.package\(\s*url:\s*\"([^\"]+)\"", text)
        ),
        imports=tuple(
            Said(each[1], path, text.count("\n", 0, each.start()) + 1) for each in products
        ),
    )


def read_cmake(tree: Tree, path: str = "CMakeLists.txt") -> Manifest | None:
    """The project of a CMake build."""
    text = tree.text(path) or ""
    head = re.compile(r"^[ \t]*project\s*\(\s*([\w.-]+)([^)]*)\)", re.MULTILINE | re.IGNORECASE)
    project = head.search(text)
    if project is None:
        return None
    line = text.count("\n", 0, project.start(1)) + 1
    version = re.search(r"\bVERSION\s+([\d.]+)", project[2])
    about = re.search(r"\bDESCRIPTION\s+\"([^\"]+)\"", project[2])
    standard = re.search(r"CMAKE_CXX_STANDARD\s+(\d+)|cxx_std_(\d+)", text)
    return Manifest(
        ecosystem="source",
        path=path,
        name=Said(project[1], path, line),
        version=Said(version[1], path, line) if version else None,
        description=Said(about[1], path, line) if about else None,
        requires=Said(
            f"C++{standard[1] or standard[2]}",
            path,
            pattern_line(text, "CMAKE_CXX_STANDARD|cxx_std_"),
        )
        if standard
        else None,
        dependencies=None,
        installable=bool(re.search(r"^[ \t]*install\s*\(", text, re.MULTILINE | re.IGNORECASE)),
    )
