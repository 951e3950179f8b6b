"""The rules of risk as data: what their files may say, and how they are read.

A rule file is TOML with a list per kind: `[[source]]`, `[[sink]]`, `[[sanitizer]]` and `[[call]]`.
`languages` at the top of a file is the default for its rules; `*` is every language. Ours lie in
`rules/` beside this module, one file per language; a repository's own are read after them, and a
rule with an id that is already known replaces it. A rule that cannot be used is left out and said
in `problems`: somebody's typing error must not stop a build.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from cleats.toolsets.code.risk.patterns import compiled

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
Effect: TypeAlias = Literal["drops", "passes", "picks", "fills"]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]
Confidence: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

SEVERITIES = ("", "low", "medium", "high", "critical")
OURS = Path(__file__).parent / "rules"
MOST_BYTES = 1 << 20
"""A rule file is written by hand; what is larger is something else."""


class _Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Word
    patterns: list[str] = []
    languages: list[str] = []
    """Empty for those at the top of the file."""


class Condition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold for the arguments of a call: one of them has the text, or reads the name."""

    position: int | None = None
    keyword: str = ""
    """Which argument is meant; without both, any."""
    text: list[Word] = []
    """Words, one of which is in its literal text or in the text given to a variable that it reads.
    Case does not count. Not expressions: a repository's rules must not be able to stall a build."""
    names: list[str] = []
    absent: bool = False
    """The opposite must hold."""


class SourceRule(_Rule, frozen=True, kw_only=True):
    """Where a value enters that somebody else chose."""

    name: Word
    category: str = "input"
    tags: list[str] = []
    confidence: Confidence = 0.6
    parameters: list[Word] = []
    """A parameter is a source when its declaration has one of these words (`@RequestParam`), or
    whatever it is with `*`."""
    decorators: list[str] = []
    """With `parameters`: only of a function that has one of these decorators."""
    except_parameters: list[Word] = []
    """With `parameters`: words of declarations that are not meant (`HttpServletResponse`)."""
    beside: list[Word] = []
    """With `parameters`: only of a function that has another parameter of such a name (`res`)."""
    requires: list[Condition] = []
    """Of a call: what must hold for its arguments."""
    except_categories: list[str] = []
    """Those of sinks that it does no harm at: who is sent to where he is, is not sent away."""
    into: list[int] = []
    """Of a call: the arguments that it puts the value into (`fgets`)."""


class SinkRule(_Rule, frozen=True, kw_only=True):
    """What does harm with a value that somebody else chose."""

    name: Word
    category: Word
    tags: list[str] = []
    severity: Severity = "medium"
    confidence: Confidence = 0.6
    assigns: list[str] = []
    """Patterns of what must not be assigned such a value: `*.innerHTML`, or `return`."""
    decorators: list[str] = []
    """With `assigns`: only in a function that has one of these decorators."""
    arguments: list[int] = []
    keywords: list[str] = []
    """The arguments that do harm; all of them when neither is given, nor `receiver`."""
    receiver: bool = False
    """The object that the method belongs to does harm."""
    requires: list[Condition] = []
    beginning: bool = False
    """Only who chooses the beginning of the value does harm: an address goes where its host is."""
    unless: list[Word] = []
    """Modules; in a file that imports one of them it does no harm (`defusedxml`)."""
    alone: bool = True
    """It is said even where nothing untrusted reaches it; false for what every program does."""


class SanitizerRule(_Rule, frozen=True, kw_only=True):
    """A call whose result is harmless for the sinks of some categories."""

    name: Word
    category: str = "sanitize"
    tags: list[str] = []
    cleans: list[str]
    """Categories of sinks; `*` for all."""


class CallRule(_Rule, frozen=True, kw_only=True):
    """A call that everybody knows, so that nobody need look for its body.

    Its result has nothing of its arguments (`drops`), has them in it (`passes`), all but the first,
    by which something is looked up (`picks`), or the object that it belongs to has them from then
    on, too (`fills`).
    """

    effect: Effect
    into: list[int] = []
    """The arguments that it puts the others into (`strcpy`)."""
    checks: list[int] = []
    """The arguments that nobody else chose once this has been asked (`in_array`), -1 for the object
    that it belongs to: what is done with a wrong one is not looked at."""
    cleans: list[str] = []
    """With `checks`: the categories of sinks for which they are harmless then; all when empty.
    Without: those for which the result is harmless, as JSON is in a page."""


Rule: TypeAlias = SourceRule | SinkRule | SanitizerRule | CallRule
_KINDS: Mapping[str, type[Rule]] = {
    "source": SourceRule,
    "sink": SinkRule,
    "sanitizer": SanitizerRule,
    "call": CallRule,
}


