"""Hugo builds the site, and every planned page comes out."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from cleats.runtime.process import StartError
from cleats.toolsets.launch.gates.builds import Build, builds, hugo, outside, settings
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker, error
from cleats.toolsets.launch.gates.output import Output
from cleats.toolsets.launch.gates.site import Site

FLAGS = ("build", "--noBuildLock", "--printPathWarnings", "--logLevel", "warn")
_LOUD = re.compile(r"^(WARN|ERROR)\s+(.*)$")
_PLACE = re.compile(r'"?(?P<path>[^\s":]+\.(?:md|html|toml|yaml|json))"?(?::(?P<line>\d+))?')
MOST = 20
"""Complaints of one build that become findings; the log has them all."""


async def errand(site: Site) -> list[Said]:
    said: list[Said] = []
    links = [change.path for change in site.changes if change.kind == "link"]
    if links:
        said.append(blocker("GATE_HUGO_BUILD_REFUSED", "the site holds a link", links[0]))
        return said
    if (odd := _special(site.job.site)) is not None:
        message = "the site holds something that is no file: whoever reads it waits for ever"
        said.append(blocker("GATE_HUGO_BUILD_REFUSED", message, odd))
        return said
    for build in builds(site)[0]:
        said.append(f"build {build.config}")
        try:
            said.extend(await _one(site, build))
        except StartError as broken:
            said.append(blocker("GATE_HUGO_BUILD_FAILED", f"Hugo does not start: {broken}"))
    return said


def _special(root: Path) -> str | None:
    """The first pipe, socket or device of a site; git does not see those."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each != ".git")
        for name in sorted(names):
            mode = Path(place, name).lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return Path(place, name).relative_to(root).as_posix()
    return None


async def _one(site: Site, build: Build) -> list[Said]:
    told = await settings(site, build)
    if told is None:
        message = "Hugo cannot read the configuration"
        return [blocker("GATE_HUGO_BUILD_FAILED", message, build.config)]
    if places := outside(told, site.job.site):
        message = f"not built: the configuration reads outside the site: {places[0]}"
        return [blocker("GATE_HUGO_BUILD_REFUSED", message, build.config)]
    folder = site.scratch / "public" / build.name
    done = await hugo(site, build, *FLAGS, "--destination", str(folder))
    lines = site.scrub(done.stderr.decode(errors="replace")).splitlines()
    said: list[Said] = [*sorted(set(complaints(lines, build)), key=str)]
    said.extend(_findings(site, lines))
    if done.exit_code != 0:
        if not any(isinstance(each, Finding) and each.severity == "blocker" for each in said):
            message = f"Hugo ended with code {done.exit_code}"
            said.append(blocker("GATE_HUGO_BUILD_FAILED", message, build.config))
        return said
    base = urlsplit(str(told.get("baseurl", "")))
    hosts = frozenset(filter(None, (*build.hosts, base.hostname)))
    site.built[build.name] = Output(folder, build.sections, hosts, base.path or "/")
    said.extend(_missing(site, site.built[build.name]))
    return said


def complaints(lines: list[str], build: Build) -> Iterator[str]:
    """What Hugo said that is the same each time."""
    for line in lines:
        if _LOUD.match(line):
            yield f"{build.name}: {line}"


def _findings(site: Site, lines: list[str]) -> list[Finding]:
    found = set()
    for line in lines:
        loud = _LOUD.match(line)
        if loud is None:
            continue
        message = re.sub(r"\s+", " ", loud.group(2)).strip()[:400]
        place = next(
            (each for each in _PLACE.finditer(message) if site.text(each["path"]) is not None),
            None,
        )
        path, line_number = ("", 0) if place is None else (place["path"], int(place["line"] or 0))
        if loud.group(1) == "ERROR":
            found.add(blocker("GATE_HUGO_BUILD_FAILED", message, path, line_number))
        else:
            severity = "warn" if _about_us(site, path, message) else "info"
            found.add(
                Finding(
                    code="GATE_HUGO_BUILD_WARNING",
                    severity=severity,
                    message=message,
                    path=path,
                    line=line_number,
                )
            )
    return sorted(found, key=lambda each: (each.severity, each.path, each.line, each.message))[
        :MOST
    ]


def _about_us(site: Site, path: str, message: str) -> bool:
    """Whether a warning names a page of this launch; the rest of the site has its own."""
    if any(change.path == path for change in site.changes):
        return True
    return any(str(entry["url_path"]).rstrip("/") in message for entry in site.plan)


def _missing(site: Site, output: Output) -> Iterator[Finding]:
    for entry in site.plan:
        if entry["section"] not in output.sections or site.text(entry["output_path"]) is None:
            continue
        if output.file(entry["url_path"]) is None:
            message = f"the page is not at its planned address {entry['url_path']}"
            yield error("GATE_HUGO_BUILD_ADDRESS", message, entry["output_path"])


GATE = Gate(
    name="hugo_build", purpose=__doc__, errand=errand, local=300.0, strict=600.0, tools=("hugo",)
)
