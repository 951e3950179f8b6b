"""The choice of the manifest that represents a repository, by the requested platform."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests import pyproject, setuptools, text_manifests, xml_manifests
from cleats.toolsets.launch.source.manifests.model import PackageManifest, fill_gaps

ManifestReader = Callable[[CheckoutTree], PackageManifest | None]


def _read_node(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package at the top, or the published member of a private workspace."""
    top = text_manifests.read_package_json(tree)
    if top and not top.private:
        return top
    return _find_workspace_member(tree, "package.json", text_manifests.read_package_json) or top


def _read_rust(tree: CheckoutTree) -> PackageManifest | None:
    return text_manifests.read_cargo(tree) or _find_workspace_member(tree, "Cargo.toml", text_manifests.read_cargo)


def _find_workspace_member(
    tree: CheckoutTree, name: str, reader: Callable[[CheckoutTree, str], PackageManifest | None]
) -> PackageManifest | None:
    """Return the published package of a workspace: the least nested, then the largest."""
    candidates = []
    for path in tree.paths:
        depth = path.count("/")
        if path.endswith(f"/{name}") and depth <= 3 and classify_path(path) not in _SKIPPED_KINDS:
            member = reader(tree, path)
            if member and member.name and not member.private:
                folder = path.removesuffix(f"/{name}")
                size = sum(tree.file_size(item) for item in tree.paths_below(folder))
                candidates.append(((depth, -size, path), member))
    return min(candidates, key=lambda item: item[0])[1] if candidates else None


_SKIPPED_KINDS: Final = ("test", "example", "doc", "tool")

READERS_BY_FAMILY: Final[dict[str, tuple[ManifestReader, ...]]] = {
    "python": (pyproject.read_pyproject, setuptools.read_setuptools),
    "node": (_read_node,),
    "dotnet": (xml_manifests.read_dotnet,),
    "java": (xml_manifests.read_pom, xml_manifests.read_gradle),
    "go": (text_manifests.read_go,),
    "rust": (_read_rust,),
    "php": (text_manifests.read_composer,),
    "ruby": (text_manifests.read_gem,),
    "swift": (text_manifests.read_swift,),
    "cpp": (text_manifests.read_cmake,),
}
"""Readers by platform family, in the order that breaks ties."""

FAMILY_BY_PLATFORM: Final = {
    "typescript": "node",
    "javascript": "node",
    "nodejs": "node",
    "kotlin": "java",
    "android": "java",
    "net": "dotnet",
}
"""The family of platforms that share one."""


def read_manifest(tree: CheckoutTree, target_platform: str, family: str) -> PackageManifest | None:
    """Read the manifest of the requested platform, else of the detected family, else any."""
    target_family = FAMILY_BY_PLATFORM.get(target_platform, target_platform)
    for name in dict.fromkeys((target_family, family, *READERS_BY_FAMILY)):
        for reader in READERS_BY_FAMILY.get(name, ()):
            if manifest := reader(tree):
                return _fill_from_setuptools(tree, manifest)
    return None


def _fill_from_setuptools(tree: CheckoutTree, manifest: PackageManifest) -> PackageManifest:
    """Fill gaps from `setup.cfg` and `setup.py`, which may still hold some of the metadata."""
    older = setuptools.read_setuptools(tree) if manifest.path == pyproject.PYPROJECT_PATH else None
    if older is None:
        return manifest
    if manifest.dependencies is None:
        manifest = replace(manifest, dependencies=older.dependencies)
    return fill_gaps(manifest, older, "version", "licence", "description", "requires", "imports")
