"""The rules of one language, indexed by the questions that the steps of a function ask."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.analysis.facts import CallArgument
from cleats.toolsets.code.analysis.risk.name_patterns import NameCache, NamePattern, PatternLookup, compile_pattern
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

    def is_met(self, arguments: Sequence[CallArgument], texts: Mapping[str, str]) -> bool:
        """Return True if the arguments of a call meet the condition.

        Args:
            arguments: The arguments of the call.
            texts: The literal texts that were assigned to variables.
        """
        condition = self.condition
        candidates = [
            argument
            for position, argument in enumerate(arguments)
            if (condition.position is None and not condition.keyword)
            or (condition.keyword and argument.keyword == condition.keyword)
            or (condition.position == position and not argument.keyword)
        ]
        if condition.text or condition.names:
            candidates = [argument for argument in candidates if self._matches(argument, texts)]
        return bool(candidates) != condition.absent

    def _matches(self, argument: CallArgument, texts: Mapping[str, str]) -> bool:
        if any(self.name_lookup[name] for name in argument.names):
            return True
        literal_texts = (argument.text, *(texts[name] for name in argument.names if name in texts))
        pattern = self.words_pattern
        return bool(pattern) and any(text and re.search(pattern, text, re.IGNORECASE) for text in literal_texts)


class LanguageRules:
    """All rules about the names of one language, with a cache of lookups."""

    def __init__(self, rules: Sequence[RiskRule]) -> None:
        call_entries: list[tuple[NamePattern, RiskRule]] = []
        read_entries: list[tuple[NamePattern, SourceRule]] = []
        assignment_entries: list[tuple[NamePattern, SinkRule]] = []
        self.parameter_rules: list[SourceRule] = []
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
            elif isinstance(rule, SinkRule):
                assignment_entries += [(compile_pattern(text, matches_members=False), rule) for text in rule.assigns]
            if isinstance(rule, SourceRule | SinkRule):
                if rule.decorators:
                    self._decorator_lookups[rule.id] = _compile_names(rule.decorators)
                if rule.requires:
                    self.conditions[rule.id] = [_compile_condition(condition) for condition in rule.requires]
        self._call_lookup = PatternLookup(call_entries)
        self.callees = NameCache(self._classify_callee)
        """The rules about calls by callee."""
        self.read_lookup = PatternLookup(read_entries)
        self.assignment_lookup = PatternLookup(assignment_entries)

    def applies_to(self, rule: SourceRule | SinkRule, decorators: Sequence[str]) -> bool:
        """Return True if a rule applies to functions with these decorators."""
        decorator_lookup = self._decorator_lookups.get(rule.id)
        return decorator_lookup is None or any(
            decorator_lookup[name.lstrip("@#[").partition("(")[0].strip()] for name in decorators
        )

    def _classify_callee(self, name: str) -> CalleeRules:
        receiver = extract_receiver(name)
        # A rule that names its receiver is more specific than one for any receiver: `Paths.get`.
        matches = self._call_lookup[name]
        sorted_matches = sorted(matches, key=lambda hit: bool(hit[0].head))
        hits = [(pattern.module, rule) for pattern, rule in matches]
        sorted_hits = [(pattern.module, rule) for pattern, rule in sorted_matches]
        sinks = tuple((module, rule) for module, rule in hits if isinstance(rule, SinkRule))
        sources = tuple((module, rule) for module, rule in hits if isinstance(rule, SourceRule))
        sanitizers = tuple((module, rule) for module, rule in hits if isinstance(rule, SanitizerRule))
        call_hits = [(module, rule) for module, rule in sorted_hits if isinstance(rule, CallRule)]
        writes = [(module, rule) for module, rule in hits if isinstance(rule, SourceRule | CallRule) and rule.into]
        checks = [(module, rule) for module, rule in call_hits if rule.checks]
        # The effect of a method of the object itself is in its class, whatever methods of that
        # name do elsewhere.
        effect_rule = call_hits[0][1] if call_hits and receiver not in SELF_NAMES else None
        return CalleeRules(
            receiver,
            receiver[: max(receiver.rfind("()"), 0)],
            sinks,
            sources,
            sanitizers,
            cleans=effect_rule.cleans if effect_rule and not effect_rule.checks else [],
            checks_receiver=any(rule.receiver for _, rule in sinks),
            effect=effect_rule.effect if effect_rule else "",
            writes=(*writes, *checks[:1]),
            has_no_rules=not (sinks or sources or sanitizers or effect_rule),
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
