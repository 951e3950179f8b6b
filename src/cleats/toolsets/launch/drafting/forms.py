"""The small forms that text takes: a statement or a list of them, code with its place."""

from collections.abc import Sequence

from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.material import Snippet

CODE_LINES = 60
"""An example longer than this is a program to read in the repository, not on a page."""


def claims(context: Context, ids: Sequence[str]) -> str:
    """One claim is a sentence, several are a list, in which the product is "it"."""
    material = context.material
    if len(ids) == 1:
        return material.say(ids[0])
    name = f"{material.product_name} "
    texts = {each: str(material.claims[each]["claim_text"]) for each in ids}
    return "\n".join(
        f"- {material.say(each, f'It {text[len(name) :]}' if text.startswith(name) else text)}"
        for each, text in texts.items()
    )


def shown(snippet: Snippet) -> str:
    """Code, and where in the repository it stands."""
    where = f"From `{snippet.path}`:\n\n" if snippet.path else ""
    return where + fence(snippet.language, snippet.code)


def is_short(snippet: Snippet) -> bool:
    """Whether a page has room for it."""
    return snippet.code.count("\n") < CODE_LINES


def fence(language: str, code: str) -> str:
    """Code between marks that it does not hold itself."""
    marks = "```"
    while marks in code:
        marks += "`"
    return f"{marks}{language}\n{code}\n{marks}"
