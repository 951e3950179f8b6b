"""The rules of one language, arranged by the questions that a function's steps ask."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.risk.patterns import LONGEST, MEMORY, Lookup, Pattern, compiled
from cleats.toolsets.code.risk.rules import (
    CallRule,
    Condition,
    Rule,
    Rules,
    SanitizerRule,
    SinkRule,
    SourceRule,
)

SELVES = frozenset({"self", "this", "cls", "super", "super()", "$this", "static", "parent", "me"})
"""What a method calls the object that it belongs to."""


class Callee(NamedTuple):
    """What is known about a call from its name alone."""

    receiver: str
    """What it is called on; empty for a plain function."""
    chained: str
    """The call whose result it is called on, as its own callee says."""
    sinks: tuple[tuple[str, SinkRule], ...]
    sources: tuple[tuple[str, SourceRule], ...]
    sanitizers: tuple[tuple[str, SanitizerRule], ...]
    cleans: list[str]
    """Categories of sinks for which what it passes on is harmless."""
    asks_receiver: bool
    """A sink is about what it is called on."""
    effect: str
    writes: tuple[tuple[str, SourceRule | CallRule], ...]
    """The rules by which it puts values into its arguments, or says that they are harmless."""
    plain: bool
    """No rule is about it."""


class Test(NamedTuple):
    """A condition, ready to be asked."""

    condition: Condition
    words: str
    """An expression, compiled when it is first asked; empty for none."""
    names: Lookup[bool]


class Book:
    """Everything that is asked about names in one language. Remembers what it was asked."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        called: list[tuple[Pattern, Rule]] = []
        read: list[tuple[Pattern, SourceRule]] = []
        assigned: list[tuple[Pattern, SinkRule]] = []
        self.parameters: list[SourceRule] = []
        self.beside: dict[str, frozenset[str]] = {}
        self.tests: dict[str, list[Test]] = {}
        """By rule; those that hold always are not here."""
        self._decorated: dict[str, Lookup[bool]] = {}
        for rule in rules:
            through = isinstance(rule, SourceRule)
            patterns = [compiled(text, through=through) for text in rule.patterns]
            called += [(pattern, rule) for pattern in patterns if not pattern.members]
            if isinstance(rule, SourceRule):
                read += [(pattern, rule) for pattern in patterns if not pattern.called]
                if rule.parameters:
                    self.parameters.append(rule)
                    self.beside[rule.id] = frozenset(rule.beside)
            elif isinstance(rule, SinkRule):
                assigned += [(compiled(text, through=False), rule) for text in rule.assigns]
            if isinstance(rule, SourceRule | SinkRule):
                if rule.decorators:
                    self._decorated[rule.id] = _names(rule.decorators)
                if rule.requires or (isinstance(rule, SinkRule) and rule.unless):
                    self.tests[rule.id] = [_test(condition) for condition in rule.requires]
        self._called = Lookup(called)
        self._callees: dict[str, Callee] = {}
        self.reads = Lookup(read)
        self.targets = Lookup(assigned)

    def callee(self, name: str) -> Callee:
        known = self._callees.get(name)
        if known is None:
            if len(name) > LONGEST:
                return self._classified(name)
            if len(self._callees) >= MEMORY:
                self._callees.clear()
            known = self._callees[name] = self._classified(name)
        return known

    def concerns(self, rule: SourceRule | SinkRule, decorators: Sequence[str]) -> bool:
        """Whether a rule is about functions with these decorators."""
        wanted = self._decorated.get(rule.id)
        return wanted is None or any(
            wanted(name.lstrip("@#[").partition("(")[0].strip()) for name in decorators
        )

    def _classified(self, name: str) -> Callee:
        receiver = receiver_of(name)
        end = receiver.rfind("()")
        met = self._called(name)
        hits = [(pattern.module, rule) for pattern, rule in met]
        sinks = tuple((module, rule) for module, rule in hits if isinstance(rule, SinkRule))
        sources = tuple((module, rule) for module, rule in hits if isinstance(rule, SourceRule))
        sanitizers = tuple(
            (module, rule) for module, rule in hits if isinstance(rule, SanitizerRule)
        )
        writes = tuple(
            (module, rule)
            for module, rule in hits
            if isinstance(rule, SourceRule | CallRule) and rule.into
        )
        # A rule that says what it is called on knows more than one for any object: `Paths.get`.
        known = sorted(met, key=lambda hit: bool(hit[0].head))
        writes += tuple(
            (pattern.module, rule)
            for pattern, rule in known
            if isinstance(rule, CallRule) and rule.checks
        )[:1]
        # What an object of the repository's own does is in its class, whatever others of that
        # name do.
        rules = [rule for _, rule in known if isinstance(rule, CallRule)]
        effect = rules[0].effect if rules and receiver not in SELVES else ""
        cleans = rules[0].cleans if effect and not rules[0].checks else []
        return Callee(
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


def receiver_of(name: str) -> str:
    """What a method is called on: all before the last separator."""
    cut = max(name.rfind("."), name.rfind("::"), name.rfind("->"))
    return name[:cut] if cut > 0 else ""


def _names(patterns: Sequence[str]) -> Lookup[bool]:
    return Lookup([(compiled(text, through=True), True) for text in patterns])


def _test(condition: Condition) -> Test:
    words = "|".join(_word(text) for text in condition.text)
    patterns = [(compiled(text, through=False), True) for text in condition.names]
    return Test(condition, words, Lookup(patterns))


def _word(text: str) -> str:
    """A text that stands for itself: letters next to it make another word of it."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return before + re.escape(text) + after


@lru_cache(maxsize=64)
def book_of(rules: Rules, lang: str) -> Book:
    return Book(rules.of(lang))
