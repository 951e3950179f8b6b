"""What may be said: the facts of a product, ready to be asked while a page is written.

Everything a page states comes through here, so here is decided what may not be stated: a claim
that lost against another, a guess about what is never guessed, and words that mean something to
Hugo. A statement leaves with its claim marker behind it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cleats.toolsets.launch.gates.consistency import INSTALL, SHELLS
from cleats.toolsets.launch.gates.truth_lock import TOPICS

_SHORTCODE = re.compile(r"\{\{")
_RANKS = ("example", "readme", "doc")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of code of the repository that parses."""

    snippet_id: str
    language: str
    tags: tuple[str, ...]
    path: str
    code: str


@dataclass(frozen=True)
class Material:
    """The facts, the evidence and the snippets of one run."""

    facts: Mapping[str, Any]
    evidence: Mapping[str, Any]
    catalogue: Mapping[str, Any]
    config: Mapping[str, Any]
    forbidden: tuple[str, ...] = ()
    """Topics that no page of the profile speaks of."""

    @property
    def product_name(self) -> str:
        return str(self.facts["product_name"])

    @cached_property
    def claims(self) -> Mapping[str, Mapping[str, Any]]:
        """The claims that may be stated, by id."""
        lost = {
            side
            for each in self.evidence.get("contradictions", ())
            for side in (each["claim_a_id"], each["claim_b_id"])
            if side != each["winning_claim_id"] or each["resolution"] == "unresolved"
        }
        return {
            claim["claim_id"]: claim
            for claim in self.evidence["claims"]
            if claim["claim_id"] not in lost and self._may_say(claim)
        }

    def _may_say(self, claim: Mapping[str, Any]) -> bool:
        text = claim["claim_text"]
        if _SHORTCODE.search(text) or any(_speaks_of(each, text) for each in self.forbidden):
            return False
        if claim["truth_status"] == "fact" or self.config.get("allow_inference", False):
            return True
        guarded = claim["claim_kind"] == "format"
        return not guarded and not any(words.search(text) for words in TOPICS.values())

    def group(self, name: str) -> list[str]:
        """The claims of a group that may be stated, in their order."""
        return self.known(self.facts["claim_groups"].get(name, ()))

    def known(self, ids: Iterable[str]) -> list[str]:
        """Keep the claims that may be stated, each once."""
        return [each for each in dict.fromkeys(ids) if each in self.claims]

    def of_kind(self, kind: str) -> list[str]:
        """The claims of a kind, in the order of the evidence."""
        return [key for key, claim in self.claims.items() if claim["claim_kind"] == kind]

    def say(self, claim_id: str, text: str = "") -> str:
        """A claim as a statement on one line, its marker behind it."""
        said = sentence(text or str(self.claims[claim_id]["claim_text"]))
        return f"{said} {marker(claim_id)}"

    @cached_property
    def snippets(self) -> tuple[Snippet, ...]:
        """The code that may be shown: it parses, and Hugo takes none of it for its own.

        A test shows how the product is tested, not how it is used.
        """
        found = [
            Snippet(
                each["snippet_id"],
                each["language"],
                tuple(each["tags"]),
                each["source"].get("path", ""),
                each["code"].strip("\n"),
            )
            for each in self.catalogue["snippets"]
            if each["validation"]["syntax_ok"] is True
            and "{{<" not in each["code"]
            and "{{%" not in each["code"]
            and "test" not in each["tags"]
            and not self._installs_otherwise(each)
        ]
        return tuple(sorted(found, key=_rank))

    def _installs_otherwise(self, snippet: Mapping[str, Any]) -> bool:
        """Whether code installs something in a way that no manifest names."""
        if snippet["language"] not in SHELLS:
            return False
        found = (INSTALL.match(line) for line in snippet["code"].splitlines())
        known = {" ".join(each.split()) for each in self.install_commands}
        return any(f and " ".join(f.group("command").split()) not in known for f in found)

    @property
    def language(self) -> str:
        """The language that the product's own code is in."""
        platform = str(self.config.get("target_platform", ""))
        return {"dotnet": "csharp"}.get(platform, platform)

    def tagged(self, tags: Iterable[str], language: str = "") -> list[Snippet]:
        """The snippets with any of these tags, the best first."""
        wanted = set(tags)
        return [
            each
            for each in self.snippets
            if wanted & set(each.tags) and (not language or each.language == language)
        ]

    @property
    def workflows(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.facts["workflows"]
        return found

    @cached_property
    def classes(self) -> list[Mapping[str, Any]]:
        """The classes of the public surface, what is raised included."""
        return list(self.facts["api_surface_summary"]["classes"])

    @cached_property
    def functions(self) -> list[Mapping[str, Any]]:
        """The functions of the public surface."""
        return list(self.facts["api_surface_summary"]["functions"])

    @property
    def symbols(self) -> list[Mapping[str, Any]]:
        """All of the public surface, in the order of the facts."""
        return [*self.classes, *self.functions]

    @cached_property
    def requirements(self) -> list[str]:
        """What the product needs; its licence and its version are notes too, and said elsewhere."""
        notes = self.group("compatibility_notes")
        licence = self.facts.get("license", {}).get("claim_id")
        version = self.version_claim
        return [each for each in notes if each not in (licence, version)]

    @property
    def version_claim(self) -> str:
        """The claim that says which version this is; empty when there is none."""
        version = str(self.facts.get("version") or "")
        for each in self.group("compatibility_notes"):
            text = self.claims[each]["claim_text"]
            if version and version in text and "version of" in text.lower():
                return each
        return ""

    @property
    def install_commands(self) -> list[str]:
        ways = self.facts.get("distribution", ())
        return list(dict.fromkeys(c for way in ways for c in way.get("install_commands", ())))


def _speaks_of(topic: str, text: str) -> bool:
    words = TOPICS.get(topic)
    named = re.search(rf"\b{re.escape(topic)}\b", text, re.IGNORECASE)
    return bool(named or (words is not None and words.search(text)))


def marker(claim_id: str) -> str:
    """Tie the statement before it to its evidence."""
    return f"<!-- claim_id: {claim_id} -->"


def sentence(text: str) -> str:
    """A text on one line that ends with a stop; names keep the letter they begin with."""
    flat = _SPACE.sub(" ", text).strip()
    return flat if not flat or flat[-1] in ".!?:" else f"{flat}."


def _rank(snippet: Snippet) -> tuple[int, str]:
    """Whole examples first, then the README, then documents, then the rest."""
    for rank, word in enumerate(_RANKS):
        if any(word in tag for tag in snippet.tags):
            return rank, ""
    return len(_RANKS), ""
