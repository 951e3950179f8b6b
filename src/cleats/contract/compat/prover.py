"""Whether one schema takes everything that another takes: yes, no, or undecided.

Wraps `covers` of jsonschema-rs, an experimental call that has never been seen to say yes wrongly
(`tests/test_compat.py` keeps looking). Undecided stays undecided: the caller counts it as breaking.
"""

from enum import Enum, auto

import jsonschema_rs
from jsonschema_rs import canonical

from cleats.contract.binding import RESERVED
from cleats.contract.compat.keywords import (
    LISTS,
    MAPS,
    PLUMBING,
    SAME_IN_EVERY_DRAFT,
    SINGLES,
    WHOLE,
    WORDS,
    Schema,
    everywhere,
    old_draft,
    recursive,
)


class Verdict(Enum):
    YES = auto()
    NO = auto()
    UNKNOWN = auto()


def covers(large: Schema, small: Schema) -> Verdict:
    """Whether `large` takes every value that `small` takes.

    Servers differ in whether they enforce `format`, so the answer has to hold both ways.
    """
    large, small = comparable(large, small)
    if _fatal(large) or _fatal(small):
        return Verdict.UNKNOWN
    found = {_covers(large, small, formats=formats) for formats in (True, False)}
    if Verdict.NO in found:
        return Verdict.NO
    return Verdict.YES if found == {Verdict.YES} else Verdict.UNKNOWN


def _covers(large: Schema, small: Schema, *, formats: bool) -> Verdict:
    try:
        one, other = (
            jsonschema_rs.canonicalize(schema, validate_formats=formats, offline=True)
            for schema in (large, small)
        )
        answer = one.covers(other)
    except ValueError:  # no valid schema, a reference out of the document, an unknown dialect
        return Verdict.UNKNOWN
    if answer is canonical.Containment.YES:
        return Verdict.YES
    return Verdict.NO if answer is canonical.Containment.NO else Verdict.UNKNOWN


def _fatal(schema: Schema) -> bool:
    # A schema that meets itself beside `unevaluatedProperties` can make jsonschema-rs 0.60 run out
    # of stack, which ends the process and cannot be caught. Such schemas are not asked about.
    parts = (part for part in everywhere(schema) if isinstance(part, dict))
    return any(not WHOLE.isdisjoint(part) for part in parts) and recursive(schema)


def comparable(one: Schema, other: Schema) -> tuple[Schema, Schema]:
    """Both as plain schemas, of one draft when they use nothing that drafts disagree about."""
    one, other = spell_out(one), spell_out(other)
    if old_draft(one) is not old_draft(other) and _draftless(one) and _draftless(other):
        return _undated(one), _undated(other)
    return one, other


def spell_out(schema: Schema) -> Schema:
    """A reserved property is refused when it is set: in plain JSON Schema that is `false`."""
    if isinstance(schema, bool):
        return schema
    if schema.get(RESERVED):
        return False
    plain = dict(schema)
    for keyword in MAPS:
        if isinstance(held := plain.get(keyword), dict):
            plain[keyword] = {name: spell_out(part) for name, part in held.items()}
    for keyword in (*LISTS, *SINGLES):
        held = plain.get(keyword)
        if isinstance(held, dict):
            plain[keyword] = spell_out(held)
        elif isinstance(held, list):
            plain[keyword] = [spell_out(part) for part in held]
    return plain


def _draftless(schema: Schema) -> bool:
    return all(isinstance(part, bool) or _draftless_here(part) for part in everywhere(schema))


def _draftless_here(schema: dict[str, object]) -> bool:
    if "$ref" in schema and schema.keys() - WORDS - PLUMBING - {"$ref"}:
        return False
    return schema.keys() <= SAME_IN_EVERY_DRAFT and not isinstance(schema.get("items"), list)


def _undated(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
