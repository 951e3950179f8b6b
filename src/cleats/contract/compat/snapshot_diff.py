"""Comparison of two snapshots: names, errors, behaviour, and the schemas of each tool."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from cleats.contract.compat.findings import (
    ContractFinding,
    ContractSide,
    Proof,
    describe_changed_keywords,
    describe_value_change,
    make_finding,
    quote_name,
)
from cleats.contract.compat.keywords import Schema, find_changed_keywords, is_same_json
from cleats.contract.compat.renames import SnapshotEntry, ToolMatching
from cleats.contract.compat.server_diff import SERVER_FIELDS, compare_servers
from cleats.contract.compat.text_diff import TextChange, describe_text_change, find_suspicious_text
from cleats.contract.pointer import join_pointer
from cleats.contract.snapshot import SNAPSHOT_FORMAT

VERSION_FIELDS: Final = {"snapshot", "schemaVersion"}
"""Fields that declare changes rather than being changes; `build_report` evaluates them."""

ERROR_TEXT_FIELDS: Final = frozenset({"meaning", "remedy"})


SchemaComparer = Callable[[Schema, Schema, ContractSide], list[ContractFinding]]
"""Compares two schemas."""


def find_differences(
    old: SnapshotEntry, new: SnapshotEntry, matching: ToolMatching, compare: SchemaComparer
) -> Iterator[ContractFinding]:
    """Yield every difference between two snapshots; equal snapshots have none."""
    for finding in _iterate_differences(old, new, matching, compare):
        yield finding
        if finding.text_change is not None:
            for rule, message in find_suspicious_text(finding.text_change):
                yield make_finding(rule, finding.pointer, message, tool=finding.tool)


def _iterate_differences(
    old: SnapshotEntry, new: SnapshotEntry, matching: ToolMatching, compare: SchemaComparer
) -> Iterator[ContractFinding]:
    tool_names = tuple(sorted(matching.new_names.values()))
    yield from _compare_top_level(old, new)
    yield from compare_servers(old, new)
    yield from _compare_semantics(old.get("semantics", {}), new.get("semantics", {}), tool_names)
    yield from _compare_envelopes(old, new, tool_names, compare)
    yield from _compare_errors(old, new, matching)
    yield from matching.find_name_changes()
    for before, after in matching.new_names.items():
        for tool_finding in _compare_tool(old, new, before, after, compare):
            yield replace(tool_finding, tool=after)


# The contract as a whole


def _compare_top_level(old: SnapshotEntry, new: SnapshotEntry) -> Iterator[ContractFinding]:
    known_fields = (
        VERSION_FIELDS | SERVER_FIELDS | {"semantics", "envelope", "errors", "tools", "server", "instructions"}
    )
    if not is_same_json(old.get("server"), new.get("server")):
        message = describe_changed_keywords(old.get("server", {}), new.get("server", {}))
        yield make_finding("SERVER_CHANGED", "/server", message)
    if not is_same_json(old.get("instructions"), new.get("instructions")):
        yield _make_text_finding(
            "INSTRUCTIONS_CHANGED", "/instructions", old.get("instructions"), new.get("instructions")
        )
    yield from _compare_unknown_fields(old, new, known_fields)


def _compare_unknown_fields(
    old: SnapshotEntry, new: SnapshotEntry, known_fields: set[str]
) -> Iterator[ContractFinding]:
    for key in sorted((old.keys() | new.keys()) - known_fields):
        if key not in old:
            yield make_finding("FIELD_ADDED", join_pointer([key]), describe_changed_keywords(old, new, [key]))
        elif not is_same_json(old.get(key), new.get(key)):
            message = f"{describe_changed_keywords(old, new, [key])} Cleats does not know what it means."
            yield make_finding("CANNOT_PROVE_SAFE", join_pointer([key]), message, proof=Proof.UNPROVEN)


def _make_text_finding(rule: str, pointer: str, old: str | None, new: str | None) -> ContractFinding:
    message = describe_text_change(old, new)
    return make_finding(rule, pointer, message, text_change=TextChange(old or "", new or ""))


def _compare_semantics(old: SnapshotEntry, new: SnapshotEntry, tools: tuple[str, ...]) -> Iterator[ContractFinding]:
    for name in sorted(old.keys() | new.keys()):
        if is_same_json(old.get(name), new.get(name)):
            continue
        verb = "ADDED" if name not in old else "REMOVED" if name not in new else "CHANGED"
        message = describe_changed_keywords(old, new, [name])
        yield make_finding(f"SEMANTICS_{verb}", join_pointer(("semantics", name)), message, affects=tools)


def _compare_envelopes(
    old: SnapshotEntry, new: SnapshotEntry, tools: tuple[str, ...], compare: SchemaComparer
) -> Iterator[ContractFinding]:
    enveloped_tools = tuple(name for name in tools if new["tools"][name].get("payload", "envelope") == "envelope")
    if "envelope" not in old and "envelope" in new:
        yield make_finding("ENVELOPE_ADDED", "/envelope", "The envelope is stated now.")
    elif "envelope" in old and "envelope" not in new:
        yield make_finding("ENVELOPE_CHANGED", "/envelope", "The envelope is gone.", affects=enveloped_tools)
    else:
        for envelope_finding in compare(old.get("envelope", {}), new.get("envelope", {}), ContractSide.ENVELOPE):
            yield replace(envelope_finding, pointer=f"/envelope{envelope_finding.pointer}", affects=enveloped_tools)


def _compare_errors(old: SnapshotEntry, new: SnapshotEntry, matching: ToolMatching) -> Iterator[ContractFinding]:
    before, after = old.get("errors", {}), new.get("errors", {})
    removed_codes, added_codes = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    for code in removed_codes:
        twin = next((name for name in added_codes if is_same_json(before[code], after[name])), None)
        path, affected_tools = join_pointer(("errors", code)), matching.find_tools_raising(code, old, new)
        if twin is None:
            yield make_finding("ERROR_REMOVED", path, f"{quote_name(code)} is gone.", affects=affected_tools)
        else:
            added_codes.remove(twin)
            message = f"{quote_name(code)} is now called {quote_name(twin)}."
            yield make_finding("ERROR_RENAMED", path, message, affects=affected_tools)
    for code in added_codes:
        affected_tools = matching.find_tools_raising(code, old, new)
        message = f"{quote_name(code)} is new."
        yield make_finding("ERROR_ADDED", join_pointer(("errors", code)), message, affects=affected_tools)
    for code in sorted(before.keys() & after.keys()):
        yield from _compare_error(code, before[code], after[code], matching.find_tools_raising(code, old, new))


def _compare_error(
    code: str, old: SnapshotEntry, new: SnapshotEntry, affected_tools: tuple[str, ...]
) -> Iterator[ContractFinding]:
    keys = sorted(old.keys() | new.keys())
    changed_fields = [key for key in keys if not is_same_json(old.get(key), new.get(key))]
    changed_facts = [key for key in changed_fields if key not in ERROR_TEXT_FIELDS]
    path = join_pointer(("errors", code))
    if changed_facts:
        message = f"{quote_name(code)}: {describe_changed_keywords(old, new, changed_facts)}"
        yield make_finding("ERROR_CHANGED", path, message, affects=affected_tools)
    if len(changed_facts) < len(changed_fields):
        yield make_finding("ERROR_DOCS_CHANGED", path, f"{quote_name(code)} is explained differently.")


# One tool


def _compare_tool(
    old: SnapshotEntry, new: SnapshotEntry, before: str, after: str, compare: SchemaComparer
) -> Iterator[ContractFinding]:
    old_tool, new_tool = old["tools"][before], new["tools"][after]
    for key, (rule, describe_change) in SIMPLE_FIELD_RULES.items():
        if not is_same_json(old_tool.get(key), new_tool.get(key)):
            yield make_finding(rule, join_pointer([key]), describe_change(old_tool.get(key), new_tool.get(key)))
    if not is_same_json(old_tool.get("description"), new_tool.get("description")):
        descriptions = old_tool.get("description"), new_tool.get("description")
        yield _make_text_finding("DESCRIPTION_CHANGED", "/description", *descriptions)
    for pair in list_schema_pairs(old, new, old_tool, new_tool):
        for schema_finding in compare(pair.old, pair.new, pair.side):
            yield replace(schema_finding, pointer=pair.pointer + schema_finding.pointer)
    yield from _compare_output_presence(old_tool, new_tool)
    for key, compare_field in FIELD_COMPARISONS.items():
        yield from compare_field(old_tool.get(key), new_tool.get(key))
    known_fields = {*VERSION_FIELDS, *SIMPLE_FIELD_RULES, *FIELD_COMPARISONS, *COMPARED_FIELDS}
    yield from _compare_unknown_fields(old_tool, new_tool, known_fields)


class SchemaPair(NamedTuple):
    """Two schemas of a tool that are compared, and the pointer to them."""

    old: Schema
    new: Schema
    side: ContractSide
    pointer: str


def list_schema_pairs(
    old: SnapshotEntry, new: SnapshotEntry, old_tool: SnapshotEntry, new_tool: SnapshotEntry
) -> list[SchemaPair]:
    """Return the pairs of schemas of a tool; an envelope is compared once for all tools, so only its result is here."""
    inputs = old_tool.get("inputSchema", {}), new_tool.get("inputSchema", {})
    pairs = [SchemaPair(*inputs, ContractSide.INPUT, "/inputSchema")]
    before, after = old_tool.get("outputSchema"), new_tool.get("outputSchema")
    if before is None or after is None:
        return pairs
    if _has_envelope(old.get("envelope"), before) and _has_envelope(new.get("envelope"), after):
        results = before["properties"]["result"], after["properties"]["result"]
        return [*pairs, SchemaPair(*results, ContractSide.OUTPUT, "/outputSchema/properties/result")]
    return [*pairs, SchemaPair(before, after, ContractSide.OUTPUT, "/outputSchema")]


def _compare_output_presence(old: SnapshotEntry, new: SnapshotEntry) -> Iterator[ContractFinding]:
    before, after = old.get("outputSchema"), new.get("outputSchema")
    if before is None and after is not None:
        yield make_finding("OUTPUT_SCHEMA_ADDED", "/outputSchema", "The answer is described now.")
    elif before is not None and after is None:
        yield make_finding("OUTPUT_SCHEMA_REMOVED", "/outputSchema", "The answer is no longer described.")


def _has_envelope(envelope: Schema | None, schema: Schema) -> bool:
    if not isinstance(envelope, dict) or not isinstance(schema, dict):
        return False
    inner = schema.get("properties", {})
    if "result" not in inner or "result" not in envelope.get("properties", {}):
        return False
    generic_schema = {**schema, "properties": {**inner, "result": envelope["properties"]["result"]}}
    return is_same_json(generic_schema, envelope)


def _compare_timeouts(old: float | None, new: float | None) -> Iterator[ContractFinding]:
    if is_same_json(old, new):
        return
    is_lowered = new is not None and (old is None or new < old)
    rule = "TIMEOUT_LOWERED" if is_lowered else "TIMEOUT_RAISED"
    yield make_finding(rule, "/timeoutMs", describe_value_change(old, new))


def _compare_error_codes(old: Iterable[str] | None, new: Iterable[str] | None) -> Iterator[ContractFinding]:
    before, after = set(old or ()), set(new or ())
    for code in sorted(after - before):
        yield make_finding("TOOL_ERROR_ADDED", "/errors", f"It can fail with {quote_name(code)} now.")
    for code in sorted(before - after):
        yield make_finding("TOOL_ERROR_REMOVED", "/errors", f"It never fails with {quote_name(code)} now.")


def _compare_annotations(old: SnapshotEntry | None, new: SnapshotEntry | None) -> Iterator[ContractFinding]:
    before, after = old or {}, new or {}
    old_risks, new_risks = _list_risks(before), _list_risks(after)
    added_risks = [risk for risk, applies in new_risks.items() if applies and not old_risks[risk]]
    removed_risks = [risk for risk, applies in new_risks.items() if not applies and old_risks[risk]]
    if added_risks:
        yield make_finding(
            "ANNOTATION_LESS_SAFE", "/annotations", f"Clients have to assume now that it {', '.join(added_risks)}."
        )
    if removed_risks:
        yield make_finding(
            "ANNOTATION_SAFER", "/annotations", f"Clients need not assume any more that it {', '.join(removed_risks)}."
        )
    reported_hints = () if old_risks == new_risks else ANNOTATION_DEFAULTS
    changed_keys = find_changed_keywords(before, after, sorted((before.keys() | after.keys()) - set(reported_hints)))
    if changed_keys:
        yield make_finding("ANNOTATION_CHANGED", "/annotations", describe_changed_keywords(before, after, changed_keys))


def _compare_execution(old: SnapshotEntry | None, new: SnapshotEntry | None) -> Iterator[ContractFinding]:
    before, after = ((execution or {}).get("taskSupport", "forbidden") for execution in (old, new))
    if before != after:
        rule = "TASK_SUPPORT_WIDENED" if after == "optional" else "TASK_SUPPORT_NARROWED"
        yield make_finding(rule, "/execution/taskSupport", describe_value_change(before, after))
    for key_finding in _compare_unknown_fields(old or {}, new or {}, {"taskSupport"}):
        yield replace(key_finding, pointer=f"/execution{key_finding.pointer}")


ANNOTATION_DEFAULTS: Final = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""MCP's tool annotations, with the values that their absence implies."""


