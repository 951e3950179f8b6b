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
from cleats.toolsets.launch.source.tree import Tree

Reader = Callable[[Tree], Manifest | None]

READERS: Final[dict[str, tuple[Reader, ...]]] = {
    "python": (pyproject.read, setuptools.read),
    "node": (node.read,),
    "dotnet": (dotnet.read,),
    "java": (jvm.read_pom, jvm.read_gradle),
    "go": (compiled.read_go,),
    "rust": (compiled.read_cargo,),
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
