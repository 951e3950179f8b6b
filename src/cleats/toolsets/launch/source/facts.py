"""Product facts and the evidence for them, from everything that the repository says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.launch.snippets.model import snippet_id
from cleats.toolsets.launch.source import formats, prose
from cleats.toolsets.launch.source.api.model import Surface, Symbol
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.claims import Citation, Claim, Ledger
from cleats.toolsets.launch.source.contradictions import Referee
from cleats.toolsets.launch.source.document_claims import (
    Workflow,
    features,
    is_kin,
    limitations,
    shown,
    spoken_in,
)
from cleats.toolsets.launch.source.examples import Example, claim_examples
from cleats.toolsets.launch.source.install import confirm
from cleats.toolsets.launch.source.licences import Licence
from cleats.toolsets.launch.source.manifests.model import Manifest
from cleats.toolsets.launch.source.package_claims import Speaker, licence_of
from cleats.toolsets.launch.source.sources import Sources
from cleats.toolsets.launch.source.tree import Tree

_TITLES: Final = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "nodejs": "Node.js",
    "dotnet": ".NET",
    "cpp": "C++",
    "php": "PHP",
}
_BASIC: Final = "basic-usage"
_QUICKSTART: Final = "quickstart"
_TELLING: Final = "(is|provides|offers|includes|helps|reads|writes|converts|parses|renders|works)"
"""Verbs of a sentence that can open a page about the product."""


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
    licence_claim = summary = runtime = needs = ""
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
        needs = speaker.dependencies()
        speaker.version()
        facts |= _requirements(sources.manifest)
    limits: list[str] = []
    referee = Referee(ledger, sources.manifest, runtime, needs, contradictions)
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
    for found in (*sources.blocks.values(), *sources.guides.values()):
        shown(ledger, sources.subject, found, sources.language, parts)
    if not examples and not parts and (part := any_code(ledger, sources)):
        parts[part.tag] = part
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
            "snippet_tags": [_QUICKSTART if each.tag == _BASIC else each.tag],
            **({"description": each.description} if each.description else {}),
        }
        for each in told
    ]
    return inventory, workflows


def runs(block: Block, commands: tuple[str, ...]) -> bool:
    """Whether a piece of code for the shell runs one of the product's commands."""
    starts = tuple(f"{command} " for command in commands)
    lines = [line.strip().removeprefix("$ ") for line in block.text.splitlines()]
    return spoken_in(block) == "shell" and any(line.startswith(starts) for line in lines if starts)


def any_code(ledger: Ledger, sources: Sources) -> Workflow | None:
    """The first code of the documents, for a product that shows nothing under a heading."""
    commands = sources.distribution.programs if sources.distribution else ()
    for found in sources.blocks.values():
        for block in found:
            own = is_kin(spoken_in(block), sources.language) or runs(block, commands)
            if block.kind == "code" and own:
                text = f"The file `{block.path}` has a code example for {sources.subject.name}."
                place = Citation(block.path, block.line, block.end, "readme_technical")
                claim = ledger.add(text, "workflow", [place], group="workflow_claims", is_fact=True)
                return Workflow(_BASIC, "Basic usage", claim, block.path)
    return None


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
        if claim.kind == "feature"
        and re.match(rf"{re.escape(name)} {_TELLING}\b", claim.text, re.IGNORECASE)
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