def _list_risks(hints: SnapshotEntry) -> dict[str, bool]:
    """Return the risks to a client. A read-only tool can neither destroy nor differ."""
    annotations = {**ANNOTATION_DEFAULTS, **hints}
    writes = not annotations["readOnlyHint"]
    return {
        "can change data": writes,
        "can destroy data": writes and bool(annotations["destructiveHint"]),
        "has another effect when it is repeated": writes and not annotations["idempotentHint"],
        "reaches outside systems": bool(annotations["openWorldHint"]),
    }


SIMPLE_FIELD_RULES: Final[Mapping[str, tuple[str, Callable[[Any, Any], str]]]] = {
    "toolset": ("TOOLSET_CHANGED", describe_value_change),
    "title": ("TITLE_CHANGED", describe_value_change),
    "payload": ("PAYLOAD_CHANGED", describe_value_change),
    "examples": ("EXAMPLES_CHANGED", describe_value_change),
    "icons": ("ICONS_CHANGED", describe_value_change),
    "_meta": ("META_CHANGED", describe_value_change),
}
FIELD_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Iterator[ContractFinding]]]] = {
    "timeoutMs": _compare_timeouts,
    "errors": _compare_error_codes,
    "annotations": _compare_annotations,
    "execution": _compare_execution,
}
COMPARED_FIELDS: Final = ("description", "inputSchema", "outputSchema", "aliases")


