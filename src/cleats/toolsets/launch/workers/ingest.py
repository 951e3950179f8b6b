"""The workers of the inputs: clones and the inventory (W1), product facts (W2), code for the pages (W3)."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.git.client import COMMIT_ID_PATTERN, HardenedGit, clone_commit, find_remote_commit
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import detection, front_matter_contract
from cleats.toolsets.launch.snippets.catalogue import build_catalogue
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree, IngestionScope
from cleats.toolsets.launch.source.evidence import inventory
from cleats.toolsets.launch.source.evidence.excerpts import collect_excerpts
from cleats.toolsets.launch.source.evidence.facts import build_facts
from cleats.toolsets.launch.source.evidence.repository_sources import resolve_language


async def run_clone(job: WorkerJob) -> Mapping[str, Any]:
    """Clone `work/repo` and `work/site`, and write the facts that do not depend on the source.

    Raises:
        ToolError: as `clone_at`; the message names the field that is wrong.
    """
    env = job.settings.get("git_env", {})
    job.root.joinpath("work").mkdir(parents=True, exist_ok=True)
    source = await _clone_repository(job, env, "github_repo_url", "github_ref")
    site = await _clone_repository(job, env, "site_repo_url", "site_ref")
    workflows = {}
    if job.config.get("workflows_repo_url"):
        workflows = await _clone_repository(job, env, "workflows_repo_url", "workflows_ref")
    tree = CheckoutTree(job.site)
    profiles = job.settings.get("profiles", ())
    changed_config = detection.adapt_config(job.config, tree, profiles)
    config = {**job.config, **changed_config}
    kind = detection.get_site_kind(load_named_profile(config["profile"], profiles))
    context, kind_artifacts = kind.describe_site(tree)
    job.write(
        "resolved_refs.json",
        {"schema_version": "1.0", "repo": source, "site": site, **({"workflows": workflows} if workflows else {})},
    )
    job.write(
        "site_context.json",
        {
            "schema_version": "1.0",
            "site": {**site, "clone_path": "work/site"},
            **({"workflows": {**workflows, "clone_path": "work/workflows"}} if workflows else {}),
            **context,
        },
    )
    for name, document in kind_artifacts.items():
        job.write(name, document)
    contract = front_matter_contract.derive_contract(
        tree,
        find_section_roots(config),
        site["repo_url"],
        site["resolved_sha"],
        counts_pages_without=not kind.needs_front_matter,
    )
    job.write("frontmatter_contract.json", contract)
    return {
        **({"config": changed_config} if changed_config else {}),
        "repo_sha": source["resolved_sha"],
        "site_sha": site["resolved_sha"],
        "repo_url": source["repo_url"],
        "site_url": site["repo_url"],
    }


def find_section_roots(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder of each section's pages in the site, from the configuration."""
    layout = config.get("site_layout") or {}
    content = str(layout.get("content_root") or "content").strip("/")
    roots: dict[str, str] = {}
    for name, configured_root in (layout.get("subdomain_roots") or {}).items():
        root = str(configured_root).strip("/")
        is_below_content = root == content or root.startswith(f"{content}/")
        roots[name] = root if is_below_content else f"{content}/{root}".rstrip("/")
    return roots


async def _clone_repository(job: WorkerJob, env: Mapping[str, str], url_field: str, ref_field: str) -> dict[str, str]:
    url = str(job.config.get(url_field) or "")
    ref = str(job.config.get(ref_field) or "")
    if not url:
        raise _make_missing_field_error(url_field, "The run's configuration does not name a repository.")
    sha = ref if COMMIT_ID_PATTERN.fullmatch(ref) else ""
    if not sha:
        if ref_field == "github_ref":  # a run must read the same source every time
            raise _make_missing_field_error(ref_field, "It must be a full commit id.")
        sha = await find_remote_commit(url, env, ref)
    if not sha:
        raise _make_missing_field_error(ref_field, f"The repository has no {ref or 'commit'!r}.")
    target = {"github_ref": job.repo, "site_ref": job.site, "workflows_ref": job.site.with_name("workflows")}[ref_field]
    try:
        await clone_commit(url, sha, target, env, report_progress=job.report_progress)
    except ToolError as error:
        field = ref_field if error.code is ErrorCode.INVALID_INPUT else url_field
        error.details = {**(error.details or {}), "field": field}
        raise
    return {"repo_url": redact_url(url), "requested_ref": ref or "HEAD", "resolved_sha": sha}


def _make_missing_field_error(field: str, message: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_INPUT, f"{field}: {message}", details={"missing_fields": [field], "field": field}
    )


