"""Comparison of what a server offers besides tools: prompts, resources, capabilities, its protocol."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cleats.contract.compat.findings import ContractFinding, describe_value_change, make_finding, quote_name
from cleats.contract.compat.keywords import encode_canonical, is_same_json
from cleats.contract.compat.text_diff import TextChange, describe_text_change
from cleats.contract.pointer import join_pointer

Entries = Mapping[str, Any]

SERVER_FIELDS: Final = frozenset({"capabilities", "prompts", "protocolVersion", "resources", "resourceTemplates"})
"""The fields of a snapshot that are compared here."""


def compare_servers(old: Entries, new: Entries) -> Iterator[ContractFinding]:
    """Yield the changes of everything that is not a tool."""
    yield from _compare_prompts(old.get("prompts", {}), new.get("prompts", {}))
    for key in ("resources", "resourceTemplates"):
        yield from _compare_resources(key, old.get(key, {}), new.get(key, {}))
    yield from _compare_capabilities(old.get("capabilities"), new.get("capabilities"))
    before, after = old.get("protocolVersion"), new.get("protocolVersion")
    if before is not None and after is not None and before != after:
        rule = "PROTOCOL_LOWERED" if after < before else "PROTOCOL_RAISED"
        yield make_finding(rule, "/protocolVersion", describe_value_change(before, after))


def _compare_prompts(old: Entries, new: Entries) -> Iterator[ContractFinding]:
    for name in sorted(old.keys() | new.keys()):
        pointer = join_pointer(("prompts", name))
        if name not in new:
            yield make_finding("PROMPT_REMOVED", pointer, f"The prompt {quote_name(name)} is gone.")
        elif name not in old:
            texts = TextChange("", _collect_texts(new[name]))
            message = f"The prompt {quote_name(name)} is new: {texts.new}"
            yield make_finding("PROMPT_ADDED", pointer, message, text_change=texts)
        else:
            before, after = (entry[name].get("arguments", {}) for entry in (old, new))
            yield from _compare_arguments(before, after, pointer)
            yield from _compare_words("PROMPT_DOCS_CHANGED", old[name], new[name], pointer)


def _compare_arguments(old: Entries, new: Entries, prompt: str) -> Iterator[ContractFinding]:
    for name in sorted(old.keys() | new.keys()):
        pointer, quoted = prompt + join_pointer(("arguments", name)), quote_name(name)
        was_required, is_required = (entry.get(name, {}).get("required", False) for entry in (old, new))
        if name not in new:
            yield make_finding("PROMPT_ARGUMENT_REMOVED", pointer, f"The argument {quoted} is gone.")
        elif is_required and not was_required:
            yield make_finding("PROMPT_ARGUMENT_REQUIRED", pointer, f"The argument {quoted} is now required.")
        elif name not in old:
            yield make_finding("PROMPT_ARGUMENT_ADDED", pointer, f"The argument {quoted} is new and optional.")
        elif was_required and not is_required:
            yield make_finding("PROMPT_ARGUMENT_OPTIONAL", pointer, f"The argument {quoted} is no longer required.")


def _compare_resources(key: str, old: Entries, new: Entries) -> Iterator[ContractFinding]:
    noun = "resource" if key == "resources" else "template"
    for address in sorted(old.keys() | new.keys()):
        pointer = join_pointer((key, address))
        if address not in new:
            yield make_finding("RESOURCE_REMOVED", pointer, f"The {noun} {quote_name(address)} is gone.")
        elif address not in old:
            yield make_finding("RESOURCE_ADDED", pointer, f"The {noun} {quote_name(address)} is new.")
        else:
            before, after = (entry[address].get("mimeType") for entry in (old, new))
            if before is not None and before != after:
                message = describe_value_change(before, after)
                yield make_finding("RESOURCE_TYPE_CHANGED", f"{pointer}/mimeType", message)
            yield from _compare_words("RESOURCE_DOCS_CHANGED", old[address], new[address], pointer)


def _compare_words(rule: str, old: Entries, new: Entries, pointer: str) -> Iterator[ContractFinding]:
    texts = TextChange(_collect_texts(old), _collect_texts(new))
    if texts.old != texts.new:
        yield make_finding(rule, pointer, describe_text_change(*texts), text_change=texts)
    for key, other_rule in (("icons", "ICONS_CHANGED"), ("_meta", "META_CHANGED")):
        if not is_same_json(old.get(key), new.get(key)):
            message = describe_value_change(old.get(key), new.get(key))
            yield make_finding(other_rule, f"{pointer}/{key}", message)


def _collect_texts(entry: Entries) -> str:
    """Join the texts of an entry and of its arguments."""
    fields = ("title", "name", "description")
    texts = [str(entry[field]) for field in fields if field in entry]
    for name, argument in sorted(entry.get("arguments", {}).items()):
        texts += [f"{name}: {argument[field]}" for field in fields if field in argument]
    return "\n".join(texts)


def _compare_capabilities(old: Any, new: Any) -> Iterator[ContractFinding]:
    if old is None or new is None:  # an older lock does not have them
        return
    before, after = dict(_flatten(old)), dict(_flatten(new))
    for path in sorted(before.keys() | after.keys()):
        was_offered, is_offered = before.get(path, False), after.get(path, False)
        pointer, name = f"/capabilities/{path}", quote_name(path.replace("/", "."))
        if was_offered and not is_offered:
            yield make_finding("CAPABILITY_REMOVED", pointer, f"{name} is no longer offered.")
        elif is_offered and not was_offered:
            yield make_finding("CAPABILITY_ADDED", pointer, f"{name} is offered now.")
        elif was_offered != is_offered:
            yield make_finding("META_CHANGED", pointer, describe_value_change(was_offered, is_offered))


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every capability with its path; an object counts as offered.

    `experimental` and `extensions` offer nothing by themselves: only what they hold is offered.
    """
    for key, part in value.items():
        if isinstance(part, dict):
            yield prefix + key, bool(prefix) or key not in {"experimental", "extensions"}
            yield from _flatten(part, f"{prefix}{key}/")
        else:
            yield prefix + key, part if isinstance(part, bool) else encode_canonical(part)