MAX_NESTING_LEVELS: Final = 100
"""The schemas of other servers cannot be trusted: recursion has to end."""


class SnapshotError(ValueError):
    """A file or a server supplied something that is not a snapshot."""


def normalize_snapshot(snapshot: Any) -> dict[str, Any]:
    """Return the snapshot as plain JSON with sorted keys.

    Raises:
        SnapshotError: It is not a snapshot, or has another format.
    """
    snapshot = _convert_listing(snapshot)
    if not isinstance(snapshot, Mapping) or not isinstance(snapshot.get("tools"), Mapping):
        raise SnapshotError('not a snapshot: it has no "tools"')
    if snapshot.get("snapshot") != SNAPSHOT_FORMAT:
        if "snapshot" not in snapshot:
            raise SnapshotError(
                f'not a snapshot: it has no "snapshot": {SNAPSHOT_FORMAT}; make one with: cleats contract snapshot'
            )
        raise SnapshotError(
            f"unknown snapshot format {snapshot['snapshot']!r}; this version reads format {SNAPSHOT_FORMAT}"
        )
    plain: dict[str, Any] = _normalize_value(snapshot, ())
    for name, field_types in SNAPSHOT_FIELD_TYPES.items():
        _check_field_type(plain, name, field_types, "")
    for name, tool in plain["tools"].items():
        path = join_pointer(("tools", name))
        if not isinstance(tool, dict):
            raise SnapshotError(f"{path} is not an object")
        for key, field_types in TOOL_FIELD_TYPES.items():
            _check_field_type(tool, key, field_types, path)
        if not all(isinstance(alias, dict) and "name" in alias for alias in tool.get("aliases", [])):
            raise SnapshotError(f"{path}/aliases holds one without a name")
    return plain


