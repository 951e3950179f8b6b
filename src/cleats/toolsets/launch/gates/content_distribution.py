"""The planned pages must all exist and fill their roles: quotas, contents, coverage, topics."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from cleats.toolsets.launch.gates.model import (
    Gate,
    GateMessage,
    IssueDraft,
    LaunchSite,
    PageFile,
    make_blocker,
    make_error,
    make_warning,
)
from cleats.toolsets.launch.gates.page_text import index_snippets, normalise_code


def check_content_distribution(site: LaunchSite) -> Iterator[GateMessage]:
    files_by_path = {file.path: file for file in site.files}
    for entry in site.plan:
        file = files_by_path.get(entry["output_path"])
        if file is None:
            message = f"the planned page {entry['slug']!r} is missing"
            yield make_blocker("GATE_CONTENT_PAGE_MISSING", message, entry["output_path"])
            continue
        yield from _check_claim_quota(file)
        yield from _check_promised_content(site, file)
        yield from _check_table_of_contents(site, file)
        yield from _check_workflow_coverage(site, file)
        yield from _check_forbidden_topics(site, file)
    yield from _check_limitations(site)
    yield from _check_sections(site)


def _read_strategy(file: PageFile) -> Mapping[str, Any]:
    strategy: Mapping[str, Any] = file.plan.get("content_strategy", {})
    return strategy


def _check_claim_quota(file: PageFile) -> Iterator[IssueDraft]:
    quota = _read_strategy(file).get("claim_quota", {})
    count = len({claim.claim_id for claim in file.claims})
    min_claims, max_claims = quota.get("min", 0), quota.get("max")
    if count < min_claims:
        message = f"the page makes {count} claims, its role needs {min_claims}"
        yield make_warning("GATE_CONTENT_QUOTA", message, file.path)
    if max_claims is not None and count > max_claims:
        message = f"the page makes {count} claims, its role allows {max_claims}"
        yield make_warning("GATE_CONTENT_QUOTA", message, file.path)


def _check_promised_content(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    """Check that a page makes the claims and shows the snippets that its plan requires."""
    stated_ids = {claim.claim_id for claim in file.claims}
    for claim_id in file.plan["required_claim_ids"]:
        if claim_id not in stated_ids:
            message = f"the page leaves out the claim {claim_id}"
            yield make_warning("GATE_CONTENT_CLAIM", message, file.path)
    snippets_by_code = index_snippets(site)
    tags = {
        tag for fence in file.fences for tag in snippets_by_code.get(normalise_code(fence.code), {}).get("tags", ())
    }
    for tag in file.plan["required_snippet_tags"]:
        if tag not in tags:
            message = f"the page shows no code for {tag!r}"
            yield make_warning("GATE_CONTENT_SNIPPET", message, file.path)


def _check_limitations(site: LaunchSite) -> Iterator[IssueDraft]:
    """Check that each known limitation of the product is stated on some page."""
    stated_ids = {claim.claim_id for file in site.files for claim in file.claims}
    for claim_id in site.facts.get("claim_groups", {}).get("limitations", ()):
        if claim_id not in stated_ids:
            message = f"no page tells of the limitation {claim_id}"
            yield make_warning("GATE_CONTENT_LIMITATION", message)


def list_child_pages(site: LaunchSite, file: PageFile) -> list[Mapping[str, Any]]:
    """Return the planned pages that a table of contents must list."""
    child_names = list(_read_strategy(file).get("child_pages", ()))
    child_entries = []
    for child_name in child_names:
        for entry in site.plan:
            names = (entry["slug"], entry["output_path"], entry["url_path"])
            if child_name in names and entry["section"] == file.section:
                child_entries.append(entry)
                break
    return child_entries


def has_link_to(file: PageFile, url_path: str) -> bool:
    """Return whether a page links to a URL path of its own site."""
    page_path = str(file.plan.get("url_path", "/"))
    for link in file.links:
        try:
            path = urlsplit(urljoin(page_path, link.target)).path
        except ValueError:
            continue
        if path.rstrip("/") == url_path.rstrip("/"):
            return True
    return False


def _check_table_of_contents(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    if file.plan.get("page_role") != "toc":
        return
    for fence in file.fences:
        message = "a table of contents holds code"
        yield make_error("GATE_CONTENT_TOC_CODE", message, file.path, fence.line)
    for child in list_child_pages(site, file):
        if not has_link_to(file, child["url_path"]):
            message = f"the table of contents does not list {child['title']!r}"
            yield make_error("GATE_CONTENT_TOC_CHILD", message, file.path)


def _check_workflow_coverage(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    if _read_strategy(file).get("scenario_coverage") != "all":
        return
    headings = " | ".join(heading.text.casefold() for heading in file.headings)
    stated_ids = {claim.claim_id for claim in file.claims}
    for workflow in site.facts.get("workflows", ()):
        names = (workflow["title"], workflow.get("name", ""))
        has_heading = any(name and name.casefold() in headings for name in names)
        if not has_heading and not stated_ids & set(workflow.get("claim_ids", ())):
            message = f"the guide leaves out the workflow {workflow['title']!r}"
            yield make_warning("GATE_CONTENT_COVERAGE", message, file.path)


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
                message = f"the page is not the place for {topic!r}"
                yield make_warning("GATE_CONTENT_TOPIC", message, file.path, heading.line)


def _check_sections(site: LaunchSite) -> Iterator[IssueDraft]:
    page_counts = Counter(entry["section"] for entry in site.plan)
    planned = {(entry["section"], entry["slug"].rsplit("/", 1)[-1]) for entry in site.plan}
    for name in site.config.get("required_sections", ()):
        section = site.profile.get_section(name)
        if page_counts[name] < section.minimum:
            message = f"the section {name} has {page_counts[name]} pages, it needs {section.minimum}"
            yield make_error("GATE_CONTENT_SECTION", message)
        if page_counts[name] > section.maximum * max(1, len(site.config.get("locales", ()))):
            message = f"the section {name} has {page_counts[name]} pages, {section.maximum} are allowed"
            yield make_error("GATE_CONTENT_SECTION", message)
        for page in section.pages:
            if (name, page.slug) not in planned:
                message = f"the section {name} has no page {page.slug!r}"
                yield make_blocker("GATE_CONTENT_MANDATORY", message)


GATE = Gate(
    name="content_distribution",
    purpose=__doc__,
    check=check_content_distribution,
    local_seconds=30.0,
    strict_seconds=60.0,
)