async def run_inventory(job: WorkerJob) -> Mapping[str, Any]:
    """Write the inventory.

    Raises:
        ToolError: INVALID_INPUT with reason REPO_EMPTY if there is no file to read.
    """
    all_paths = CheckoutTree(job.repo).paths
    if not all_paths:
        raise _make_empty_error("github_ref", "the source repository has no files at this commit")
    scope = IngestionScope.from_config(job.config)
    tree = CheckoutTree(job.repo, frozenset(filter(scope.includes, all_paths)) - await _list_ignored_paths(job))
    if not tree.paths:
        raise _make_empty_error("ingestion", "the run's ingestion settings exclude every file of the source repository")
    refs = job.read_json("resolved_refs.json")["repo"]
    inventory_document = inventory.take_inventory(tree, refs["repo_url"], refs["resolved_sha"], scope)
    job.write("repo_inventory.json", inventory_document)
    return {
        "files": len(inventory_document["paths"]),
        "platform_family": inventory_document["repo_profile"]["platform_family"],
        "phantom_paths": len(inventory_document["phantom_paths"]),
    }


def _make_empty_error(field: str, reason: str) -> ToolError:
    details = {"reason": "REPO_EMPTY", "field": field}
    return ToolError(ErrorCode.INVALID_INPUT, f"REPO_EMPTY: {reason}.", details=details)


async def run_facts(job: WorkerJob) -> Mapping[str, Any]:
    """Write the product facts and the evidence map, without a language model."""
    inventory_document = job.read_json("repo_inventory.json")
    tree = CheckoutTree(job.repo, frozenset(inventory_document["paths"]))
    product_facts, evidence_map = build_facts(tree, inventory_document, job.config)
    job.write("product_facts.json", product_facts)
    job.write("evidence_map.json", evidence_map)
    job.write("evidence_excerpts.json", collect_excerpts(tree, evidence_map))
    claims = evidence_map["claims"]
    return {
        "claims": len(claims),
        "facts": sum(claim["truth_status"] == "fact" for claim in claims),
        "contradictions": len(evidence_map["contradictions"]),
        "launch_tier_hint": "minimal" if len(claims) < 5 else "standard",
    }


async def run_snippets(job: WorkerJob) -> Mapping[str, Any]:
    """Write the catalogue of snippets; run its programs if the operator allows it."""
    inventory_document = job.read_json("repo_inventory.json")
    tree = CheckoutTree(job.repo, frozenset(inventory_document["paths"]))
    language = resolve_language(job.config, inventory_document)
    product_facts = job.read_json("product_facts.json")
    catalog = build_catalogue(tree, inventory_document, product_facts, language)
    outcomes: Mapping[str, int] = {}
    if "run_snippets" in job.settings:
        product: Mapping[str, Any] = next(iter(product_facts.get("distribution", ())), {})
        catalog, outcomes = await _run_programs(job, tree, catalog, language, product)
    job.write("snippet_catalog.json", catalog)
    valid_count = sum(snippet["validation"]["syntax_ok"] for snippet in catalog["snippets"])
    return {"snippets": len(catalog["snippets"]), "valid": valid_count, **outcomes}


async def _run_programs(
    job: WorkerJob, tree: CheckoutTree, catalog: Mapping[str, Any], language: str, product: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Run the programs of a catalogue, write their logs, and count how they ended."""
    from cleats.toolsets.launch.gates.secrets import redact_lines  # noqa: PLC0415 - off by default
    from cleats.toolsets.launch.site.programs import locate_program  # noqa: PLC0415
    from cleats.toolsets.launch.snippets.environments import EnvironmentBuilder  # noqa: PLC0415
    from cleats.toolsets.launch.snippets.runner import ProgramRunner  # noqa: PLC0415

    options = job.settings["run_snippets"]
    is_offline = bool(job.settings.get("offline") or job.config.get("offline_mode"))
    runner = ProgramRunner(
        tree=tree,
        commit=job.read_json("resolved_refs.json")["repo"]["resolved_sha"],
        language=language,
        product=product,
        builder=EnvironmentBuilder(Path(options["cache"]), options["pip_env"], is_offline),
        node=locate_program("node", job.settings),
        redact=redact_lines,
        report_progress=job.report_progress,
    )
    checked, logs = await runner.run(catalog)
    for name, text in logs.items():
        job.write(name, text)
    runs = [entry["run"]["outcome"] for entry in checked["snippets"] if "run" in entry]
    return checked, {f"programs_{outcome}": runs.count(outcome) for outcome in sorted(set(runs))}


async def _list_ignored_paths(job: WorkerJob) -> frozenset[str]:
    """Return committed files that `.gitignore` names; only the mode `strict` excludes them."""
    if job.config.get("ingestion", {}).get("gitignore_mode") != "strict":
        return frozenset()
    git = HardenedGit(job.settings.get("git_env", {}), job.repo)
    options = ("-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore")
    output = await git.run("", "ls-files", *options)
    return frozenset(os.fsdecode(path) for path in output.split(b"\0") if path)
