"""The manifests of Java libraries: Maven and Gradle."""

import re
from typing import Final

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest
from cleats.toolsets.launch.source.manifests.xml_elements import XmlElement, parse_xml

_UNRELEASED_PATTERN: Final = re.compile(r"SNAPSHOT|dev|alpha|beta|rc", re.IGNORECASE)


def read_pom(tree: CheckoutTree, path: str = "pom.xml") -> PackageManifest | None:
    """Read the artifact; its name is `group:artifact`."""
    root = parse_xml(tree.read_text(path))
    if root is None or root.name != "project":
        return None
    properties = root.find("properties")
    property_values = {child.name: child.text for child in properties.children} if properties else {}

    def resolve_text(element: XmlElement | None) -> str:
        text = element.text if element else ""
        for _ in range(3):  # a property may name a property
            text = re.sub(r"\$\{([^}]+)\}", lambda name: property_values.get(name[1], name[0]), text)
        return text if "${" not in text else ""

    def find_value(*names: str) -> LocatedValue | None:
        element = root.find(*names)
        return LocatedValue(value, path, element.line) if element and (value := resolve_text(element)) else None

    group = find_value("groupId") or find_value("parent", "groupId")
    artifact = find_value("artifactId")
    version = find_value("version") or find_value("parent", "version")
    property_values |= {"project.version": version.value if version else ""}
    if group is None or artifact is None:
        return None
    dependencies = root.find("dependencies")
    names_by_scope: dict[str, list[LocatedValue]] = {}
    for child in dependencies.children if dependencies else ():
        if child.find("artifactId"):
            name = f"{resolve_text(child.find('groupId'))}:{resolve_text(child.find('artifactId'))}"
            scope = resolve_text(child.find("scope"))
            key = "runtime" if scope in ("", "compile") else scope
            names_by_scope.setdefault(key, []).append(LocatedValue(name, path, child.line))
    return PackageManifest(
        ecosystem="maven",
        path=path,
        name=LocatedValue(f"{group.value}:{artifact.value}", path, artifact.line),
        version=version,
        title=find_value("name"),
        licence=find_value("licenses", "license", "name"),
        description=find_value("description"),
        requires=_find_java_version(property_values, root, path),
        dependencies=tuple(names_by_scope.get("runtime", ())),
        dev=tuple(names_by_scope.get("test", ())),
        imports=_find_root_package(tree, path),
        released_version=find_released_version(tree, group.value, artifact.value),
        private=resolve_text(root.find("packaging")) == "pom" or property_values.get("maven.deploy.skip") == "true",
    )


def _find_java_version(property_values: dict[str, str], root: XmlElement, path: str) -> LocatedValue | None:
    for key in ("maven.compiler.release", "maven.compiler.target", "java.version"):
        element = root.find("properties", key)
        if element and re.fullmatch(r"[\d.]+", property_values.get(key, "")):
            return LocatedValue(property_values[key], path, element.line)
    return None


