"""The pages agree with the run: product name, repository, addresses, headings, install commands."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.gates.addresses import path_of
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, error
from cleats.toolsets.launch.gates.site import PageFile, Site
from cleats.toolsets.launch.pages import Fence

SHELLS = frozenset({"", "bash", "bat", "cmd", "console", "powershell", "ps1", "sh", "shell", "zsh"})
INSTALL = re.compile(
    r"^\s*(?:[$>%#]\s+)?(?P<command>(?:python3?\s+-m\s+|py\s+-m\s+|sudo\s+)?"
    r"(?:pip3?\s+install|pipx\s+install|uv\s+(?:pip\s+install|add|tool\s+install)|poetry\s+add|"
    r"conda\s+install|npm\s+(?:install|i)|yarn\s+add|pnpm\s+(?:add|install)|"
    r"dotnet\s+add\s+package|nuget\s+install|Install-Package|cargo\s+(?:add|install)|"
    r"go\s+(?:get|install)|gem\s+install|composer\s+require|docker\s+pull)\s+\S.*?)\s*$"
)
_SPAN = re.compile(r"`[^`]*`")
_ADDRESS = re.compile(r"https?://\S+|\]\([^)]*\)|<[^>]*>")
CANONICAL = ("canonical", "canonical_url", "canonicalurl")
REPOSITORY = ("repo_url", "repository", "github_url", "github_repo_url", "source_url")


def check(site: Site) -> Iterator[Said]:
    for file in site.files:
        yield from _name(site, file)
        yield from _repository(site, file)
        yield from _address(file)
        yield from _headings(file)
        yield from _commands(site, file)
    yield from _homes(site)


def product_name(site: Site) -> str:
    """What the product is called."""
    return str(site.facts.get("product_name") or site.config.get("product_name", ""))


def misnamed(name: str, text: str) -> list[str]:
    """Spellings of a name in a text that are not its own; code and addresses do not count."""
    words = re.split(r"[\s._-]+", name)
    if not name or (len(words) < 2 and name.islower()):
        return []  # a plain word is a word in other places too
    loose = re.compile(
        r"(?<![\w./-])" + r"[\s._-]*".join(map(re.escape, words)) + r"(?![\w/-]|\.\w)",
        re.IGNORECASE,
    )
    prose = _ADDRESS.sub(" ", _SPAN.sub(" ", text))
    # A library called Rich is for rich text; what has capitals inside is no word of that kind.
    word = len(words) < 2 and name.istitle()
    return [
        found for found in loose.findall(prose) if found != name and not (word and found.islower())
    ]


def _name(site: Site, file: PageFile) -> Iterator[Finding]:
    name = product_name(site)
    for number, line in file.prose:
        for wrong in misnamed(name, line):
            message = f"the product is called {name!r}, not {wrong!r}"
            yield error("GATE_CONSISTENCY_NAME", message, file.path, number)
    for key in ("title", "description"):
        for wrong in misnamed(name, str(file.front.get(key, ""))):
            message = f"the front matter key {key!r} says {wrong!r} for {name!r}"
            yield error("GATE_CONSISTENCY_NAME", message, file.path, 1)


def _repository(site: Site, file: PageFile) -> Iterator[Finding]:
    ours = shown(str(site.config["github_repo_url"])).removesuffix(".git").rstrip("/")
    for key in REPOSITORY:
        given = file.front.get(key)
        if isinstance(given, str) and given.removesuffix(".git").rstrip("/") != ours:
            message = f"the front matter key {key!r} names another repository than {ours}"
            yield error("GATE_CONSISTENCY_REPOSITORY", message, file.path, 1)
    for link in file.links:
        if other_repository(link.target, ours):
            message = f"the link leads to another repository than {ours}: {link.target}"
            yield error("GATE_CONSISTENCY_REPOSITORY", message, file.path, link.line)


def other_repository(link: str, ours: str) -> bool:
    """Whether a link means our repository and misses it: its name with another owner or case."""
    try:
        parts, own = urlsplit(link), urlsplit(ours)
    except ValueError:
        return False
    if not own.hostname or parts.hostname != own.hostname:
        return False
    theirs = [part for part in parts.path.split("/") if part][:2]
    mine = [part for part in own.path.split("/") if part][:2]
    if len(theirs) < 2 or len(mine) < 2:
        return False
    theirs[1] = theirs[1].removesuffix(".git")
    return theirs != mine and theirs[1].casefold() == mine[1].casefold()


def _address(file: PageFile) -> Iterator[Finding]:
    if not file.plan:
        return
    planned = str(file.plan["url_path"])
    given = file.front.get("url")
    if isinstance(given, str) and given.strip("/") != planned.strip("/"):
        message = f"the front matter's url is not the planned {planned}"
        yield error("GATE_CONSISTENCY_ADDRESS", message, file.path, 1)
    for key in CANONICAL:
        given = file.front.get(key)
        if isinstance(given, str) and path_of(given).strip("/") != planned.strip("/"):
            message = f"the front matter key {key!r} is not the planned {planned}"
            yield error("GATE_CONSISTENCY_ADDRESS", message, file.path, 1)


def _homes(site: Site) -> Iterator[Finding]:
    """A section begins where the run says that it does."""
    for name, address in sorted(site.config.get("canonical_urls", {}).items()):
        section = {"product": "products"}.get(name, name)
        pages = [page for page in site.plan if page["section"] == section]
        wanted = path_of(address).strip("/")
        if pages and all(str(page["url_path"]).strip("/") != wanted for page in pages):
            first = min(pages, key=lambda page: (len(page["url_path"]), page["url_path"]))
            message = f"the run has {address} for {name}, where no page of {section} is planned"
            yield error("GATE_CONSISTENCY_ADDRESS", message, str(first["output_path"]))


def _headings(file: PageFile) -> Iterator[Finding]:
    there = {heading.text.casefold() for heading in file.headings}
    for wanted in file.plan.get("required_headings", ()):
        if wanted.casefold() not in there:
            message = f"the heading {wanted!r} is missing"
            yield error("GATE_CONSISTENCY_HEADING", message, file.path)


def known_commands(site: Site) -> list[str]:
    """The install commands that the evidence knows."""
    return [
        command
        for way in site.facts.get("distribution", ())
        for command in way.get("install_commands", ())
    ]


def only_installs(fence: Fence) -> bool:
    """Whether a code block holds nothing but install commands."""
    lines = [line for line in fence.code.splitlines() if line.strip()]
    return bool(lines) and all(INSTALL.match(line) for line in lines)


def _commands(site: Site, file: PageFile) -> Iterator[Finding]:
    known = {" ".join(command.split()) for command in known_commands(site)}
    for line, command in install_commands(file):
        if " ".join(command.split()) not in known:
            message = f"no evidence knows this install command: {command}"
            yield error("GATE_CONSISTENCY_INSTALL", message, file.path, line)


def install_commands(file: PageFile) -> Iterator[tuple[int, str]]:
    """The install commands in the code blocks of a page, with their lines."""
    for fence in file.fences:
        if fence.language not in SHELLS:
            continue
        for below, line in enumerate(fence.code.splitlines(), start=1):
            if found := INSTALL.match(line):
                yield fence.line + below, found.group("command")


GATE = Gate(
    name="consistency", purpose=__doc__, check=check, reads_pages=True, local=30.0, strict=60.0
)
