"""Fixes for links: to the intended page when it is clear, otherwise the text without a link."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from cleats.toolsets.launch.fixes.model import FixCase, FixResult, edit_lines, list_prose_lines, remove_lines
from cleats.toolsets.launch.gates.internal_links import HUGO_REFERENCE_PATTERN
from cleats.toolsets.launch.gates.link_targets import resolve_url_path
from cleats.toolsets.launch.gates.model import PageFile
from cleats.toolsets.launch.gates.page_text import is_navigation_item

_LIST_ITEM_PATTERN = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+")


def fix_broken_links(case: FixCase) -> FixResult:
    targets = set(case.message_targets)
    return _replace_links(case, targets, lambda target, link_text: _find_intended_url(case, target, link_text))


def fix_anchors(case: FixCase) -> FixResult:
    """Replace the anchor by the most similar one on the page, or link to the page itself."""
    pages = {file.plan["url_path"]: file for file in case.site.files if file.plan}

    def choose_anchor(target: str, _words: str) -> str | None:
        page, _, fragment = target.partition("#")
        page_path = str(case.file.plan.get("url_path", "/"))
        path = resolve_url_path(page, page_path) if page else page_path
        file = pages.get(path) or pages.get(path.rstrip("/") + "/")
        anchors = [heading.anchor for heading in file.headings] if file else []
        matches = get_close_matches(fragment.lower(), anchors, n=1, cutoff=0.75)
        return f"{page}#{matches[0]}" if matches else page or None

    return _replace_links(case, set(case.message_targets), choose_anchor)


def fix_references(case: FixCase) -> FixResult:
    """Turn a reference that Hugo cannot resolve into a link to the planned page, or into text."""
    targets = set(case.message_targets)
    reference_link_pattern = re.compile(rf"\[([^\]]*)\]\(\s*{HUGO_REFERENCE_PATTERN.pattern}\s*\)")

    def replace_reference(match: re.Match[str]) -> str:
        if match[2] not in targets:
            return match[0]
        target = _find_intended_url(case, match[2], match[1])
        return f"[{match[1]}]({target})" if target else match[1]

    lines = list_prose_lines(case.file)
    return edit_lines(
        case.text or "",
        lambda number, line: reference_link_pattern.sub(replace_reference, line) if number in lines else line,
    )


def fix_images(case: FixCase) -> FixResult:
    """Remove images whose files do not exist."""
    targets = set(case.message_targets)
    lines = list_prose_lines(case.file)
    image_pattern = re.compile(r"!\[([^\]]*)\]\(\s*<?([^)\s>]+)>?[^)]*\)|<img\b[^>]*?src=[\"']([^\"']+)[^>]*>")

    def edit_line(number: int, line: str) -> str | None:
        if number not in lines:
            return line
        edited_line = image_pattern.sub(lambda match: "" if (match[2] or match[3]) in targets else match[0], line)
        return None if edited_line != line and not edited_line.strip() else edited_line

    return edit_lines(case.text or "", edit_line)


def fix_insecure_links(case: FixCase) -> FixResult:
    targets = set(case.message_targets)
    return _replace_links(case, targets, lambda target, _words: target.replace("http://", "https://", 1))


TargetChooser = Callable[[str, str], str | None]


def _replace_links(case: FixCase, targets: set[str], choose_target: TargetChooser) -> str:
    """Replace each target by the chosen one; when that is None, only the link text stays."""
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

    def edit_line(number: int, line: str) -> str:
        if number not in lines:
            return line
        edited_line = definition_pattern.sub(replace_definition, line)
        return autolink_pattern.sub(
            replace_autolink, tag_pattern.sub(replace_tag, inline_pattern.sub(replace_inline, edited_line))
        )

    lines = list_prose_lines(case.file)
    return _remove_dead_items(case.text or "", edit_lines(case.text or "", edit_line))


def _remove_dead_items(before: str, edited_text: str) -> str:
    """Remove the bullets that were only navigation and have lost their link."""
    removed_lines = [
        number
        for number, (old, new) in enumerate(zip(before.split("\n"), edited_text.split("\n"), strict=True), start=1)
        if old != new
        and (item := _LIST_ITEM_PATTERN.match(old))
        and is_navigation_item(old[item.end() :])
        and not is_navigation_item(new[item.end() :])
    ]
    return remove_lines(edited_text, removed_lines) if removed_lines else edited_text


def _find_intended_url(case: FixCase, target: str, link_text: str) -> str | None:
    """Return the URL of the planned page that a wrong link clearly means, or None."""
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
    return _build_url(case, candidates[0], fragment)


def _build_url(case: FixCase, entry: Mapping[str, Any], fragment: str) -> str:
    profile = case.site.profile
    host = profile.get_section(entry["section"]).host
    page_host = profile.get_section(case.file.section).host if case.file.section else host
    address = str(entry["url_path"]) if host == page_host else f"https://{host}{entry['url_path']}"
    file = next((page_file for page_file in case.site.files if page_file.path == entry["output_path"]), None)
    return f"{address}#{fragment}" if fragment and _has_anchor(file, fragment) else address


def _has_anchor(file: PageFile | None, fragment: str) -> bool:
    return file is not None and any(heading.anchor == fragment for heading in file.headings)


def _derive_slug(entry: Mapping[str, Any]) -> str:
    slug = str(entry["slug"]).rsplit("/", 1)[-1].lower()
    return str(entry["url_path"]).rstrip("/").rsplit("/", 1)[-1] if slug == "_index" else slug


LINK_FIXES = {
    "GATE_LINK_BROKEN": fix_broken_links,
    "GATE_LINK_CASE": fix_broken_links,
    "GATE_LINK_ANCHOR": fix_anchors,
    "GATE_LINK_REFERENCE": fix_references,
    "GATE_LINK_IMAGE": fix_images,
    "GATE_LINK_INSECURE": fix_insecure_links,
    "GATE_EXTERNAL_GONE": fix_broken_links,
}
