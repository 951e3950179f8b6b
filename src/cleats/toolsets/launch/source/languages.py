"""The languages of packages: for each one its manifests, and the reader of its public API.

A row names functions only; words, commands and suffixes are in `checkout/platforms.toml`. CONTRIBUTING.md
says how to add a language.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from cleats.toolsets.launch.source.api import csharp, go, java, javascript, rust
from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests import dotnet, npm, pyproject, setuptools, text_manifests
from cleats.toolsets.launch.source.manifests import go as go_manifest
from cleats.toolsets.launch.source.manifests import java as java_manifest
from cleats.toolsets.launch.source.manifests import rust as rust_manifest
from cleats.toolsets.launch.source.manifests.model import PackageManifest, fill_gaps

ManifestReader: TypeAlias = Callable[[CheckoutTree], PackageManifest | None]
SurfaceReader: TypeAlias = Callable[[CheckoutTree, PackageManifest], ApiSurface]


@dataclass(frozen=True, slots=True)
class PackageLanguage:
    """What is known of the packages of one platform family."""

    family: str
    ecosystem: str
    manifest_readers: tuple[ManifestReader, ...]
    """In the order that breaks ties."""
    read_surface: SurfaceReader | None = None
    """None if the API of these packages is not read, or is read by another part (Python)."""
    platforms: tuple[str, ...] = ()
    """Other names of the platform."""


def find_workspace_member(
    tree: CheckoutTree, name: str, reader: Callable[[CheckoutTree, str], PackageManifest | None]
) -> PackageManifest | None:
    """Return the published package of a workspace: the least nested, then the largest."""
    members: dict[tuple[int, int, str], PackageManifest] = {}
    for path in tree.paths:
        folder, slash, file = path.rpartition("/")
        if slash and file == name and path.count("/") <= 3 and classify_path(path) in ("source", "other"):
            member = reader(tree, path)
            if member and member.name and not member.private:
                size = sum(tree.file_size(item) for item in tree.paths_below(folder) if classify_path(item) == "source")
                members[path.count("/"), -size, path] = member
    return members[min(members)] if members else None


def _read_npm(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package at the top, or the published member of a private workspace."""
    top = npm.read_package_json(tree)
    if top and not top.private:
        return top
    return find_workspace_member(tree, "package.json", npm.read_package_json) or top


def _read_maven(tree: CheckoutTree) -> PackageManifest | None:
    """Read the artifact at the top, or the library of a build that consists of modules."""
    top = java_manifest.read_pom(tree)
    if top and not top.private:
        return top
    member = find_workspace_member(tree, "pom.xml", java_manifest.read_pom)
    return fill_gaps(member, top, "description", "licence", "title") if member and top else member or top


LANGUAGES: Final = (
    PackageLanguage("python", "pip", (pyproject.read_pyproject, setuptools.read_setuptools)),
    PackageLanguage("node", "npm", (_read_npm,), javascript.read_surface, ("typescript", "javascript", "nodejs")),
    PackageLanguage("dotnet", "nuget", (dotnet.read_dotnet,), csharp.read_surface, ("net", "csharp")),
    PackageLanguage(
        "java", "maven", (_read_maven, java_manifest.read_gradle), java.read_surface, ("kotlin", "android")
    ),
    PackageLanguage("go", "go", (go_manifest.read_go,), go.read_surface),
    PackageLanguage(
        "rust",
        "cargo",
        (
            rust_manifest.read_cargo,
            partial(find_workspace_member, name="Cargo.toml", reader=rust_manifest.read_cargo),
        ),
        rust.read_surface,
    ),
    PackageLanguage("php", "composer", (text_manifests.read_composer,)),
    PackageLanguage("ruby", "gem", (text_manifests.read_gem,)),
    PackageLanguage("swift", "swiftpm", (text_manifests.read_swift,)),
    PackageLanguage("cpp", "source", (text_manifests.read_cmake,)),
)

LANGUAGES_BY_FAMILY: Final = {language.family: language for language in LANGUAGES}
FAMILY_BY_PLATFORM: Final = {name: language.family for language in LANGUAGES for name in language.platforms}
"""The family of platforms that share one."""


_CODE_LANGUAGE_BY_PLATFORM: Final = {
    **dict.fromkeys(("node", "nodejs"), "javascript"),
    **dict.fromkeys(("dotnet", "net"), "csharp"),
}


def resolve_code_language(platform: str) -> str:
    """Return the language that code for a platform is written in."""
    return _CODE_LANGUAGE_BY_PLATFORM.get(platform, platform)
