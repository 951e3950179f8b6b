"""The rules of one language, indexed by the questions that the steps of a function ask, and what decides about them.

Whether a rule applies depends on the context of a call: fixed hosts, checks, untrusted parameters and receivers.
Control over the later parts of an address cannot change its host, so a value with a fixed beginning is harmless for
some sinks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.analysis.facts import CONTINUED_TEXT_MARK, CallArgument, Chunk, DataFlowStep, Invocation
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
from cleats.toolsets.code.analysis.risk.summary import RECEIVER_POSITION

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


class CompiledCondition:
    """A condition, ready for evaluation."""

    def __init__(self, condition: ArgumentCondition) -> None:
        self.condition = condition
        self.words_pattern = "|".join(map(_word_regex, condition.text))
        """A regular expression that is compiled at first use; empty if there are no words."""
        names = [(compile_pattern(text, matches_members=False), True) for text in condition.names]
        self.name_lookup = PatternLookup(names)

    def is_met(self, arguments: Sequence[CallArgument], texts: Mapping[str, str]) -> bool:
        """Return True if the arguments of a call meet it; `texts` are literals that were assigned to variables."""
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
                    names = [(compile_pattern(text, matches_members=True), True) for text in rule.decorators]
                    self._decorator_lookups[rule.id] = PatternLookup(names)
                if rule.requires:
                    self.conditions[rule.id] = list(map(CompiledCondition, rule.requires))
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
        hits = [(pattern.module, rule) for pattern, rule in matches]
        sorted_matches = sorted(matches, key=lambda hit: bool(hit[0].head))
        sinks = tuple((module, rule) for module, rule in hits if isinstance(rule, SinkRule))
        sources = tuple((module, rule) for module, rule in hits if isinstance(rule, SourceRule))
        sanitizers = tuple((module, rule) for module, rule in hits if isinstance(rule, SanitizerRule))
        call_hits = [(pattern.module, rule) for pattern, rule in sorted_matches if isinstance(rule, CallRule)]
        writes = [(module, rule) for module, rule in hits if isinstance(rule, SourceRule | CallRule) and rule.into]
        checks = [(module, rule) for module, rule in call_hits if rule.checks]
        # The effect of a method of the object itself is in its class, whatever methods of that name do elsewhere.
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


def _word_regex(text: str) -> str:
    before = r"(?<!\w)" if text[0].isalnum() else ""
    after = r"(?!\w)" if text[-1].isalnum() else ""
    return before + re.escape(text) + after


@lru_cache(maxsize=64)
def compile_rules(rules: RiskRules, lang: str) -> LanguageRules:
    return LanguageRules(rules.select_for_language(lang))


_FIXED_HOST_PATTERN = re.compile(
    r"(?:location:\s*|redirect:)?(?:https?://[\w-][^/]*/|\.{0,2}/[^/\\\s]|[?#])", re.IGNORECASE
)
"""The beginning of an address with a host, a path or a query: later text cannot change the host."""
_FORMAT_FUNCTIONS = frozenset({"fmt.Sprintf", "String.format", "sprintf", "util.format"})
"""Functions whose result begins as their first argument does."""


def is_format_call(step: DataFlowStep) -> bool:
    """Return True if the value of a step is the result of a text formatting function."""
    return bool(step.outer) and step.calls[step.outer[0]].callee in _FORMAT_FUNCTIONS


def has_fixed_host(
    names: Sequence[str],
    calls: Sequence[Invocation],
    text: str,
    fixed_names: AbstractSet[str],
    is_trusted: Callable[[str], bool],
) -> bool:
    """Return True if a value of names, calls and literal text begins with a trusted host or path.

    `fixed_names` are those whose value has a fixed beginning.
    """
    if text and not text.startswith(CONTINUED_TEXT_MARK):
        return _FIXED_HOST_PATTERN.match(text) is not None
    if not names:
        format_calls = [call for call in calls[:1] if call.callee in _FORMAT_FUNCTIONS and call.arguments]
        return any(_FIXED_HOST_PATTERN.match(call.arguments[0].text) for call in format_calls)
    if names[0] in fixed_names:
        return True
    # Without a slash between them, the names could be alternatives.
    is_joined_path = len(names) > 1 and not calls and text.startswith(f"{CONTINUED_TEXT_MARK}/")
    return is_joined_path and is_trusted(names[0])


_CATEGORIES_BY_PART = {
    **{part: ["redirect", "ssrf"] for part in ("host", "hostname", "netloc", "origin", "domain")},
    "parents": ["path", "file-write"],
}
"""Parts of a value: a check of such a part covers the entire value, for some categories of sinks."""
_REGISTRATION_METHODS = frozenset({"get", "post", "put", "patch", "delete", "all", "use"})


def is_handler_registration(call: Invocation) -> bool:
    """Return True if a call registers an anonymous function as a request handler."""
    if call.callee.rpartition(".")[2] not in _REGISTRATION_METHODS or not call.arguments:
        return False
    last_argument = call.arguments[-1]
    return not (last_argument.names or last_argument.calls or last_argument.text)


def find_checked_names(rule: CallRule, call: Invocation, receiver: str) -> list[str]:
    """Return the names that a call checks.

    Elements are left out, because it is unknown which of them is meant. So is a name that is
    compared with literal text only: `url.startswith("http")` allows nearly everything.
    """
    arguments = call.arguments
    names = [name for position, argument in enumerate(arguments) if position in rule.checks for name in argument.names]
    if RECEIVER_POSITION in rule.checks and (
        not arguments or any(argument.names or argument.calls for argument in arguments)
    ):
        names.append(receiver)
    return [name for name in names if not name.endswith("[]")]


def find_checked_parts(
    call: Invocation, calls: Sequence[Invocation], values: Sequence[int]
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the value of each checked part, the name it is a part of, and the safe categories.

    `calls` are those of the step: in `allowed.contains(uri.getHost())` the part is a call.
    Arguments without a value are skipped.
    """
    for argument, value in zip(call.arguments, values, strict=True):
        if not value:
            continue
        for name in (*argument.names, *(calls[inner].callee for inner in argument.calls)):
            base_name, _, part = name.rpartition(".")
            cleans = _CATEGORIES_BY_PART.get(part.lower().removeprefix("get"))
            if cleans:
                yield value, base_name, cleans


