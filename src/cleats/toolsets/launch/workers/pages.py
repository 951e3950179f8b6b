"""The workers that plan the pages and their paths (W4), and draft those of one section (W5)."""

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.drafting.editor import PageEditor, create_editor
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page import WrittenPage, build_front_matter, find_template, write_page
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.planning.page_candidates import list_optional_pages
from cleats.toolsets.launch.planning.page_plan import PagePlanner
from cleats.toolsets.launch.planning.planned_site import PlannedSite, add_neighbours
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site.claim_markers import index_passed_programs, refresh_evidence_list
from cleats.toolsets.launch.site.detection import get_site_kind


async def run_plan(job: WorkerJob) -> Mapping[str, Any]:
    """Write the page plan.

    Raises:
        ToolError: as `PagePlanner.plan`; ALLOWED_PATHS_VIOLATION for a page outside the allowed paths.
    """
    planner = PagePlanner(
        site=PlannedSite(job.site, load_profile(job), job.config),
        material=load_material(job),
        inventory=job.read_json("repo_inventory.json"),
        date=await _read_commit_date(job),
    )
    plan = planner.build_plan()
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    for page in plan["pages"]:
        fence.check_path(page["output_path"])
    job.write("page_plan.json", plan)
    return {"pages": len(plan["pages"]), "launch_tier": plan["launch_tier"]}


def load_profile(job: WorkerJob) -> Profile:
    """Load the profile of a run, with the site layout of its configuration."""
    profile = load_named_profile(job.config["profile"], job.settings.get("profiles", ()))
    return profile.with_site_layout(job.config["site_layout"])


def load_material(job: WorkerJob) -> LaunchMaterial:
    """Load the results of the earlier workers."""
    return LaunchMaterial(
        facts=job.read_json("product_facts.json"),
        evidence=job.read_json("evidence_map.json"),
        catalogue=job.read_json("snippet_catalog.json"),
        config=job.config,
        forbidden_topics=load_profile(job).brand.forbidden_topics,
    )


async def _read_commit_date(job: WorkerJob) -> dt.date:
    """Return the date of the source's commit: the only date that is the same in every run of it."""
    git = HardenedGit(job.settings.get("git_env", {}), job.repo)
    sha = str(job.config["github_ref"])
    output = await git.run("", "show", "--no-patch", "--format=%cs", sha)
    return dt.date.fromisoformat(output.decode().strip())


async def run_draft(job: WorkerJob) -> Mapping[str, Any]:
    """Write each planned page of the section, and a manifest of them.

    Raises:
        ToolError: a model that the run requires cannot be used; retryable if it may be available later.
    """
    section, kind = job.scope, get_site_kind(load_profile(job))
    plan = job.read_json("page_plan.json")
    contract = job.read_json("frontmatter_contract.json")["sections"].get(section, {})
    entries = [page for page in plan["pages"] if page["section"] == section]
    manifest_pages: list[dict[str, Any]] = []
    drafts = _write_pages(job, entries, plan["pages"])
    claims = {claim["claim_id"]: claim for claim in job.read_json("evidence_map.json")["claims"]}
    passed_programs = index_passed_programs(job.read_json("snippet_catalog.json"))
    page_editor = create_editor(job)
    if page_editor is not None:
        await _reword_pages(page_editor, drafts)
        job.write(f"drafts/{section}/model_calls.json", page_editor.as_json(section))
    for number, entry in enumerate(entries, start=1):
        job.report_progress(f"Writing {entry['output_path']}", number, len(entries))
        written = drafts[entry["output_path"]]
        front = build_front_matter(_describe_page(job, entry), written.front, contract)
        if not kind.orders_by_weight and "weight" not in contract.get("required_keys", ()):
            front.pop("weight", None)
        body = refresh_evidence_list(written.body, claims, str(job.config["github_ref"]), passed_programs)
        title = f"# {entry['title']}\n\n" if kind.has_title_headings else ""
        text = front_matter.render_page(front, f"{title}{body.lstrip()}" if title else body)
        name = f"drafts/{section}/{entry['output_path']}"
        job.write(name, text)
        prompt_hash = page_editor.find_accepted_prompt(entry["output_path"]) if page_editor else ""
        manifest_pages.append(_make_manifest_entry(entry, name, text, written, prompt_hash))
    job.write(
        f"drafts/{section}/draft_manifest.json", {"schema_version": "1.0", "section": section, "pages": manifest_pages}
    )
    return {"section": section, "pages": len(manifest_pages)}


async def _reword_pages(page_editor: PageEditor, drafts: dict[str, WrittenPage]) -> None:
    """Reword all pages, several at a time; the first failure ends the step.

    Earlier answers are kept, so the next attempt asks only for the remaining pages.
    """
    failures: list[ToolError] = []

    async def reword_page(path: str, written: WrittenPage) -> None:
        try:
            drafts[path] = await page_editor.reword_page(path, written)
        except ToolError as error:
            failures.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for path, written in list(drafts.items()):
            group.start_soon(reword_page, path, written)
    if failures:
        raise failures[0]


def _write_pages(
    job: WorkerJob, entries: Sequence[Mapping[str, Any]], plan: Sequence[Mapping[str, Any]]
) -> dict[str, WrittenPage]:
    """Write the pages of one section as planned; return them by path."""
    material = load_material(job)
    profile = load_profile(job)
    templates, kind = profile.templates_folder, get_site_kind(profile)
    candidates = list_optional_pages(job.scope, material)
    subjects = {candidate.subject.key: candidate.subject for candidate in candidates if candidate.subject}
    written_pages: dict[str, WrittenPage] = {}
    for entry in entries:
        template = find_template(
            *(entry["section"], entry["slug"], entry["page_role"]),
            folder=templates,
            locale=entry["token_mappings"]["LOCALE"],
            variant=entry["template_variant"],
        )
        if template is None:
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"The template {entry['template_path']} was removed after the plan was made.",
                details={"error_code": "SECTION_WRITER_MISSING_INPUT"},
            )
        context = PageContext(
            material=material,
            subject=subjects.get(entry["token_mappings"].get("SUBJECT", "")),
            tier=entry["template_variant"],
            max_lines=job.config["budgets"]["max_lines_per_file"],
        )
        written_pages[entry["output_path"]] = write_page(template, add_neighbours(kind, context, entry, plan))
    return written_pages


def _describe_page(job: WorkerJob, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a planned page that its front matter may use."""
    tokens = entry["token_mappings"]
    return {
        "title": entry["title"],
        "purpose": entry["purpose"],
        "url_path": entry["url_path"],
        "weight": int(tokens["WEIGHT"]),
        "date": tokens["DATE"],
        "locale": tokens["LOCALE"],
        "family": job.config["family"],
        "platform": job.config["target_platform"],
        "keywords": entry["seo_keywords"],
    }


def _make_manifest_entry(
    entry: Mapping[str, Any], name: str, text: str, written: WrittenPage, prompt_hash: str
) -> dict[str, Any]:
    return {
        "slug": entry["slug"],
        "output_path": entry["output_path"],
        "title": entry["title"],
        "artifact": name,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "writer": "model" if prompt_hash else "template",
        **({"prompt_hash": prompt_hash} if prompt_hash else {}),
        "headings": list(written.headings),
        "claim_ids": list(written.claim_ids),
        "snippet_ids": list(written.snippet_ids),
    }
