"""Product facts and the evidence for them, from everything that the repository says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from cleats.toolsets.launch.snippets.model import snippet_id
from cleats.toolsets.launch.source import documents, formats, prose
from cleats.toolsets.launch.source.api import node, python
from cleats.toolsets.launch.source.api.model import Surface, Symbol
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.claims import Claim, Ledger
from cleats.toolsets.launch.source.contradictions import Referee
from cleats.toolsets.launch.source.document_claims import (
    Workflow,
    features,
    is_readme,
    limitations,
    shown,
)
from cleats.toolsets.launch.source.examples import Example, claim_examples
from cleats.toolsets.launch.source.install import Distribution, confirm, distribution
from cleats.toolsets.launch.source.licences import Licence
from cleats.toolsets.launch.source.manifests.model import Manifest
from cleats.toolsets.launch.source.manifests.reading import read
from cleats.toolsets.launch.source.package_claims import Speaker, licence_of
from cleats.toolsets.launch.source.roots import Roots
from cleats.toolsets.launch.source.statements import Subject, proper_words
from cleats.toolsets.launch.source.tree import Tree

_WHOLE: Final = re.compile(
    r"(^|/)(index|readme|overview|introduction|features?|limitations?|known[-_]issues|caveats)\.\w+$",
    re.IGNORECASE,
)
"""Documents that speak of the product as a whole."""

_TITLES: Final = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "nodejs": "Node.js",
    "dotnet": ".NET",
    "cpp": "C++",
    "php": "PHP",
}
_LANGUAGES: Final = {"dotnet": "csharp", "node": "javascript", "nodejs": "javascript"}


def platform_of(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """The platform that the run is for, else the one that the repository has."""
    return str(config.get("target_platform") or inventory["repo_profile"]["platform_family"])


def language_of(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """The language that code for the product is written in."""
    platform = platform_of(config, inventory)
    return _LANGUAGES.get(platform, platform)


@dataclass(frozen=True)
class Sources:
    """Everything that is read, once."""

    tree: Tree
    inventory: Mapping[str, Any]
    config: Mapping[str, Any]

    @property
    def platform(self) -> str:
        return platform_of(self.config, self.inventory)

    @property
    def family(self) -> str:
        return str(self.inventory["repo_profile"]["platform_family"])

    @property
    def language(self) -> str:
        """The language that examples for the product are written in."""
        return language_of(self.config, self.inventory)

    @cached_property
    def roots(self) -> Roots:
        keys = ("source_roots", "test_roots", "doc_roots", "example_roots")
        return Roots(*(tuple(self.inventory[key]) for key in keys))

    @cached_property
    def manifest(self) -> Manifest | None:
        return read(self.tree, self.platform, self.family)

    @cached_property
    def distribution(self) -> Distribution | None:
        return distribution(self.tree, self.manifest, self.roots) if self.manifest else None

    @cached_property
    def blocks(self) -> dict[str, list[Block]]:
        """The readme and the documents about the whole, in order."""
        wanted = [path for path in self.inventory["doc_entrypoints"] if _WHOLE.search(path)]
        return {path: documents.blocks(self.tree, path) for path in wanted}

    @cached_property
    def surface(self) -> Surface:
        if self.distribution is None or self.manifest is None:
            return Surface()
        if self.manifest.ecosystem == "pip":
            files = [each.path.removesuffix("/__init__.py") for each in self.distribution.imports]
            return python.surface(self.tree, files)
        if self.manifest.ecosystem == "npm":
            return node.surface(self.tree, self.distribution.identifier, self.manifest.entry_files)
        return Surface()

    @cached_property
    def subject(self) -> Subject:
        """The product by all of its names."""
        name = str(self.config.get("product_name") or "") or self._own_name()
        titles = [
            block.text
            for path, found in self.blocks.items()
            for block in found[:5]
            if is_readme(path) and block.kind == "heading"
        ]
        imports = [each.value for each in self.distribution.imports] if self.distribution else []
        own = {_letters(each) for each in (name, self._own_name(), *imports)}
        titles = [each for each in titles[:1] if _is_name(_letters(each), own)]
        known = [name, self._own_name(), *titles, *imports]
        texts = [
            block.text
            for found in self.blocks.values()
            for block in found
            if block.kind == "paragraph"
        ]
        aliases = frozenset(each.lower() for each in known if each)
        return Subject(name, aliases, proper_words(texts))

    def _own_name(self) -> str:
        said = self.manifest.name if self.manifest else None
        return said.value if said else str(self.config.get("product_slug") or "")


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _is_name(title: str, own: set[str]) -> bool:
    """Whether a heading is the product's name: `python-tabulate` is, `Quick start` is not."""
    return any(each and (each in title or title in each) for each in own) and len(title) < 40


