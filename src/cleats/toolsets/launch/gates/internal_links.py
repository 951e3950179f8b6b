"""Every link between pages of the site must lead to an existing page, and to an anchor on it.

Without a build, links are looked up in the planned pages and the files of the site, which misses
the menus and aliases that only the build knows.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from cleats.toolsets.launch.gates.model import FixCase, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.page_text import LIST_ITEM_PATTERN, edit_prose, is_navigation_item, remove_lines
from cleats.toolsets.launch.gates.site import BuiltSite, LaunchSite, PageFile

HUGO_REFERENCE_PATTERN = re.compile(r"""\{\{[<%]\s*(?:rel)?ref\s+["'`]([^"'`]+)["'`][^}]*[%>]\}\}""")


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A parsed link. `kind` is page, outside, other (mail, phone, data) or broken."""

    kind: str
    host: str = ""
    path: str = ""
    anchor: str = ""


class LinkResolver:
    """All addresses that can be linked to on the sites of a run."""

    def __init__(self, site: LaunchSite) -> None:
        self._site = site

    @cached_property
    def hosts(self) -> frozenset[str]:
        built_hosts = (host for built_site in self._site.built_sites.values() for host in built_site.hosts)
        return frozenset({*self._site.profile.sections_by_host, *built_hosts})

    @cached_property
    def planned_pages(self) -> dict[tuple[str, str], PageFile]:
        """The pages of the run by host and path."""
        return {(self.get_host(file), file.plan["url_path"]): file for file in self._site.files if file.plan}

    def get_host(self, file: PageFile) -> str:
        """Return the host of a page; empty for a site that has only one."""
        return self._site.profile.get_section(file.section).host if file.section else ""

    def list_anchors(self, file: PageFile) -> Sequence[str]:
        """Return the anchors of the headings of a page."""
        return self._site.kind.list_anchors(file.headings)

    def find_built_site(self, host: str, section: str = "") -> BuiltSite | None:
        """Return the build that serves a host, or a section of a site with one host."""
        built_sites = self._site.built_sites.values()
        return next((it for it in built_sites if (host in it.hosts if host else section in it.sections)), None)

    def parse_link(self, file: PageFile, link: str) -> LinkTarget:
        """Parse a link of a page."""
        try:
            parts = urlsplit(link)
            host = (parts.hostname or "").lower()
        except ValueError:
            return LinkTarget("broken")
        if parts.scheme and parts.scheme not in ("http", "https"):
            return LinkTarget("other")
        if host and host not in self.hosts:
            return LinkTarget("outside", host, parts.path)
        path = parts.path or "/" if host else self._site.resolve_link(file, link)
        return LinkTarget("page", host or self.get_host(file), path, unquote(parts.fragment))

    @cached_property
    def source_addresses(self) -> frozenset[tuple[str, str]]:
        """The addresses that the source files of the site get under the rules of its generator."""
        return frozenset(self._site.links.list_addresses())


def resolve_url_path(link: str, page_path: str = "") -> str:
    """Return the path of a link on the page at `page_path`; empty when it cannot be parsed."""
    try:
        return urlsplit(urljoin(page_path, link)).path
    except ValueError:
        return ""


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
            target = resolver.parse_link(file, image.target)
            is_checked = image.target.strip() and "{{" not in image.target and target.kind == "page"
            if is_checked and explain_broken_link(resolver, file, image.target, target):
                yield MISSING_IMAGE.draft(f"the image does not exist: {image.target}", file.path, image.line)
        yield from _check_references(site, file)


def _check_link(resolver: LinkResolver, file: PageFile, link: str, line: int) -> Iterator[IssueDraft]:
    if not link.strip() or "{{" in link:
        return
    target = resolver.parse_link(file, link)
    if target.kind == "broken":
        yield BROKEN_LINK.draft(f"the link is not a valid address: {link}", file.path, line)
    elif target.kind == "outside":
        if link.startswith("http://"):
            yield INSECURE_LINK.draft(f"the link is not encrypted: {link}", file.path, line)
    elif target.kind == "page" and (fault := explain_broken_link(resolver, file, link, target)):
        yield fault[0].draft(fault[1], file.path, line)


def explain_broken_link(
    resolver: LinkResolver, file: PageFile, link: str, target: LinkTarget
) -> tuple[IssueKind, str] | None:
    """Return the kind and message of the issue for a broken link to a page of the site, or None."""
    built_site = resolver.find_built_site(target.host, file.section)
    planned_page = resolver.planned_pages.get((target.host, target.path))
    if built_site is not None:
        return _explain_in_build(file, built_site, link, target)
    if planned_page is not None:
        anchors = frozenset(resolver.list_anchors(planned_page))
        return _explain_missing_anchor(link, target, anchors)
    if target.path.endswith(".md"):
        return BROKEN_LINK, f"the link names a source file, not a page: {link}"
    url_paths = {target.path, target.path.rstrip("/") + "/"}
    if any((target.host, url_path) in resolver.source_addresses for url_path in url_paths):
        return None
    if target.host != resolver.get_host(file):
        return None  # the site of that host was not built, so its pages are unknown
    return BROKEN_LINK, f"no page exists at the link: {link}"


def _explain_in_build(
    file: PageFile, built_site: BuiltSite, link: str, target: LinkTarget
) -> tuple[IssueKind, str] | None:
    page_file = built_site.find_file(str(file.plan["url_path"]))
    if target.path.endswith(".md") and page_file is not None:
        # A site can turn links to files into links to pages; then the file's name is gone.
        html = (built_site.folder / page_file).read_bytes().decode("utf-8", "replace")
        if f'"{link}"' not in html and f"={link}" not in html:
            return None
    target_file = built_site.find_file(target.path)
    if target_file is None:
        if built_site.find_file_ignoring_case(target.path) is not None:
            return WRONG_CASE, f"the link differs in case from the page: {link}"
        return BROKEN_LINK, f"no page exists at the link: {link}"
    anchors = built_site.list_anchors(target_file) if target_file.endswith(".html") else frozenset()
    return _explain_missing_anchor(link, target, anchors)


def _explain_missing_anchor(link: str, target: LinkTarget, anchors: frozenset[str]) -> tuple[IssueKind, str] | None:
    if not target.anchor or target.anchor == "top" or target.anchor in anchors:
        return None
    return MISSING_ANCHOR, f"the page has no heading or anchor with this name: {link}"


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
            names = [f"{path.strip('/')}{ending}" for ending in ("", ".md", "/index.md", "/_index.md")]
            is_found_by_name = "/" not in path and any(content.rglob(f"{path.removesuffix('.md')}.md"))
            if not is_found_by_name and not any((base / name).is_file() for base in base_folders for name in names):
                yield BROKEN_REFERENCE.draft(f"no page exists for the reference: {reference}", file.path, number)


def fix_broken_links(case: FixCase) -> str:
    """Link to the intended page when it is clear, otherwise keep the text without a link."""
    return _replace_links(case, lambda target, link_text: _find_intended_url(case, target, link_text))


def fix_anchors(case: FixCase) -> str:
    """Replace the anchor by the most similar one on the page, or link to the page itself."""
    pages = {file.plan["url_path"]: file for file in case.site.files if file.plan}

    def choose_anchor(target: str, _words: str) -> str | None:
        page, _, fragment = target.partition("#")
        page_path = str(case.file.plan.get("url_path", "/"))
        path = case.site.resolve_link(case.file, page) if page else page_path
        file = pages.get(path) or pages.get(path.rstrip("/") + "/")
        anchors = case.site.kind.list_anchors(file.headings) if file else []
        matches = get_close_matches(fragment.lower(), anchors, n=1, cutoff=0.75)
        return f"{page}#{matches[0]}" if matches else page or None

    return _replace_links(case, choose_anchor)


def fix_references(case: FixCase) -> str:
    """Turn a reference that Hugo cannot resolve into a link to the planned page, or into text."""
    reference_link_pattern = re.compile(rf"\[([^\]]*)\]\(\s*{HUGO_REFERENCE_PATTERN.pattern}\s*\)")

    def replace_reference(match: re.Match[str]) -> str:
        if match[2] not in case.message_targets:
            return match[0]
        target = _find_intended_url(case, match[2], match[1])
        return f"[{match[1]}]({target})" if target else match[1]

    return edit_prose(case, lambda line: reference_link_pattern.sub(replace_reference, line))


def fix_images(case: FixCase) -> str:
    """Remove images whose files do not exist."""
    image_pattern = re.compile(r"!\[([^\]]*)\]\(\s*<?([^)\s>]+)>?[^)]*\)|<img\b[^>]*?src=[\"']([^\"']+)[^>]*>")

    def remove_image(match: re.Match[str]) -> str:
        return "" if (match[2] or match[3]) in case.message_targets else match[0]

    def edit_line(line: str) -> str | None:
        edited_line = image_pattern.sub(remove_image, line)
        return None if edited_line != line and not edited_line.strip() else edited_line

    return edit_prose(case, edit_line)


def _replace_links(case: FixCase, choose_target: Callable[[str, str], str | None]) -> str:
    """Replace each target of an issue by the chosen one; when that is None, only the text stays."""
    targets = case.message_targets
    inline_pattern = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^)\s>]+)>?([^)]*)\)")
    tag_pattern = re.compile(r"<a\b([^>]*?)href=([\"'])([^\"']*)\2([^>]*)>(.*?)</a>", re.IGNORECASE)
    definition_pattern = re.compile(r"^( {0,3}\[[^\]]+\]:\s*)<?(\S+?)>?(\s.*)?$")
    autolink_pattern = re.compile(r"<(https?://[^>\s]+)>")

    def replace_inline(match: re.Match[str]) -> str:
        if match[2] not in targets:
            return match[0]
        target = choose_target(match[2], match[1])
        return f"[{match[1]}]({target}{match[3]})" if target else match[1]

    def replace_tag(match: re.Match[str]) -> str:
        if match[3] not in targets:
            return match[0]
        target = choose_target(match[3], match[5])
        return f'<a{match[1]}href="{target}"{match[4]}>{match[5]}</a>' if target else match[5]

    def replace_autolink(match: re.Match[str]) -> str:
        if match[1] not in targets:
            return match[0]
        target = choose_target(match[1], "")
        return f"<{target}>" if target and "://" in target else f"`{target or match[1]}`"

    def replace_definition(match: re.Match[str]) -> str:
        target = choose_target(match[2], "") if match[2] in targets else match[2]
        return f"{match[1]}{target}{match[3] or ''}" if target else ""

    def edit_line(line: str) -> str:
        line = definition_pattern.sub(replace_definition, line)
        line = tag_pattern.sub(replace_tag, inline_pattern.sub(replace_inline, line))
        return autolink_pattern.sub(replace_autolink, line)

    edited_text = edit_prose(case, edit_line)
    line_pairs = zip(case.text.split("\n"), edited_text.split("\n"), strict=True)
    dead_items = [  # bullets that were only navigation and have lost their link
        number
        for number, (old, new) in enumerate(line_pairs, start=1)
        if old != new
        and (item := LIST_ITEM_PATTERN.match(old))
        and is_navigation_item(old[item.end() :])
        and not is_navigation_item(new[item.end() :])
    ]
    return remove_lines(edited_text, dead_items)


def _find_intended_url(case: FixCase, target: str, link_text: str) -> str | None:
    path, _, fragment = target.partition("#")
    slug = resolve_url_path(path).rstrip("/").rsplit("/", 1)[-1].removesuffix(".md").lower()
    folded_text = link_text.strip("`*_ ").casefold()
    close_slugs = get_close_matches(slug, [_derive_slug(entry) for entry in case.site.plan], n=1, cutoff=0.85)
    by_slug = [entry for entry in case.site.plan if _derive_slug(entry) in close_slugs]
    by_title = [entry for entry in case.site.plan if entry["title"].casefold() == folded_text]
    in_section = [entry for entry in by_slug or by_title if entry["section"] == case.file.section]
    candidates = in_section or by_slug or by_title
    if len(candidates) != 1 or candidates[0]["output_path"] == case.path:
        return None
    entry, profile = candidates[0], case.site.profile
    host = profile.get_section(entry["section"]).host
    page_host = profile.get_section(case.file.section).host if case.file.section else host
    page = {"output_path": case.path, **case.file.plan}
    address = case.site.kind.link_page(page, entry) if host == page_host else f"https://{host}{entry['url_path']}"
    file = next((page_file for page_file in case.site.files if page_file.path == entry["output_path"]), None)
    anchors = case.site.kind.list_anchors(file.headings) if file else []
    return f"{address}#{fragment}" if fragment in anchors else address


def _derive_slug(entry: Mapping[str, Any]) -> str:
    slug = str(entry["slug"]).rsplit("/", 1)[-1].lower()
    return str(entry["url_path"]).rstrip("/").rsplit("/", 1)[-1] if slug == "_index" else slug


BROKEN_LINK = IssueKind(
    "GATE_LINK_BROKEN", "error", "Link to a page that exists, or remove the link and keep its text.", fix_broken_links
)
WRONG_CASE = IssueKind("GATE_LINK_CASE", "error", "Write the address as the page has it.", fix_broken_links)
MISSING_ANCHOR = IssueKind(
    "GATE_LINK_ANCHOR", "error", "Name a heading of the page, or link to the page alone.", fix_anchors
)
BROKEN_REFERENCE = IssueKind("GATE_LINK_REFERENCE", "error", "Refer to a page that exists.", fix_references)
MISSING_IMAGE = IssueKind(
    "GATE_LINK_IMAGE", "error", "Add the image to the site, or remove it from the page.", fix_images
)
INSECURE_LINK = IssueKind(
    "GATE_LINK_INSECURE",
    "warn",
    "Use https.",
    lambda case: _replace_links(case, lambda target, _words: target.replace("http://", "https://", 1)),
)

GATE = Gate(
    "internal_links", __doc__, check_internal_links, reads_pages=True, local_seconds=120.0, strict_seconds=180.0
)
