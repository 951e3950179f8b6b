"""Readers for the manifests of Composer, RubyGems, SwiftPM and CMake."""

import re

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests import model
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest


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
