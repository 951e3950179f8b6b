"""Every link between pages of the site must lead to an existing page, and to an anchor on it."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates.link_targets import LinkResolver, LinkTarget
from cleats.toolsets.launch.gates.model import (
    BuiltSite,
    Gate,
    GateMessage,
    IssueDraft,
    LaunchSite,
    PageFile,
    make_error,
    make_warning,
)

HUGO_REFERENCE_PATTERN = re.compile(r"""\{\{[<%]\s*(?:rel)?ref\s+["'`]([^"'`]+)["'`][^}]*[%>]\}\}""")
_SOURCE_FILE_PATTERN = re.compile(r"\.md(?:$|[?#])")


def check_internal_links(site: LaunchSite) -> Iterator[GateMessage]:
    resolver = LinkResolver(site)
    lookup_source = "the built site" if site.built_sites else "the files of the site"
    yield f"links are looked up in {lookup_source}"
    for file in site.files:
        if not file.plan:
            continue
        for link in file.links:
            yield from _check_link(resolver, file, link.target, link.line)
        for image in file.images:
            yield from _check_image(resolver, file, image.target, image.line)
        yield from _check_references(site, file)


def _check_link(resolver: LinkResolver, file: PageFile, link: str, line: int) -> Iterator[IssueDraft]:
    if not link.strip() or "{{" in link:
        return
    target = resolver.parse_link(file, link)
    if target.kind == "broken":
        yield make_error("GATE_LINK_BROKEN", f"the link is no address: {link}", file.path, line)
    elif target.kind == "outside":
        if link.startswith("http://"):
            message = f"the link is not encrypted: {link}"
            yield make_warning("GATE_LINK_INSECURE", message, file.path, line)
    elif target.kind == "page" and (fault := explain_broken_link(resolver, file, link, target)):
        yield make_error(fault[0], fault[1], file.path, line)


def explain_broken_link(
    resolver: LinkResolver, file: PageFile, link: str, target: LinkTarget
) -> tuple[str, str] | None:
    """Return the error code and message for a broken link to a page of the site, or None."""
    built_site = resolver.find_built_site(target.host, file.section)
    planned_page = resolver.planned_pages.get((target.host, target.path))
    if built_site is not None:
        return _explain_in_build(file, built_site, link, target)
    if planned_page is not None:
        anchors = frozenset(heading.anchor for heading in planned_page.headings)
        return _explain_missing_anchor(link, target, anchors)
    if _SOURCE_FILE_PATTERN.search(link):
        return "GATE_LINK_BROKEN", f"the link names a source file, not a page: {link}"
    url_paths = {target.path, target.path.rstrip("/") + "/"}
    if any((target.host, url_path) in resolver.source_addresses for url_path in url_paths):
        return None
    if target.host != resolver.get_host(file):
        return None  # the site of that host was not built, so its pages are unknown
    return "GATE_LINK_BROKEN", f"the link leads to no page: {link}"


def _explain_in_build(file: PageFile, built_site: BuiltSite, link: str, target: LinkTarget) -> tuple[str, str] | None:
    page_file = built_site.find_file(str(file.plan["url_path"]))
    if _SOURCE_FILE_PATTERN.search(link) and page_file is not None:
        # A site can turn links to files into links to pages; then the file's name is gone.
        html = (built_site.folder / page_file).read_bytes().decode("utf-8", "replace")
        if f'"{link}"' not in html and f"={link}" not in html:
            return None
    target_file = built_site.find_file(target.path)
    if target_file is None:
        similar_file = built_site.find_file_ignoring_case(target.path)
        if similar_file is not None:
            return "GATE_LINK_CASE", f"the link differs in case from the page: {link}"
        return "GATE_LINK_BROKEN", f"the link leads to no page: {link}"
    anchors = built_site.list_anchors(target_file) if target_file.endswith(".html") else frozenset()
    return _explain_missing_anchor(link, target, anchors)


def _explain_missing_anchor(link: str, target: LinkTarget, anchors: frozenset[str]) -> tuple[str, str] | None:
    if not target.anchor or target.anchor == "top" or target.anchor in anchors:
        return None
    return "GATE_LINK_ANCHOR", f"the page has no place of this name: {link}"


def _check_image(resolver: LinkResolver, file: PageFile, link: str, line: int) -> Iterator[IssueDraft]:
    if not link.strip() or "{{" in link:
        return
    target = resolver.parse_link(file, link)
    if target.kind != "page":
        return
    if explain_broken_link(resolver, file, link, target):
        yield make_error("GATE_LINK_IMAGE", f"there is no such image: {link}", file.path, line)


def _check_references(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    """Check Hugo references; the build rejects a wrong one, this gate reports its line."""
    content = site.job.site / site.profile.site.content_root
    page_folder = (site.job.site / file.path).parent
    for number, line in file.prose:
        for reference in HUGO_REFERENCE_PATTERN.findall(line):
            path = reference.split("#", 1)[0]
            if not path:
                continue
            base_folders = [content] if path.startswith("/") else [page_folder, content]
            candidates = [
                base_folder / f"{path.strip('/')}{ending}"
                for base_folder in base_folders
                for ending in ("", ".md", "/index.md", "/_index.md")
            ]
            is_found_by_name = "/" not in path and any(content.rglob(f"{path.removesuffix('.md')}.md"))
            if not is_found_by_name and not any(candidate.is_file() for candidate in candidates):
                message = f"the reference leads to no page: {reference}"
                yield make_error("GATE_LINK_REFERENCE", message, file.path, number)


GATE = Gate(
    name="internal_links",
    purpose=__doc__,
    check=check_internal_links,
    reads_pages=True,
    local_seconds=120.0,
    strict_seconds=180.0,
)
