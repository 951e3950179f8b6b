"""Where links lead: from what a page says to a page, a place on it, or the world outside.

Answers from what the build made; without a build, from the planned pages and the files of the
site, which is less: a menu or an alias that only Hugo knows is then not seen.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from cleats.toolsets.launch.gates.output import Output
from cleats.toolsets.launch.gates.site import PageFile, Site


@dataclass(frozen=True, slots=True)
class Target:
    """A link taken apart. `kind` is page, outside, or other (mail, phone, data)."""

    kind: str
    host: str = ""
    path: str = ""
    anchor: str = ""


class Addresses:
    """Everything that can be linked to on the sites of a run."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts that are ours."""
        built = (host for output in self._site.built.values() for host in output.hosts)
        return frozenset({*self._site.profile.hosts, *built})

    @cached_property
    def planned(self) -> dict[tuple[str, str], PageFile]:
        """The pages of the run by host and path."""
        return {
            (self.host(file), file.plan["url_path"]): file for file in self._site.files if file.plan
        }

    def host(self, file: PageFile) -> str:
        """The host of a page; empty for a site that has only one."""
        return self._site.profile.section(file.section).host if file.section else ""

    def output(self, host: str, section: str = "") -> Output | None:
        """The build that serves a host, or a section of a site with one host."""
        for output in self._site.built.values():
            if (host and host in output.hosts) or (not host and section in output.sections):
                return output
        return None

    def target(self, file: PageFile, link: str) -> Target:
        """Take a link of a page apart."""
        try:
            parts = urlsplit(link)
            host = (parts.hostname or "").lower()
        except ValueError:
            return Target("broken")
        if parts.scheme and parts.scheme not in ("http", "https"):
            return Target("other")
        if host and host not in self.hosts:
            return Target("outside", host, parts.path)
        here = str(file.plan.get("url_path", "/"))
        path = urljoin(here, parts.path) if not host else parts.path or "/"
        if not host:
            host = self.host(file)
        return Target("page", host, path, unquote(parts.fragment))

    @cached_property
    def unbuilt(self) -> frozenset[tuple[str, str]]:
        """The addresses that the files of the site stand for, by Hugo's own rules."""
        found = set()
        root = self._site.job.site
        profile = self._site.profile
        content = root / profile.site.content_root
        roots = {each.root: each.host for each in profile.sections if each.host}
        for place in content.rglob("*"):
            if not place.is_file():
                continue
            below = PurePosixPath(place.relative_to(content).as_posix())
            host = roots.get(below.parts[0], "")
            if host:
                below = PurePosixPath(*below.parts[1:])
            found.add((host, _address(below)))
        for place in (root / "static").rglob("*"):
            if place.is_file():
                found.update(
                    (host, f"/{place.relative_to(root / 'static').as_posix()}")
                    for host in ("", *roots.values())
                )
        return frozenset(found)


def path_of(link: str, here: str = "") -> str:
    """The path of a link on the page at `here`; empty when the link cannot be read."""
    try:
        return urlsplit(urljoin(here, link)).path
    except ValueError:
        return ""


def _address(file: PurePosixPath) -> str:
    if file.suffix != ".md":
        return f"/{file.as_posix()}"
    stem = file.name.removesuffix(".md").split(".", 1)[0]
    folder = "" if str(file.parent) == "." else f"{file.parent.as_posix()}/"
    return f"/{folder}".lower() if stem in ("_index", "index") else f"/{folder}{stem}/".lower()
