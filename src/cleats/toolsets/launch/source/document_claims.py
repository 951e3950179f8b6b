"""What the readme and the guides let us say: features, limits, and what they show with code."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.snippets.prompts import is_session
from cleats.toolsets.launch.source import languages, prose
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.claims import Citation, Ledger
from cleats.toolsets.launch.source.contradictions import Referee
from cleats.toolsets.launch.source.statements import (
    Subject,
    begins_with_verb,
    from_item,
    from_limitation,
    from_paragraph,
    own_subject,
)
from cleats.toolsets.launch.source.verbs import wordset

_FEATURES: Final = re.compile(
    r"\b(features?|highlights?|capabilit(y|ies)|functionality|what it (does|can do)"
    r"|what you can do|supported)\b",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(intro(duction)?|overview|about.*|what is .*|description|summary|features?|highlights?)\??$",
    re.IGNORECASE,
)
_LIMITS: Final = re.compile(
    r"\b(limitations?|known (issues|limitations|problems)|caveats?|not supported|unsupported"
    r"|what('s| is) missing|restrictions)\b",
    re.IGNORECASE,
)
_FOREIGN: Final = re.compile(
    r"\b(contribut\w*|sponsor\w*|licen[sc]e|changelog|development|credits|acknowledg\w*|authors?"
    r"|community|related|alternatives|comparison|table of contents|contents|links|resources"
    r"|documentation|mailing list|support|donat\w*|why|benchmarks?|performance|faq|roadmap|todo)\b",
    re.IGNORECASE,
)
_LEADS_IN: Final = re.compile(
    r"\b(features?|supports?|provides?|includes?|offers?|points|capabilities|library|gives you)\b",
    re.IGNORECASE,
)
_LEADS_AWAY: Final = re.compile(
    r"\b(not|\w+n['\u2019]t|has no|no longer|lacks?|missing|unsupported|unimplemented|incomplete"
    r"|plan(s|ned)?|upcoming|coming|to come|future|soon|roadmap|to-?do|wish ?list|ideas|proposed"
    r"|request(s|ed)|removed|deprecated|dropped|unlike|differ\w*|instead"
    r"|uses (for|of)|use cases?|used (by|in|for|with)|users?|good for|projects?"
    r"|needs?|requires?|required|requirements?|depends?|dependencies|prerequisites)\b",
    re.IGNORECASE,
)
"""Words above a list of what the product lacks, needs, will have, or is used for by others."""

_DENIES: Final = re.compile(
    r"\b(is|are) (not|no longer)\b|\b(isn|aren|can)['\u2019]t\b|\bcannot\b"
    r"|\bdo(es)? not (yet )?(support|work|handle|provide|include|implement)\b",
    re.IGNORECASE,
)
"""What a product is not and cannot do is true, and no feature."""

_EMPTY: Final = wordset(
    "the of and or to in for with featur includ support provid can it is an as on"
)
_SAME: Final = 0.8
"""The share of the words of the shorter sentence that makes two sentences one."""

_BLOCKS: Final = 600
"""Blocks looked at; what comes later in a document is not its beginning."""

WORKFLOWS: Final = 12
"""Workflows told at most: a page for each would be too many already."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Something that the repository shows how to do."""

    tag: str
    title: str
    claim_id: str
    path: str
    description: str = ""


def features(ledger: Ledger, subject: Subject, blocks: list[Block], referee: Referee) -> None:
    """Claim what feature lists and opening paragraphs say about the product."""
    leading = ""
    for block in blocks[:_BLOCKS]:
        sentences: list[str] = []
        if block.kind == "heading":
            leading = ""
        elif block.kind == "paragraph":
            leading = leading if block.quoted or not block.text else block.text
            sentences = from_paragraph(block, subject) if _is_opening(block, blocks) else []
        elif block.kind == "item" and block.depth == 1:
            is_feature = _is_feature_list(block, leading, blocks, subject)
            phrases = not _is_to_do(block, blocks)
            sentences = [from_item(block, subject, phrases=phrases)] if is_feature else []
        for sentence in sentences:
            if _DENIES.search(sentence):
                continue
            settled = sentence and referee.settles(sentence, block, _cite(block).source)
            if sentence and not settled and not _is_told(ledger, sentence):
                _add(ledger, sentence, "feature", block, "key_features")


def _is_to_do(block: Block, blocks: list[Block]) -> bool:
    """Whether the list that an item is in mostly tells things to do."""
    items = [each for each in blocks if each.kind == "item" and each.section == block.section]
    return sum(begins_with_verb(each.text) for each in items) * 3 > len(items)


def _is_told(ledger: Ledger, sentence: str) -> bool:
    """Whether another feature says nearly the same, in other words or another order."""
    words = _stems(sentence)
    for claim in ledger.claims:
        others = _stems(claim.text) if claim.kind == "feature" and claim.text != sentence else set()
        if others and len(words & others) >= _SAME * min(len(words), len(others)):
            return True
    return False


def _stems(text: str) -> set[str]:
    found = re.findall(r"[a-z0-9]{2,}", text.lower())
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in found} - _EMPTY


def limitations(ledger: Ledger, subject: Subject, blocks: Iterable[Block]) -> list[str]:
    """Claim what the parts about limits say; return the sentences."""
    found: list[str] = []
    for block in blocks:
        title = block.section[-1] if block.section else ""
        is_text = block.kind == "paragraph" or (block.kind == "item" and block.depth == 1)
        if not is_text or not _LIMITS.search(title) or re.search(r"\bfaq\b", title, re.IGNORECASE):
            continue
        sure = bool(re.search(r"limitations?|not supported|unsupported", title, re.IGNORECASE))
        for sentence in from_limitation(block, subject, sure=sure):
            _add(ledger, sentence, "limitation", block, "limitations")
            found.append(sentence)
    return list(dict.fromkeys(found))


