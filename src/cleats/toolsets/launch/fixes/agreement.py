"""Fixes of what pages say about the product itself: its name, repository, addresses, commands."""

import re
from urllib.parse import urlsplit, urlunsplit

from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.fixes.code import span
from cleats.toolsets.launch.fixes.model import Answer, Case, each_line, ended, prose_lines, without
from cleats.toolsets.launch.gates.consistency import (
    CANONICAL,
    REPOSITORY,
    install_commands,
    known_commands,
    misnamed,
    other_repository,
    product_name,
)
from cleats.toolsets.launch.gates.site import PageFile
from cleats.toolsets.launch.pages import MARKER
from cleats.toolsets.launch.patching.front import updated

_KEPT = re.compile(r"`[^`]*`|https?://\S+|\]\([^)]*\)|<[^>]*>")


def name(case: Case) -> Answer:
    right = product_name(case.site)
    lines = prose_lines(case.file)

    def change(number: int, line: str) -> str:
        return _outside(line, right) if number in lines else line

    text = each_line(case.text or "", change)
    front = {
        key: _outside(str(case.file.front[key]), right)
        for key in ("title", "description")
        if misnamed(right, str(case.file.front.get(key, "")))
    }
    return updated(text, front) if front else text


def _outside(line: str, right: str) -> str:
    """A line with the product's name right everywhere but in code and addresses."""
    made, end = [], 0
    for kept in [*_KEPT.finditer(line), None]:
        piece = line[end : kept.start() if kept else len(line)]
        for wrong in sorted(set(misnamed(right, piece)), key=len, reverse=True):
            piece = re.sub(rf"(?<![\w./-]){re.escape(wrong)}(?![\w/-]|\.\w)", right, piece)
        made.append(piece + (kept.group() if kept else ""))
        end = kept.end() if kept else len(line)
    return "".join(made)


def repository(case: Case) -> Answer:
    ours = shown(str(case.site.config["github_repo_url"])).removesuffix(".git").rstrip("/")
    if not ours.startswith("https://"):
        return None
    text = case.text or ""
    for link in case.file.links:
        if other_repository(link.target, ours):
            text = text.replace(link.target, _ours(link.target, ours))
    front = {
        key: ours
        for key in REPOSITORY
        if isinstance(given := case.file.front.get(key), str)
        and given.removesuffix(".git").rstrip("/") != ours
    }
    return updated(text, front) if front else text


def _ours(link: str, ours: str) -> str:
    parts = urlsplit(link)
    deeper = "/".join(parts.path.strip("/").split("/")[2:])
    own = urlsplit(ours)
    path = f"{own.path.rstrip('/')}/{deeper}" if deeper else own.path
    return urlunsplit((own.scheme, own.netloc, path, parts.query, parts.fragment))


def _at(link: str, path: str) -> str:
    """The link with another path; of one that cannot be read, that path alone."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return path
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def address(case: Case) -> Answer:
    planned = case.file.plan.get("url_path")
    if not planned or case.text is None:
        return None
    front = case.file.front
    changes = {"url": planned} if isinstance(front.get("url"), str) else {}
    for key in CANONICAL:
        if isinstance(front.get(key), str):
            changes[key] = _at(front[key], planned)
    return updated(case.text, changes)


def heading(case: Case) -> Answer:
    """Bring back a heading: its old words, or the draft's section, or what the page is for."""
    text = ended(case.text or "")
    for wanted in case.file.plan.get("required_headings", ()):
        file = PageFile(case.path, text, case.file.plan)
        if wanted.casefold() in {each.text.casefold() for each in file.headings}:
            continue
        drafted = _section(case.drafted, wanted) if case.drafted else ""
        renamed = _renamed(file, case.drafted, drafted)
        if renamed:
            lines = text.split("\n")
            lines[renamed - 1] = drafted.split("\n", 1)[0]
            text = "\n".join(lines)
        else:
            section = _new_to(text, drafted) or f"## {wanted}\n\n{case.file.plan['purpose']}"
            text = f"{text}\n{section}\n"
    return text


def _section(file: PageFile, wanted: str) -> str:
    """The section under a heading, with the heading."""
    lines = file.text.split("\n")
    for at, each in enumerate(file.headings):
        if each.text.casefold() == wanted.casefold():
            later = (other.line for other in file.headings[at + 1 :] if other.level <= each.level)
            return "\n".join(lines[each.line - 1 : next(later, len(lines) + 1) - 1]).strip("\n")
    return ""


def _renamed(file: PageFile, draft: PageFile | None, drafted: str) -> int:
    """The line of a heading that the draft does not have over the text that the draft has."""
    known = {each.text.casefold() for each in draft.headings} if draft else set()
    below = drafted.partition("\n")[2].strip()
    for each in file.headings:
        text = _section(file, each.text).partition("\n")[2].strip()
        if below and text == below and each.text.casefold() not in known:
            return each.line
    return 0


def _new_to(text: str, section: str) -> str:
    """A drafted section without the statements that the page makes already."""
    said = {line.strip() for line in text.split("\n") if MARKER.search(line)}
    return "\n".join(line for line in section.split("\n") if line.strip() not in said).strip("\n")


def install(case: Case) -> Answer:
    """Say the command that the evidence knows for the same tool; without one, say nothing."""
    known = known_commands(case.site)
    exact = {" ".join(command.split()) for command in known}
    text = case.text or ""
    lines = text.split("\n")
    gone: set[int] = set()
    for number, command in install_commands(case.file):
        if " ".join(command.split()) in exact:
            continue
        found = [each for each in known if each.split()[0] == command.split()[0]]
        if len(found) == 1:
            lines[number - 1] = lines[number - 1].replace(command, found[0])
        else:
            gone.add(number)
    made = "\n".join(lines)
    for fence in case.file.fences:  # a block that held nothing else goes as a whole
        block = span(made, fence)
        inside = set(block[1:-1])
        empty = all(number in gone or not lines[number - 1].strip() for number in inside)
        if inside & gone and empty:
            gone.update(block)
    return without(made, gone) if gone else made


RULES = {
    "GATE_CONSISTENCY_NAME": name,
    "GATE_CONSISTENCY_REPOSITORY": repository,
    "GATE_CONSISTENCY_ADDRESS": address,
    "GATE_CONSISTENCY_HEADING": heading,
    "GATE_CONSISTENCY_INSTALL": install,
}
