"""`pom.xml` and Gradle build files."""

import re

from cleats.toolsets.launch.source.manifests.lines import pattern_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.manifests.xml import Element, parse
from cleats.toolsets.launch.source.tree import Tree


def read_pom(tree: Tree, path: str = "pom.xml") -> Manifest | None:
    """The artifact; its name is `group:artifact`."""
    root = parse(tree.text(path))
    if root is None or root.name != "project":
        return None
    properties = root.find("properties")
    known = {each.name: each.text for each in properties.children} if properties else {}

    def text(element: Element | None) -> str:
        said = element.text if element else ""
        for _ in range(3):  # a property may name a property
            said = re.sub(r"\$\{([^}]+)\}", lambda name: known.get(name[1], name[0]), said)
        return said if "${" not in said else ""

    def said(*names: str) -> Said | None:
        element = root.find(*names)
        return Said(value, path, element.line) if element and (value := text(element)) else None

    group = said("groupId") or said("parent", "groupId")
    artifact = said("artifactId")
    version = said("version") or said("parent", "version")
    known |= {"project.version": version.value if version else ""}
    if group is None or artifact is None:
        return None
    dependencies = root.find("dependencies")
    entries = [
        (f"{text(each.find('groupId'))}:{text(each.find('artifactId'))}", each)
        for each in (dependencies.children if dependencies else ())
        if each.find("artifactId")
    ]
    scopes = {id(each): text(each.find("scope")) for _, each in entries}
    return Manifest(
        ecosystem="maven",
        path=path,
        name=Said(f"{group.value}:{artifact.value}", path, artifact.line),
        version=version,
        licence=said("licenses", "license", "name"),
        description=said("description"),
        requires=_java(known, root, path),
        dependencies=tuple(
            Said(name, path, each.line)
            for name, each in entries
            if scopes[id(each)] in ("", "compile", "runtime")
        ),
        dev=tuple(
            Said(name, path, each.line) for name, each in entries if scopes[id(each)] == "test"
        ),
        imports=_packages(tree),
    )


def _java(known: dict[str, str], root: Element, path: str) -> Said | None:
    for key in ("maven.compiler.release", "maven.compiler.target", "java.version"):
        element = root.find("properties", key)
        if element and re.fullmatch(r"[\d.]+", known.get(key, "")):
            return Said(known[key], path, element.line)
    return None


def read_gradle(tree: Tree) -> Manifest | None:
    """The artifact of a Gradle build that says its group and version literally."""
    path = next((name for name in ("build.gradle", "build.gradle.kts") if name in tree.known), "")
    text = tree.text(path) if path else None
    if text is None:
        return None
    properties = tree.text("gradle.properties") or ""
    settings = next(
        (name for name in ("settings.gradle", "settings.gradle.kts") if name in tree.known), ""
    )

    def said(key: str) -> Said | None:
        here = rf"""^[ \t]*{key}\s*=?\s*["']([^"'$]+)["']"""
        for place, body, pattern in (
            (path, text, here),
            ("gradle.properties", properties, rf"^{key}\s*=\s*(\S+)"),
        ):
            if match := re.search(pattern, body, re.MULTILINE | re.IGNORECASE):
                return Said(match[1], place, pattern_line(body, pattern))
        return None

    name = re.search(r"""rootProject\.name\s*=\s*["']([^"']+)["']""", tree.text(settings) or "")
    group = said("group")
    if name is None or group is None:
        return None
    wanted = r"""^[ \t]*(?:implementation|api|compile)[ (]+["']([\w.-]+:[\w.-]+)(?::[^"']*)?["']"""
    return Manifest(
        ecosystem="maven",
        path=path,
        name=Said(
            f"{group.value}:{name[1]}",
            settings,
            pattern_line(tree.text(settings) or "", "rootProject"),
        ),
        version=said("version"),
        description=said("description"),
        dependencies=tuple(
            Said(each[1], path, text.count("\n", 0, each.start(1)) + 1)
            for each in re.finditer(wanted, text, re.MULTILINE)
        ),
        imports=_packages(tree),
    )


def _packages(tree: Tree) -> tuple[Said, ...]:
    """The outermost package that all of the sources share."""
    named: list[Said] = []
    for path in tree.paths:
        if "src/main/" in f"/{path}" and path.endswith((".java", ".kt")):
            text = tree.text(path) or ""
            if match := re.search(r"^package\s+([\w.]+)", text, re.MULTILINE):
                line = text.count("\n", 0, match.start()) + 1
                named.append(Said(match[1], path, line, basis="source_code"))
    shortest = sorted(named, key=lambda each: (each.value.count("."), each.path))
    if shortest and all(each.value.startswith(shortest[0].value) for each in named):
        return (shortest[0],)
    return ()
