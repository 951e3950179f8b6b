"""The manifest that speaks for a repository, by the platform that is asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cleats.toolsets.launch.source.manifests import (
    compiled,
    dotnet,
    jvm,
    node,
    pyproject,
    scripting,
    setuptools,
)
from cleats.toolsets.launch.source.manifests.model import Manifest
from cleats.toolsets.launch.source.roots import kind_of
from cleats.toolsets.launch.source.tree import Tree

Reader = Callable[[Tree], Manifest | None]


def _node(tree: Tree) -> Manifest | None:
    """The package at the top; where that is only the house of others, the one named like it."""
    top = node.read(tree)
    if top and not top.private:
        return top
    return _member(tree, "package.json", node.read) or top


def _cargo(tree: Tree) -> Manifest | None:
    return compiled.read_cargo(tree) or _member(tree, "Cargo.toml", compiled.read_cargo)


def _member(
    tree: Tree, name: str, reader: Callable[[Tree, str], Manifest | None]
) -> Manifest | None:
    """The published package of a workspace: the largest of those that lie least deep."""
    found = []
    for path in tree.paths:
        deep = path.count("/")
        if path.endswith(f"/{name}") and deep <= 3 and kind_of(path) not in _ASIDE:
            member = reader(tree, path)
            if member and member.name and not member.private:
                folder = path.removesuffix(f"/{name}")
                size = sum(tree.size(each) for each in tree.below(folder))
                found.append(((deep, -size, path), member))
    return min(found, key=lambda each: each[0])[1] if found else None


_ASIDE: Final = ("test", "example", "doc", "tool")

READERS: Final[dict[str, tuple[Reader, ...]]] = {
    "python": (pyproject.read, setuptools.read),
    "node": (_node,),
    "dotnet": (dotnet.read,),
    "java": (jvm.read_pom, jvm.read_gradle),
    "go": (compiled.read_go,),
    "rust": (_cargo,),
    "php": (scripting.read_composer,),
    "ruby": (scripting.read_gem,),
    "swift": (compiled.read_swift,),
    "cpp": (compiled.read_cmake,),
}
"""By platform family, in the order that settles a tie."""

FAMILIES: Final = {
    "typescript": "node",
    "javascript": "node",
    "nodejs": "node",
    "kotlin": "java",
    "android": "java",
    "net": "dotnet",
}
"""Platforms of a run that share a family."""


def read(tree: Tree, target_platform: str, family: str) -> Manifest | None:
    """The manifest of the platform asked for, else of the family found, else the first there is."""
    wanted = FAMILIES.get(target_platform, target_platform)
    for name in dict.fromkeys((wanted, family, *READERS)):
        for reader in READERS.get(name, ()):
            if manifest := reader(tree):
                return _filled(tree, manifest)
    return None


def _filled(tree: Tree, manifest: Manifest) -> Manifest:
    """A package that moved half of its metadata to the newer file: the older one says the rest."""
    older = setuptools.read(tree) if manifest.path == pyproject.PATH else None
    if older is None:
        return manifest
    return replace(
        manifest,
        version=manifest.version or older.version,
        licence=manifest.licence or older.licence,
        description=manifest.description or older.description,
        requires=manifest.requires or older.requires,
        dependencies=older.dependencies if manifest.dependencies is None else manifest.dependencies,
        imports=manifest.imports or older.imports,
    )
