"""How a package is installed: the one right command of its ecosystem, and who confirms it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.claims import Citation, Ledger
from cleats.toolsets.launch.source.manifests.lines import pattern_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.package_claims import DEVELOPMENT, cite
from cleats.toolsets.launch.source.roots import Roots, import_name, python_packages
from cleats.toolsets.launch.source.tree import Tree

_METHODS: Final = {
    "pip": "pip",
    "npm": "npm",
    "maven": "maven",
    "nuget": "nuget",
    "cargo": "cargo",
    "go": "go",
    "composer": "composer",
    "gem": "gem",
    "swiftpm": "swiftpm",
    "source": "source",
}
_PIP: Final = re.compile(
    r"(?:^|[\s$>])(?:python3?\s+-m\s+|uv\s+)?pip3?\s+install\s+"
    r"(?P<options>(?:-\S+\s+)*)['\"]?(?P<name>[A-Za-z0-9][\w.-]*)(?P<extras>\[[^\]]*\])?",
)
_NPM: Final = re.compile(
    r"(?:^|[\s$>])npm\s+(?:i|install|add)\s+(?:-\S+\s+)*(?P<name>[@\w][\w./@-]*)"
)
_CODE: Final = {"pip": _PIP, "npm": _NPM}


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is installed, and with which commands."""

    method: str
    identifier: str
    commands: tuple[str, ...]
    extras: tuple[str, ...]
    imports: tuple[Said, ...]
    extra_lines: tuple[int, ...] = ()
    """Where the manifest names each extra."""
    programs: tuple[str, ...] = ()
    """What can be typed once it is installed."""

    def as_json(self, claim_id: str) -> dict[str, Any]:
        document: dict[str, Any] = {
            "method": self.method,
            "identifier": self.identifier,
            "install_commands": list(self.commands),
            "extras": list(self.extras),
            "import_names": [each.value for each in self.imports],
            "commands": list(self.programs),
        }
        return document | ({"claim_id": claim_id} if claim_id else {})


def distribution(tree: Tree, manifest: Manifest, roots: Roots) -> Distribution:
    """The distribution of a manifest; a private package has no command."""
    name = manifest.name.value if manifest.name else ""
    commands = () if manifest.private else _commands(manifest, name)
    extras = tuple(
        sorted(
            extra
            for extra, needs in manifest.optional.items()
            if manifest.ecosystem == "pip" and needs and not DEVELOPMENT.fullmatch(extra)
        )
    )
    imports = _python_imports(tree, manifest, roots) if manifest.ecosystem == "pip" else ()
    return Distribution(
        _METHODS[manifest.ecosystem],
        name,
        commands,
        extras,
        imports or manifest.imports,
        tuple(_key_line(tree.text(manifest.path) or "", extra) for extra in extras),
        tuple(each.value for each in manifest.commands),
    )


def _key_line(text: str, key: str) -> int:
    """The line on which a manifest of any kind gives a key its value."""
    return pattern_line(text, rf"^[ \t]*(?:[\w-]+\.)?[\"']?{re.escape(key)}[\"']?\s*[=:]")


def _commands(manifest: Manifest, name: str) -> tuple[str, ...]:
    version = manifest.version.value if manifest.version else ""
    released = version and not re.search(r"SNAPSHOT|dev|alpha|beta|rc", version, re.IGNORECASE)
    match manifest.ecosystem:
        case "maven":
            group, _, artifact = name.partition(":")
            if not released:
                return ()
            parts = {"groupId": group, "artifactId": artifact, "version": version}
            inner = "\n".join(f"  <{tag}>{text}</{tag}>" for tag, text in parts.items())
            return (f"<dependency>\n{inner}\n</dependency>",)
        case "swiftpm":
            return ()  # the version to ask for is a tag, which no file names
        case "source":
            steps = ("cmake -S . -B build", "cmake --build build", "cmake --install build")
            return steps if manifest.installable else steps[:2]
        case ecosystem:
            verb = {
                "pip": "pip install",
                "npm": "npm install",
                "nuget": "dotnet add package",
                "cargo": "cargo add" if manifest.imports else "cargo install",
                "go": "go get",
                "composer": "composer require",
                "gem": "gem install",
            }[ecosystem]
            return (f"{verb} {name}",)


