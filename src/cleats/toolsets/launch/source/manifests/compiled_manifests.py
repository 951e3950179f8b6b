"""Readers for `go.mod`, `Cargo.toml`, `Package.swift` and CMake."""

import re
from typing import Any

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import (
    LocatedValue,
    PackageManifest,
    find_pattern_line,
    find_toml_line,
)


def read_go(tree: CheckoutTree, path: str = "go.mod") -> PackageManifest | None:
    """Read the module of a `go.mod`; it has no version, since Go versions are release tags."""
    text = tree.read_text(path) or ""
    module = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
    if module is None:
        return None
    name = LocatedValue(module[1], path, find_pattern_line(text, r"^module\s"))
    go = re.search(r"^go\s+([\d.]+)", text, re.MULTILINE)
    requirement_pattern = re.compile(r"^(?:require)?\s+([\w.-]+\.[\w./-]+)\s+v\S+(\s*// indirect)?", re.MULTILINE)
    return PackageManifest(
        ecosystem="go",
        path=path,
        name=name,
        requires=LocatedValue(f">={go[1]}", path, find_pattern_line(text, r"^go\s")) if go else None,
        dependencies=tuple(
            LocatedValue(match[1], path, text.count("\n", 0, match.start(1)) + 1)
            for match in requirement_pattern.finditer(text)
            if not match[2]
        ),
        imports=(name,),
    )


def read_cargo(tree: CheckoutTree, path: str = "Cargo.toml") -> PackageManifest | None:
    """Read the crate; values inherited from the workspace are looked up there."""
    text = tree.read_text(path) or ""
    document = safe_parsing.parse_table(path, text)
    package = safe_parsing.as_mapping(document.get("package"))
    if not safe_parsing.as_text(package.get("name")):
        return None
    workspace_package = safe_parsing.as_mapping(safe_parsing.as_mapping(document.get("workspace")).get("package"))

    def read_field(key: str) -> LocatedValue | None:
        value: Any = package.get(key)
        table = "package"
        if isinstance(value, dict) and value.get("workspace"):
            value, table = workspace_package.get(key), "workspace.package"
        return LocatedValue(value, path, find_toml_line(text, table, key)) if safe_parsing.as_text(value) else None

    library = safe_parsing.as_mapping(document.get("lib")).get("name")
    import_name = str(library or package["name"]).replace("-", "_")
    dependencies = safe_parsing.as_mapping(document.get("dependencies"))
    features = sorted(set(safe_parsing.as_mapping(document.get("features"))) - {"default"})
    has_library = library is not None or "src/lib.rs" in tree.path_set
    return PackageManifest(
        ecosystem="cargo",
        path=path,
        name=read_field("name"),
        version=read_field("version"),
        licence=read_field("license"),
        licence_file=str(package.get("license-file") or ""),
        description=read_field("description"),
        requires=LocatedValue(f">={rust.value}", path, rust.line) if (rust := read_field("rust-version")) else None,
        dependencies=tuple(
            LocatedValue(name, path, find_toml_line(text, "dependencies", name))
            for name in sorted(dependencies)
            if not safe_parsing.as_mapping(dependencies[name]).get("optional")
        ),
        optional=dict.fromkeys(features, ()),
        commands=tuple(
            LocatedValue(name, path, find_toml_line(text, "bin"))
            for binary in safe_parsing.as_mappings(document.get("bin"))
            if (name := safe_parsing.as_text(binary.get("name")))
        ),
        imports=(LocatedValue(import_name, path, find_toml_line(text, "package", "name")),) if has_library else (),
        private=package.get("publish") is False,
    )


def read_swift(tree: CheckoutTree, path: str = "Package.swift") -> PackageManifest | None:
    """Read the package and the libraries it offers."""
    text = tree.read_text(path) or ""
    name = re.search(r"Package\(\s*name:\s*\"([^\"]+)\"", text)
    if name is None:
        return None
    tools = re.search(r"swift-tools-version:\s*([\d.]+)", text)
    products = re.finditer(r"\.library\(\s*name:\s*\"([^\"]+)\"", text)
    return PackageManifest(
        ecosystem="swiftpm",
        path=path,
        name=LocatedValue(name[1], path, text.count("\n", 0, name.start(1)) + 1),
        requires=LocatedValue(f">={tools[1]}", path, find_pattern_line(text, "swift-tools-version")) if tools else None,
        dependencies=tuple(
            LocatedValue(match[1], path, text.count("\n", 0, match.start()) + 1)
            for match in re.finditer(r"\.package\(\s*url:\s*\"([^\"]+)\"", text)
        ),
        imports=tuple(LocatedValue(match[1], path, text.count("\n", 0, match.start()) + 1) for match in products),
    )


def read_cmake(tree: CheckoutTree, path: str = "CMakeLists.txt") -> PackageManifest | None:
    """Read the project of a CMake build."""
    text = tree.read_text(path) or ""
    project_pattern = re.compile(r"^[ \t]*project\s*\(\s*([\w.-]+)([^)]*)\)", re.MULTILINE | re.IGNORECASE)
    project = project_pattern.search(text)
    if project is None:
        return None
    line = text.count("\n", 0, project.start(1)) + 1
    version = re.search(r"\bVERSION\s+([\d.]+)", project[2])
    description = re.search(r"\bDESCRIPTION\s+\"([^\"]+)\"", project[2])
    standard = re.search(r"CMAKE_CXX_STANDARD\s+(\d+)|cxx_std_(\d+)", text)
    return PackageManifest(
        ecosystem="source",
        path=path,
        name=LocatedValue(project[1], path, line),
        version=LocatedValue(version[1], path, line) if version else None,
        description=LocatedValue(description[1], path, line) if description else None,
        requires=LocatedValue(
            f"C++{standard[1] or standard[2]}",
            path,
            find_pattern_line(text, "CMAKE_CXX_STANDARD|cxx_std_"),
        )
        if standard
        else None,
        dependencies=None,
        installable=bool(re.search(r"^[ \t]*install\s*\(", text, re.MULTILINE | re.IGNORECASE)),
    )
