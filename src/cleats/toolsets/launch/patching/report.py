"""What a bundle changes, for people: a page that a reviewer reads before the diff."""

import difflib
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.patches import ConflictError, after

_WORDS: Mapping[str, str] = {
    "create_file": "new",
    "update_by_anchor": "changed",
    "update_frontmatter_keys": "changed",
    "update_file_range": "changed",
    "delete_file": "removed",
}


def diff_report(bundle: Mapping[str, Any], fence: Fence, product_name: str) -> str:
    """Say what changes, file by file: the outline of a new page, the lines of a changed one."""
    patches = bundle["patches"]
    lines = [f"# Changes for {product_name}", ""]
    lines += [f"{len(patches)} patches on {len({p['path'] for p in patches})} files.", ""]
    lines += ["| File | Change | Lines |", "| --- | --- | --- |"]
    bodies: list[str] = []
    for patch in patches:
        before = (fence.read(patch["path"]) or b"").decode("utf-8", "replace")
        count, body = _body(patch, before)
        lines.append(f"| {patch['path']} | {_WORDS[patch['type']]} | {count} |")
        bodies += ["", f"## {patch['path']}", "", *body]
    return "\n".join([*lines, *bodies]) + "\n"


def _body(patch: Mapping[str, Any], before: str) -> tuple[str, list[str]]:
    if patch["type"] == "create_file":
        text = str(patch["new_content"])
        page = pages.parse(text)
        outline = [f"- {heading.text}" for heading in pages.headings(page.body)]
        title = page.front.get("title", "")
        return f"+{text.count(chr(10))}", [
            f"New page “{title}”.",
            *([""] if outline else []),
            *outline,
        ]
    try:
        now = after(patch, before)
    except ConflictError:  # told where the bundle is applied
        return "?", ["The patch does not fit the file."]
    changed = list(
        difflib.unified_diff(
            before.splitlines(), now.splitlines(), "before", "after", lineterm="", n=2
        )
    )
    more = sum(line.startswith("+") for line in changed[2:])
    less = sum(line.startswith("-") for line in changed[2:])
    return f"+{more} -{less}", ["````diff", *changed, "````"]