def _python_imports(tree: Tree, manifest: Manifest, roots: Roots) -> tuple[Said, ...]:
    """The import names: what the manifest packs, if it is there; else the folder that fits best.

    The name of the distribution is not asked: `python-dotenv` is imported as `dotenv`.
    """
    folders = {
        import_name(place, roots.source): place for place in python_packages(tree, roots.source)
    }
    told = [
        each
        for each in manifest.imports
        if each.value in folders and not each.value.startswith("_")
    ]
    name = _normal(manifest.name.value if manifest.name else "")
    if told:
        chosen = [each.value for each in told]
    else:
        same = [each for each in folders if _normal(each) == name]
        chosen = same or list(folders)[:1]
    ranked = sorted(chosen, key=lambda each: (_normal(each) != name, chosen.index(each)))
    return tuple(
        Said(each, place, basis="source_code")
        for each in ranked
        for place in [_file_of(tree, folders[each])]
    )


def _file_of(tree: Tree, place: str) -> str:
    return f"{place}/__init__.py" if f"{place}/__init__.py" in tree.known else place


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def confirm(
    ledger: Ledger,
    product: str,
    manifest: Manifest,
    found: Distribution,
    documents: Iterable[Block],
) -> tuple[str, list[dict[str, str]]]:
    """Claim the command, with every document that shows it; and what documents say otherwise."""
    if not found.commands or manifest.name is None:
        return "", []
    shown = _listed_commands(found)
    text = f"Install {product} with {shown}."
    if found.method == "maven":
        text = f"Add {product} to a Maven project as the dependency `{found.identifier}`."
    elif found.method == "source":
        text = f"Build {product} from source with {shown}."
    places = [cite(manifest.name)]
    rivals: list[tuple[str, Block]] = []
    pattern = _CODE.get(found.method)
    for block in documents:
        names = _names(block, pattern)
        if found.identifier and any(_same(name, found) for name in names):
            places.append(Citation(block.path, block.line, block.end, "readme_technical"))
        elif names and pattern and _is_install_part(block):
            rivals += [(name, block) for name in names if name not in (".", "-")]
    claim = ledger.add(text, "install", places, group="install_steps")
    contradictions = [] if len(places) > 1 else _contradictions(ledger, product, claim, rivals)
    for extra, line in zip(found.extras, found.extra_lines, strict=True):
        needs = manifest.optional[extra]
        named = Citation(manifest.path, line, line, "manifest")
        command = f'`pip install "{found.identifier}[{extra}]"`'
        said = f"The optional `{extra}` extra of {product} is installed with {command}."
        cited = [named, *(cite(each) for each in needs)]
        ledger.add(said, "install", cited, group="install_steps")
    return claim, contradictions


def _contradictions(
    ledger: Ledger, product: str, claim: str, rivals: list[tuple[str, Block]]
) -> list[dict[str, str]]:
    """Documents that install only some other package say that this one goes by that name."""
    if not rivals:
        return []
    name, block = rivals[0]
    text = f"A document installs {product} as the package `{name}`."
    place = Citation(block.path, block.line, block.end, "readme_technical")
    other = ledger.add(text, "other", [place], is_fact=False)
    return [
        {
            "claim_a_id": claim,
            "claim_b_id": other,
            "resolution": "automatic",
            "winning_claim_id": claim,
            "reasoning": "The manifest outweighs a document about the name of its own package.",
        }
    ]


def _names(block: Block, pattern: re.Pattern[str] | None) -> list[str]:
    if pattern is None or block.kind not in ("code", "paragraph", "item"):
        return []
    return [match["name"] for match in pattern.finditer(f"\n{block.text}")]


def _same(name: str, found: Distribution) -> bool:
    bare = re.sub(r"(?<=.)@[^/]*$", "", name) if found.method == "npm" else name
    return _normal(bare.rstrip(".")) == _normal(found.identifier)


def _is_install_part(block: Block) -> bool:
    """Only the part about installing: elsewhere other packages are installed for other reasons."""
    titles = " ".join(block.section).lower()
    return bool(re.search(r"\b(install\w*|set ?up|getting started|quick ?start)\b", titles))


def _listed_commands(found: Distribution) -> str:
    return ", then ".join(f"`{command}`" for command in found.commands)