class Rules:
    """All rules that apply, and the name of exactly this set."""

    def __init__(self, own: Mapping[str, Rule], problems: Sequence[str], fingerprint: str) -> None:
        self._own = own
        self.problems = problems
        self.fingerprint = fingerprint

    def of(self, lang: str) -> list[Rule]:
        """The rules for a language; ours for others are not even read."""
        rules = {rule.id: rule for file in _ours() if file.says(lang) for rule in file.rules()}
        rules.update(self._own)
        return [rule for rule in rules.values() if {lang, "*"}.intersection(rule.languages)]

    def all(self) -> list[Rule]:
        rules = {rule.id: rule for file in _ours() for rule in file.rules()}
        return list({**rules, **self._own}.values())


def load(extra: Iterable[Path] = ()) -> Rules:
    """Our rules and those of the given files, or of all `.toml` files in the given folders."""
    own: dict[str, Rule] = {}
    problems: list[str] = []
    seen = hashlib.blake2b(b"".join(file.data for file in _ours()), digest_size=16)
    for path in extra:
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            try:
                data = _content(file)
                found, said = _read(data, str(file))
            except OSError as error:
                found, said = {}, [f"{file}: cannot be read: {error.strerror}"]
            except ValueError as error:
                found, said = {}, [f"{file}: {error}"]
            own.update(found)
            problems.extend(said)
    seen.update(msgspec.json.encode([(type(rule).__name__, rule) for rule in own.values()]))
    return Rules(own, problems, seen.hexdigest())


class _Ours:
    """A file of ours, parsed when its language is met: a repository has few of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        self._languages = _head(self.data)
        self._rules: list[Rule] | None = None

    def says(self, lang: str) -> bool:
        return lang in self._languages or "*" in self._languages

    def rules(self) -> list[Rule]:
        if self._rules is None:
            found, problems = _read(self.data, str(self.path))
            if problems:
                raise ValueError("\n".join(problems))
            self._rules = list(found.values())
        return self._rules


@cache
def _ours() -> list[_Ours]:
    return [_Ours(path) for path in sorted(OURS.glob("*.toml"))]


def _head(data: bytes) -> list[str]:
    languages: list[str] = tomllib.loads(data.partition(b"[[")[0].decode())["languages"]
    return languages


def _content(file: Path) -> bytes:
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    return file.read_bytes()


def _read(data: bytes, file: str) -> tuple[dict[str, Rule], list[str]]:
    try:
        document = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return {}, [f"{file}: is not TOML: {error}"]
    languages = document.pop("languages", [])
    rules: dict[str, Rule] = {}
    problems: list[str] = []
    for kind, entries in document.items():
        if kind not in _KINDS or not isinstance(entries, list):
            known = ", ".join(f"[[{kind}]]" for kind in _KINDS)
            problems.append(f"{file}: {kind}: is not one of languages, {known}")
            continue
        for number, entry in enumerate(entries, 1):
            place = f"{file}: {kind} {_label(entry, number)}"
            try:
                rule = _checked(entry, _KINDS[kind], languages)
            except ValueError as error:
                problems.append(f"{place}: {error}")
                continue
            if rule.id in rules:
                problems.append(f"{place}: id: is used twice in this file")
            rules.setdefault(rule.id, rule)
    return rules, problems


def _label(entry: object, number: int) -> str:
    id_ = entry.get("id") if isinstance(entry, dict) else None
    return repr(id_) if isinstance(id_, str) else f"number {number}"


def _checked(entry: Any, kind: type[Rule], languages: object) -> Rule:
    if isinstance(entry, dict):
        entry = {"languages": languages, **entry}
    try:
        rule = msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at `$")
        raise ValueError(f"{field.rstrip('`').lstrip('.') or 'rule'}: {message}") from None
    if not rule.languages:
        raise ValueError("languages: names none")
    for field, texts in _patterns(rule):
        try:
            for text in texts:
                compiled(text, through=False)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None
    others = rule.parameters if isinstance(rule, SourceRule) else getattr(rule, "assigns", [])
    if not rule.patterns and not others:
        raise ValueError("patterns: names none")
    return rule


def _patterns(rule: Rule) -> list[tuple[str, list[str]]]:
    found = [("patterns", rule.patterns)]
    if isinstance(rule, SinkRule):
        found.append(("assigns", rule.assigns))
    if isinstance(rule, SourceRule | SinkRule):
        found.extend(("requires.names", condition.names) for condition in rule.requires)
        found.append(("decorators", rule.decorators))
    return found
