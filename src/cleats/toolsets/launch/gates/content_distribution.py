"""The planned pages must all exist and fill their roles: quotas, contents, coverage, topics."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.page_text import end_with_newline, index_snippets, remove_code_blocks
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.source.text.code_blocks import normalize_code


def check_content_distribution(site: LaunchSite) -> Iterator[GateMessage]:
    files_by_path = {file.path: file for file in site.files}
    for entry in site.plan:
        file = files_by_path.get(entry["output_path"])
        if file is None:
            yield MISSING_PAGE.draft(f"the planned page {entry['slug']!r} is missing", entry["output_path"])
            continue
        is_edited = file.path in site.edited_drafts  # what people removed from a page stays removed
        if not is_edited:
            yield from _check_claim_quota(file)
            yield from _check_promised_content(site, file)
        if entry.get("page_role") == "toc" and not is_edited:
            for fence in file.fences:
                yield CONTENTS_CODE.draft("a table of contents contains code", file.path, fence.line)
            for child in _list_missing_children(site, file):
                yield MISSING_CHILD.draft(f"the table of contents does not list {child['title']!r}", file.path)
        if not is_edited:
            yield from _check_workflow_coverage(site, file)
        yield from _check_forbidden_topics(site, file)
    yield from _check_limitations(site)
    yield from _check_sections(site)


def _check_limitations(site: LaunchSite) -> Iterator[IssueDraft]:
    stated_ids = {claim.claim_id for file in site.files for claim in file.claims}
    edited_entries = (entry for entry in site.plan if entry["output_path"] in site.edited_drafts)
    stated_ids |= {claim_id for entry in edited_entries for claim_id in entry["required_claim_ids"]}
    for claim_id in site.facts.get("claim_groups", {}).get("limitations", ()):
        if claim_id not in stated_ids:
            yield MISSING_LIMITATION.draft(f"no page mentions the limitation {claim_id}")


def _read_strategy(file: PageFile) -> Mapping[str, Any]:
    strategy: Mapping[str, Any] = file.plan.get("content_strategy", {})
    return strategy


def _check_claim_quota(file: PageFile) -> Iterator[IssueDraft]:
    quota = _read_strategy(file).get("claim_quota", {})
    count = len({claim.claim_id for claim in file.claims})
    min_claims, max_claims = quota.get("min", 0), quota.get("max")
    if count < min_claims:
        yield CLAIM_QUOTA.draft(f"the page makes {count} claims, its role needs {min_claims}", file.path)
    if max_claims is not None and count > max_claims:
        yield CLAIM_QUOTA.draft(f"the page makes {count} claims, its role allows {max_claims}", file.path)


def _check_promised_content(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    stated_ids = {claim.claim_id for claim in file.claims}
    for claim_id in file.plan["required_claim_ids"]:
        if claim_id not in stated_ids:
            yield MISSING_CLAIM.draft(f"the page does not mention the claim {claim_id}", file.path)
    catalogue = index_snippets(site)
    snippets = [catalogue.get(normalize_code(fence.code), {}) for fence in file.fences]
    tags = {tag for snippet in snippets for tag in snippet.get("tags", ())}
    for tag in file.plan["required_snippet_tags"]:
        if tag not in tags:
            yield MISSING_SNIPPET.draft(f"the page shows no code for {tag!r}", file.path)


def _list_missing_children(site: LaunchSite, file: PageFile) -> list[Mapping[str, Any]]:
    linked_paths = {site.resolve_link(file, link.target).rstrip("/") for link in file.links}
    entries: dict[str, Mapping[str, Any]] = {}
    for entry in site.plan:
        for name in (entry["slug"], entry["output_path"], entry["url_path"]):
            if entry["section"] == file.section:
                entries.setdefault(name, entry)
    children = [entries[name] for name in _read_strategy(file).get("child_pages", ()) if name in entries]
    return [child for child in children if child["url_path"].rstrip("/") not in linked_paths]


def _check_workflow_coverage(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    if _read_strategy(file).get("scenario_coverage") != "all":
        return
    # The page for beginners and the page of a task describe what the guide then leaves out.
    section_files = [other for other in site.files if other.section == file.section]
    headings = " | ".join(heading.text.casefold() for other in section_files for heading in other.headings)
    stated_ids = {claim.claim_id for other in section_files for claim in other.claims}
    catalogue = index_snippets(site)
    snippets = (catalogue.get(normalize_code(fence.code), {}) for other in section_files for fence in other.fences)
    shown_tags = {tag for snippet in snippets for tag in snippet.get("tags", ())}
    omitted_titles = {entry["heading"] for entry in file.plan.get("omitted_sections", ())}
    for workflow in site.facts.get("workflows", ()):
        if workflow["title"] in omitted_titles:
            continue
        names = (workflow["title"], workflow.get("name", ""))
        has_heading = any(name and name.casefold() in headings for name in names)
        is_shown = has_heading or bool(shown_tags & set(workflow.get("snippet_tags", ())))
        if not is_shown and not stated_ids & set(workflow.get("claim_ids", ())):
            yield MISSING_WORKFLOW.draft(f"the guide does not describe the workflow {workflow['title']!r}", file.path)


def _check_forbidden_topics(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    topics = {
        *site.profile.brand.forbidden_topics,
        *file.plan.get("forbidden_topics", ()),
        *_read_strategy(file).get("forbidden_topics", ()),
    }
    for topic in sorted(topics):
        # A topic is a name in the plan (`api_details`) and words on a page.
        topic_pattern = re.compile(r"\b" + re.escape(topic).replace("_", r"[\s_-]") + r"\b", re.IGNORECASE)
        for heading in file.headings:
            if topic_pattern.search(heading.text):
                yield FORBIDDEN_TOPIC.draft(f"the page is not the place for {topic!r}", file.path, heading.line)


def _check_sections(site: LaunchSite) -> Iterator[IssueDraft]:
    page_counts = Counter(entry["section"] for entry in site.plan)
    planned = {(entry["section"], entry["slug"].rsplit("/", 1)[-1]) for entry in site.plan}
    omitted = site.load_document("page_plan.json").get("omitted_pages", ())
    planned |= {(entry["section"], entry["slug"]) for entry in omitted}
    for name in site.config.get("required_sections", ()):
        section = site.profile.get_section(name)
        omitted_count = sum(entry["section"] == name for entry in omitted)
        if page_counts[name] + omitted_count < section.minimum:
            yield SECTION_SIZE.draft(f"the section {name} has {page_counts[name]} pages, it needs {section.minimum}")
        if page_counts[name] > section.maximum * max(1, len(site.config.get("locales", ()))):
            yield SECTION_SIZE.draft(f"the section {name} has {page_counts[name]} pages, {section.maximum} are allowed")
        for page in section.pages:
            if (name, page.slug) not in planned:
                yield MISSING_MANDATORY.draft(f"the section {name} has no page {page.slug!r}")


def fix_missing_page(case: FixCase) -> FixResult:
    """Restore a planned page from its draft."""
    return None if case.existing_text is not None or case.draft is None else end_with_newline(case.draft)


def fix_missing_children(case: FixCase) -> FixResult:
    link_page = case.site.kind.link_page
    children = _list_missing_children(case.site, case.file)
    items = [f"- [{child['title']}]({link_page(case.file.plan, child)})" for child in children]
    if not items or case.existing_text is None:
        return None
    lines = case.text.rstrip("\n").split("\n")
    item_lines = [
        number for number, line in case.file.prose if line.lstrip().startswith(("- [", "* [")) and number <= len(lines)
    ]
    if item_lines:
        return "\n".join([*lines[: item_lines[-1]], *items, *lines[item_lines[-1] :]]) + "\n"
    return "\n".join([*lines, "", "## Contents", "", *items]) + "\n"


MISSING_PAGE = IssueKind("GATE_CONTENT_PAGE_MISSING", "blocker", "Restore the page.", fix_missing_page)
CLAIM_QUOTA = IssueKind("GATE_CONTENT_QUOTA", "warn", "Add or remove claims, or plan another role for the page.")
MISSING_CLAIM = IssueKind("GATE_CONTENT_CLAIM", "warn", "Add the planned statement with its claim marker.")
MISSING_SNIPPET = IssueKind("GATE_CONTENT_SNIPPET", "warn", "Show code that has the tag.")
MISSING_LIMITATION = IssueKind("GATE_CONTENT_LIMITATION", "warn", "Mention the limitation with its claim marker.")
CONTENTS_CODE = IssueKind("GATE_CONTENT_TOC_CODE", "error", "Move the code to another page.", remove_code_blocks)
MISSING_CHILD = IssueKind("GATE_CONTENT_TOC_CHILD", "error", "List the page.", fix_missing_children)
MISSING_WORKFLOW = IssueKind("GATE_CONTENT_COVERAGE", "warn", "Add a section about the workflow.")
FORBIDDEN_TOPIC = IssueKind("GATE_CONTENT_TOPIC", "warn", "Move the section to a page that may have it.")
SECTION_SIZE = IssueKind("GATE_CONTENT_SECTION", "error", "Plan more or fewer pages for the section.")
MISSING_MANDATORY = IssueKind("GATE_CONTENT_MANDATORY", "blocker", "Plan the page; the profile asks for it.")

GATE = Gate("content_distribution", __doc__, check_content_distribution, local_seconds=30.0, strict_seconds=60.0)
