"""One page: its template filled, its front matter made to fit the site."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.drafting import blocks
from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.templates import Template


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a page, and what it turned out to hold."""

    title: str
    purpose: str
    """What the page is for, as other pages say it when they lead to it."""
    body: str
    headings: tuple[str, ...]
    claim_ids: tuple[str, ...]
    snippet_ids: tuple[str, ...]
    front: Mapping[str, Any]


def write(template: Template, context: Context) -> Written:
    """Fill a template for one page."""
    values = blocks.values(context)
    front = template.filled_front(values)
    purpose = str(front.pop("purpose", front["description"]))
    body = template.filled(values)
    codes = {each.code: each.snippet_id for each in context.material.snippets}
    shown = [fence.code.rstrip("\n") for fence in pages.fences(body)]
    return Written(
        title=str(front["title"]),
        purpose=purpose,
        body=body,
        headings=tuple(each.text for each in pages.headings(body) if each.level == 2),
        claim_ids=tuple(dict.fromkeys(each.claim_id for each in pages.claims(body))),
        snippet_ids=tuple(dict.fromkeys(codes[code] for code in shown if code in codes)),
        front=front,
    )
