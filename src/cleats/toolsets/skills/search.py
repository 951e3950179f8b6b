"""Find skills by what they are about: name first, then description, then the text itself.

Each word of the query counts for as much as it is rare. Texts are read when they are searched and
not kept: a hundred take two milliseconds, and ten thousand would be a lot to hold for ever.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cleats.toolsets.skills.likeness import alike
from cleats.toolsets.skills.reading import read_stamped
from cleats.toolsets.skills.skill import Skill

WORD = re.compile(r"\w+")
TYPO = 75.0
"""Per cent of two words that must agree for one to be taken for the other."""

NAME, NAME_PART, NAME_TYPO, ABOUT, ABOUT_PART, TEXT = 8.0, 5.0, 3.0, 3.0, 2.0, 1.0
"""What a word is worth by where it stands."""

MOST_WORDS = 100
"""Different words of a query that are looked for: every one is looked for in every text, and a
question that needs more of them is a document."""

AROUND = 60
"""Characters shown on each side of a hit in the text."""


@dataclass(frozen=True, slots=True)
class Match:
    """A skill that fits, how well, and where in its text when only that says so."""

    skill: Skill
    score: float
    excerpt: str = ""


def search(skills: Sequence[Skill], query: str, limit: int) -> list[Match]:
    """The skills that fit a query best, best first."""
    words = list(dict.fromkeys(WORD.findall(query.casefold())))[:MOST_WORDS]
    if not words:
        return []
    pages = [_Page(skill) for skill in skills]
    known = sorted({each for page in pages for each in (*page.names, *page.words)})
    typos = {word: _misspelt(word, pages, known) for word in words}
    scores = [[page.score(word, typos[word]) for word in words] for page in pages]
    rarity = [
        math.log(1 + len(pages) / (1 + sum(row[n] > 0 for row in scores)))
        for n in range(len(words))
    ]
    ranked = []
    for page, row in zip(pages, scores, strict=True):
        covered = sum(score > 0 for score in row) / len(words)
        total = covered * sum(score * rare for score, rare in zip(row, rarity, strict=True))
        if total > 0:
            ranked.append((-total, page.skill.full_name, page, max(row)))
    ranked.sort(key=lambda each: each[:2])
    return [
        Match(page.skill, -total, page.excerpt(words) if best < ABOUT_PART else "")
        for total, _, page, best in ranked[:limit]
    ]


class _Page:
    """A skill as the search sees it."""

    def __init__(self, skill: Skill) -> None:
        self.skill = skill
        self.name = skill.full_name.casefold()
        self.names = set(re.split(r"[^\w]+|_", self.name))
        self.about = skill.description.casefold()
        self.words = set(WORD.findall(self.about))
        try:
            self.original = read_stamped(skill.path)[0].decode(errors="replace")
        except OSError:
            self.original = ""
        self.text = self.original.casefold()

    def score(self, word: str, meant: str | None) -> float:
        if word in self.names:
            return NAME
        if word in self.name:
            return NAME_PART
        score = 0.0
        if word in self.about:
            whole = re.search(rf"\b{word}\b", self.about)
            score = ABOUT if whole else ABOUT_PART
        if meant in self.names:
            score = max(score, NAME_TYPO)
        elif meant in self.words:
            score = max(score, ABOUT_PART)
        if not score and (times := self.text.count(word)):
            score = TEXT + 0.2 * min(math.log2(times), 4)
        return score

    def excerpt(self, words: Sequence[str]) -> str:
        for word in words:
            found = re.search(re.escape(word), self.original, re.IGNORECASE)
            if found:
                start, end = max(0, found.start() - AROUND), found.end() + AROUND
                return "…" + " ".join(self.original[start:end].split()) + "…"
        return ""


def _misspelt(word: str, pages: Sequence[_Page], known: Sequence[str]) -> str | None:
    """The word that was most likely meant; None when this one is used somewhere."""
    if any(word in page.name or word in page.about for page in pages):
        return None
    return next(iter(alike(word, known, least=TYPO, limit=1)), None)
