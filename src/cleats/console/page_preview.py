"""A page that a launch run wrote: its front matter, its text as HTML that cannot run anything, and its claims.

Markup in the text is shown and not interpreted, images are not loaded, and only links to the web can be followed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleats.console.highlighting import highlight_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    from cleats.console.highlighting import CodeLine

Place: TypeAlias = tuple[str, int, int]
"""Path, first line and last line of evidence."""

_CLAIM_PATTERN: Final = re.compile(r"[ \t]*<!--\s*claims:((?:\s+[0-9A-Za-z_.:-]+)+)\s*-->")
_EVIDENCE_PATTERN: Final = re.compile(r"^<!-- evidence\b(?:(?!-->).)*-->[ \t]*$", re.DOTALL | re.MULTILINE)
"""The list of evidence at the end of a page, which the claims of the preview replace."""

_RAN_PATTERN: Final = re.compile(r"^ran (\S+)$", re.MULTILINE)
"""An entry of this list: a program of the page that ran."""

_FRONT_MATTER_PATTERN: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_MARKER_OPEN, _MARKER_CLOSE = "\ue000", "\ue001"
"""Characters of the private use area around the number of a claim, which survive the conversion to HTML."""

EMPTY_EXCERPTS: Final[Mapping[Place, Sequence[str]]] = MappingProxyType({})

_MARKER_PATTERN: Final = re.compile(f"{_MARKER_OPEN}([0-9]+){_MARKER_CLOSE}")


@dataclass(frozen=True, slots=True)
class Citation:
    """One place in the source that proves a claim."""

    path: str
    start_line: int
    end_line: int
    kind: str
    url: str
    """Where the lines can be read on the web; empty if the source is not there."""
    lines: "Sequence[CodeLine]" = ()
    """The text of the lines, if the run has kept it."""

    @property
    def hidden_lines(self) -> int:
        """The number of lines that are not shown."""
        return self.end_line - self.start_line + 1 - len(self.lines) if self.lines else 0


@dataclass(frozen=True, slots=True)
class PageClaim:
    """One claim of a page, with its evidence."""

    number: int
    claim_id: str
    text: str
    confidence: str
    status: str
    citations: Sequence[Citation]


@dataclass(frozen=True, slots=True)
class PagePreview:
    """A page, ready to be shown."""

    front_matter: str
    html: "Markup"
    claims: Sequence[PageClaim]
    program_places: Sequence[str] = ()
    """The files and lines of the programs of the page that ran at the commit of the run."""


def preview_page(
    source: str,
    claims_by_id: Mapping[str, Mapping[str, Any]],
    source_url: str,
    excerpts: Mapping[Place, Sequence[str]] = EMPTY_EXCERPTS,
) -> PagePreview:
    """Return a page as HTML with a numbered mark for each claim; `excerpts` has the text of their evidence."""
    from markupsafe import Markup  # noqa: PLC0415 - with the first page

    body = source.replace(_MARKER_OPEN, "").replace(_MARKER_CLOSE, "")
    front_matter = ""
    if match := _FRONT_MATTER_PATTERN.match(body):
        front_matter, body = match[1], body[match.end() :]
    numbers: dict[str, int] = {}

    def number_claims(match: "re.Match[str]") -> str:
        claim_numbers = (numbers.setdefault(claim_id, len(numbers) + 1) for claim_id in match[1].split())
        return "".join(f"{_MARKER_OPEN}{number}{_MARKER_CLOSE}" for number in claim_numbers)

    html = _load_converter().render(_CLAIM_PATTERN.sub(number_claims, _EVIDENCE_PATTERN.sub("", body)))
    html = _MARKER_PATTERN.sub(r'<a class="claim-ref" href="#claim-\1" aria-label="Evidence of claim \1">\1</a>', html)
    claims = [
        _describe_claim(number, claim_id, claims_by_id.get(claim_id, {}), source_url, excerpts)
        for claim_id, number in numbers.items()
    ]
    program_places = [place for block in _EVIDENCE_PATTERN.findall(body) for place in _RAN_PATTERN.findall(block)]
    markup = Markup(html)  # noqa: S704 - the converter escapes all markup
    return PagePreview(front_matter, markup, claims, program_places)


def _describe_claim(
    number: int, claim_id: str, claim: Mapping[str, Any], source_url: str, excerpts: Mapping[Place, Sequence[str]]
) -> PageClaim:
    citations = [_describe_citation(citation, source_url, excerpts) for citation in claim.get("citations") or ()]
    text = claim.get("claim_text") or "This claim is not in the evidence map."
    return PageClaim(number, claim_id, text, claim.get("confidence", ""), claim.get("truth_status", ""), citations)


def _describe_citation(
    citation: Mapping[str, Any], source_url: str, excerpts: Mapping[Place, Sequence[str]]
) -> Citation:
    path, start = citation["path"], citation.get("start_line") or 1
    end = citation.get("end_line") or start
    kind = citation.get("source_type", "").replace("_", " ")
    lines = highlight_lines("\n".join(excerpts.get((path, start, end), ())), path=path, first_line=start)
    url = f"{source_url}/{path}#L{start}" if source_url else ""
    return Citation(path, start, end, kind, url, lines if (path, start, end) in excerpts else ())


def build_source_url(repository_url: str, commit: str) -> str:
    """Return the address of a commit's files on GitHub; empty for a repository elsewhere."""
    match = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository_url)
    return f"https://github.com/{match[1]}/{match[2]}/blob/{commit}" if match and commit.isalnum() else ""


@cache
def _load_converter() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - by the first page of a run

    converter = (
        MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "html_inline", "html_block"])
    )

    def open_link(renderer: Any, tokens: Any, index: int, options: Any, _env: Any) -> str:
        token = tokens[index]
        address = str(token.attrGet("href") or "")
        if address.startswith(("https://", "http://")):
            token.attrs = {"href": address, "rel": "noopener noreferrer nofollow", "target": "_blank"}
        else:
            token.attrs = {"class": "site-link", "title": address}
        return str(renderer.renderToken(tokens, index, options, _env))

    converter.add_render_rule("link_open", open_link)
    return converter


def render_markdown(source: str) -> "Markup":
    """Return Markdown of any origin as HTML that cannot run anything."""
    from markupsafe import Markup  # noqa: PLC0415 - with the first page

    return Markup(_load_converter().render(source))  # noqa: S704 - the converter escapes all markup