@dataclass(frozen=True, slots=True)
class Built:
    """The two artifacts."""

    product_facts: dict[str, Any]
    evidence_map: dict[str, Any]


def build(tree: Tree, inventory: Mapping[str, Any], config: Mapping[str, Any]) -> Built:
    """Read the repository and say what it supports."""
    sources = Sources(tree, inventory, config)
    subject = sources.subject
    ledger = Ledger(subject.name)
    licence, licence_places = licence_of(tree, sources.manifest)
    facts = _about(sources, ledger)
    contradictions: list[dict[str, str]] = []
    told: dict[str, str] = {}
    found_formats: list[dict[str, str]] = []
    licence_claim = summary = runtime = ""
    if sources.manifest and sources.distribution:
        speaker = Speaker(ledger, subject.name, sources.manifest)
        summary = speaker.description(subject)
        every = [block for found in sources.blocks.values() for block in found]
        install, contradictions = confirm(
            ledger, subject.name, sources.manifest, sources.distribution, every
        )
        facts["distribution"] = [sources.distribution.as_json(install)]
        speaker.imported(list(sources.distribution.imports))
        speaker.commands()
        runtime = speaker.runtime()
        licence_claim = speaker.licence(licence, licence_places)
        speaker.dependencies()
        speaker.version()
        facts |= _requirements(sources.manifest)
    limits: list[str] = []
    referee = Referee(ledger, sources.manifest, runtime, contradictions)
    for found in sources.blocks.values():
        features(ledger, subject, found, referee)
        limits += limitations(ledger, subject, found)
    if sources.manifest and sources.distribution:
        if sources.manifest.ecosystem == "pip":
            packages = [each.path.rpartition("/")[0] for each in sources.distribution.imports]
            every_format = formats.find(tree, sources.surface, [each for each in packages if each])
            found_formats = speaker.formats(every_format)
        told = speaker.api(sources.surface)
    examples, workflows = _workflows(sources, ledger)
    facts |= {
        "positioning": _positioning(sources, ledger, summary),
        "claims": [claim.as_fact() for claim in ledger.claims],
        "claim_groups": ledger.grouped(),
        "supported_formats": found_formats,
        "workflows": workflows,
        "api_surface_summary": _surface(sources.surface, told),
        "example_inventory": examples,
        "limitations": limits,
        **_licence(licence, licence_claim),
    }
    return Built(facts, _evidence(sources, ledger, contradictions))


def _about(sources: Sources, ledger: Ledger) -> dict[str, Any]:
    inventory = sources.inventory
    profile = inventory["repo_profile"]
    slug = str(sources.config.get("product_slug") or "") or re.sub(r"\W+", "-", ledger.product_name)
    imports = sources.distribution.imports if sources.distribution else ()
    return {
        "schema_version": "1.0",
        "product_name": sources.subject.name,
        "product_slug": slug,
        "repo_url": inventory["repo_url"],
        "repo_sha": inventory["repo_sha"],
        "supported_platforms": [sources.platform],
        "repository_health": {
            "ci_present": bool(inventory["ci_paths"]),
            "ci_paths": inventory["ci_paths"],
            "tests_present": inventory["tests_present"],
            "recommended_test_commands": profile["recommended_test_commands"],
        },
        "code_structure": {
            "source_roots": inventory["source_roots"],
            "public_entrypoints": [each.path for each in imports],
            "package_names": [each.value for each in imports],
        },
    }


