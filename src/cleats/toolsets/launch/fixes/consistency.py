"""Fixes for statements about the product itself: its name, repository, URLs, commands."""

import re
from urllib.parse import urlsplit, urlunsplit

from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.fixes.model import (
    FixCase,
    FixResult,
    edit_lines,
    end_with_newline,
    list_prose_lines,
    remove_lines,
)
from cleats.toolsets.launch.fixes.snippets import find_block_lines
from cleats.toolsets.launch.gates.consistency import (
    CANONICAL_URL_KEYS,
    REPOSITORY_URL_KEYS,
    find_install_commands,
    find_misspellings,
    get_product_name,
    is_wrong_repository,
    list_known_commands,
)
from cleats.toolsets.launch.gates.content_distribution import has_link_to, list_child_pages
from cleats.toolsets.launch.gates.model import PageFile
from cleats.toolsets.launch.patching.patches import set_front_matter_keys
from cleats.toolsets.launch.site.pages import CLAIM_MARKER_PATTERN

_PROTECTED_TEXT_PATTERN = re.compile(r"`[^`]*`|https?://\S+|\]\([^)]*\)|<[^>]*>")


def fix_product_name(case: FixCase) -> FixResult:
    correct_name = get_product_name(case.site)
    lines = list_prose_lines(case.file)

    def edit_line(number: int, line: str) -> str:
        return _correct_line(line, correct_name) if number in lines else line

    text = edit_lines(case.text or "", edit_line)
    front_updates = {
        key: _correct_line(str(case.file.front[key]), correct_name)
        for key in ("title", "description")
        if find_misspellings(correct_name, str(case.file.front.get(key, "")))
    }
    return set_front_matter_keys(text, front_updates) if front_updates else text


def _correct_line(line: str, correct_name: str) -> str:
    """Correct the product name in a line, except in code and addresses."""
    pieces, end = [], 0
    for protected in [*_PROTECTED_TEXT_PATTERN.finditer(line), None]:
        piece = line[end : protected.start() if protected else len(line)]
        for misspelling in sorted(set(find_misspellings(correct_name, piece)), key=len, reverse=True):
            piece = re.sub(rf"(?<![\w./-]){re.escape(misspelling)}(?![\w/-]|\.\w)", correct_name, piece)
        pieces.append(piece + (protected.group() if protected else ""))
        end = protected.end() if protected else len(line)
    return "".join(pieces)


def fix_repository(case: FixCase) -> FixResult:
    repository_url = redact_url(str(case.site.config["github_repo_url"])).removesuffix(".git").rstrip("/")
    if not repository_url.startswith("https://"):
        return None
    text = case.text or ""
    for link in case.file.links:
        if is_wrong_repository(link.target, repository_url):
            text = text.replace(link.target, _replace_repository(link.target, repository_url))
    front_updates = {
        key: repository_url
        for key in REPOSITORY_URL_KEYS
        if isinstance(value := case.file.front.get(key), str)
        and value.removesuffix(".git").rstrip("/") != repository_url
    }
    return set_front_matter_keys(text, front_updates) if front_updates else text


def _replace_repository(link: str, repository_url: str) -> str:
    parts = urlsplit(link)
    subpath = "/".join(parts.path.strip("/").split("/")[2:])
    repository_parts = urlsplit(repository_url)
    path = f"{repository_parts.path.rstrip('/')}/{subpath}" if subpath else repository_parts.path
    return urlunsplit((repository_parts.scheme, repository_parts.netloc, path, parts.query, parts.fragment))


