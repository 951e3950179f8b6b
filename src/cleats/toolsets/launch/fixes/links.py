"""Fixes of links: to the page that was meant when that is plain, else the words without a link."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from cleats.toolsets.launch.fixes.model import Answer, Case, each_line, prose_lines, without
from cleats.toolsets.launch.gates.addresses import path_of
from cleats.toolsets.launch.gates.internal_links import REFERENCE
from cleats.toolsets.launch.gates.site import PageFile
from cleats.toolsets.launch.gates.statements import leads_on

_ITEM = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+")


def broken(case: Case) -> Answer:
    wanted = set(case.named)
    return _relinked(case, wanted, lambda target, words: _meant(case, target, words))


def anchor(case: Case) -> Answer:
    """Name the nearest place on the page, or the page itself."""
    pages = {file.plan["url_path"]: file for file in case.site.files if file.plan}

    def better(target: str, _words: str) -> str | None:
        page, _, place = target.partition("#")
        here = str(case.file.plan.get("url_path", "/"))
        path = path_of(page, here) if page else here
        file = pages.get(path) or pages.get(path.rstrip("/") + "/")
        known = [heading.anchor for heading in file.headings] if file else []
        near = get_close_matches(place.lower(), known, n=1, cutoff=0.75)
        return f"{page}#{near[0]}" if near else page or None

    return _relinked(case, set(case.named), better)


def reference(case: Case) -> Answer:
    """Turn a reference that Hugo cannot follow into a link to the planned page, or into words."""
    wanted = set(case.named)
    whole = re.compile(rf"\[([^\]]*)\]\(\s*{REFERENCE.pattern}\s*\)")

    def put(found: re.Match[str]) -> str:
        if found[2] not in wanted:
            return found[0]
        target = _meant(case, found[2], found[1])
        return f"[{found[1]}]({target})" if target else found[1]

    lines = prose_lines(case.file)
    return each_line(case.text or "", lambda n, line: whole.sub(put, line) if n in lines else line)


def image(case: Case) -> Answer:
    """Take the image away; what it showed is not there to be shown."""
    wanted = set(case.named)
    lines = prose_lines(case.file)
    shape = re.compile(
        r"!\[([^\]]*)\]\(\s*<?([^)\s>]+)>?[^)]*\)|<img\b[^>]*?src=[\"']([^\"']+)[^>]*>"
    )

    def change(number: int, line: str) -> str | None:
        if number not in lines:
            return line
        made = shape.sub(lambda found: "" if (found[2] or found[3]) in wanted else found[0], line)
        return None if made != line and not made.strip() else made

    return each_line(case.text or "", change)


def insecure(case: Case) -> Answer:
    wanted = set(case.named)
    return _relinked(case, wanted, lambda target, _words: target.replace("http://", "https://", 1))


Better = Callable[[str, str], str | None]


def _relinked(case: Case, wanted: set[str], better: Better) -> str:
    """Give each wanted target its better one; None leaves the words."""
    inline = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^)\s>]+)>?([^)]*)\)")
    tag = re.compile(r"<a\b([^>]*?)href=([\"'])([^\"']*)\2([^>]*)>(.*?)</a>", re.IGNORECASE)
    definition = re.compile(r"^( {0,3}\[[^\]]+\]:\s*)<?(\S+?)>?(\s.*)?$")
    auto = re.compile(r"<(https?://[^>\s]+)>")

    def put_inline(found: re.Match[str]) -> str:
        if found[2] not in wanted:
            return found[0]
        target = better(found[2], found[1])
        return f"[{found[1]}]({target}{found[3]})" if target else found[1]

    def put_tag(found: re.Match[str]) -> str:
        if found[3] not in wanted:
            return found[0]
        target = better(found[3], found[5])
        return f'<a{found[1]}href="{target}"{found[4]}>{found[5]}</a>' if target else found[5]

    def put_auto(found: re.Match[str]) -> str:
        if found[1] not in wanted:
            return found[0]
        target = better(found[1], "")
        return f"<{target}>" if target and "://" in target else f"`{target or found[1]}`"

    def put_definition(found: re.Match[str]) -> str:
        target = better(found[2], "") if found[2] in wanted else found[2]
        return f"{found[1]}{target}{found[3] or ''}" if target else ""

    def change(number: int, line: str) -> str:
        if number not in lines:
            return line
        made = definition.sub(put_definition, line)
        return auto.sub(put_auto, tag.sub(put_tag, inline.sub(put_inline, made)))

    lines = prose_lines(case.file)
    return _without_leads(case.text or "", each_line(case.text or "", change))


def _without_leads(before: str, made: str) -> str:
    """Remove the bullets that only led on, and lead nowhere any more."""
    gone = [
        number
        for number, (old, new) in enumerate(
            zip(before.split("\n"), made.split("\n"), strict=True), start=1
        )
        if old != new
        and (item := _ITEM.match(old))
        and leads_on(old[item.end() :])
        and not leads_on(new[item.end() :])
    ]
    return without(made, gone) if gone else made


def _meant(case: Case, target: str, words: str) -> str | None:
    """The address of the planned page that a wrong link plainly means."""
    path, _, place = target.partition("#")
    last = path_of(path).rstrip("/").rsplit("/", 1)[-1].removesuffix(".md").lower()
    said = words.strip("`*_ ").casefold()
    near = get_close_matches(last, [_slug(each) for each in case.site.plan], n=1, cutoff=0.85)
    by_slug = [each for each in case.site.plan if _slug(each) in near]
    by_title = [each for each in case.site.plan if each["title"].casefold() == said]
    own = [each for each in by_slug or by_title if each["section"] == case.file.section]
    found = own or by_slug or by_title
    if len(found) != 1 or found[0]["output_path"] == case.path:
        return None
    return _address(case, found[0], place)


def _address(case: Case, entry: Mapping[str, Any], place: str) -> str:
    profile = case.site.profile
    host = profile.section(entry["section"]).host
    here = profile.section(case.file.section).host if case.file.section else host
    address = str(entry["url_path"]) if host == here else f"https://{host}{entry['url_path']}"
    file = next((each for each in case.site.files if each.path == entry["output_path"]), None)
    return f"{address}#{place}" if place and _has(file, place) else address


def _has(file: PageFile | None, place: str) -> bool:
    return file is not None and any(heading.anchor == place for heading in file.headings)


def _slug(entry: Mapping[str, Any]) -> str:
    slug = str(entry["slug"]).rsplit("/", 1)[-1].lower()
    return str(entry["url_path"]).rstrip("/").rsplit("/", 1)[-1] if slug == "_index" else slug


RULES = {
    "GATE_LINK_BROKEN": broken,
    "GATE_LINK_CASE": broken,
    "GATE_LINK_ANCHOR": anchor,
    "GATE_LINK_REFERENCE": reference,
    "GATE_LINK_IMAGE": image,
    "GATE_LINK_INSECURE": insecure,
    "GATE_EXTERNAL_GONE": broken,
}
