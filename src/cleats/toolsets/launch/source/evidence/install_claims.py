"""The install command of a package in its ecosystem, and the documents that confirm it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.launch.source.checkout import repository_layout
from cleats.toolsets.launch.source.checkout.repository_layout import RepositoryRoots
from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.evidence.package_claims import DEVELOPMENT_EXTRA_PATTERN, cite_value
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest, find_pattern_line
from cleats.toolsets.launch.source.text.documents import Block

_INSTALL_PATTERNS: Final = {
    "pip": re.compile(
        r"(?:^|[\s$>])(?:python3?\s+-m\s+|uv\s+)?pip3?\s+install\s+"
        r"(?:-\S+\s+)*['\"]?(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?"
    ),
    "npm": re.compile(r"(?:^|[\s$>])npm\s+(?:i|install|add)\s+(?:-\S+\s+)*(?P<name>[@\w][\w./@-]*)"),
}
_INSTALL_HEADING_PATTERN: Final = re.compile(r"\b(install\w*|set ?up|getting started|quick ?start)\b", re.IGNORECASE)


_MAVEN_ELEMENTS: Final = ("groupId", "artifactId", "version")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution and the commands that install it."""

    method: str
    identifier: str
    commands: tuple[str, ...]
    extras: Mapping[str, int]
    """The line of the manifest that names each extra."""
    imports: tuple[LocatedValue, ...]
    programs: tuple[str, ...] = ()
    """The commands that are available once it is installed."""

    def as_json(self, claim_id: str) -> dict[str, Any]:
        document: dict[str, Any] = {
            "method": self.method,
            "identifier": self.identifier,
            "install_commands": list(self.commands),
            "extras": list(self.extras),
            "import_names": [value.value for value in self.imports],
            "commands": list(self.programs),
        }
        return document | ({"claim_id": claim_id} if claim_id else {})


def build_distribution(tree: CheckoutTree, manifest: PackageManifest, roots: RepositoryRoots) -> Distribution:
    """Return the distribution of a manifest; a private package has no install command."""
    name = manifest.name.value if manifest.name else ""
    text = tree.read_text(manifest.path) or ""
    commands = () if manifest.private else _build_install_commands(manifest, name)
    is_python = manifest.ecosystem == "pip"
    extras = [extra for extra in manifest.optional if is_python and manifest.optional[extra]]
    imports = _find_python_imports(tree, manifest, roots) if is_python else ()
    return Distribution(
        manifest.ecosystem,
        name,
        commands,
        {
            # The line on which a manifest of any kind assigns a key.
            extra: find_pattern_line(text, rf"^[ \t]*(?:[\w-]+\.)?[\"']?{re.escape(extra)}[\"']?\s*[=:]")
            for extra in sorted(extras)
            if not DEVELOPMENT_EXTRA_PATTERN.fullmatch(extra)
        },
        imports or manifest.imports,
        tuple(command.value for command in manifest.commands),
    )


def _build_install_commands(manifest: PackageManifest, name: str) -> tuple[str, ...]:
    match manifest.ecosystem:
        case "maven":
            version = find_release(manifest)
            values = (*name.split(":", 1), version.value) if version else name.split(":", 1)
            elements = [f"  <{tag}>{text}</{tag}>" for tag, text in zip(_MAVEN_ELEMENTS, values, strict=False)]
            return (
                "\n".join(("<dependency>", *elements, "</dependency>")),
                f'implementation("{":".join(values)}")',
            )
        case "swiftpm":
            return ()  # the version to ask for is a tag, which no file names
        case "source":
            steps = ("cmake -S . -B build", "cmake --build build", "cmake --install build")
            return steps if manifest.installable else steps[:2]
        case "cargo" if not manifest.imports:
            return (f"cargo install {name}",)
        case ecosystem:
            return (f"{PLATFORM_TABLES['ecosystems'][ecosystem]['install']} {name}",)


def find_release(manifest: PackageManifest) -> LocatedValue | None:
    """Return the version to install: that of the manifest if it is a release, else the one in the documents."""
    version = manifest.version
    is_released = version is not None and not re.search(r"SNAPSHOT|dev|alpha|beta|rc", version.value, re.IGNORECASE)
    return version if is_released else manifest.released_version


