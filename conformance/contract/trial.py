"""One random change: what the gate says of it, and what an independent validator says of that."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import jsonschema_rs
import referencing.exceptions

from cleats.contract.compat.findings import ContractFinding, ContractSide
from cleats.contract.compat.rules import BumpLevel
from cleats.contract.compat.schema_diff import compare_schemas
from conformance.contract.edits import edit_document
from conformance.contract.grammar import DRAFT_7, Json, SchemaGrammar
from conformance.contract.values import ValueSampler

VALUES_PER_VERDICT = 40
"""Random values on which a verdict is checked."""


@dataclass
class Trial:
    """One change and the outcome of its checks."""

    seed: str
    old: Json
    new: Json
    side: ContractSide
    strict: bool
    features: frozenset[str]
    findings: list[ContractFinding]
    unsafe_value: Json = None
    is_unsafe: bool = False
    false_witnesses: list[ContractFinding] = field(default_factory=list)
    missed: Json = None
    """A value that the gate did not find, for a breaking verdict without any witness."""
    is_missed: bool = False

    @property
    def breaking(self) -> list[ContractFinding]:
        return [finding for finding in self.findings if finding.rule.level is BumpLevel.MAJOR]

    @property
    def is_breaking(self) -> bool:
        return bool(self.breaking)

    @property
    def has_witness(self) -> bool:
        return any(finding.witness is not None and finding.witness.is_refused for finding in self.breaking)

    def describe(self) -> str:
        """Describe the change so that it can be reproduced by hand."""
        facts = {"seed": self.seed, "side": self.side.value, "strict": self.strict, "old": self.old, "new": self.new}
        rules = [finding.rule.id for finding in self.findings]
        return json.dumps({**facts, "rules": rules, "value": self.unsafe_value if self.is_unsafe else self.missed})


def run_trial(seed: str) -> Trial | None:
    """Make the change of a seed and check the verdict about it; None if no pair or no fitting value comes of it."""
    rng = random.Random(seed)
    is_draft_7 = rng.random() < 0.3
    grammar = SchemaGrammar(rng, is_draft_7=is_draft_7)
    old = grammar.make_document()
    new = edit_document(old, grammar, rng)
    side = rng.choice((ContractSide.INPUT, ContractSide.OUTPUT))
    strict = rng.random() < 0.4
    old_checker, new_checker = build_checker(old), build_checker(new)
    small, large = side.order_pair(old_checker, new_checker)
    if old == new or small is None or large is None:
        return None
    sampler = ValueSampler(rng, *side.order_pair(old, new))
    values = [sampler.draw() for _ in range(VALUES_PER_VERDICT)]
    try:
        fitting_values = [value for value in values if small.is_valid(value)]
        refused_values = [value for value in fitting_values if not large.is_valid(value)]
    except referencing.exceptions.Unresolvable:  # an edit put a reference where its base is another one
        return None
    if not fitting_values:
        return None
    features = grammar.features | ({"draft-07"} if is_draft_7 else set())
    trial = Trial(seed, old, new, side, strict, features, compare_schemas(old, new, side, strict=strict))
    for finding in trial.findings:
        if finding.witness is not None and not is_true_witness(finding, old_checker, small, large):
            trial.false_witnesses.append(finding)
    if not trial.has_witness:
        _judge_values(trial, refused_values)
    return trial


def is_true_witness(finding: ContractFinding, old: Any, small: Any, large: Any) -> bool:
    """Check what a witness says; one that is not refused has to be accepted before, with the property that is gone."""
    value = finding.witness.instance if finding.witness else None
    if finding.witness is not None and finding.witness.is_refused:
        return bool(small.is_valid(value)) and not large.is_valid(value)
    name = finding.pointer.rpartition("/")[2]
    return bool(old.is_valid(value)) and json.dumps(name) + ":" in json.dumps(value)


def _judge_values(trial: Trial, refused_values: list[Json]) -> None:
    """Find out what it means that values which one schema accepts are refused by the other."""
    added_names = {
        finding.pointer.rpartition("/")[2] for finding in trial.findings if finding.rule.id.endswith("_PROPERTY_ADDED")
    }
    for value in refused_values:
        if trial.is_breaking:
            trial.missed, trial.is_missed = value, True
            return
        if trial.strict or not uses_new_names(value, trial.old, added_names):
            trial.unsafe_value, trial.is_unsafe = value, True
            return


# The independent validator


def _check_pattern(
    _validator: Any, pattern: str, instance: Json, _schema: Json
) -> Iterator[jsonschema.ValidationError]:
    # In ECMA-262, which JSON Schema refers to, `$` does not match before a line end.
    if isinstance(instance, str) and not re.search(pattern.replace("$", r"\Z"), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


EXTEND: Any = jsonschema.validators.extend
VALIDATORS = {
    DRAFT_7: EXTEND(jsonschema.Draft7Validator, {"pattern": _check_pattern}),
    None: EXTEND(jsonschema.Draft202012Validator, {"pattern": _check_pattern}),
}


def build_checker(schema: Json) -> Any:
    """Build a validator of the `jsonschema` package; None for a schema that is not valid."""
    return VALIDATORS[schema.get("$schema")](schema) if jsonschema_rs.meta.is_valid(schema) else None


def uses_new_names(value: Json, old: Json, added_names: set[str]) -> bool:
    """Return True if a value has an added property that the old schema does not know there."""
    known_names: dict[str, set[str]] = {}
    for unit in jsonschema_rs.evaluate(old, value, offline=True).list()["details"]:
        if unit.get("schemaLocation", "").endswith("roperties"):
            annotation = unit.get("annotations") or unit.get("droppedAnnotations") or []
            names = {str(name) for name in annotation} if isinstance(annotation, list) else set()
            known_names.setdefault(unit["instanceLocation"], set()).update(names)

    def uses_added_name(part: Json, location: str) -> bool:
        if isinstance(part, list):
            return any(uses_added_name(item, f"{location}/{index}") for index, item in enumerate(part))
        if not isinstance(part, dict):
            return False
        if part.keys() & added_names - known_names.get(location, set()):
            return True
        return any(uses_added_name(child, f"{location}/{name}") for name, child in part.items())

    return uses_added_name(value, "")
