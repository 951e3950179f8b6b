"""Readers for the manifests of Maven, Gradle and .NET.

XML is parsed with line numbers, and without anything that reaches outside of the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from xml.parsers import expat  # ElementTree gives no lines

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest


@dataclass(slots=True)
class XmlElement:
    """An element; its name is without the namespace."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list["XmlElement"] = field(default_factory=list)
    text: str = ""

    def find(self, *names: str) -> "XmlElement | None":
        """Return the first element down a path of names."""
        element: XmlElement | None = self
        for name in names:
            element = next((child for child in element.children if child.name == name), None) if element else element
        return element

    def find_all(self, name: str) -> Iterator["XmlElement"]:
        """Yield every element with a name, at any depth."""
        pending = self.children[::-1]
        while pending:  # not recursive: the nesting depth of a file is not limited
            child = pending.pop()
            if child.name == name:
                yield child
            pending += child.children[::-1]


def parse_xml(text: str | None) -> XmlElement | None:
    """Return the root element of an XML text; None if it is invalid or declares entities."""
    parser = expat.ParserCreate(namespace_separator="|")
    top = XmlElement("", 1, {})
    stack = [top]

    def start_element(name: str, attributes: dict[str, str]) -> None:
        element = XmlElement(name.rpartition("|")[2], parser.CurrentLineNumber, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def end_element(_name: str) -> None:
        stack[-1].text = stack[-1].text.strip()
        stack.pop()

    def add_text(data: str) -> None:
        stack[-1].text += data

    def refuse_entities(*_declaration: object) -> None:
        raise expat.ExpatError("entities are not read")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = refuse_entities
    try:
        parser.Parse((text or "").lstrip(), True)
    except expat.ExpatError:
        return None
    return top.children[0] if top.children else None


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
        licence=find_value("licenses", "license", "name"),
        description=find_value("description"),
        requires=_find_java_version(property_values, root, path),
        dependencies=tuple(names_by_scope.get("runtime", ())),
        dev=tuple(names_by_scope.get("test", ())),
        imports=_find_root_package(tree),
    )


def _find_java_version(property_values: dict[str, str], root: XmlElement, path: str) -> LocatedValue | None:
    for key in ("maven.compiler.release", "maven.compiler.target", "java.version"):
        element = root.find("properties", key)
        if element and re.fullmatch(r"[\d.]+", property_values.get(key, "")):
            return LocatedValue(property_values[key], path, element.line)
    return None


def read_gradle(tree: CheckoutTree) -> PackageManifest | None:
    """Read the artifact of a Gradle build that states its group and version literally."""
    path = next((name for name in ("build.gradle", "build.gradle.kts") if name in tree.path_set), "")
    settings_path = next((name for name in ("settings.gradle", "settings.gradle.kts") if name in tree.path_set), "")
    build, properties = ManifestFile.load(tree, path), ManifestFile.load(tree, "gradle.properties")
    settings = ManifestFile.load(tree, settings_path)
    flags = re.MULTILINE | re.IGNORECASE
    group, version, description = (
        build.find(rf"""^[ \t]*{key}\s*=?\s*["']([^"'$]+)["']""", flags=flags)
        or properties.find(rf"^{key}\s*=\s*(\S+)", flags=flags)
        for key in ("group", "version", "description")
    )
    name = settings.find(r"""rootProject\.name\s*=\s*["']([^"']+)["']""", line_pattern="rootProject")
    if tree.read_text(path) is None or name is None or group is None:
        return None
    return PackageManifest(
        ecosystem="maven",
        path=path,
        name=LocatedValue(f"{group.value}:{name.value}", name.path, name.line),
        version=version,
        description=description,
        dependencies=build.find_all(
            r"""^[ \t]*(?:implementation|api|compile)[ (]+["']([\w.-]+:[\w.-]+)(?::[^"']*)?["']""", line_group=1
        ),
        imports=_find_root_package(tree),
    )


def _find_root_package(tree: CheckoutTree) -> tuple[LocatedValue, ...]:
    paths = [path for path in tree.paths if "src/main/" in f"/{path}" and path.endswith((".java", ".kt"))]
    declared = (ManifestFile.load(tree, path, "source_code").find(r"^package\s+([\w.]+)") for path in paths)
    packages = [package for package in declared if package]
    shortest = min(packages, key=lambda package: (package.value.count("."), package.path), default=None)
    if shortest and all(package.value.startswith(shortest.value) for package in packages):
        return (shortest,)
    return ()


def read_dotnet(tree: CheckoutTree) -> PackageManifest | None:
    """Read the project that is packed; of several, a library nearest to the top is preferred."""
    candidates = []
    for path in tree.paths:
        usable = path.endswith((".csproj", ".fsproj", ".vbproj")) and classify_path(path) != "example"
        if usable and (root := parse_xml(tree.read_text(path))) and not _is_test_project(path, root):
            has_package_id = next(root.find_all("PackageId"), None) is not None
            is_program = (next(root.find_all("OutputType"), None) or root).text.lower() == "exe"
            candidates.append(((not has_package_id, is_program, path.count("/"), path), path, root))
    if not candidates:
        return None
    _, path, root = min(candidates, key=lambda item: item[0])
    shared_properties = parse_xml(tree.read_text("Directory.Build.props"))

    def find_value(*names: str) -> LocatedValue | None:
        for source_path, top in ((path, root), ("Directory.Build.props", shared_properties)):
            for name in names:
                element = next(top.find_all(name), None) if top else None
                if element and element.text and "$(" not in element.text:
                    return LocatedValue(element.text, source_path, element.line)
        return None

    stem = LocatedValue(PurePosixPath(path).stem, path)
    frameworks = find_value("TargetFrameworks", "TargetFramework")
    return PackageManifest(
        ecosystem="nuget",
        path=path,
        name=find_value("PackageId", "AssemblyName") or stem,
        version=find_value("PackageVersion", "Version", "VersionPrefix"),
        licence=find_value("PackageLicenseExpression"),
        description=find_value("Description", "PackageDescription"),
        requires=frameworks,
        dependencies=tuple(
            LocatedValue(item.attributes["Include"], path, item.line)
            for item in root.find_all("PackageReference")
            if "Include" in item.attributes and "all" not in _read_private_assets(item)
        ),
        imports=(find_value("RootNamespace") or LocatedValue(re.sub(r"[^\w.]", "_", stem.value), path),),
        private=(packable := find_value("IsPackable")) is not None and packable.value.lower() == "false",
    )


def _is_test_project(path: str, root: XmlElement) -> bool:
    has_test_name = re.search(r"(^|[./-])(unit|integration)?tests?([./-]|$)", path, re.IGNORECASE)
    packages = [reference.attributes.get("Include", "") for reference in root.find_all("PackageReference")]
    return bool(has_test_name) or any("Microsoft.NET.Test.Sdk" in package for package in packages)


def _read_private_assets(element: XmlElement) -> str:
    inner = element.find("PrivateAssets")
    return (element.attributes.get("PrivateAssets", "") + (inner.text if inner else "")).lower()
