"""A page reworded by a language model, and the judge of what it gives back.

The model gets the finished page and may change its wording, nothing else. An answer is taken only
if everything that can be checked is as it was: headings, code, links, and every claim marker, each
on a line that still says something. Otherwise the page stays as the template has it. What is
taken passes the same gates as everything else.
"""

import re
from collections import Counter
from collections.abc import Mapping

from cleats.toolsets.launch import pages

INSTRUCTIONS = """\
You edit one page of technical documentation. You get its Markdown body.

Make the prose clear and pleasant to read. Keep the meaning of every sentence.

Rules, all of them strict:
- Return the whole body as Markdown and nothing else. No front matter, no fence around it.
- Keep every heading exactly as it is, in the same order. Add none.
- Keep every code block exactly as it is.
- Keep every link with its target. Add none.
- An HTML comment such as <!-- claim_id: ... --> belongs to the statement before it. Keep each one,
  exactly once, at the end of the line that makes its statement.
- State nothing that the page does not state. No praise, no numbers, no promises, no guesses.
- Keep the names of the product, its commands and its code as they are.
"""

_WRAPPED = re.compile(r"\A\s*```(?:markdown|md)?\n(.*)\n```\s*\Z", re.DOTALL)
_HTML = re.compile(r"<(?!!--|https?://)[A-Za-z/]")
_LONGEST = 1.6
"""How much longer than the page an answer may be: rewording adds little, invention much."""


def messages(body: str, title: str, product_name: str) -> list[Mapping[str, str]]:
    """The question about one page."""
    asked = f"Product: {product_name}\nPage: {title}\n\n{body}"
    return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": asked}]


def taken(answer: str, body: str) -> tuple[str, str]:
    """Return the answer as a body, or the body as it was, with what is wrong with the answer."""
    wrapped = _WRAPPED.match(answer)
    made = (wrapped.group(1) if wrapped else answer).replace("\r\n", "\n").strip("\n") + "\n"
    wrong = fault(made, body)
    return (body, wrong) if wrong else (made, "")


def fault(made: str, body: str) -> str:
    """Say what an answer changed that it may not; empty when it may be taken."""
    checks = (
        ("a heading changed", _headings),
        ("code changed", _code),
        ("a link changed", _links),
        ("a claim was lost, added or repeated", _claims),
    )
    for message, look in checks:
        if look(made) != look(body):
            return message
    if any(not claim.statement.strip(" .-|") for claim in pages.claims(made)):
        return "a claim marker stands without a statement"
    if made.startswith("---") or _HTML.search(_without_code(made)):
        return "it holds front matter or HTML"
    if len(made) > _LONGEST * len(body) + 200:
        return "it is much longer than the page"
    return _unmarked(made)


def _headings(body: str) -> list[tuple[int, str]]:
    return [(each.level, each.text) for each in pages.headings(body)]


def _code(body: str) -> list[tuple[str, str]]:
    return [(each.language, each.code) for each in pages.fences(body)]


def _links(body: str) -> Counter[str]:
    return Counter(each.target for each in pages.links(body))


def _claims(body: str) -> Counter[str]:
    return Counter(each.claim_id for each in pages.claims(body))


def _without_code(body: str) -> str:
    code = pages.code_lines(body)
    lines = (line for number, line in enumerate(body.splitlines(), 1) if number not in code)
    return re.sub(r"`[^`]*`", "", "\n".join(lines))


def _unmarked(made: str) -> str:
    for line in _without_code(made).splitlines():
        item = re.match(r"\s*(?:[-*+]|\d+[.)])\s+(.*)", line)
        if item and not pages.MARKER.search(line) and not item.group(1).startswith("["):
            return "a bullet has no claim"
    return ""
