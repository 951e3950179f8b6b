"""The planned pages are all there, and each plays its role: quotas, contents, coverage, topics."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from cleats.toolsets.launch.gates.catalogue import known, normal
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker, error, warning
from cleats.toolsets.launch.gates.site import PageFile, Site


def check(site: Site) -> Iterator[Said]:
    there = {file.path: file for file in site.files}
    for entry in site.plan:
        file = there.get(entry["output_path"])
        if file is None:
            message = f"the planned page {entry['slug']!r} is missing"
            yield blocker("GATE_CONTENT_PAGE_MISSING", message, entry["output_path"])
            continue
        yield from _quota(file)
        yield from _promised(site, file)
        yield from _table_of_contents(site, file)
        yield from _coverage(site, file)
        yield from _topics(site, file)
    yield from _limitations(site)
    yield from _sections(site)


def _strategy(file: PageFile) -> Mapping[str, Any]:
    strategy: Mapping[str, Any] = file.plan.get("content_strategy", {})
    return strategy


def _quota(file: PageFile) -> Iterator[Finding]:
    quota = _strategy(file).get("claim_quota", {})
    count = len({claim.claim_id for claim in file.claims})
    least, most = quota.get("min", 0), quota.get("max")
    if count < least:
        message = f"the page makes {count} claims, its role needs {least}"
        yield warning("GATE_CONTENT_QUOTA", message, file.path)
    if most is not None and count > most:
        message = f"the page makes {count} claims, its role allows {most}"
        yield warning("GATE_CONTENT_QUOTA", message, file.path)


def _promised(site: Site, file: PageFile) -> Iterator[Finding]:
    """What the plan says that a page says and shows."""
    said = {claim.claim_id for claim in file.claims}
    for claim_id in file.plan["required_claim_ids"]:
        if claim_id not in said:
            message = f"the page leaves out the claim {claim_id}"
            yield warning("GATE_CONTENT_CLAIM", message, file.path)
    shown = known(site)
    tags = {
        tag for fence in file.fences for tag in shown.get(normal(fence.code), {}).get("tags", ())
    }
    for tag in file.plan["required_snippet_tags"]:
        if tag not in tags:
            message = f"the page shows no code for {tag!r}"
            yield warning("GATE_CONTENT_SNIPPET", message, file.path)


def _limitations(site: Site) -> Iterator[Finding]:
    """What a product cannot do is said on some page, if it is known."""
    said = {claim.claim_id for file in site.files for claim in file.claims}
    for claim_id in site.facts.get("claim_groups", {}).get("limitations", ()):
        if claim_id not in said:
            message = f"no page tells of the limitation {claim_id}"
            yield warning("GATE_CONTENT_LIMITATION", message)


def children(site: Site, file: PageFile) -> list[Mapping[str, Any]]:
    """The planned pages that a table of contents must list."""
    wanted = list(_strategy(file).get("child_pages", ()))
    found = []
    for child in wanted:
        for entry in site.plan:
            names = (entry["slug"], entry["output_path"], entry["url_path"])
            if child in names and entry["section"] == file.section:
                found.append(entry)
                break
    return found


def links_to(file: PageFile, url_path: str) -> bool:
    """Whether a page links to an address of its own site."""
    here = str(file.plan.get("url_path", "/"))
    for link in file.links:
        try:
            path = urlsplit(urljoin(here, link.target)).path
        except ValueError:
            continue
        if path.rstrip("/") == url_path.rstrip("/"):
            return True
    return False


def _table_of_contents(site: Site, file: PageFile) -> Iterator[Finding]:
    if file.plan.get("page_role") != "toc":
        return
    for fence in file.fences:
        message = "a table of contents holds code"
        yield error("GATE_CONTENT_TOC_CODE", message, file.path, fence.line)
    for child in children(site, file):
        if not links_to(file, child["url_path"]):
            message = f"the table of contents does not list {child['title']!r}"
            yield error("GATE_CONTENT_TOC_CHILD", message, file.path)


def _coverage(site: Site, file: PageFile) -> Iterator[Finding]:
    if _strategy(file).get("scenario_coverage") != "all":
        return
    headings = " | ".join(heading.text.casefold() for heading in file.headings)
    marked = {claim.claim_id for claim in file.claims}
    for workflow in site.facts.get("workflows", ()):
        names = (workflow["title"], workflow.get("name", ""))
        told = any(name and name.casefold() in headings for name in names)
        if not told and not marked & set(workflow.get("claim_ids", ())):
            message = f"the guide leaves out the workflow {workflow['title']!r}"
            yield warning("GATE_CONTENT_COVERAGE", message, file.path)


def _topics(site: Site, file: PageFile) -> Iterator[Finding]:
    topics = {
        *site.profile.brand.forbidden_topics,
        *file.plan.get("forbidden_topics", ()),
        *_strategy(file).get("forbidden_topics", ()),
    }
    for topic in sorted(topics):
        # A topic is a name in the plan (`api_details`) and words on a page.
        words = re.compile(r"\b" + re.escape(topic).replace("_", r"[\s_-]") + r"\b", re.IGNORECASE)
        for heading in file.headings:
            if words.search(heading.text):
                message = f"the page is not the place for {topic!r}"
                yield warning("GATE_CONTENT_TOPIC", message, file.path, heading.line)


def _sections(site: Site) -> Iterator[Finding]:
    count = Counter(entry["section"] for entry in site.plan)
    planned = {(entry["section"], entry["slug"].rsplit("/", 1)[-1]) for entry in site.plan}
    for name in site.config.get("required_sections", ()):
        section = site.profile.section(name)
        if count[name] < section.minimum:
            message = f"the section {name} has {count[name]} pages, it needs {section.minimum}"
            yield error("GATE_CONTENT_SECTION", message)
        if count[name] > section.maximum * max(1, len(site.config.get("locales", ()))):
            message = f"the section {name} has {count[name]} pages, {section.maximum} are allowed"
            yield error("GATE_CONTENT_SECTION", message)
        for page in section.pages:
            if (name, page.slug) not in planned:
                message = f"the section {name} has no page {page.slug!r}"
                yield blocker("GATE_CONTENT_MANDATORY", message)


GATE = Gate(name="content_distribution", purpose=__doc__, check=check, local=30.0, strict=60.0)
