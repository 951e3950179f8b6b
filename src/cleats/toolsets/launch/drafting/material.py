"""The facts of a product that pages can state.

Everything that a page states comes from here, so this module excludes claims that lost against
others, guesses about protected topics, and text that Hugo would interpret. A statement is followed
by its claim marker.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cleats.toolsets.launch.gates.page_text import find_unknown_commands
from cleats.toolsets.launch.gates.secrets import find_secrets
from cleats.toolsets.launch.gates.truth_lock import PROTECTED_TOPIC_PATTERNS
from cleats.toolsets.launch.site.claim_markers import render_claim_marker
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language
from cleats.toolsets.launch.source.languages import resolve_code_language

_SHORTCODE_PATTERN = re.compile(r"\{\{")
_RANKED_TAGS = ("example", "readme", "doc")
_WHITESPACE_PATTERN = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PageSnippet:
    """A piece of code of the repository that parses."""

    snippet_id: str
    language: str
    tags: tuple[str, ...]
    path: str
    code: str
    dependencies: tuple[str, ...] = ()
    """The packages that it imports, the product included."""


@dataclass(frozen=True, eq=False)  # compared by identity, so that results about it can be cached
class LaunchMaterial:
    """The facts, the evidence and the snippets of one run."""

    facts: Mapping[str, Any]
    evidence: Mapping[str, Any]
    catalogue: Mapping[str, Any]
    config: Mapping[str, Any]
    forbidden_topics: tuple[str, ...] = ()
    """Topics that no page of the profile mentions."""

    @property
    def product_name(self) -> str:
        return str(self.facts["product_name"])

    @cached_property
    def claims(self) -> Mapping[str, Mapping[str, Any]]:
        """The claims that can be stated, by id."""
        rejected_ids = {
            claim_id
            for contradiction in self.evidence.get("contradictions", ())
            for claim_id in (contradiction["claim_a_id"], contradiction["claim_b_id"])
            if claim_id != contradiction["winning_claim_id"] or contradiction["resolution"] == "unresolved"
        }
        return {
            claim["claim_id"]: claim
            for claim in self.evidence["claims"]
            if claim["claim_id"] not in rejected_ids and self._can_state(claim)
        }

    def _can_state(self, claim: Mapping[str, Any]) -> bool:
        text = claim["claim_text"]
        if _SHORTCODE_PATTERN.search(text) or any(_mentions_topic(topic, text) for topic in self.forbidden_topics):
            return False
        if claim["truth_status"] == "fact" or self.config.get("allow_inference", False):
            return True
        is_protected = any(topic_pattern.search(text) for topic_pattern in PROTECTED_TOPIC_PATTERNS.values())
        return claim["claim_kind"] != "format" and not is_protected

    def list_group(self, name: str) -> list[str]:
        """Return the claims of a group that can be stated, in order."""
        return self.filter_stateable(self.facts["claim_groups"].get(name, ()))

    def filter_stateable(self, claim_ids: Iterable[str]) -> list[str]:
        """Return the distinct claims that can be stated."""
        return [claim_id for claim_id in dict.fromkeys(claim_ids) if claim_id in self.claims]

    def state_claim(self, claim_id: str, text: str = "") -> str:
        """Render a claim as a statement on one line, followed by its marker."""
        statement = format_sentence(text or str(self.claims[claim_id]["claim_text"]))
        return f"{statement} {render_claim_marker([claim_id])}"

    @cached_property
    def snippets(self) -> tuple[PageSnippet, ...]:
        """The code that can be shown: it parses and has no Hugo shortcodes.

        Tests are excluded, because they show how the product is tested, not how it is used, and so is
        code with a value like a token, which no page may contain. A program that failed when it was run is
        excluded if there is other code in the product's language.
        """
        usable = []
        failed_ids = set()
        for entry in self.catalogue["snippets"]:
            language, tags, code = entry["language"], tuple(entry["tags"]), entry["code"]
            is_shown = entry["validation"]["syntax_ok"] is True and "test" not in tags and not re.search("{{[<%]", code)
            has_secrets = any(map(find_secrets, code.split("\n")))
            if is_shown and not has_secrets and not any(find_unknown_commands(code, language, self.facts)):
                path = entry["source"].get("path", "")
                dependencies = tuple(entry.get("requirements", {}).get("dependencies", ()))
                snippet = PageSnippet(entry["snippet_id"], language, tags, path, code.strip("\n"), dependencies)
                usable.append(snippet)
                if entry["validation"]["runnable_ok"] is False:
                    failed_ids.add(snippet.snippet_id)
        others = [snippet for snippet in usable if snippet.snippet_id not in failed_ids]
        has_program = any(is_compatible_language(snippet.language, self.language) for snippet in others)
        return tuple(sorted(others if has_program else usable, key=_rank_snippet))

    @cached_property
    def snippets_by_id(self) -> Mapping[str, PageSnippet]:
        """The code that can be shown, by its id."""
        return {snippet.snippet_id: snippet for snippet in self.snippets}

    @property
    def language(self) -> str:
        """The language of the product's own code."""
        return resolve_code_language(str(self.config.get("target_platform", "")))

    def find_snippets(self, tags: Iterable[str], language: str = "") -> list[PageSnippet]:
        """Return the snippets with any of these tags, the best first."""
        tagged = [snippet for snippet in self.snippets if not set(snippet.tags).isdisjoint(tags)]
        return [snippet for snippet in tagged if language in ("", snippet.language)]

    @property
    def workflows(self) -> Sequence[Mapping[str, Any]]:
        workflows: Sequence[Mapping[str, Any]] = self.facts["workflows"]
        return workflows

    @cached_property
    def classes(self) -> list[Mapping[str, Any]]:
        """The classes of the public API, including errors."""
        return list(self.facts["api_surface_summary"]["classes"])

    @cached_property
    def functions(self) -> list[Mapping[str, Any]]:
        """The functions of the public API."""
        return list(self.facts["api_surface_summary"]["functions"])

    @cached_property
    def constants(self) -> list[Mapping[str, Any]]:
        """The constants of the public API."""
        return list(self.facts["api_surface_summary"]["constants"])

    @property
    def symbols(self) -> list[Mapping[str, Any]]:
        """The entire public API, in the order of the facts."""
        return [*self.classes, *self.functions, *self.constants]

    @cached_property
    def requirements(self) -> list[str]:
        """The requirements of the product, without the notes about its licence and version."""
        excluded = (self.facts.get("license", {}).get("claim_id"), self.version_claim_id)
        return [claim_id for claim_id in self.list_group("compatibility_notes") if claim_id not in excluded]

    @property
    def version_claim_id(self) -> str:
        """The claim that states the version, or an empty text."""
        version = str(self.facts.get("version") or "")
        texts = {claim_id: self.claims[claim_id]["claim_text"] for claim_id in self.list_group("compatibility_notes")}
        matches = (key for key, text in texts.items() if version and version in text and "version of" in text.lower())
        return next(matches, "")


def _mentions_topic(topic: str, text: str) -> bool:
    topic_pattern = PROTECTED_TOPIC_PATTERNS.get(topic)
    name_match = re.search(rf"\b{re.escape(topic)}\b", text, re.IGNORECASE)
    return bool(name_match or (topic_pattern is not None and topic_pattern.search(text)))


def format_sentence(text: str) -> str:
    """Return a text on one line that ends with a full stop; its first letter is unchanged."""
    flat = _WHITESPACE_PATTERN.sub(" ", text).strip()
    return flat if not flat or flat[-1] in ".!?:" else f"{flat}."


def _rank_snippet(snippet: PageSnippet) -> int:
    ranks = (rank for rank, word in enumerate(_RANKED_TAGS) if any(word in tag for tag in snippet.tags))
    return next(ranks, len(_RANKED_TAGS))
