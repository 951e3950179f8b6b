"""The rules of one language, indexed by the questions that the steps of a function ask."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.analysis.risk.name_patterns import (
    MAX_CACHED_NAMES,
    MAX_NAME_CHARS,
    NamePattern,
    PatternLookup,
    compile_pattern,
)
from cleats.toolsets.code.analysis.risk.rules import (
    ArgumentCondition,
    CallRule,
    RiskRule,
    RiskRules,
    SanitizerRule,
    SinkRule,
    SourceRule,
)

SELF_NAMES = frozenset({"self", "this", "cls", "super", "super()", "$this", "static", "parent", "me"})
"""The names by which a method refers to its own object."""


class CalleeRules(NamedTuple):
    """The rules that apply to a call, judging by its name alone."""

    receiver: str
    """The object that the method is called on; empty for a plain function."""
    chained_callee: str
    """The callee of the call whose result this one is called on."""
    sinks: tuple[tuple[str, SinkRule], ...]
    sources: tuple[tuple[str, SourceRule], ...]
    sanitizers: tuple[tuple[str, SanitizerRule], ...]
    cleans: list[str]
    """Categories of sinks for which the result is harmless."""
    checks_receiver: bool
    """True if a sink depends on the receiver."""
    effect: str
    writes: tuple[tuple[str, SourceRule | CallRule], ...]
    """The rules by which the call puts values into its arguments, or marks them as harmless."""
    has_no_rules: bool
    """True if no rule applies to the call."""


class CompiledCondition(NamedTuple):
    """A condition, ready for evaluation."""

    condition: ArgumentCondition
    words_pattern: str
    """A regular expression that is compiled at first use; empty if there are no words."""
    name_lookup: PatternLookup[bool]


class LanguageRules:
    """All rules about the names of one language, with a cache of lookups."""

    def __init__(self, rules: Sequence[RiskRule]) -> None:
        call_entries: list[tuple[NamePattern, RiskRule]] = []
        read_entries: list[tuple[NamePattern, SourceRule]] = []
        assignment_entries: list[tuple[NamePattern, SinkRule]] = []
        self.parameter_rules: list[SourceRule] = []
        self.companion_names: dict[str, frozenset[str]] = {}
        self.conditions: dict[str, list[CompiledCondition]] = {}
        """Conditions by rule id; unconditional rules are absent."""
        self._decorator_lookups: dict[str, PatternLookup[bool]] = {}
        for rule in rules:
            through = isinstance(rule, SourceRule)
            patterns = [compile_pattern(text, matches_members=through) for text in rule.patterns]
            call_entries += [(pattern, rule) for pattern in patterns if not pattern.matches_members_only]
            if isinstance(rule, SourceRule):
                read_entries += [(pattern, rule) for pattern in patterns if not pattern.is_call]
                if rule.parameters:
                    self.parameter_rules.append(rule)
                    self.companion_names[rule.id] = frozenset(rule.beside)
            elif isinstance(rule, SinkRule):
                assignment_entries += [(compile_pattern(text, matches_members=False), rule) for text in rule.assigns]
            if isinstance(rule, SourceRule | SinkRule):
                if rule.decorators:
                    self._decorator_lookups[rule.id] = _compile_names(rule.decorators)
                if rule.requires or (isinstance(rule, SinkRule) and rule.unless):
                    self.conditions[rule.id] = [_compile_condition(condition) for condition in rule.requires]
        self._call_lookup = PatternLookup(call_entries)
        self._callee_cache: dict[str, CalleeRules] = {}
        self.read_lookup = PatternLookup(read_entries)
        self.assignment_lookup = PatternLookup(assignment_entries)

    def find_callee(self, name: str) -> CalleeRules:
        cached = self._callee_cache.get(name)
        if cached is None:
            if len(name) > MAX_NAME_CHARS:
                return self._classify_callee(name)
            if len(self._callee_cache) >= MAX_CACHED_NAMES:
                self._callee_cache.clear()
            cached = self._callee_cache[name] = self._classify_callee(name)
        return cached

    def applies_to(self, rule: SourceRule | SinkRule, decorators: Sequence[str]) -> bool:
        """Return True if a rule applies to functions with these decorators."""
        decorator_lookup = self._decorator_lookups.get(rule.id)
        return decorator_lookup is None or any(
            decorator_lookup(name.lstrip("@#[").partition("(")[0].strip()) for name in decorators
        )

    def _classify_callee(self, name: str) -> CalleeRules:
        receiver = extract_receiver(name)
        end = receiver.rfind("()")
        matches = self._call_lookup(name)
        hits = [(pattern.module, rule) for pattern, rule in matches]
        sinks = tuple((module, rule) for module, rule in hits if isinstance(rule, SinkRule))
        sources = tuple((module, rule) for module, rule in hits if isinstance(rule, SourceRule))
        sanitizers = tuple((module, rule) for module, rule in hits if isinstance(rule, SanitizerRule))
        writes = tuple((module, rule) for module, rule in hits if isinstance(rule, SourceRule | CallRule) and rule.into)
        # A rule that names its receiver is more specific than one for any receiver: `Paths.get`.
        sorted_matches = sorted(matches, key=lambda hit: bool(hit[0].head))
        writes += tuple(
            (pattern.module, rule) for pattern, rule in sorted_matches if isinstance(rule, CallRule) and rule.checks
        )[:1]
        # The effect of a method of the object itself is in its class, whatever methods of that
        # name do elsewhere.
        call_rules = [rule for _, rule in sorted_matches if isinstance(rule, CallRule)]
        effect = call_rules[0].effect if call_rules and receiver not in SELF_NAMES else ""
        cleans = call_rules[0].cleans if effect and not call_rules[0].checks else []
        return CalleeRules(
            receiver,
            receiver[:end] if end > 0 else "",
            sinks,
            sources,
            sanitizers,
            cleans,
            any(rule.receiver for _, rule in sinks),
            effect,
            writes,
            not (sinks or sources or sanitizers or effect),
        )


def extract_receiver(name: str) -> str:
    """Return the object that a method is called on: everything before the last separator."""
    cut = max(name.rfind("."), name.rfind("::"), name.rfind("->"))
    return name[:cut] if cut > 0 else ""


def _compile_names(patterns: Sequence[str]) -> PatternLookup[bool]:
    return PatternLookup([(compile_pattern(text, matches_members=True), True) for text in patterns])


def _compile_condition(condition: ArgumentCondition) -> CompiledCondition:
    words = "|".join(_word_regex(text) for text in condition.text)
    patterns = [(compile_pattern(text, matches_members=False), True) for text in condition.names]
    return CompiledCondition(condition, words, PatternLookup(patterns))


def _word_regex(text: str) -> str:
    """Return a regular expression that matches a text only as a whole word."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return before + re.escape(text) + after


@lru_cache(maxsize=64)
def compile_rules(rules: RiskRules, lang: str) -> LanguageRules:
    return LanguageRules(rules.select_for_language(lang))