def shown(
    ledger: Ledger,
    subject: Subject,
    blocks: Iterable[Block],
    language: str,
    made: dict[str, Workflow],
) -> None:
    """Add the parts of a document that show something with code in the product's language."""
    above: list[Block] = []
    for block in blocks:
        above = [block] if block.kind == "heading" else above
        if block.kind != "code" or not block.section or len(made) >= WORKFLOWS:
            continue
        title = clean_title(block.section[-1])
        spoken = spoken_in(block)
        tag = slug(title)
        usual = _FOREIGN.search(title) or _is_usual(title) or _names_product(title, subject)
        if not title or not tag or usual or not is_kin(spoken, language) or tag in made:
            continue
        document = "readme" if is_readme(block.path) else "documentation"
        text = f'The {document} of {subject.name} has a code example under the heading "{title}".'
        claim = ledger.add(
            text,
            "workflow",
            [_cite(each) for each in (*above, block)],
            group="workflow_claims",
            is_fact=True,
        )
        made[tag] = Workflow(tag, title, claim, block.path)


def slug(title: str) -> str:
    """A title as a tag: `Parse a TOML string` becomes `parse-a-toml-string`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")


def clean_title(text: str) -> str:
    """A heading without numbers and signs around it.

    It is "" for one that asks, shouts, is code, or is in a script that the page is not in.
    """
    text = re.sub(r"^[\d.]+\s+", "", text).replace("`", "")
    text = re.sub(r"^[^\w`.]+|[^\w`)+#]+$", "", text)
    odd = re.search(r"[^\w`'()+#./,& -]|(?![\u0000-\u024f])\w", text)
    return text if re.search(r"[A-Za-z]{2}", text) and len(text) <= 80 and not odd else ""


def is_readme(path: str) -> bool:
    return "/" not in path and PurePosixPath(path).stem.lower() == "readme"


def is_kin(spoken: str, language: str) -> bool:
    """Whether code in one language is code for the other: a script may be typed or not."""
    scripts = ("javascript", "typescript")
    return spoken == language or (spoken in scripts and language in scripts)


def spoken_in(block: Block) -> str:
    """The language of a piece of code, guessed only where its first line leaves no doubt."""
    named = languages.named(block.language)
    if named not in ("unknown", "text"):
        return named
    if is_session(block.text):
        return "python"
    first = next((line.strip() for line in block.text.splitlines() if line.strip()), "")
    if re.match(r"\$ \S|(pip|npm|cargo|go|gem|composer|dotnet|brew|apt|git) \w", first):
        return "shell"
    if re.match(r"(from [\w.]+ import \w|import [\w.]+$)", first):
        return "python"
    return named


def _names_product(title: str, subject: Subject) -> bool:
    """Whether a title is the product's name, with or without what it is: that is no task."""
    name = re.split(r"\s+[-\u2013\u2014:]+\s+|:\s+", title, maxsplit=1)[0]
    return subject.is_named_by(name) or own_subject(f"{title}.", subject)


def _is_usual(title: str) -> bool:
    """Whether a title names a part that every document has."""
    parts = (
        r"\b(install\w*|requirements?|setup|upgrad\w+|recap|summary|the basics|output|note)\b"
        r"|^(what|why|who)\b"
    )
    return bool(re.search(parts, title, re.IGNORECASE))


def _is_opening(block: Block, blocks: list[Block]) -> bool:
    """Before the second heading, or in a part that introduces the product."""
    if len(block.section) <= 1 and _headings_before(block, blocks) <= 1:
        return True
    return bool(block.section) and bool(_OPENING.match(block.section[-1].strip()))


def _headings_before(block: Block, blocks: list[Block]) -> int:
    return sum(each.kind == "heading" and each.line < block.line for each in blocks)


def _is_feature_list(block: Block, leading: str, blocks: list[Block], subject: Subject) -> bool:
    """A list under a heading of features, or one at the top that is no table of contents."""
    if block.section and _FOREIGN.search(block.section[-1]):
        return False
    is_first = len(block.section) == 1 and _headings_before(block, blocks) <= 1
    above = () if is_first else block.section[len(block.section) > 1 :]  # a title only names it
    if any(_LEADS_AWAY.search(each) or _LIMITS.search(each) for each in (*above, leading)):
        return False
    if block.section and _FEATURES.search(block.section[-1]):
        return True
    if _headings_before(block, blocks) > 1 and not _introduces(block, subject):
        return False
    if not leading:
        return True
    last = prose.sentences(leading)[-1]
    named = any(re.search(rf"\b{re.escape(each)}\b", last.lower()) for each in subject.aliases)
    return last.endswith(":") and (named or bool(_LEADS_IN.search(last)))


def _introduces(block: Block, subject: Subject) -> bool:
    return bool(block.section) and (
        bool(_OPENING.match(block.section[-1].strip())) or subject.is_named_by(block.section[-1])
    )


def _add(ledger: Ledger, sentence: str, kind: str, block: Block, group: str) -> None:
    ledger.add(sentence, kind, [_cite(block)], group=group)


def _cite(block: Block) -> Citation:
    source = "readme_technical" if is_readme(block.path) else "implementation_doc"
    return Citation(block.path, block.line, block.end, source)