def read_gradle(tree: CheckoutTree) -> PackageManifest | None:
    """Read the artifact of a Gradle build: that of the top, else of the module with the most code."""
    folder = _find_gradle_folder(tree)
    path = next((name for name in (f"{folder}build.gradle", f"{folder}build.gradle.kts") if name in tree.path_set), "")
    settings_path = next((name for name in ("settings.gradle", "settings.gradle.kts") if name in tree.path_set), "")
    names = (path, f"{folder}gradle.properties", "gradle.properties", "build.gradle", "build.gradle.kts")
    files = [ManifestFile.load(tree, name) for name in dict.fromkeys(names)]
    settings = ManifestFile.load(tree, settings_path)

    def find_value(key: str, *property_keys: str) -> LocatedValue | None:
        # Only the build at the top indents what applies to its modules; in a module, tasks have groups, too.
        property_pattern = rf"^(?:{'|'.join((key, *property_keys))})\s*=\s*(\S[^\n]*?)\s*$"
        for file in files:
            indent = "" if folder and file.path == path else "(?:\t| {0,4})"
            code_pattern = rf"""^{indent}{key}\s*=?\s*["']([^"'$]+)["']"""
            pattern = property_pattern if file.path.endswith(".properties") else code_pattern
            if value := file.find(pattern, flags=re.MULTILINE | re.IGNORECASE):
                return value
        return None

    group = find_value("group")
    name = find_value("artifactId", "POM_ARTIFACT_ID")
    if name is None and folder:
        module = re.escape(folder.rstrip("/"))
        pattern = rf"""project\(['"]:([\w.-]+)['"]\)\.projectDir[^\n]*['"/]{module}['"]"""
        name = settings.find(pattern) or LocatedValue(folder.rstrip("/").rpartition("/")[2], path)
    elif name is None:
        name = settings.find(r"""rootProject\.name\s*=\s*["']([^"']+)["']""", line_pattern="rootProject")
    if tree.read_text(path) is None or name is None or group is None:
        return None
    build = files[0]
    return PackageManifest(
        ecosystem="maven",
        path=path,
        name=LocatedValue(f"{group.value}:{name.value}", name.path, name.line),
        version=find_value("version", "VERSION_NAME"),
        description=find_value("description", "POM_DESCRIPTION"),
        licence=find_value("licenseName", "POM_LICENCE_NAME", "POM_LICENSE_NAME"),
        dependencies=build.find_all(
            r"""^[ \t]*(?:implementation|api|compile)[ (]+["']([\w.-]+:[\w.-]+)(?::[^"']*)?["']""", line_group=1
        ),
        imports=_find_root_package(tree, path),
        released_version=find_released_version(tree, group.value, name.value),
    )


def _find_gradle_folder(tree: CheckoutTree) -> str:
    """Return the folder of the build with the most code, "" for the top, else with a slash at its end."""
    folders = [
        path.rpartition("build.gradle")[0] for path in tree.paths if re.search(r"(^|/)build\.gradle(\.kts)?$", path)
    ]
    usable = [folder for folder in folders if classify_path(f"{folder}x.java") == "source" and folder.count("/") <= 2]
    sizes = {
        folder: sum(tree.file_size(path) for path in tree.paths_below(f"{folder}src/main"))
        for folder in usable
        if folder
    }
    has_top = any(path.startswith("src/main/") for path in tree.paths)
    best = max(sizes, key=lambda folder: (sizes[folder], folder), default="")
    return "" if has_top or not sizes.get(best) else best


def find_released_version(tree: CheckoutTree, group: str, artifact: str) -> LocatedValue | None:
    """Return the version of an artifact that the readme tells users to depend on."""
    readme = next((path for path in tree.paths if re.fullmatch(r"readme\.(md|rst|adoc|txt)", path, re.IGNORECASE)), "")
    file = ManifestFile.load(tree, readme, "readme_technical")
    version = r"(\d[\w.-]*)"
    element = rf"<artifactId>\s*{re.escape(artifact)}\s*</artifactId>\s*<version>\s*{version}\s*</version>"
    literal = rf"{re.escape(group)}:{re.escape(artifact)}:{version}"
    values = (*file.find_all(element, line_group=1), *file.find_all(literal, line_group=1))
    found = next(iter(values), None)
    if found and not _UNRELEASED_PATTERN.search(found.value):
        return found
    changes = next((path for path in tree.paths if re.fullmatch(r"changes?(log)?\.md", path, re.IGNORECASE)), "")
    heading = ManifestFile.load(tree, changes, "readme_technical").find(r"^#+ +\[?v?(\d+(?:\.\d+)+)\]?(?:$|[ \t(-])")
    return heading if heading and not found else None


def _find_root_package(tree: CheckoutTree, manifest_path: str) -> tuple[LocatedValue, ...]:
    folder = f"{manifest_path.rpartition('/')[0]}/src/main/".lstrip("/")
    paths = [path for path in tree.paths if path.startswith(folder) and path.endswith((".java", ".kt"))]
    declared = (ManifestFile.load(tree, path, "source_code").find(r"^package\s+([\w.]+)") for path in paths)
    packages = [package for package in declared if package]
    shortest = min(packages, key=lambda package: (package.value.count("."), package.path), default=None)
    if shortest and all(package.value.startswith(shortest.value) for package in packages):
        return (shortest,)
    return ()
