"""Skill search by name first, then description, then text.

Each word of the query is weighted by its rarity, and words that only hold a sentence together are
left out. A word also finds its other forms: `forms` finds `form`. Texts are read when they are searched and not
cached: a hundred take two milliseconds, and ten thousand would use much memory for ever.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cleats.toolsets.skills.catalogue import find_similar
from cleats.toolsets.skills.skill import Skill, read_stamped

WORD_PATTERN = re.compile(r"\w+")

FUNCTION_WORDS = frozenset(
    WORD_PATTERN.findall(
        """a about an and any are as at be but by can could do does for from had has have how i if in into is it its me
        my of on or our should so some that the their them then there these this those to up us was we were what when
        where which who why will with would you your please help need want make create"""
    )
)
"""Words that say how something is asked, not what it is about."""

EXCLUSION_PATTERN = re.compile(r"\b(?:do not|don't|not for|never)\b[^.;]*")
"""The part of a description that says what a skill is not for."""

FORM_SUFFIX_PATTERN = re.compile(r"(?:ies|ing|ed|es|s|y|e)$")
MIN_STEM_CHARS = 3
"""Letters that are left of a word without its suffix, and of the shortest word that is found inside another."""

MIN_TYPO_SIMILARITY = 75.0
"""The minimum similarity, in per cent, of a word and its correction."""

NAME_WEIGHT, NAME_PART_WEIGHT, NAME_TYPO_WEIGHT = 8.0, 5.0, 3.0
DESCRIPTION_WEIGHT, DESCRIPTION_PART_WEIGHT, TEXT_WEIGHT = 3.0, 2.0, 1.0
"""The weights of a word by where it occurs."""

MAX_QUERY_WORDS = 100
"""The maximum number of distinct query words: each one is searched in every text, and a query with
more of them is a document."""

EXCERPT_CONTEXT_CHARS = 60
"""The length of the text shown on each side of a hit."""


@dataclass(frozen=True, slots=True)
class SkillMatch:
    """A matching skill, its score, and an excerpt if only its text matches."""

    skill: Skill
    score: float
    excerpt: str = ""


def search_skills(skills: Sequence[Skill], query: str, limit: int) -> list[SkillMatch]:
    """Return the skills that match a query best, best first."""
    asked_words = list(dict.fromkeys(WORD_PATTERN.findall(query.casefold())))
    words = ([word for word in asked_words if word not in FUNCTION_WORDS] or asked_words)[:MAX_QUERY_WORDS]
    if not words:
        return []
    pages = [_SearchableSkill(skill) for skill in skills]
    vocabulary = sorted({item for page in pages for item in (*page.name_words, *page.description_words)})
    corrections = {word: _correct_word(word, pages, vocabulary) for word in words}
    scores = [[page.score_word(word, corrections[word]) for word in words] for page in pages]
    rarity = [
        math.log(1 + len(pages) / (1 + sum(word_scores[word_index] > 0 for word_scores in scores)))
        for word_index in range(len(words))
    ]
    ranked = []
    for page, word_scores in zip(pages, scores, strict=True):
        coverage = sum(score > 0 for score in word_scores) / len(words)
        total = coverage * sum(score * weight for score, weight in zip(word_scores, rarity, strict=True))
        if total > 0:
            ranked.append((-total, page.skill.full_name, page, max(word_scores)))
    ranked.sort(key=lambda item: item[:2])
    return [
        SkillMatch(page.skill, -total, page.find_excerpt(words) if best < DESCRIPTION_PART_WEIGHT else "")
        for total, _, page, best in ranked[:limit]
    ]


class _SearchableSkill:
    """A skill prepared for the search."""

    def __init__(self, skill: Skill) -> None:
        self.skill = skill
        self.name = skill.full_name.casefold()
        self.name_words = set(re.split(r"[^\w]+|_", self.name))
        self.description = EXCLUSION_PATTERN.sub("", skill.description.casefold())
        self.description_words = set(WORD_PATTERN.findall(self.description))
        self.description_stems = set(map(_stem_word, self.description_words))
        try:
            self.source_text = read_stamped(skill.path)[0].decode(errors="replace")
        except OSError:
            self.source_text = ""
        self.folded_text = self.source_text.casefold()

    def score_word(self, word: str, correction: str | None) -> float:
        if word in self.name_words:
            return NAME_WEIGHT
        stem = _stem_word(word)
        if len(stem) >= MIN_STEM_CHARS and stem in self.name:
            return NAME_PART_WEIGHT
        score = 0.0
        if stem in self.description_stems:
            score = DESCRIPTION_WEIGHT
        elif word in self.description:
            score = DESCRIPTION_PART_WEIGHT
        if correction in self.name_words:
            score = max(score, NAME_TYPO_WEIGHT)
        elif correction in self.description_words:
            score = max(score, DESCRIPTION_PART_WEIGHT)
        if not score and (times := len(re.findall(rf"\b{re.escape(stem)}", self.folded_text))):
            score = TEXT_WEIGHT + 0.2 * min(math.log2(times), 4)
        return score

    def find_excerpt(self, words: Sequence[str]) -> str:
        for word in words:
            match = re.search(re.escape(word), self.source_text, re.IGNORECASE)
            if match:
                start, end = max(0, match.start() - EXCERPT_CONTEXT_CHARS), match.end() + EXCERPT_CONTEXT_CHARS
                return "…" + " ".join(self.source_text[start:end].split()) + "…"
        return ""


def _stem_word(word: str) -> str:
    """Return a word without the suffix of its form, if enough of it is left."""
    stem = FORM_SUFFIX_PATTERN.sub("", word)
    return stem if len(stem) >= MIN_STEM_CHARS else word


def _correct_word(word: str, pages: Sequence[_SearchableSkill], vocabulary: Sequence[str]) -> str | None:
    """Return the most likely correction of a word, or None if the word occurs somewhere."""
    if any(word in page.name or word in page.description for page in pages):
        return None
    return next(iter(find_similar(word, vocabulary, min_percent=MIN_TYPO_SIMILARITY, limit=1)), None)
