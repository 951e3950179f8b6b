"""Matching of the tools of two snapshots: names, aliases and renames."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Self

from cleats.contract.compat.findings import ContractFinding, make_finding, quote_name
from cleats.contract.compat.keywords import encode_canonical, is_same_json, walk_schemas
from cleats.contract.compat.text_diff import TextChange

SnapshotEntry = dict[str, Any]


@dataclass(frozen=True)
class ToolMatching:
    """The tools of two snapshots, matched.

    `new_names` maps each old name to the tool's new one; a tool that was removed is not in it.
    """

    old: SnapshotEntry
    new: SnapshotEntry
    new_names: dict[str, str]

    @classmethod
    def from_tools(cls, old: SnapshotEntry, new: SnapshotEntry) -> Self:
        """Match tools by name, then by alias, then by equal schemas."""
        new_names = {name: name for name in old if name in new}
        tools_by_alias = {alias: name for name, tool in new.items() for alias in _index_aliases(tool)}
        unmatched_names = [name for name in new if name not in old]
        for name in old:
            if name not in new_names and (
                match := tools_by_alias.get(name) or _find_twin(name, old[name], new, unmatched_names)
            ):
                new_names[name] = match
                if match in unmatched_names:
                    unmatched_names.remove(match)
        return cls(old, new, dict(sorted(new_names.items())))

    def find_name_changes(self) -> Iterator[ContractFinding]:
        """Yield the changes of tool names and aliases that callers can see."""
        for name in self.old:
            if name not in self.new_names:
                yield make_finding("TOOL_REMOVED", "", f"{quote_name(name)} is gone.", tool=name)
        for name in self.new:
            if name not in self.new_names.values():
                texts = TextChange("", _collect_texts(self.new[name]))
                yield make_finding("TOOL_ADDED", "", f"{quote_name(name)} is new.", tool=name, text_change=texts)
        for before, after in self.new_names.items():
            if before != after:
                yield self._make_rename_finding(before, after)
            yield from self._find_alias_changes(before, after)

    def _make_rename_finding(self, before: str, after: str) -> ContractFinding:
        has_alias = before in _index_aliases(self.new[after])
        rule = "TOOL_RENAMED" if has_alias else "TOOL_RENAMED_WITHOUT_ALIAS"
        message = f"{quote_name(before)} is now called {quote_name(after)}."
        return make_finding(rule, "", message, tool=after)

    def _find_alias_changes(self, before: str, after: str) -> Iterator[ContractFinding]:
        old_aliases, new_aliases = _index_aliases(self.old[before]), _index_aliases(self.new[after])
        for alias in sorted(new_aliases.keys() - old_aliases.keys() - {before}):
            message = f"It also answers to {quote_name(alias)}."
            yield make_finding("ALIAS_ADDED", "/aliases", message, tool=after)
        for alias in sorted(old_aliases.keys() - new_aliases.keys() - {after}):
            is_other_tool = alias in self.new
            message = f"It no longer answers to {quote_name(alias)}"
            message += ", which is another tool now." if is_other_tool else "."
            yield make_finding("ALIAS_REMOVED", "/aliases", message, tool=after)
        for alias in sorted(old_aliases.keys() & new_aliases.keys()):
            if not is_same_json(old_aliases[alias], new_aliases[alias]):
                message = f"{quote_name(alias)} is deprecated since another version."
                yield make_finding("ALIAS_DEPRECATION_CHANGED", "/aliases", message, tool=after)

    def find_tools_raising(self, code: str, old: SnapshotEntry, new: SnapshotEntry) -> tuple[str, ...]:
        """Return the tools that may answer with an error code: those that list it, else all.

        A code that no tool lists belongs to the kernel, and any call can end with it.
        """
        tools = [*old["tools"].values(), *new["tools"].values()]
        all_names = sorted(self.new_names.values())
        if not any(code in tool.get("errors", []) for tool in tools):
            return tuple(all_names)
        names_listing_code = {
            after
            for before, after in self.new_names.items()
            if code in [*self.old[before].get("errors", []), *self.new[after].get("errors", [])]
        }
        return tuple(sorted(names_listing_code))


def _collect_texts(tool: SnapshotEntry) -> str:
    """Join everything that a tool says to models."""
    parts = walk_schemas(tool.get("inputSchema", {}))
    texts = [part["description"] for part in parts if isinstance(part, dict) and "description" in part]
    return "\n".join(map(str, [tool.get("description") or "", *texts]))


def _index_aliases(tool: SnapshotEntry) -> dict[str, Any]:
    return {alias["name"]: alias for alias in tool.get("aliases", [])}


def _find_twin(name: str, tool: SnapshotEntry, new: SnapshotEntry, candidates: list[str]) -> str | None:
    """Return the new tool with the same schemas, that is the old one under another name.

    It needs the same description or a similar name, and has to be the only one.
    """
    matches = [match for match in candidates if _encode_schemas(new[match]) == _encode_schemas(tool)]
    description = tool.get("description")
    same_descriptions = [match for match in matches if description and new[match].get("description") == description]
    similar_names = [match for match in matches if _has_arguments(tool) and is_similar_name(name, match)]
    twins = same_descriptions or similar_names
    return twins[0] if len(twins) == 1 else None


MIN_NAME_SIMILARITY: Final = 0.75
"""The share of equal letters from which two names count as one name spelt differently."""


def is_similar_name(one: str, other: str) -> bool:
    """Return True if two names differ in spelling, or one has a word more than the other."""
    words, other_words = _split_words(one), _split_words(other)
    if words and other_words and (words <= other_words or other_words <= words):
        return True
    return SequenceMatcher(None, "".join(sorted(words)), "".join(sorted(other_words))).ratio() >= MIN_NAME_SIMILARITY


def _split_words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)}


def _encode_schemas(tool: SnapshotEntry) -> tuple[str, str]:
    return encode_canonical(tool.get("inputSchema", {})), encode_canonical(tool.get("outputSchema"))


def _has_arguments(tool: SnapshotEntry) -> bool:
    schema = tool.get("inputSchema", {})
    return isinstance(schema, dict) and bool(schema.get("properties"))
