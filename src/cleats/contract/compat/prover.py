"""The containment test: does one schema accept everything that another accepts? Yes, no, undecided.

Wraps `covers` of jsonschema-rs, an experimental call that has never been seen to say yes wrongly
(`tests/contract/compat/test_compat.py` keeps looking). Undecided stays undecided: the caller counts it as breaking.
"""

from enum import Enum, auto

import jsonschema_rs
from jsonschema_rs import canonical

from cleats.contract.arguments import RESERVED_KEYWORD
from cleats.contract.compat.keywords import (
    DOCUMENTATION_KEYWORDS,
    DRAFT_INDEPENDENT_KEYWORDS,
    INSEPARABLE_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    SINGLE_SCHEMA_KEYWORDS,
    STRUCTURE_KEYWORDS,
    Schema,
    is_old_draft,
    is_recursive,
    walk_schemas,
)


class CoverageVerdict(Enum):
    YES = auto()
    NO = auto()
    UNKNOWN = auto()


def check_coverage(large: Schema, small: Schema) -> CoverageVerdict:
    """Decide if `large` accepts every value that `small` accepts.

    Servers differ in whether they enforce `format`, so the result has to hold both ways.
    """
    large, small = make_comparable(large, small)
    if _can_crash_prover(large) or _can_crash_prover(small):
        return CoverageVerdict.UNKNOWN
    verdicts = {_check_canonical_coverage(large, small, formats=formats) for formats in (True, False)}
    if CoverageVerdict.NO in verdicts:
        return CoverageVerdict.NO
    return CoverageVerdict.YES if verdicts == {CoverageVerdict.YES} else CoverageVerdict.UNKNOWN


def _check_canonical_coverage(large: Schema, small: Schema, *, formats: bool) -> CoverageVerdict:
    try:
        large_canonical, small_canonical = (
            jsonschema_rs.canonicalize(schema, validate_formats=formats, offline=True) for schema in (large, small)
        )
        answer = large_canonical.covers(small_canonical)
    except ValueError:  # no valid schema, a reference out of the document, an unknown dialect
        return CoverageVerdict.UNKNOWN
    if answer is canonical.Containment.YES:
        return CoverageVerdict.YES
    return CoverageVerdict.NO if answer is canonical.Containment.NO else CoverageVerdict.UNKNOWN


def _can_crash_prover(schema: Schema) -> bool:
    # A recursive schema with `unevaluatedProperties` can make jsonschema-rs 0.60 overflow its
    # stack, which ends the process and cannot be caught. Such schemas are not submitted to it.
    parts = (part for part in walk_schemas(schema) if isinstance(part, dict))
    return any(not INSEPARABLE_KEYWORDS.isdisjoint(part) for part in parts) and is_recursive(schema)


def make_comparable(one: Schema, other: Schema) -> tuple[Schema, Schema]:
    """Return both as plain schemas, of one draft if they use nothing on which drafts disagree."""
    one, other = expand_reserved(one), expand_reserved(other)
    if is_old_draft(one) is not is_old_draft(other) and _is_draft_independent(one) and _is_draft_independent(other):
        return _drop_schema_dialect(one), _drop_schema_dialect(other)
    return one, other


def expand_reserved(schema: Schema) -> Schema:
    """Replace reserved properties, which are refused when set, by `false` in plain JSON Schema."""
    if isinstance(schema, bool):
        return schema
    if schema.get(RESERVED_KEYWORD):
        return False
    plain = dict(schema)
    for keyword in SCHEMA_MAP_KEYWORDS:
        if isinstance(value := plain.get(keyword), dict):
            plain[keyword] = {name: expand_reserved(part) for name, part in value.items()}
    for keyword in (*SCHEMA_LIST_KEYWORDS, *SINGLE_SCHEMA_KEYWORDS):
        value = plain.get(keyword)
        if isinstance(value, dict):
            plain[keyword] = expand_reserved(value)
        elif isinstance(value, list):
            plain[keyword] = [expand_reserved(part) for part in value]
    return plain


def _is_draft_independent(schema: Schema) -> bool:
    return all(isinstance(part, bool) or _is_part_draft_independent(part) for part in walk_schemas(schema))


def _is_part_draft_independent(schema: dict[str, object]) -> bool:
    if "$ref" in schema and schema.keys() - DOCUMENTATION_KEYWORDS - STRUCTURE_KEYWORDS - {"$ref"}:
        return False
    return schema.keys() <= DRAFT_INDEPENDENT_KEYWORDS and not isinstance(schema.get("items"), list)


def _drop_schema_dialect(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