_WORD_PATTERN = re.compile(r"[\w$]+")
_ANNOTATION_PATTERN = re.compile(r"@[\w.]+(?:\([^()]*\))?")
_OPENING_BRACKETS, _CLOSING_BRACKETS = "([{<", ")]}>"


def find_untrusted_parameters(chunk: Chunk, rules: LanguageRules) -> Iterator[tuple[str, SourceRule]]:
    """Yield the parameters of a function that are sources themselves, with their rules."""
    if not chunk.params or not rules.parameter_rules:
        return
    for rule in rules.parameter_rules:
        includes_all = "*" in rule.parameters
        if rule.beside and set(rule.beside).isdisjoint(chunk.params):
            continue
        if not includes_all and not any(word in chunk.signature for word in rule.parameters):
            continue
        if not rules.applies_to(rule, chunk.decorators):
            continue
        for name, declaration in _iter_declarations(chunk):
            words = f" {declaration} "
            if (includes_all or any(word in words for word in rule.parameters)) and not any(
                word in words for word in rule.except_parameters
            ):
                yield name, rule


def _iter_declarations(chunk: Chunk) -> Iterator[tuple[str, str]]:
    pieces = list(_split_parameters(chunk.signature))
    types = {typed.name: typed.type for typed in chunk.types if typed.where == "param"}
    for param in chunk.params:
        name = param.lstrip("*&.")
        if name in SELF_NAMES:
            continue
        declarations = (piece for piece in pieces if name in _WORD_PATTERN.findall(_ANNOTATION_PATTERN.sub(" ", piece)))
        yield param, next(declarations, types.get(name, ""))


def _split_parameters(signature: str) -> Iterator[str]:
    start = signature.find("(")
    # The parentheses of an annotation in front of the name are not those of the parameters.
    for match in _ANNOTATION_PATTERN.finditer(signature):
        if match.start() < start < match.end():
            start = signature.find("(", match.end())
    if start < 0:
        return
    depth, begin = 0, start + 1
    for position in range(start, len(signature)):
        letter = signature[position]
        if letter in _OPENING_BRACKETS:
            depth += 1
        elif letter in _CLOSING_BRACKETS and signature[position - 1 : position + 1] not in ("->", "=>"):
            depth -= 1
        if (letter == "," and depth == 1) or depth == 0:
            yield signature[begin:position]
            begin = position + 1
        if depth == 0:
            return


def has_nameless_receiver(call: Invocation, calls: Sequence[Invocation]) -> bool:
    """Return True if a method is called on an expression, maybe after calls without arguments."""
    first, _, rest = call.callee.partition("()")
    if "." in first:
        return False
    return not rest or any(inner_call.callee == first and not inner_call.arguments for inner_call in calls)


def find_enclosing_value(step: DataFlowStep, position: int) -> DataFlowStep | CallArgument:
    """Return the value that includes the result of a call: an argument, or the step itself."""
    for call in step.calls:
        for argument in call.arguments:
            if position in argument.calls:
                return argument
    return step