def _replace_path(link: str, path: str) -> str:
    """Return the link with another path, or the path alone when the link cannot be parsed."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return path
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def fix_urls(case: FixCase) -> FixResult:
    planned_path = case.file.plan.get("url_path")
    if not planned_path or case.text is None:
        return None
    front = case.file.front
    changes = {"url": planned_path} if isinstance(front.get("url"), str) else {}
    for key in CANONICAL_URL_KEYS:
        if isinstance(front.get(key), str):
            changes[key] = _replace_path(front[key], planned_path)
    return set_front_matter_keys(case.text, changes)


def fix_headings(case: FixCase) -> FixResult:
    """Restore required headings: from the draft, or with the purpose of the page."""
    text = end_with_newline(case.text or "")
    for heading_text in case.file.plan.get("required_headings", ()):
        file = PageFile(case.path, text, case.file.plan)
        if heading_text.casefold() in {page_heading.text.casefold() for page_heading in file.headings}:
            continue
        drafted_section = _extract_section(case.drafted_file, heading_text) if case.drafted_file else ""
        renamed_line = _find_renamed_heading(file, case.drafted_file, drafted_section)
        if renamed_line:
            lines = text.split("\n")
            lines[renamed_line - 1] = drafted_section.split("\n", 1)[0]
            text = "\n".join(lines)
        else:
            section = (
                _drop_repeated_statements(text, drafted_section) or f"## {heading_text}\n\n{case.file.plan['purpose']}"
            )
            text = f"{text}\n{section}\n"
    return text


def _extract_section(file: PageFile, heading_text: str) -> str:
    """Return the section under a heading, including the heading, or an empty string."""
    lines = file.text.split("\n")
    for index, page_heading in enumerate(file.headings):
        if page_heading.text.casefold() == heading_text.casefold():
            following_lines = (
                following.line for following in file.headings[index + 1 :] if following.level <= page_heading.level
            )
            return "\n".join(lines[page_heading.line - 1 : next(following_lines, len(lines) + 1) - 1]).strip("\n")
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


def _drop_repeated_statements(text: str, section: str) -> str:
    """Return a drafted section without the statements that the page already makes."""
    stated_lines = {line.strip() for line in text.split("\n") if CLAIM_MARKER_PATTERN.search(line)}
    return "\n".join(line for line in section.split("\n") if line.strip() not in stated_lines).strip("\n")


def fix_install_commands(case: FixCase) -> FixResult:
    """Replace a command by the known one for the same tool; remove it when there is none."""
    commands = list_known_commands(case.site)
    normalised_commands = {" ".join(command.split()) for command in commands}
    text = case.text or ""
    lines = text.split("\n")
    removed_lines: set[int] = set()
    for number, command in find_install_commands(case.file):
        if " ".join(command.split()) in normalised_commands:
            continue
        candidates = [candidate for candidate in commands if candidate.split()[0] == command.split()[0]]
        if len(candidates) == 1:
            lines[number - 1] = lines[number - 1].replace(command, candidates[0])
        else:
            removed_lines.add(number)
    fixed_text = "\n".join(lines)
    for fence in case.file.fences:  # a block with no other content is removed completely
        block = find_block_lines(fixed_text, fence)
        inner_lines = set(block[1:-1])
        is_empty = all(number in removed_lines or not lines[number - 1].strip() for number in inner_lines)
        if inner_lines & removed_lines and is_empty:
            removed_lines.update(block)
    return remove_lines(fixed_text, removed_lines) if removed_lines else fixed_text


CONSISTENCY_FIXES = {
    "GATE_CONSISTENCY_NAME": fix_product_name,
    "GATE_CONSISTENCY_REPOSITORY": fix_repository,
    "GATE_CONSISTENCY_ADDRESS": fix_urls,
    "GATE_CONSISTENCY_HEADING": fix_headings,
    "GATE_CONSISTENCY_INSTALL": fix_install_commands,
}


def fix_missing_children(case: FixCase) -> FixResult:
    file = case.file
    items = [
        f"- [{child['title']}]({child['url_path']})"
        for child in list_child_pages(case.site, file)
        if not has_link_to(file, child["url_path"])
    ]
    if not items or case.text is None:
        return None
    lines = end_with_newline(case.text).rstrip("\n").split("\n")
    item_lines = [
        number for number, line in file.prose if line.lstrip().startswith(("- [", "* [")) and number <= len(lines)
    ]
    if item_lines:
        return "\n".join([*lines[: item_lines[-1]], *items, *lines[item_lines[-1] :]]) + "\n"
    return "\n".join([*lines, "", "## Contents", "", *items]) + "\n"


CONTENTS_FIXES = {"GATE_CONTENT_TOC_CHILD": fix_missing_children}
