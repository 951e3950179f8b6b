"""Calls and values in their context: fixed hosts, checks, untrusted parameters and receivers.

Control over the later parts of an address cannot change its host, so a value with a fixed beginning
is harmless for some sinks.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from cleats.toolsets.code.analysis.facts import CONTINUED_TEXT_MARK, CallArgument, Chunk, DataFlowStep, Invocation
from cleats.toolsets.code.analysis.risk.rule_lookup import SELF_NAMES, LanguageRules
from cleats.toolsets.code.analysis.risk.rules import CallRule, SourceRule
from cleats.toolsets.code.analysis.risk.summary import RECEIVER_POSITION

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
    """Return True if a value begins with a trusted host or path.

    Args:
        names: The names in the value, as a step or an argument lists them.
        calls: The calls in the value.
        text: The literal text in the value.
        fixed_names: Names whose value has a fixed beginning.
        is_trusted: Returns True if the value of a name is trusted.
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
"""Parts of a value: a check of such a part covers the entire value, for some categories of
sinks."""
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
    """Yield each parameter with the text that declares it."""
    pieces = list(_split_parameters(chunk.signature))
    types = {typed.name: typed.type for typed in chunk.types if typed.where == "param"}
    for param in chunk.params:
        name = param.lstrip("*&.")
        if name in SELF_NAMES:
            continue
        declarations = (piece for piece in pieces if name in _WORD_PATTERN.findall(_ANNOTATION_PATTERN.sub(" ", piece)))
        yield param, next(declarations, types.get(name, ""))


def _split_parameters(signature: str) -> Iterator[str]:
    """Yield the declarations between the outermost parentheses of the parameters."""
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
