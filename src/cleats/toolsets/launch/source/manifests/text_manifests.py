"""Readers for the manifests of npm, Composer, RubyGems, Go, Cargo, SwiftPM and CMake."""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mapping, as_mappings, as_text
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests import model
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest

_OPTIONAL_KINDS = ("peerDependencies", "optionalDependencies")


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
        private=file.document.get("private") is True,
    )


def _find_entry_files(tree: CheckoutTree, document: Mapping[str, Any], folder: str) -> tuple[str, ...]:
    exports = document.get("exports")
    root = exports.get(".", exports) if isinstance(exports, dict) else exports
    names = [document.get("types"), document.get("typings"), *_collect_export_files(root)]
    names += [document.get("source"), document.get("module"), document.get("main"), "index.js"]
    files = [folder + name.removeprefix("./") for name in names if isinstance(name, str) and "*" not in name]
    entry_files = [file for file in dict.fromkeys(files) if file in tree.path_set]
    return tuple(sorted(entry_files, key=lambda file: not file.endswith((".d.ts", ".d.mts", ".d.cts"))))


def _collect_export_files(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [item for key, item in value.items() if not str(key).startswith("./")]
    return [name for item in value for name in _collect_export_files(item)] if isinstance(value, list) else []


def read_composer(tree: CheckoutTree, path: str = "composer.json") -> PackageManifest | None:
    """Read the package; its name is `vendor/package`."""
    file = ManifestFile.load(tree, path)
    if file.read_text("name") is None:
        return None
    requirements = file.find_table("require")
    namespaces = sorted(file.find_table("autoload", "psr-4") or file.find_table("autoload", "psr-0"))
    return PackageManifest(
        ecosystem="composer",
        path=path,
        name=file.read_text("name"),
        version=_read_only_item(file, "version"),
        licence=_read_only_item(file, "license"),
        description=_read_only_item(file, "description"),
        requires=file.locate(str(requirements["php"]), "require", "php") if "php" in requirements else None,
        dependencies=tuple(file.locate(item, "require", item) for item in sorted(requirements) if "/" in item),
        imports=tuple(file.locate(item.rstrip("\\"), "autoload") for item in namespaces if item),
    )


def _read_only_item(file: ManifestFile, key: str) -> LocatedValue | None:
    value = file.document.get(key)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return file.locate(value, key) if isinstance(value, str) and value.strip() else None


def read_gem(tree: CheckoutTree) -> PackageManifest | None:
    """Read the gem; a version that is a constant is looked up in `lib/**/version.rb`."""
    path = next((name for name in tree.paths if name.endswith(".gemspec") and "/" not in name), "")
    file = ManifestFile.load(tree, path)
    keys = ("name", "version", "licenses?", "summary", "description", "required_ruby_version")
    field_pattern = r"""^[ \t]*\w+\.KEY\s*=\s*\[?["']([^"'#]+)["']\]?(?:\.freeze)?\s*$"""
    name, version, licence, summary, description, ruby = (file.find(field_pattern.replace("KEY", key)) for key in keys)
    if name is None:
        return None
    candidates = (name.value.replace("-", "/"), name.value)
    import_name = next((item for item in candidates if f"lib/{item}.rb" in tree.path_set), "")
    return PackageManifest(
        ecosystem="gem",
        path=path,
        name=name,
        version=version or _find_gem_version(tree),
        licence=licence,
        description=summary or description,
        requires=ruby,
        dependencies=file.find_all(r"""^[ \t]*\w+\.add_(?:runtime_)?dependency[ (]+["']([^"']+)["']""", line_group=1),
        imports=(LocatedValue(import_name, f"lib/{import_name}.rb", basis="source_code"),) if import_name else (),
    )


def _find_gem_version(tree: CheckoutTree) -> LocatedValue | None:
    paths = [path for path in tree.paths_below("lib") if path.endswith("/version.rb")]
    pattern = r"""\bVERSION\s*=\s*["']([^"']+)["']"""
    versions = (ManifestFile.load(tree, path, "source_code").find(pattern) for path in paths)
    return next(filter(None, versions), None)


def read_go(tree: CheckoutTree, path: str = "go.mod") -> PackageManifest | None:
    """Read the module of a `go.mod`; it has no version, since Go versions are release tags."""
    file = ManifestFile.load(tree, path)
    name = file.find(r"^module\s+(\S+)")
    if name is None:
        return None
    return PackageManifest(
        ecosystem="go",
        path=path,
        name=name,
        requires=file.find(r"^go\s+([\d.]+)", prefix=">=", line_pattern=r"^go\s"),
        dependencies=file.find_all(r"^(?:require)?\s+([\w.-]+\.[\w./-]+)\s+v\S+(?!\S|\s*// indirect)", line_group=1),
        imports=(name,),
    )


def read_cargo(tree: CheckoutTree, path: str = "Cargo.toml") -> PackageManifest | None:
    """Read the crate; values inherited from the workspace are looked up there."""
    file = ManifestFile.load(tree, path)
    package = file.find_table("package")
    name = file.read_text("package", "name")
    if name is None:
        return None
    inherited = {key for key, value in package.items() if isinstance(value, dict) and value.get("workspace")}
    version, licence, description, rust = (
        file.read_text(*(("workspace", "package") if key in inherited else ("package",)), key)
        for key in ("version", "license", "description", "rust-version")
    )
    library = file.find_table("lib").get("name")
    import_name = str(library or package["name"]).replace("-", "_")
    dependencies = file.find_table("dependencies")
    has_library = library is not None or "src/lib.rs" in tree.path_set
    return PackageManifest(
        ecosystem="cargo",
        path=path,
        name=name,
        version=version,
        licence=licence,
        description=description,
        requires=LocatedValue(f">={rust.value}", path, rust.line) if rust else None,
        dependencies=tuple(
            file.locate(item, "dependencies", item)
            for item in sorted(dependencies)
            if not as_mapping(dependencies[item]).get("optional")
        ),
        optional=dict.fromkeys(sorted(set(file.find_table("features")) - {"default"}), ()),
        commands=tuple(
            LocatedValue(command, path, model.find_toml_line(file.text, "bin"))
            for binary in as_mappings(file.document.get("bin"))
            if (command := as_text(binary.get("name")))
        ),
        imports=(file.locate(import_name, "package", "name"),) if has_library else (),
        private=package.get("publish") is False,
    )


def read_swift(tree: CheckoutTree, path: str = "Package.swift") -> PackageManifest | None:
    """Read the package and the libraries it offers."""
    file = ManifestFile.load(tree, path)
    names = file.find_all(r"Package\(\s*name:\s*\"([^\"]+)\"", line_group=1)
    if not names:
        return None
    return PackageManifest(
        ecosystem="swiftpm",
        path=path,
        name=names[0],
        requires=file.find(r"swift-tools-version:\s*([\d.]+)", prefix=">=", line_pattern="swift-tools-version"),
        dependencies=file.find_all(r"\.package\(\s*url:\s*\"([^\"]+)\""),
        imports=file.find_all(r"\.library\(\s*name:\s*\"([^\"]+)\""),
    )


def read_cmake(tree: CheckoutTree, path: str = "CMakeLists.txt") -> PackageManifest | None:
    """Read the project of a CMake build."""
    file = ManifestFile.load(tree, path)
    pattern = r"^[ \t]*project\s*\(\s*([\w.-]+)([^)]*)\)"
    project = re.search(pattern, file.text, re.MULTILINE | re.IGNORECASE)
    if project is None:
        return None
    line = model.find_line(file.text, project.start(1))
    version = re.search(r"\bVERSION\s+([\d.]+)", project[2])
    description = re.search(r"\bDESCRIPTION\s+\"([^\"]+)\"", project[2])
    return PackageManifest(
        ecosystem="source",
        path=path,
        name=LocatedValue(project[1], path, line),
        version=LocatedValue(version[1], path, line) if version else None,
        description=LocatedValue(description[1], path, line) if description else None,
        requires=file.find(
            r"(?:CMAKE_CXX_STANDARD\s+|cxx_std_)(\d+)", prefix="C++", line_pattern="CMAKE_CXX_STANDARD|cxx_std_"
        ),
        dependencies=None,
        installable=bool(re.search(r"^[ \t]*install\s*\(", file.text, re.MULTILINE | re.IGNORECASE)),
    )
