"""From two snapshots to findings: names, errors, behaviour, and the schemas of each tool."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from cleats.contract.compat.findings import Finding, Proof, finding
from cleats.contract.compat.judge import judge
from cleats.contract.compat.keywords import Schema, same
from cleats.contract.compat.names import Naming
from cleats.contract.compat.sides import Side
from cleats.contract.compat.wording import changed_keywords, moved, quoted, reworded
from cleats.contract.pointer import pointer

Entry = dict[str, Any]

DECLARED: Final = {"snapshot", "schemaVersion"}
"""What is not a change but an answer to one: the verdict looks at these."""

ERROR_WORDS: Final = frozenset({"meaning", "remedy"})


def differences(old: Entry, new: Entry, naming: Naming) -> Iterator[Finding]:
    """Every difference between two snapshots; equal snapshots have none."""
    everyone = tuple(sorted(naming.kept.values()))
    yield from _top(old, new)
    yield from _semantics(old.get("semantics", {}), new.get("semantics", {}), everyone)
    yield from _envelope(old, new, everyone)
    yield from _errors(old, new, naming)
    yield from naming.findings()
    for before, after in naming.kept.items():
        for found in _tool(old, new, before, after):
            yield replace(found, tool=after)


# The contract as a whole


def _top(old: Entry, new: Entry) -> Iterator[Finding]:
    known = DECLARED | {"semantics", "envelope", "errors", "tools", "server", "instructions"}
    if not same(old.get("server"), new.get("server")):
        yield finding("SERVER_CHANGED", "/server", moved(old.get("server"), new.get("server")))
    if not same(old.get("instructions"), new.get("instructions")):
        message = reworded(old.get("instructions"), new.get("instructions"))
        yield finding("INSTRUCTIONS_CHANGED", "/instructions", message)
    yield from _unknown(old, new, known)


def _unknown(old: Entry, new: Entry, known: set[str]) -> Iterator[Finding]:
    for key in sorted((old.keys() | new.keys()) - known):
        if not same(old.get(key), new.get(key)):
            message = f"{changed_keywords(old, new, [key])} Its meaning is not known."
            yield finding("CANNOT_PROVE_SAFE", pointer([key]), message, proof=Proof.UNPROVEN)


def _semantics(old: Entry, new: Entry, tools: tuple[str, ...]) -> Iterator[Finding]:
    for name in sorted(old.keys() | new.keys()):
        if same(old.get(name), new.get(name)):
            continue
        verb = "ADDED" if name not in old else "REMOVED" if name not in new else "CHANGED"
        message = changed_keywords(old, new, [name])
        yield finding(f"SEMANTICS_{verb}", pointer(("semantics", name)), message, affects=tools)


def _envelope(old: Entry, new: Entry, tools: tuple[str, ...]) -> Iterator[Finding]:
    wrapped = tuple(
        name for name in tools if new["tools"][name].get("payload", "envelope") == "envelope"
    )
    if "envelope" not in old and "envelope" in new:
        yield finding("ENVELOPE_ADDED", "/envelope", "The envelope is stated now.")
    elif "envelope" in old and "envelope" not in new:
        yield finding("ENVELOPE_CHANGED", "/envelope", "The envelope is gone.", affects=wrapped)
    else:
        for found in judge(old.get("envelope", {}), new.get("envelope", {}), Side.ENVELOPE):
            yield replace(found, pointer=f"/envelope{found.pointer}", affects=wrapped)


def _errors(old: Entry, new: Entry, naming: Naming) -> Iterator[Finding]:
    before, after = old.get("errors", {}), new.get("errors", {})
    gone, fresh = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    for code in gone:
        twin = next((name for name in fresh if same(before[code], after[name])), None)
        at, touched = pointer(("errors", code)), naming.raising(code, old, new)
        if twin is None:
            yield finding("ERROR_REMOVED", at, f"{quoted(code)} is gone.", affects=touched)
        else:
            fresh.remove(twin)
            message = f"{quoted(code)} is now called {quoted(twin)}."
            yield finding("ERROR_RENAMED", at, message, affects=touched)
    for code in fresh:
        touched = naming.raising(code, old, new)
        message = f"{quoted(code)} is new."
        yield finding("ERROR_ADDED", pointer(("errors", code)), message, affects=touched)
    for code in sorted(before.keys() & after.keys()):
        yield from _error(code, before[code], after[code], naming.raising(code, old, new))


def _error(code: str, old: Entry, new: Entry, touched: tuple[str, ...]) -> Iterator[Finding]:
    keys = sorted(old.keys() | new.keys())
    differing = [key for key in keys if not same(old.get(key), new.get(key))]
    facts = [key for key in differing if key not in ERROR_WORDS]
    at = pointer(("errors", code))
    if facts:
        message = f"{quoted(code)}: {changed_keywords(old, new, facts)}"
        yield finding("ERROR_CHANGED", at, message, affects=touched)
    if len(facts) < len(differing):
        yield finding("ERROR_DOCS_CHANGED", at, f"{quoted(code)} is explained differently.")


# One tool


def _tool(old: Entry, new: Entry, before: str, after: str) -> Iterator[Finding]:
    one, other = old["tools"][before], new["tools"][after]
    for key, (rule, worded) in SIMPLE.items():
        if not same(one.get(key), other.get(key)):
            yield finding(rule, pointer([key]), worded(one.get(key), other.get(key)))
    yield from _schema(one.get("inputSchema", {}), other.get("inputSchema", {}), Side.INPUT)
    yield from _output(one, other, old.get("envelope"), new.get("envelope"))
    for key, compare in PARTS.items():
        yield from compare(one.get(key), other.get(key))
    known = {*DECLARED, *SIMPLE, *PARTS, "inputSchema", "outputSchema", "aliases"}
    yield from _unknown(one, other, known)


def _schema(old: Schema, new: Schema, side: Side, at: str = "") -> Iterator[Finding]:
    top = at or f"/{side.name.lower()}Schema"
    for found in judge(old, new, side):
        yield replace(found, pointer=top + found.pointer)


def _output(
    old: Entry, new: Entry, old_envelope: Schema | None, new_envelope: Schema | None
) -> Iterator[Finding]:
    one, other = old.get("outputSchema"), new.get("outputSchema")
    if one is None and other is None:
        return
    if one is None:
        yield finding("OUTPUT_SCHEMA_ADDED", "/outputSchema", "The answer is described now.")
    elif other is None:
        message = "The answer is no longer described."
        yield finding("OUTPUT_SCHEMA_REMOVED", "/outputSchema", message)
    elif _wraps(old_envelope, one) and _wraps(new_envelope, other):
        # The envelope is judged once, for all tools; what is the tool's own is the result in it.
        before, after = one["properties"]["result"], other["properties"]["result"]
        yield from _schema(before, after, Side.OUTPUT, "/outputSchema/properties/result")
    else:
        yield from _schema(one, other, Side.OUTPUT)


def _wraps(envelope: Schema | None, schema: Schema) -> bool:
    if not isinstance(envelope, dict) or not isinstance(schema, dict):
        return False
    inner = schema.get("properties", {})
    if "result" not in inner or "result" not in envelope.get("properties", {}):
        return False
    hollow = {**schema, "properties": {**inner, "result": envelope["properties"]["result"]}}
    return same(hollow, envelope)


def _timeout(old: float | None, new: float | None) -> Iterator[Finding]:
    if same(old, new):
        return
    lowered = new is not None and (old is None or new < old)
    rule = "TIMEOUT_LOWERED" if lowered else "TIMEOUT_RAISED"
    yield finding(rule, "/timeoutMs", moved(old, new))


def _raised(old: Iterable[str] | None, new: Iterable[str] | None) -> Iterator[Finding]:
    before, after = set(old or ()), set(new or ())
    for code in sorted(after - before):
        yield finding("TOOL_ERROR_ADDED", "/errors", f"It can fail with {quoted(code)} now.")
    for code in sorted(before - after):
        yield finding("TOOL_ERROR_REMOVED", "/errors", f"It never fails with {quoted(code)} now.")


def _annotations(old: Entry | None, new: Entry | None) -> Iterator[Finding]:
    before, after = old or {}, new or {}
    cares, now = _cares(before), _cares(after)
    worse = [care for care, needed in now.items() if needed and not cares[care]]
    better = [care for care, needed in now.items() if not needed and cares[care]]
    if worse:
        yield finding("ANNOTATION_LESS_SAFE", "/annotations", f"Now {', '.join(worse)}.")
    if better:
        yield finding("ANNOTATION_SAFER", "/annotations", f"No longer {', '.join(better)}.")
    rest = [{k: v for k, v in hints.items() if k not in HINTS} for hints in (before, after)]
    if not same(*rest) or (cares == now and not same(before, after)):
        yield finding("ANNOTATION_CHANGED", "/annotations", moved(before, after))


HINTS: Final = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""MCP's tool annotations and what their absence says."""


def _cares(hints: Entry) -> dict[str, bool]:
    """What a client has to be careful about. Of a tool that only reads, nothing else is asked."""
    said = {**HINTS, **hints}
    writes = not said["readOnlyHint"]
    return {
        "writes": writes,
        "destroys": writes and bool(said["destructiveHint"]),
        "differs when it is repeated": writes and not said["idempotentHint"],
        "reaches outside": bool(said["openWorldHint"]),
    }


SIMPLE: Final[Mapping[str, tuple[str, Callable[[Any, Any], str]]]] = {
    "toolset": ("TOOLSET_CHANGED", moved),
    "description": ("DESCRIPTION_CHANGED", reworded),
    "title": ("TITLE_CHANGED", moved),
    "payload": ("PAYLOAD_CHANGED", moved),
    "examples": ("EXAMPLES_CHANGED", moved),
}
PARTS: Final[Mapping[str, Callable[[Any, Any], Iterator[Finding]]]] = {
    "timeoutMs": _timeout,
    "errors": _raised,
    "annotations": _annotations,
}
