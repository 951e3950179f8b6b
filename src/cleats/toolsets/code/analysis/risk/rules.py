"""The rules of risk analysis as data: their schema, and how rule files are read.

A rule file is TOML with a list per kind: `[[source]]`, `[[sink]]`, `[[sanitizer]]` and `[[call]]`. `languages` at the
top of a file is the default for its rules; `*` is every language. The built-in files are in `rules/` next to this
module, one per language; those of a repository are read after them, and a rule with a known id replaces the earlier
one. An invalid rule is skipped and reported in `problems`, because a typing error must not stop a build.

The names of the four rule classes are part of the fingerprint of custom rules: renaming one invalidates indexes.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from cleats.toolsets.code.analysis.risk.name_patterns import compile_pattern

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
Effect: TypeAlias = Literal["drops", "passes", "picks", "fills"]
NonEmptyText: TypeAlias = Annotated[str, Meta(min_length=1)]
Confidence: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

SEVERITY_LEVELS = ("", "low", "medium", "high", "critical")
BUILTIN_RULES_DIR = Path(__file__).parent / "rules"
MAX_RULE_FILE_BYTES = 1 << 20
"""The largest rule file; rule files are written by hand, so a larger one is something else."""


class _BaseRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: NonEmptyText
    patterns: list[str] = []
    languages: list[str] = []
    """Empty for the languages at the top of the file."""


class ArgumentCondition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition on the arguments of a call: one of them has the text, or reads the name."""

    position: int | None = None
    keyword: str = ""
    """The argument that is meant; any argument if neither position nor keyword is given."""
    text: list[NonEmptyText] = []
    """Words, one of which is in the literal text or in the text assigned to a variable that the argument reads. Case is
    ignored. Regular expressions are not supported: the rules of a repository must not be able to stall a build."""
    names: list[str] = []
    absent: bool = False
    """True if the opposite must hold."""


class SourceRule(_BaseRule, frozen=True, kw_only=True):
    """A place at which an untrusted value enters."""

    name: NonEmptyText
    category: str = "input"
    tags: list[str] = []
    confidence: Confidence = 0.6
    parameters: list[NonEmptyText] = []
    """A parameter is a source if its declaration has one of these words (`@RequestParam`); `*`
    includes every parameter."""
    decorators: list[str] = []
    """With `parameters`: only for functions with one of these decorators."""
    except_parameters: list[NonEmptyText] = []
    """With `parameters`: words of declarations that are excluded (`HttpServletResponse`)."""
    beside: list[NonEmptyText] = []
    """With `parameters`: only for functions that have another parameter with such a name (`res`)."""
    requires: list[ArgumentCondition] = []
    """For calls: conditions on the arguments."""
    except_categories: list[str] = []
    """Categories of sinks at which the value is harmless: a redirect to the current address is safe."""
    into: list[int] = []
    """For calls: the arguments into which the call puts the value (`fgets`)."""


class SinkRule(_BaseRule, frozen=True, kw_only=True):
    """An operation that is dangerous with an untrusted value."""

    name: NonEmptyText
    category: NonEmptyText
    tags: list[str] = []
    severity: Severity = "medium"
    confidence: Confidence = 0.6
    assigns: list[str] = []
    """Patterns of targets that must not be assigned such a value: `*.innerHTML`, or `return`."""
    decorators: list[str] = []
    """With `assigns`: only in functions with one of these decorators."""
    arguments: list[int] = []
    keywords: list[str] = []
    """The dangerous arguments; all of them if neither `arguments`, `keywords` nor `receiver` is given."""
    receiver: bool = False
    """True if the receiver of the method is dangerous."""
    requires: list[ArgumentCondition] = []
    beginning: bool = False
    """True if only control over the beginning of the value is dangerous: the host decides where an address leads."""
    unless: list[NonEmptyText] = []
    """Modules that make the operation harmless in a file that imports them (`defusedxml`)."""
    alone: bool = True
    """True if the sink is reported even if nothing untrusted reaches it; false for common operations."""


class SanitizerRule(_BaseRule, frozen=True, kw_only=True):
    """A call whose result is harmless for some categories of sinks."""

    name: NonEmptyText
    category: str = "sanitize"
    tags: list[str] = []
    cleans: list[str]
    """Categories of sinks; `*` for all."""


class CallRule(_BaseRule, frozen=True, kw_only=True):
    """A well-known call, whose body need not be resolved.

    The result contains none of the arguments (`drops`), all of them (`passes`), all but the first,
    which is a lookup key (`picks`), or the receiver contains them from then on, too (`fills`).
    """

    effect: Effect
    into: list[int] = []
    """The arguments into which the call puts the others (`strcpy`)."""
    checks: list[int] = []
    """The arguments that are trusted after this check (`in_array`), -1 for the receiver; the
    handling of rejected values is not examined."""
    cleans: list[str] = []
    """With `checks`: the categories of sinks for which the arguments are harmless then; all if
    empty. Without: those for which the result is harmless, as JSON is in a page."""


