"""The pages must agree with the run: product name, repository, URLs, headings, install commands."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.gates.link_targets import resolve_url_path
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, LaunchSite, PageFile, make_error
from cleats.toolsets.launch.site.pages import CodeBlock

SHELL_LANGUAGES = frozenset({"", "bash", "bat", "cmd", "console", "powershell", "ps1", "sh", "shell", "zsh"})
INSTALL_COMMAND_PATTERN = re.compile(
    r"^\s*(?:[$>%#]\s+)?(?P<command>(?:python3?\s+-m\s+|py\s+-m\s+|sudo\s+)?"
    r"(?:pip3?\s+install|pipx\s+install|uv\s+(?:pip\s+install|add|tool\s+install)|poetry\s+add|"
    r"conda\s+install|npm\s+(?:install|i)|yarn\s+add|pnpm\s+(?:add|install)|"
    r"dotnet\s+add\s+package|nuget\s+install|Install-Package|cargo\s+(?:add|install)|"
    r"go\s+(?:get|install)|gem\s+install|composer\s+require|docker\s+pull)\s+\S.*?)\s*$"
)
_CODE_SPAN_PATTERN = re.compile(r"`[^`]*`")
_LINK_PATTERN = re.compile(r"https?://\S+|\]\([^)]*\)|<[^>]*>")
CANONICAL_URL_KEYS = ("canonical", "canonical_url", "canonicalurl")
REPOSITORY_URL_KEYS = ("repo_url", "repository", "github_url", "github_repo_url", "source_url")


def check_consistency(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        yield from _check_product_name(site, file)
        yield from _check_repository(site, file)
        yield from _check_urls(file)
        yield from _check_required_headings(file)
        yield from _check_install_commands(site, file)
    yield from _check_section_homes(site)


def get_product_name(site: LaunchSite) -> str:
    """Return the name of the product, from the facts or the configuration."""
    return str(site.facts.get("product_name") or site.config.get("product_name", ""))


def find_misspellings(name: str, text: str) -> list[str]:
    """Return the wrong spellings of a name in a text, not counting code and addresses."""
    words = re.split(r"[\s._-]+", name)
    if not name or (len(words) < 2 and name.islower()):
        return []  # a plain word may also occur as an ordinary word
    spelling_pattern = re.compile(
        r"(?<![\w./-])" + r"[\s._-]*".join(map(re.escape, words)) + r"(?![\w/-]|\.\w)",
        re.IGNORECASE,
    )
    prose = _LINK_PATTERN.sub(" ", _CODE_SPAN_PATTERN.sub(" ", text))
    # A library called Rich is for rich text; a name with capitals inside is not an ordinary word.
    is_common_word = len(words) < 2 and name.istitle()
    return [
        spelling
        for spelling in spelling_pattern.findall(prose)
        if spelling != name and not (is_common_word and spelling.islower())
    ]


def _check_product_name(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    name = get_product_name(site)
    for number, line in file.prose:
        for misspelling in find_misspellings(name, line):
            message = f"the product is called {name!r}, not {misspelling!r}"
            yield make_error("GATE_CONSISTENCY_NAME", message, file.path, number)
    for key in ("title", "description"):
        for misspelling in find_misspellings(name, str(file.front.get(key, ""))):
            message = f"the front matter key {key!r} says {misspelling!r} for {name!r}"
            yield make_error("GATE_CONSISTENCY_NAME", message, file.path, 1)


def _check_repository(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    repository_url = redact_url(str(site.config["github_repo_url"])).removesuffix(".git").rstrip("/")
    for key in REPOSITORY_URL_KEYS:
        value = file.front.get(key)
        if isinstance(value, str) and value.removesuffix(".git").rstrip("/") != repository_url:
            message = f"the front matter key {key!r} names another repository than {repository_url}"
            yield make_error("GATE_CONSISTENCY_REPOSITORY", message, file.path, 1)
    for link in file.links:
        if is_wrong_repository(link.target, repository_url):
            message = f"the link leads to another repository than {repository_url}: {link.target}"
            yield make_error("GATE_CONSISTENCY_REPOSITORY", message, file.path, link.line)


def is_wrong_repository(link: str, repository_url: str) -> bool:
    """Return whether a link names the repository with another owner or in another case."""
    try:
        parts, expected_parts = urlsplit(link), urlsplit(repository_url)
    except ValueError:
        return False
    if not expected_parts.hostname or parts.hostname != expected_parts.hostname:
        return False
    link_names = [part for part in parts.path.split("/") if part][:2]
    expected_names = [part for part in expected_parts.path.split("/") if part][:2]
    if len(link_names) < 2 or len(expected_names) < 2:
        return False
    link_names[1] = link_names[1].removesuffix(".git")
    return link_names != expected_names and link_names[1].casefold() == expected_names[1].casefold()


def _check_urls(file: PageFile) -> Iterator[IssueDraft]:
    if not file.plan:
        return
    planned_path = str(file.plan["url_path"])
    value = file.front.get("url")
    if isinstance(value, str) and value.strip("/") != planned_path.strip("/"):
        message = f"the front matter's url is not the planned {planned_path}"
        yield make_error("GATE_CONSISTENCY_ADDRESS", message, file.path, 1)
    for key in CANONICAL_URL_KEYS:
        value = file.front.get(key)
        if isinstance(value, str) and resolve_url_path(value).strip("/") != planned_path.strip("/"):
            message = f"the front matter key {key!r} is not the planned {planned_path}"
            yield make_error("GATE_CONSISTENCY_ADDRESS", message, file.path, 1)


def _check_section_homes(site: LaunchSite) -> Iterator[IssueDraft]:
    """Check that each section begins at the URL that the run configures."""
    for name, address in sorted(site.config.get("canonical_urls", {}).items()):
        section = {"product": "products"}.get(name, name)
        pages = [page for page in site.plan if page["section"] == section]
        home_path = resolve_url_path(address).strip("/")
        if pages and all(str(page["url_path"]).strip("/") != home_path for page in pages):
            first = min(pages, key=lambda page: (len(page["url_path"]), page["url_path"]))
            message = f"the run has {address} for {name}, where no page of {section} is planned"
            yield make_error("GATE_CONSISTENCY_ADDRESS", message, str(first["output_path"]))


def _check_required_headings(file: PageFile) -> Iterator[IssueDraft]:
    present = {heading.text.casefold() for heading in file.headings}
    for required in file.plan.get("required_headings", ()):
        if required.casefold() not in present:
            message = f"the heading {required!r} is missing"
            yield make_error("GATE_CONSISTENCY_HEADING", message, file.path)


def list_known_commands(site: LaunchSite) -> list[str]:
    """Return the install commands that the evidence contains."""
    return [
        command
        for distribution in site.facts.get("distribution", ())
        for command in distribution.get("install_commands", ())
    ]


def is_install_block(fence: CodeBlock) -> bool:
    """Return whether a code block contains only install commands."""
    lines = [line for line in fence.code.splitlines() if line.strip()]
    return bool(lines) and all(INSTALL_COMMAND_PATTERN.match(line) for line in lines)


def _check_install_commands(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    normalised_commands = {" ".join(command.split()) for command in list_known_commands(site)}
    for line, command in find_install_commands(file):
        if " ".join(command.split()) not in normalised_commands:
            message = f"no evidence knows this install command: {command}"
            yield make_error("GATE_CONSISTENCY_INSTALL", message, file.path, line)


def find_install_commands(file: PageFile) -> Iterator[tuple[int, str]]:
    """Yield the install commands in the code blocks of a page, with their line numbers."""
    for fence in file.fences:
        if fence.language not in SHELL_LANGUAGES:
            continue
        for offset, line in enumerate(fence.code.splitlines(), start=1):
            if match := INSTALL_COMMAND_PATTERN.match(line):
                yield fence.line + offset, match.group("command")


GATE = Gate(
    name="consistency",
    purpose=__doc__,
    check=check_consistency,
    reads_pages=True,
    local_seconds=30.0,
    strict_seconds=60.0,
)
