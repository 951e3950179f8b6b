"""Every link between our pages leads to a page that is there, and to a place on it."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates.addresses import Addresses, Target
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, error, warning
from cleats.toolsets.launch.gates.output import Output
from cleats.toolsets.launch.gates.site import PageFile, Site

REFERENCE = re.compile(r"""\{\{[<%]\s*(?:rel)?ref\s+["'`]([^"'`]+)["'`][^}]*[%>]\}\}""")
_SOURCE = re.compile(r"\.md(?:$|[?#])")


def check(site: Site) -> Iterator[Said]:
    addresses = Addresses(site)
    how = "the built site" if site.built else "the files of the site"
    yield f"links are looked up in {how}"
    for file in site.files:
        if not file.plan:
            continue
        for link in file.links:
            yield from _link(addresses, file, link.target, link.line)
        for image in file.images:
            yield from _image(addresses, file, image.target, image.line)
        yield from _references(site, file)


def _link(addresses: Addresses, file: PageFile, link: str, line: int) -> Iterator[Finding]:
    if not link.strip() or "{{" in link:
        return
    target = addresses.target(file, link)
    if target.kind == "broken":
        yield error("GATE_LINK_BROKEN", f"the link is no address: {link}", file.path, line)
    elif target.kind == "outside":
        if link.startswith("http://"):
            message = f"the link is not encrypted: {link}"
            yield warning("GATE_LINK_INSECURE", message, file.path, line)
    elif target.kind == "page" and (wrong := broken(addresses, file, link, target)):
        yield error(wrong[0], wrong[1], file.path, line)


def broken(
    addresses: Addresses, file: PageFile, link: str, target: Target
) -> tuple[str, str] | None:
    """Why a link to one of our pages does not lead there; None when it does."""
    output = addresses.output(target.host, file.section)
    planned = addresses.planned.get((target.host, target.path))
    if output is not None:
        return _in_build(file, output, link, target)
    if planned is not None:
        anchors = frozenset(heading.anchor for heading in planned.headings)
        return _anchor(link, target, anchors)
    if _SOURCE.search(link):
        return "GATE_LINK_BROKEN", f"the link names a source file, not a page: {link}"
    ends = {target.path, target.path.rstrip("/") + "/"}
    if any((target.host, each) in addresses.unbuilt for each in ends):
        return None
    if target.host != addresses.host(file):
        return None  # a host whose site was not built: nobody here can know
    return "GATE_LINK_BROKEN", f"the link leads to no page: {link}"


def _in_build(file: PageFile, output: Output, link: str, target: Target) -> tuple[str, str] | None:
    own = output.file(str(file.plan["url_path"]))
    if _SOURCE.search(link) and own is not None:
        # A site can turn links to files into links to pages; then the file's name is gone.
        html = (output.folder / own).read_bytes().decode("utf-8", "replace")
        if f'"{link}"' not in html and f"={link}" not in html:
            return None
    found = output.file(target.path)
    if found is None:
        nearly = output.nearly(target.path)
        if nearly is not None:
            return "GATE_LINK_CASE", f"the link differs in case from the page: {link}"
        return "GATE_LINK_BROKEN", f"the link leads to no page: {link}"
    anchors = output.anchors(found) if found.endswith(".html") else frozenset()
    return _anchor(link, target, anchors)


def _anchor(link: str, target: Target, anchors: frozenset[str]) -> tuple[str, str] | None:
    if not target.anchor or target.anchor == "top" or target.anchor in anchors:
        return None
    return "GATE_LINK_ANCHOR", f"the page has no place of this name: {link}"


def _image(addresses: Addresses, file: PageFile, link: str, line: int) -> Iterator[Finding]:
    if not link.strip() or "{{" in link:
        return
    target = addresses.target(file, link)
    if target.kind != "page":
        return
    if broken(addresses, file, link, target):
        yield error("GATE_LINK_IMAGE", f"there is no such image: {link}", file.path, line)


def _references(site: Site, file: PageFile) -> Iterator[Finding]:
    """Hugo's own references. The build refuses a wrong one; this names its line."""
    content = site.job.site / site.profile.site.content_root
    here = (site.job.site / file.path).parent
    for number, line in file.prose:
        for name in REFERENCE.findall(line):
            path = name.split("#", 1)[0]
            if not path:
                continue
            tops = [content] if path.startswith("/") else [here, content]
            places = [
                top / f"{path.strip('/')}{ending}"
                for top in tops
                for ending in ("", ".md", "/index.md", "/_index.md")
            ]
            name_only = "/" not in path and any(content.rglob(f"{path.removesuffix('.md')}.md"))
            if not name_only and not any(place.is_file() for place in places):
                message = f"the reference leads to no page: {name}"
                yield error("GATE_LINK_REFERENCE", message, file.path, number)


GATE = Gate(
    name="internal_links", purpose=__doc__, check=check, reads_pages=True, local=120.0, strict=180.0
)