def _convert_listing(document: Any) -> Any:
    """Accept the result of `tools/list`, with or without the JSON-RPC message around it."""
    listing = document.get("result", document) if isinstance(document, Mapping) else document
    tools = listing.get("tools") if isinstance(listing, Mapping) else None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
        return document
    entries = {tool["name"]: {key: value for key, value in tool.items() if key != "name"} for tool in tools}
    return {"snapshot": SNAPSHOT_FORMAT, "tools": entries}


FieldTypes = type | tuple[type, ...]

SNAPSHOT_FIELD_TYPES: Final[Mapping[str, FieldTypes]] = {
    "schemaVersion": (str, type(None)),
    "semantics": dict,
    "envelope": (dict, bool),
    "errors": dict,
    "tools": dict,
    "prompts": dict,
    "resources": dict,
    "resourceTemplates": dict,
    "protocolVersion": (str, type(None)),
}
TOOL_FIELD_TYPES: Final[Mapping[str, FieldTypes]] = {
    "description": (str, type(None)),
    "schemaVersion": (int, type(None)),
    "inputSchema": (dict, bool),
    "outputSchema": (dict, bool),
    "annotations": dict,
    "execution": dict,
    "timeoutMs": (int, float, type(None)),
    "aliases": list,
    "errors": list,
}


def _check_field_type(entry: dict[str, Any], key: str, field_types: FieldTypes, path: str) -> None:
    if key in entry and not isinstance(entry[key], field_types):
        raise SnapshotError(f"{path}/{key} has the wrong type")


def _normalize_value(value: Any, path: tuple[str | int, ...]) -> Any:
    if len(path) > MAX_NESTING_LEVELS:
        raise SnapshotError(f"nested more than {MAX_NESTING_LEVELS} levels deep: {join_pointer(path[:4])}…")
    if isinstance(value, Mapping):
        return {key: _normalize_value(value[key], (*path, key)) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_normalize_value(part, (*path, index)) for index, part in enumerate(value)]
    return value