def detect_install_language(command: str) -> str:
    """Return the language after the fence of an install command: a shell, or the file that names a dependency."""
    if command.startswith("<"):
        return "xml"
    return "kotlin" if command.startswith("implementation(") else "bash"


def _find_python_imports(
    tree: CheckoutTree, manifest: PackageManifest, roots: RepositoryRoots
) -> tuple[LocatedValue, ...]:
    """Return the import names: the packed packages that exist, else the folder that fits best.

    The name of the distribution is not used: `python-dotenv` is imported as `dotenv`.
    """
    folders = {
        repository_layout.derive_import_name(path, roots.source): path
        for path in repository_layout.find_python_packages(tree, roots.source)
    }
    files = {
        candidate: f"{path}/__init__.py" if f"{path}/__init__.py" in tree.path_set else path
        for candidate, path in folders.items()
    }
    name = _normalise_name(manifest.name.value if manifest.name else "")
    declared = [item.value for item in manifest.imports if item.value in files and not item.value.startswith("_")]
    same_names = [candidate for candidate in files if _normalise_name(candidate) == name]
    chosen = declared or same_names or list(files)[:1]
    ranked = sorted(chosen, key=lambda candidate: (_normalise_name(candidate) != name, chosen.index(candidate)))
    return tuple(LocatedValue(candidate, files[candidate], basis="source_code") for candidate in ranked)


def _normalise_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def claim_install(
    ledger: ClaimLedger, product: str, manifest: PackageManifest, distribution: Distribution, documents: Iterable[Block]
) -> tuple[str, list[dict[str, str]]]:
    """Claim the install command with the documents that show it; also return contradictions."""
    if not distribution.commands or manifest.name is None:
        return "", []
    command_list = ", then ".join(f"`{command}`" for command in distribution.commands)
    text = f"Install {product} with {command_list}."
    if distribution.method == "maven":
        text = f"Add {product} to a Maven or Gradle project as the dependency `{distribution.identifier}`."
    elif distribution.method == "nuget":
        text = f"Install {product} from NuGet with {command_list}."
    elif distribution.method == "source":
        text = f"Build {product} from source with {command_list}."
    release = find_release(manifest) if distribution.method == "maven" else None
    citations = [cite_value(value) for value in (manifest.name, release) if value]
    other_packages: list[tuple[str, Block]] = []
    is_confirmed = False
    pattern = _INSTALL_PATTERNS.get(distribution.method)
    for block in documents:
        names = _find_package_names(block, pattern)
        is_npm = distribution.method == "npm"
        bare_names = [re.sub(r"(?<=.)@[^/]*$", "", name) if is_npm else name for name in names]  # without a version
        own_name = _normalise_name(distribution.identifier)
        if own_name and any(_normalise_name(name.rstrip(".")) == own_name for name in bare_names):
            citations.append(Citation.of_block(block, "readme_technical"))
            is_confirmed = True
        elif names and pattern and _INSTALL_HEADING_PATTERN.search(" ".join(block.section)):
            other_packages += [(name, block) for name in names if name not in (".", "-")]
    claim = ledger.add(text, "install", citations, group="install_steps")
    contradictions = []
    if other_packages and not is_confirmed:  # the documents install only a package with another name
        name, block = other_packages[0]
        wrong_text = f"A document installs {product} as the package `{name}`."
        citation = Citation.of_block(block, "readme_technical")
        contradictions = [ledger.contradict(claim, wrong_text, citation, "the name of the product's package")]
    for extra, line in distribution.extras.items():
        command = f'`pip install "{distribution.identifier}[{extra}]"`'
        extra_text = f"The optional `{extra}` extra of {product} is installed with {command}."
        extra_citations = [Citation(manifest.path, line, line, "manifest"), *map(cite_value, manifest.optional[extra])]
        ledger.add(extra_text, "install", extra_citations, group="install_steps")
    return claim, contradictions


def _find_package_names(block: Block, pattern: re.Pattern[str] | None) -> list[str]:
    if pattern is None or block.kind not in ("code", "paragraph", "item"):
        return []
    return [match["name"] for match in pattern.finditer(f"\n{block.text}")]
