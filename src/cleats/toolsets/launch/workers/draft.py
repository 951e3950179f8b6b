"""The pages of one section, written from the facts (W5). The scope of the step is the section."""

import hashlib
from collections.abc import Mapping
from typing import Any

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import pages
from cleats.toolsets.launch.drafting import templates
from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.front import front_matter
from cleats.toolsets.launch.drafting.page import Written, write
from cleats.toolsets.launch.drafting.writer import Editor, editor
from cleats.toolsets.launch.planning.candidates import optional
from cleats.toolsets.launch.planning.plan import contextual
from cleats.toolsets.launch.workers.job import Job
from cleats.toolsets.launch.workers.plan import material, profile


async def run(job: Job) -> Mapping[str, Any]:
    """Write each planned page of the section, and a manifest of them.

    Raises:
        ToolError: a model that the run wants cannot be used; retryable where it may be back later.
    """
    section = job.scope
    plan = job.json("page_plan.json")
    contract = job.json("frontmatter_contract.json")["sections"].get(section, {})
    entries = [page for page in plan["pages"] if page["section"] == section]
    listed: list[dict[str, Any]] = []
    bench = _Bench(job, plan["pages"])
    drafts = {entry["output_path"]: bench.written(entry) for entry in entries}
    words = editor(job)
    if words is not None:
        await _reword(words, drafts)
        job.write(f"drafts/{section}/model_calls.json", words.as_json(section))
    for number, entry in enumerate(entries, start=1):
        job.tell(f"Writing {entry['output_path']}", number, len(entries))
        written = drafts[entry["output_path"]]
        front = front_matter(_told(job, entry), written.front, contract)
        text = pages.render(front, written.body)
        name = f"drafts/{section}/{entry['output_path']}"
        job.write(name, text)
        prompt_hash = words.took(entry["output_path"]) if words else ""
        listed.append(_listing(entry, name, text, written, prompt_hash))
    job.write(
        f"drafts/{section}/draft_manifest.json",
        {"schema_version": "1.0", "section": section, "pages": listed},
    )
    return {"section": section, "pages": len(listed)}


async def _reword(words: Editor, drafts: dict[str, Written]) -> None:
    """Have every page reworded, several at a time; the first failure ends it.

    Answers that came before it are kept, so the next attempt asks only for the rest.
    """
    failures: list[ToolError] = []

    async def one(path: str, written: Written) -> None:
        try:
            drafts[path] = await words.reworded(path, written)
        except ToolError as error:
            failures.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for path, written in list(drafts.items()):
            group.start_soon(one, path, written)
    if failures:
        raise failures[0]


class _Bench:
    """What every page of the section is written with."""

    def __init__(self, job: Job, entries: list[Mapping[str, Any]]) -> None:
        self._job = job
        self._entries = entries
        self._material = material(job)
        self._templates = profile(job).templates
        found = optional(job.scope, self._material)
        self._subjects = {each.subject.key: each.subject for each in found if each.subject}

    def written(self, entry: Mapping[str, Any]) -> Written:
        """Write one page as it was planned."""
        template = templates.find(
            entry["section"],
            entry["slug"],
            entry["page_role"],
            folder=self._templates,
            locale=entry["token_mappings"]["LOCALE"],
            variant=entry["template_variant"],
        )
        if template is None:
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"The template {entry['template_path']} is gone since the plan was made.",
                details={"error_code": "SECTION_WRITER_MISSING_INPUT"},
            )
        context = Context(
            material=self._material,
            subject=self._subjects.get(entry["token_mappings"].get("SUBJECT", "")),
            tier=entry["template_variant"],
            max_lines=self._job.config["budgets"]["max_lines_per_file"],
        )
        return write(template, contextual(context, entry, self._entries))


def _told(job: Job, entry: Mapping[str, Any]) -> dict[str, Any]:
    """A planned page as its front matter may speak of it."""
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


def _listing(
    entry: Mapping[str, Any], name: str, text: str, written: Written, prompt_hash: str
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
