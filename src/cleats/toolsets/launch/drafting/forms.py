"""The small forms that text takes: a statement or a list of them, code with its place."""

import re
from collections.abc import Sequence

from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.material import Snippet

CODE_LINES = 60
"""An example longer than this is a program to read in the repository, not on a page."""


def claims(context: Context, ids: Sequence[str]) -> str:
    """Put statements together: those about the product as a list, in which it is "it".

    Other statements stand as their sources have them, so they are a paragraph, one on each line:
    an item of a list here is never an item that was copied from there.
    """
    material = context.material
    name = f"{material.product_name} "
    texts = {each: str(material.claims[each]["claim_text"]) for each in ids}
    features = f"The features of {name}"
    named = {
        each: f"It {text[len(name) :]}" if text.startswith(name) else text
        for each, text in texts.items()
        if text.startswith((name, features))
    }
    if len(named) < 2:
        return "\n".join(material.say(each) for each in ids)
    items = [f"- {material.say(each, text)}" for each, text in named.items()]
    rest = [material.say(each) for each in ids if each not in named]
    return "\n".join([*items, *([""] if rest else []), *rest])


def shown(*snippets: Snippet, said: str = "") -> str:
    """Code, and where in the repository it stands.

    The place is named once for all that stand there, and not at all when what was `said` before
    has named it.
    """
    blocks: list[str] = []
    place = ""
    for each in snippets:
        if each.path and each.path != place and f"`{each.path}`" not in said:
            blocks.append(f"From `{each.path}`:")
        place = each.path
        blocks.append(fence(each.language, each.code))
    return "\n\n".join(blocks)


def plain(title: str) -> str:
    """A title without the marks of Markdown, as front matter and the text of a link have it."""
    return re.sub(r"[`*]", "", title)


def is_short(snippet: Snippet) -> bool:
    """Whether a page has room for it."""
    return snippet.code.count("\n") < CODE_LINES


def fence(language: str, code: str) -> str:
    """Code between marks that it does not hold itself."""
    marks = "```"
    while marks in code:
        marks += "`"
    return f"{marks}{language}\n{code}\n{marks}"