RiskRule: TypeAlias = SourceRule | SinkRule | SanitizerRule | CallRule
_RULE_TYPES_BY_KIND: Mapping[str, type[RiskRule]] = {
    "source": SourceRule,
    "sink": SinkRule,
    "sanitizer": SanitizerRule,
    "call": CallRule,
}


class RiskRules:
    """All rules that apply, and the fingerprint of this set."""

    def __init__(self, custom_rules: Mapping[str, RiskRule], problems: Sequence[str], fingerprint: str) -> None:
        self._custom_rules = custom_rules
        self.problems = problems
        self.fingerprint = fingerprint

    def select_for_language(self, lang: str) -> list[RiskRule]:
        """Return the rules for a language; built-in files for other languages are not parsed."""
        names = {lang, "*"}
        files = [file for file in _builtin_rule_files() if names.intersection(file.languages)]
        rules = {rule.id: rule for file in files for rule in file.rules} | dict(self._custom_rules)
        return [rule for rule in rules.values() if names.intersection(rule.languages)]


def load_rules(paths: Iterable[Path] = ()) -> RiskRules:
    """Load the built-in rules and those of files, or of all `.toml` files in folders."""
    custom_rules: dict[str, RiskRule] = {}
    problems: list[str] = []
    digest = hashlib.blake2b(b"".join(file.data for file in _builtin_rule_files()), digest_size=16)
    for path in paths:
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            try:
                if file.stat().st_size > MAX_RULE_FILE_BYTES:
                    problems.append(f"{file}: larger than {MAX_RULE_FILE_BYTES} bytes")
                    continue
                file_rules, file_problems = _parse_rules(file.read_bytes(), str(file))
            except OSError as error:
                problems.append(f"{file}: cannot be read: {error.strerror}")
                continue
            custom_rules.update(file_rules)
            problems.extend(file_problems)
    digest.update(msgspec.json.encode([(type(rule).__name__, rule) for rule in custom_rules.values()]))
    return RiskRules(custom_rules, problems, digest.hexdigest())


class _BuiltinRuleFile:
    """A built-in rule file, parsed when its language occurs: a repository has few languages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        self.languages: list[str] = tomllib.loads(self.data.partition(b"[[")[0].decode())["languages"]

    @cached_property
    def rules(self) -> list[RiskRule]:
        rules, problems = _parse_rules(self.data, str(self.path))
        if problems:
            raise ValueError("\n".join(problems))
        return list(rules.values())


@cache
def _builtin_rule_files() -> list[_BuiltinRuleFile]:
    return [_BuiltinRuleFile(path) for path in sorted(BUILTIN_RULES_DIR.glob("*.toml"))]


def _parse_rules(data: bytes, file: str) -> tuple[dict[str, RiskRule], list[str]]:
    try:
        document = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return {}, [f"{file}: is not TOML: {error}"]
    languages = document.pop("languages", [])
    rules: dict[str, RiskRule] = {}
    problems: list[str] = []
    for kind, entries in document.items():
        if kind not in _RULE_TYPES_BY_KIND or not isinstance(entries, list):
            valid_kinds = ", ".join(f"[[{kind}]]" for kind in _RULE_TYPES_BY_KIND)
            problems.append(f"{file}: {kind}: is not one of languages, {valid_kinds}")
            continue
        for number, entry in enumerate(entries, 1):
            id_ = entry.get("id") if isinstance(entry, dict) else None
            location = f"{file}: {kind} {id_!r}" if isinstance(id_, str) else f"{file}: {kind} number {number}"
            try:
                rule = _validate_rule(entry, _RULE_TYPES_BY_KIND[kind], languages)
            except ValueError as error:
                problems.append(f"{location}: {error}")
                continue
            if rule.id in rules:
                problems.append(f"{location}: id: is used twice in this file")
            rules.setdefault(rule.id, rule)
    return rules, problems


def _validate_rule(entry: Any, kind: type[RiskRule], languages: object) -> RiskRule:
    if isinstance(entry, dict):
        entry = {"languages": languages, **entry}
    try:
        rule = msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at `$")
        raise ValueError(f"{field.rstrip('`').lstrip('.') or 'rule'}: {message}") from None
    if not rule.languages:
        raise ValueError("languages: the list is empty")
    for field, texts in _list_patterns(rule):
        try:
            for text in texts:
                compile_pattern(text, matches_members=False)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None
    other_patterns = rule.parameters if isinstance(rule, SourceRule) else getattr(rule, "assigns", [])
    if not rule.patterns and not other_patterns:
        raise ValueError("patterns: the list is empty")
    return rule


def _list_patterns(rule: RiskRule) -> list[tuple[str, list[str]]]:
    pattern_fields = [("patterns", rule.patterns)]
    if isinstance(rule, SinkRule):
        pattern_fields.append(("assigns", rule.assigns))
    if isinstance(rule, SourceRule | SinkRule):
        pattern_fields.extend(("requires.names", condition.names) for condition in rule.requires)
        pattern_fields.append(("decorators", rule.decorators))
    return pattern_fields
