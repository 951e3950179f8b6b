"""Product facts and the evidence for them, collected from the whole repository."""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import document_claims, document_sections
from cleats.toolsets.launch.source.evidence.command_line import claim_commands
from cleats.toolsets.launch.source.evidence.document_claims import Workflow
from cleats.toolsets.launch.source.evidence.install_claims import claim_install
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger, ContradictionChecker
from cleats.toolsets.launch.source.evidence.package_claims import PackageClaimWriter, find_licence
from cleats.toolsets.launch.source.evidence.repository_sources import RepositorySources
from cleats.toolsets.launch.source.manifests.model import PackageManifest
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.code_blocks import compute_snippet_id
from cleats.toolsets.launch.source.text.documents import Block

_PLATFORM_TITLES: Final = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "nodejs": "Node.js",
    "dotnet": ".NET",
    "cpp": "C++",
    "php": "PHP",
}
_BASIC_USAGE_TAG: Final = "basic-usage"
_QUICKSTART_TAG: Final = "quickstart"
_OPENING_VERBS_PATTERN: Final = "(is|provides|offers|includes|helps|reads|writes|converts|parses|renders|works)"
"""Verbs of a sentence that can open a page about the product."""


def build_facts(
    tree: CheckoutTree, inventory: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the repository; return its product facts and its evidence map."""
    sources = RepositorySources(tree, inventory, config)
    subject = sources.subject
    ledger = ClaimLedger(subject.name)
    licence, licence_places = find_licence(tree, sources.manifest)
    facts = _describe_product(sources, ledger)
    contradictions: list[dict[str, str]] = []
    api_claim_ids: dict[str, str] = {}
    found_formats: list[dict[str, str]] = []
    licence_claim = summary = runtime_claim = dependency_claim = ""
    if sources.manifest and sources.distribution:
        claim_writer = PackageClaimWriter(ledger, subject.name, sources.manifest)
        summary = claim_writer.claim_description(subject)
        all_blocks = chain.from_iterable(sources.blocks.values())
        install, contradictions = claim_install(
            ledger, subject.name, sources.manifest, sources.distribution, all_blocks
        )
        facts["distribution"] = [sources.distribution.as_json(install)]
        claim_writer.claim_imports(list(sources.distribution.imports))
        module_paths = [module.path for module in sources.distribution.imports]
        facts["commands"] = claim_commands(ledger, subject.name, tree, sources.manifest.commands, module_paths)
        runtime_claim = claim_writer.claim_runtime()
        licence_claim = claim_writer.claim_licence(licence, licence_places)
        dependency_claim = claim_writer.claim_dependencies()
        claim_writer.claim_version()
        facts |= _describe_requirements(sources.manifest)
    limitation_texts: list[str] = []
    checker = ContradictionChecker(ledger, sources.manifest, runtime_claim, dependency_claim, contradictions)
    for document_blocks in sources.blocks.values():
        document_claims.claim_features(ledger, subject, document_blocks, checker)
        limitation_texts += document_claims.claim_limitations(ledger, subject, document_blocks)
    if sources.manifest and sources.distribution:
        if sources.manifest.ecosystem == "pip":
            packages = [item.path.rpartition("/")[0] for item in sources.distribution.imports]
            found_formats = claim_writer.claim_formats(tree, sources.surface, [item for item in packages if item])
        api_claim_ids = claim_writer.claim_api(sources.surface)
    examples, workflows = _collect_workflows(sources, ledger)
    sections = document_sections.read_sections(
        ledger, subject, sources.task_documents, sources.blocks.keys() | sources.guides.keys()
    )
    facts |= {
        "positioning": _describe_positioning(sources, ledger, summary),
        "claims": [claim.as_fact() for claim in ledger.claims],
        "claim_groups": ledger.group_claim_ids(),
        "supported_formats": found_formats,
        "workflows": workflows,
        "document_sections": [section.as_json() for section in sections],
        "api_surface_summary": _describe_surface(sources.surface, api_claim_ids),
        "example_inventory": examples,
        "limitations": limitation_texts,
    }
    if licence is not None:
        fields = {"spdx_id": licence.spdx, "name": licence.name, "file_path": licence.path, "claim_id": licence_claim}
        facts["license"] = {key: value for key, value in fields.items() if value}
    evidence_map = {
        "schema_version": "1.0",
        "repo_url": inventory["repo_url"],
        "repo_sha": inventory["repo_sha"],
        "claims": [claim.as_evidence() for claim in ledger.claims],
        "contradictions": contradictions,
    }
    return facts, evidence_map


def _describe_product(sources: RepositorySources, ledger: ClaimLedger) -> dict[str, Any]:
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
            "public_entrypoints": [module.path for module in imports],
            "package_names": [module.value for module in imports],
        },
    }


def _describe_requirements(manifest: PackageManifest) -> dict[str, Any]:
    systems = [
        entry.value.rsplit("::", 1)[-1].strip()
        for entry in manifest.classifiers
        if entry.value.startswith("Operating System ::")
    ]
    return {
        "runtime_requirements": {
            "language_versions": [manifest.requires.value] if manifest.requires else [],
            "os": systems,
        },
        "dependencies": {
            "runtime": [entry.value for entry in manifest.dependencies or ()],
            "optional": {
                extra: [entry.value for entry in dependencies] for extra, dependencies in manifest.optional.items()
            },
            "dev": [entry.value for entry in manifest.dev],
        },
        **({"version": manifest.version.value} if manifest.version else {}),
    }


def _collect_workflows(
    sources: RepositorySources, ledger: ClaimLedger
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    name = sources.subject.name
    examples = document_claims.claim_examples(
        ledger, name, sources.tree, list(sources.inventory["example_paths"]), sources.language
    )
    document_workflows: dict[str, Workflow] = {}
    for document_blocks in (*sources.blocks.values(), *sources.guides.values()):
        document_claims.claim_code_sections(
            ledger, sources.subject, document_blocks, sources.language, document_workflows
        )
    if not examples and not document_workflows and (workflow := claim_first_code(ledger, sources)):
        document_workflows[workflow.tag] = workflow
    example_workflows = {item.tag: item for item in examples}
    # Examples come first, and replace sections with the same tag.
    workflows = [
        {
            "workflow_tag": tag,
            "title": item.title,
            "claim_ids": [item.claim_id],
            "snippet_tags": [_QUICKSTART_TAG if tag == _BASIC_USAGE_TAG else tag],
            **({"description": item.description} if item.description else {}),
        }
        for tag, item in {**example_workflows, **document_workflows, **example_workflows}.items()
    ]
    return [_describe_example(sources, item) for item in examples], workflows


def runs_command(block: Block, commands: tuple[str, ...]) -> bool:
    """Return whether a shell code block runs one of the product's commands."""
    starts = tuple(f"{command} " for command in commands)
    lines = [line.strip().removeprefix("$ ") for line in block.text.splitlines()]
    return document_claims.detect_block_language(block) == "shell" and any(
        line.startswith(starts) for line in lines if starts
    )


def claim_first_code(ledger: ClaimLedger, sources: RepositorySources) -> Workflow | None:
    """Claim the first code of the documents, for a product that shows none under a heading."""
    commands = sources.distribution.programs if sources.distribution else ()
    for block in chain.from_iterable(sources.blocks.values()):
        is_usable = is_compatible_language(document_claims.detect_block_language(block), sources.language)
        if block.kind == "code" and (is_usable or runs_command(block, commands)):
            text = f"The file `{block.path}` has a code example for {sources.subject.name}."
            citation = Citation.of_block(block, "readme_technical")
            claim = ledger.add(text, "workflow", [citation], group="workflow_claims", is_fact=True)
            return Workflow(_BASIC_USAGE_TAG, "Basic usage", claim, block.path)
    return None


def _describe_example(sources: RepositorySources, example: Workflow) -> dict[str, Any]:
    code = sources.tree.read_text(example.path) or ""
    return {
        "example_id": example.tag,
        "title": example.title,
        "tags": [example.tag],
        "path": example.path,
        "primary_snippet_id": compute_snippet_id(sources.language, code) if code.strip() else "",
        **({"description": example.description} if example.description else {}),
    }


def _describe_positioning(sources: RepositorySources, ledger: ClaimLedger, summary: str) -> dict[str, str]:
    """Describe the product in a sentence from its readme, else its manifest, else a feature."""
    name = sources.subject.name
    feature_claims = [
        claim
        for claim in ledger.claims
        if claim.kind == "feature"
        and re.match(rf"{re.escape(name)} {_OPENING_VERBS_PATTERN}\b", claim.text, re.IGNORECASE)
    ]
    definition_pattern = rf"`?{re.escape(name)}`? is (a|an|the) "
    definitions = [claim for claim in feature_claims if re.match(definition_pattern, claim.text, re.IGNORECASE)]
    summary_claims = [ledger.find(summary)] if summary else []
    best = next(iter([*definitions, *summary_claims, *feature_claims]), None)
    manifest = sources.manifest
    description = manifest.description.value if manifest and manifest.description and summary else ""
    first_sentence = english.split_sentences(description)[0].rstrip(".") if description.strip() else ""
    platform = _PLATFORM_TITLES.get(sources.platform, sources.platform.capitalize())
    tagline = first_sentence or (best.text.rstrip(".") if best else f"{name} for {platform}")
    positioning = {"tagline": tagline, "short_description": best.text if best else f"{tagline}."}
    return positioning | ({"claim_id": best.claim_id} if best else {})


def _describe_surface(surface: ApiSurface, claim_ids: Mapping[str, str]) -> dict[str, Any]:
    symbols: dict[str, list[dict[str, Any]]] = {"class": [], "function": [], "constant": []}
    for symbol in surface.symbols:
        symbols[symbol.kind].append(_describe_symbol(symbol, claim_ids))
    modules = [{"name": name, "path": path} for name, path in surface.modules]
    return {
        "classes": symbols["class"],
        "functions": symbols["function"],
        "constants": symbols["constant"],
        "modules": modules,
    }


def _describe_symbol(symbol: Symbol, claim_ids: Mapping[str, str]) -> dict[str, Any]:
    document = {name: getattr(symbol, name) for name in ("name", "kind", "path", "line", "signature")}
    note_ids = [claim_ids[key] for note in symbol.notes if (key := f"{symbol.name}:{note.line}") in claim_ids]
    optional = {
        "claim_id": claim_ids.get(symbol.name, ""),
        "label": symbol.label,
        "deprecated": symbol.deprecated,
        "note_claim_ids": note_ids,
        "members": [_describe_symbol(member, claim_ids) for member in symbol.members],
    }
    return document | {"summary": symbol.doc} | {key: value for key, value in optional.items() if value}
