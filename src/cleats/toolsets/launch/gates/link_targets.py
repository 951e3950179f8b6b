"""Resolution of links: from the text of a link to a page, an anchor on it, or another site.

Links are looked up in the output of the build. Without a build they are looked up in the planned
pages and the files of the site, which is less complete: menus and aliases that only Hugo knows are
then missed.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from cleats.toolsets.launch.gates.site import BuiltSite, LaunchSite, PageFile


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
        """The hosts of the site."""
        built_hosts = (host for built_site in self._site.built_sites.values() for host in built_site.hosts)
        return frozenset({*self._site.profile.sections_by_host, *built_hosts})

    @cached_property
    def planned_pages(self) -> dict[tuple[str, str], PageFile]:
        """The pages of the run by host and path."""
        return {(self.get_host(file), file.plan["url_path"]): file for file in self._site.files if file.plan}

    def get_host(self, file: PageFile) -> str:
        """Return the host of a page; empty for a site that has only one."""
        return self._site.profile.get_section(file.section).host if file.section else ""

    def find_built_site(self, host: str, section: str = "") -> BuiltSite | None:
        """Return the build that serves a host, or a section of a site with one host."""
        for built_site in self._site.built_sites.values():
            if (host and host in built_site.hosts) or (not host and section in built_site.sections):
                return built_site
        return None

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
        page_path = str(file.plan.get("url_path", "/"))
        path = urljoin(page_path, parts.path) if not host else parts.path or "/"
        if not host:
            host = self.get_host(file)
        return LinkTarget("page", host, path, unquote(parts.fragment))

    @cached_property
    def source_addresses(self) -> frozenset[tuple[str, str]]:
        """The addresses that the source files of the site get under Hugo's rules."""
        addresses = set()
        root = self._site.job.site
        profile = self._site.profile
        content = root / profile.site.content_root
        hosts_by_root = {section.root: section.host for section in profile.sections if section.host}
        for file_path in content.rglob("*"):
            if not file_path.is_file():
                continue
            relative_path = PurePosixPath(file_path.relative_to(content).as_posix())
            host = hosts_by_root.get(relative_path.parts[0], "")
            if host:
                relative_path = PurePosixPath(*relative_path.parts[1:])
            addresses.add((host, _derive_url_path(relative_path)))
        for file_path in (root / "static").rglob("*"):
            if file_path.is_file():
                addresses.update(
                    (host, f"/{file_path.relative_to(root / 'static').as_posix()}")
                    for host in ("", *hosts_by_root.values())
                )
        return frozenset(addresses)


def resolve_url_path(link: str, page_path: str = "") -> str:
    """Return the path of a link on the page at `page_path`; empty when it cannot be parsed."""
    try:
        return urlsplit(urljoin(page_path, link)).path
    except ValueError:
        return ""


def _derive_url_path(file: PurePosixPath) -> str:
    if file.suffix != ".md":
        return f"/{file.as_posix()}"
    stem = file.name.removesuffix(".md").split(".", 1)[0]
    folder = "" if str(file.parent) == "." else f"{file.parent.as_posix()}/"
    return f"/{folder}".lower() if stem in ("_index", "index") else f"/{folder}{stem}/".lower()
