"""The pages must agree with the run: product name, repository, URLs, headings, install commands."""

import re
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

from cleats.system.front_matter import set_front_matter_keys
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.internal_links import resolve_url_path
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.site.claim_markers import find_claim_ids

_CODE_SPAN_PATTERN = re.compile(r"`[^`]*`")
_LINK_PATTERN = re.compile(r"https?://\S+|\]\([^)]*\)|<[^>]*>")
_PROTECTED_TEXT_PATTERN = re.compile(rf"{_CODE_SPAN_PATTERN.pattern}|{_LINK_PATTERN.pattern}")
CANONICAL_URL_KEYS = ("canonical", "canonical_url", "canonicalurl")
REPOSITORY_URL_KEYS = ("repo_url", "repository", "github_url", "github_repo_url", "source_url")


def check_consistency(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        yield from _check_product_name(site, file)
        yield from _check_repository(site, file)
        yield from _check_urls(file)
        for heading in _list_missing_headings(file):
            yield MISSING_HEADING.draft(f"the heading {heading!r} is missing", file.path)
        for line, command in _find_unknown_commands(site, file):
            yield UNKNOWN_COMMAND.draft(f"no evidence supports this install command: {command}", file.path, line)
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
        r"(?<![\w./-])" + r"[\s._-]*".join(map(re.escape, words)) + r"(?![\w/-]|\.\w)", re.IGNORECASE
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
        quoted_text = " ".join(
            site.evidence[claim_id]["claim_text"] for claim_id in find_claim_ids(line) if claim_id in site.evidence
        )
        for misspelling in find_misspellings(name, line):
            if misspelling in _list_identifiers(site) or misspelling in quoted_text:
                continue  # the name of the package, or the words of the repository
            yield WRONG_NAME.draft(f"the product is called {name!r}, not {misspelling!r}", file.path, number)
    for key in ("title", "description"):
        for misspelling in find_misspellings(name, str(file.front.get(key, ""))):
            yield WRONG_NAME.draft(f"the front matter key {key!r} says {misspelling!r} for {name!r}", file.path, 1)


def _list_identifiers(site: LaunchSite) -> set[str]:
    """Return the names by which commands and code refer to the product."""
    distributions = site.facts.get("distribution", ())
    surface = site.facts.get("api_surface_summary", {})
    symbols = (symbol["name"] for kind in ("classes", "functions", "constants") for symbol in surface.get(kind, ()))
    names = {name for item in distributions for name in (item["identifier"], *item.get("import_names", ()))}
    return names | {re.split(r"\.|::", symbol)[-1] for symbol in symbols}


def fix_product_name(case: FixCase) -> FixResult:
    name = get_product_name(case.site)

    def correct_piece(piece: str) -> str:
        misspellings = set(find_misspellings(name, piece)) - _list_identifiers(case.site)
        for misspelling in sorted(misspellings, key=len, reverse=True):
            piece = re.sub(rf"(?<![\w./-]){re.escape(misspelling)}(?![\w/-]|\.\w)", name, piece)
        return piece

    def correct_line(line: str) -> str:
        return page_text.edit_around(_PROTECTED_TEXT_PATTERN, line, correct_piece)

    text = page_text.edit_prose(case, correct_line)
    front_updates = {
        key: correct_line(str(case.file.front[key]))
        for key in ("title", "description")
        if find_misspellings(name, str(case.file.front.get(key, "")))
    }
    return set_front_matter_keys(text, front_updates) if front_updates else text


def _get_repository_url(site: LaunchSite) -> str:
    return redact_url(str(site.config["github_repo_url"])).removesuffix(".git").rstrip("/")


def _list_wrong_repository_keys(file: PageFile, repository_url: str) -> list[str]:
    urls = {key: url for key in REPOSITORY_URL_KEYS if isinstance(url := file.front.get(key), str)}
    return [key for key, url in urls.items() if url.removesuffix(".git").rstrip("/") != repository_url]


def _check_repository(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    repository_url = _get_repository_url(site)
    for key in _list_wrong_repository_keys(file, repository_url):
        message = f"the front matter key {key!r} names another repository than {repository_url}"
        yield WRONG_REPOSITORY.draft(message, file.path, 1)
    for link in file.links:
        if is_wrong_repository(link.target, repository_url):
            message = f"the link leads to another repository than {repository_url}: {link.target}"
            yield WRONG_REPOSITORY.draft(message, file.path, link.line)


def fix_repository(case: FixCase) -> FixResult:
    repository_url = _get_repository_url(case.site)
    if not repository_url.startswith("https://"):
        return None
    text = case.text
    for link in case.file.links:
        if is_wrong_repository(link.target, repository_url):
            parts = urlsplit(link.target)
            path = "/".join([urlsplit(repository_url).path.rstrip("/"), *parts.path.strip("/").split("/")[2:]])
            new_target = urlunsplit((*urlsplit(repository_url)[:2], path, parts.query, parts.fragment))
            text = text.replace(link.target, new_target)
    front_updates = dict.fromkeys(_list_wrong_repository_keys(case.file, repository_url), repository_url)
    return set_front_matter_keys(text, front_updates) if front_updates else text


def is_wrong_repository(link: str, repository_url: str) -> bool:
    """Return whether a link names the repository with another owner or in another case."""
    try:
        parts, expected_parts = urlsplit(link), urlsplit(repository_url)
    except ValueError:
        return False
    if not expected_parts.hostname or parts.hostname != expected_parts.hostname:
        return False
    link_names, expected_names = ([part for part in url.path.split("/") if part][:2] for url in (parts, expected_parts))
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
        yield WRONG_ADDRESS.draft(f"the front matter's url is not the planned {planned_path}", file.path, 1)
    for key in CANONICAL_URL_KEYS:
        value = file.front.get(key)
        if isinstance(value, str) and resolve_url_path(value).strip("/") != planned_path.strip("/"):
            yield WRONG_ADDRESS.draft(f"the front matter key {key!r} is not the planned {planned_path}", file.path, 1)


def fix_urls(case: FixCase) -> FixResult:
    planned_path = case.file.plan.get("url_path")
    if not planned_path or case.existing_text is None:
        return None
    front = case.file.front
    changes = {"url": planned_path} if isinstance(front.get("url"), str) else {}
    for key in CANONICAL_URL_KEYS:
        if isinstance(front.get(key), str):
            changes[key] = planned_path
            with suppress(ValueError):  # not an address
                changes[key] = urlunsplit((*urlsplit(front[key])[:2], planned_path, "", ""))
    return set_front_matter_keys(case.text, changes)


def _check_section_homes(site: LaunchSite) -> Iterator[IssueDraft]:
    for name, address in sorted(site.config.get("canonical_urls", {}).items()):
        section = {"product": "products"}.get(name, name)
        pages = [page for page in site.plan if page["section"] == section]
        home_path = resolve_url_path(address).strip("/")
        if pages and all(str(page["url_path"]).strip("/") != home_path for page in pages):
            first = min(pages, key=lambda page: (len(page["url_path"]), page["url_path"]))
            message = f"the run has {address} for {name}, where no page of {section} is planned"
            yield WRONG_ADDRESS.draft(message, str(first["output_path"]))


def _list_missing_headings(file: PageFile) -> list[str]:
    present = {heading.text.casefold() for heading in file.headings}
    return [text for text in file.plan.get("required_headings", ()) if text.casefold() not in present]


def fix_headings(case: FixCase) -> FixResult:
    """Restore required headings: from the draft, or with the purpose of the page."""
    text = page_text.end_with_newline(case.text)
    for heading in _list_missing_headings(case.file):
        file = PageFile(case.path, text, case.file.plan)
        if heading not in _list_missing_headings(file):
            continue  # the section of an earlier heading has it
        drafted_section = _extract_section(case.drafted_file, heading) if case.drafted_file else ""
        renamed_line = _find_renamed_heading(file, case.drafted_file, drafted_section)
        if renamed_line:
            lines = text.split("\n")
            lines[renamed_line - 1] = drafted_section.split("\n", 1)[0]
            text = "\n".join(lines)
        else:
            stated_lines = {line.strip() for line in text.split("\n") if find_claim_ids(line)}
            new_lines = (line for line in drafted_section.split("\n") if line.strip() not in stated_lines)
            section = "\n".join(new_lines).strip("\n") or f"## {heading}\n\n{case.file.plan['purpose']}"
            text = f"{text}\n{section}\n"
    return text


def _extract_section(file: PageFile, heading_text: str) -> str:
    """Return the section under a heading, including the heading, or an empty string."""
    lines = file.text.split("\n")
    for index, page_heading in enumerate(file.headings):
        if page_heading.text.casefold() == heading_text.casefold():
            following = (item.line for item in file.headings[index + 1 :] if item.level <= page_heading.level)
            return "\n".join(lines[page_heading.line - 1 : next(following, len(lines) + 1) - 1]).strip("\n")
    return ""


def _find_renamed_heading(file: PageFile, draft: PageFile | None, drafted_section: str) -> int:
    """Return the line of a heading that was renamed above text that the draft also has, or 0."""
    draft_headings = {page_heading.text.casefold() for page_heading in draft.headings} if draft else set()
    drafted_text = drafted_section.partition("\n")[2].strip()
    for page_heading in file.headings:
        text = _extract_section(file, page_heading.text).partition("\n")[2].strip()
        if drafted_text and text == drafted_text and page_heading.text.casefold() not in draft_headings:
            return page_heading.line
    return 0


def _find_unknown_commands(site: LaunchSite, file: PageFile) -> Iterator[tuple[int, str]]:
    for fence in file.fences:
        for number, command in page_text.find_unknown_commands(fence.code, fence.language, site.facts):
            yield fence.line + number, command


def fix_install_commands(case: FixCase) -> FixResult:
    """Replace a command by the known one for the same tool; remove it when there is none."""
    known_commands = page_text.list_known_commands(case.site.facts)
    lines = case.text.split("\n")
    removed_lines: set[int] = set()
    for number, command in _find_unknown_commands(case.site, case.file):
        candidates = [known for known in known_commands if known.split()[0] == command.split()[0]]
        if len(candidates) == 1:
            lines[number - 1] = lines[number - 1].replace(command, candidates[0])
        else:
            removed_lines.add(number)
    fixed_text = "\n".join(lines)
    for fence in case.file.fences:  # a block with no other content is removed completely
        block = page_text.find_block_lines(fixed_text, fence)
        inner_lines = set(block[1:-1])
        is_empty = all(number in removed_lines or not lines[number - 1].strip() for number in inner_lines)
        if inner_lines & removed_lines and is_empty:
            removed_lines.update(block)
    return page_text.remove_lines(fixed_text, removed_lines)


WRONG_NAME = IssueKind(
    "GATE_CONSISTENCY_NAME", "error", "Spell the product's name as in the run's configuration.", fix_product_name
)
WRONG_REPOSITORY = IssueKind(
    "GATE_CONSISTENCY_REPOSITORY", "error", "Link to the repository of the run.", fix_repository
)
WRONG_ADDRESS = IssueKind("GATE_CONSISTENCY_ADDRESS", "error", "Use the planned address, or remove the key.", fix_urls)
MISSING_HEADING = IssueKind(
    "GATE_CONSISTENCY_HEADING", "error", "Add the section that the plan asks for.", fix_headings
)
UNKNOWN_COMMAND = IssueKind(
    "GATE_CONSISTENCY_INSTALL", "error", "Use a command that the package's manifest supports.", fix_install_commands
)

GATE = Gate("consistency", __doc__, check_consistency, reads_pages=True, local_seconds=30.0, strict_seconds=60.0)