def _requirements(manifest: Manifest) -> dict[str, Any]:
    systems = [
        each.value.rsplit("::", 1)[-1].strip()
        for each in manifest.classifiers
        if each.value.startswith("Operating System ::")
    ]
    facts: dict[str, Any] = {
        "runtime_requirements": {
            "language_versions": [manifest.requires.value] if manifest.requires else [],
            "os": systems,
        },
        "dependencies": {
            "runtime": [each.value for each in manifest.dependencies or ()],
            "optional": {
                extra: [each.value for each in needs] for extra, needs in manifest.optional.items()
            },
            "dev": [each.value for each in manifest.dev],
        },
    }
    if manifest.version:
        facts["version"] = manifest.version.value
    return facts


def _workflows(
    sources: Sources, ledger: Ledger
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The examples and the parts of documents with code, as inventory and as workflows."""
    name = sources.subject.name
    examples = claim_examples(
        ledger, name, sources.tree, list(sources.inventory["example_paths"]), sources.language
    )
    parts: dict[str, Workflow] = {}
    for found in sources.blocks.values():
        shown(ledger, sources.subject, found, sources.language, parts)
    inventory = [_example(sources, each) for each in examples]
    taken = {each.tag for each in examples}
    told: list[Example | Workflow] = [
        *examples,
        *(part for tag, part in parts.items() if tag not in taken),
    ]
    workflows = [
        {
            "workflow_tag": each.tag,
            "title": each.title,
            "claim_ids": [each.claim_id],
            "snippet_tags": [each.tag],
            **({"description": each.description} if each.description else {}),
        }
        for each in told
    ]
    return inventory, workflows


def _example(sources: Sources, example: Example) -> dict[str, Any]:
    code = sources.tree.text(example.path) or ""
    document: dict[str, Any] = {
        "example_id": example.tag,
        "title": example.title,
        "tags": [example.tag],
        "path": example.path,
        "primary_snippet_id": snippet_id(example.language, code) if code.strip() else "",
    }
    return document | ({"description": example.description} if example.description else {})


def _positioning(sources: Sources, ledger: Ledger, summary: str) -> dict[str, str]:
    """The product in a sentence: what its readme says it is, else its manifest, else a feature."""
    name = sources.subject.name
    told = [
        claim
        for claim in ledger.claims
        if claim.kind == "feature" and claim.text.lower().startswith(f"{name.lower()} ")
    ]
    what = [claim for claim in told if _says_what(claim, name)]
    summed = [ledger.find(summary)] if summary else []
    best = next(iter([*what, *summed, *told]), None)
    manifest = sources.manifest
    said = manifest.description.value if manifest and manifest.description and summary else ""
    plain = prose.sentences(said)[0].rstrip(".") if said.strip() else ""
    platform = _TITLES.get(sources.platform, sources.platform.capitalize())
    tagline = plain or (best.text.rstrip(".") if best else f"{name} for {platform}")
    found = {"tagline": tagline, "short_description": best.text if best else f"{tagline}."}
    return found | ({"claim_id": best.claim_id} if best else {})


def _says_what(claim: Claim, name: str) -> bool:
    words = claim.text.lower().removeprefix("`")
    return bool(re.match(rf"{re.escape(name.lower())}`? is (a|an|the) ", words))


def _surface(surface: Surface, told: Mapping[str, str]) -> dict[str, Any]:
    def entry(symbol: Symbol) -> dict[str, Any]:
        document: dict[str, Any] = {
            "name": symbol.name,
            "path": symbol.path,
            "line": symbol.line,
            "signature": symbol.signature,
            "summary": symbol.doc,
        }
        claim = told.get(symbol.name)
        return document | ({"claim_id": claim} if claim else {})

    return {
        "classes": [entry(each) for each in surface.symbols if each.kind == "class"],
        "functions": [entry(each) for each in surface.symbols if each.kind == "function"],
        "modules": [{"name": name, "path": path} for name, path in surface.modules],
    }


def _licence(licence: Licence | None, claim_id: str) -> dict[str, Any]:
    if licence is None:
        return {}
    found = {
        "spdx_id": licence.spdx,
        "name": licence.name,
        "file_path": licence.path,
        "claim_id": claim_id,
    }
    return {"license": {key: value for key, value in found.items() if value}}


def _evidence(
    sources: Sources, ledger: Ledger, contradictions: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "repo_url": sources.inventory["repo_url"],
        "repo_sha": sources.inventory["repo_sha"],
        "claims": [claim.as_evidence() for claim in ledger.claims],
        "contradictions": contradictions,
    }
