"""Which tool became which: names, aliases and renames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from cleats.contract.compat.findings import Finding, finding
from cleats.contract.compat.keywords import same, text
from cleats.contract.compat.wording import quoted

Entry = dict[str, Any]


@dataclass(frozen=True)
class Naming:
    """The tools of two snapshots, matched.

    `kept` leads from each old name to the tool's new one; a tool that is gone is not in it.
    """

    old: Entry
    new: Entry
    kept: dict[str, str]

    @classmethod
    def of(cls, old: Entry, new: Entry) -> Self:
        """Match by name, then by alias, then by equal schemas."""
        kept = {name: name for name in old if name in new}
        homes = {alias: name for name, tool in new.items() for alias in _aliases(tool)}
        free = [name for name in new if name not in old]
        for name in old:
            if name not in kept and (found := homes.get(name) or _twin(old[name], new, free)):
                kept[name] = found
                if found in free:
                    free.remove(found)
        return cls(old, new, dict(sorted(kept.items())))

    def findings(self) -> Iterator[Finding]:
        """What callers see of the names."""
        for name in self.old:
            if name not in self.kept:
                yield finding("TOOL_REMOVED", "", f"{quoted(name)} is gone.", tool=name)
        for name in self.new:
            if name not in self.kept.values():
                yield finding("TOOL_ADDED", "", f"{quoted(name)} is new.", tool=name)
        for before, after in self.kept.items():
            if before != after:
                yield self._renamed(before, after)
            yield from self._alias_findings(before, after)

    def _renamed(self, before: str, after: str) -> Finding:
        kept = before in _aliases(self.new[after])
        rule = "TOOL_RENAMED" if kept else "TOOL_RENAMED_WITHOUT_ALIAS"
        message = f"{quoted(before)} is now called {quoted(after)}."
        return finding(rule, "", message, tool=after)

    def _alias_findings(self, before: str, after: str) -> Iterator[Finding]:
        one, other = _aliases(self.old[before]), _aliases(self.new[after])
        for alias in sorted(other.keys() - one.keys() - {before}):
            message = f"It also answers to {quoted(alias)}."
            yield finding("ALIAS_ADDED", "/aliases", message, tool=after)
        for alias in sorted(one.keys() - other.keys() - {after}):
            elsewhere = alias in self.new
            message = f"It no longer answers to {quoted(alias)}"
            message += ", which is another tool now." if elsewhere else "."
            yield finding("ALIAS_REMOVED", "/aliases", message, tool=after)
        for alias in sorted(one.keys() & other.keys()):
            if not same(one[alias], other[alias]):
                message = f"{quoted(alias)} is deprecated since another version."
                yield finding("ALIAS_DEPRECATION_CHANGED", "/aliases", message, tool=after)

    def raising(self, code: str, old: Entry, new: Entry) -> tuple[str, ...]:
        """The tools that may answer with an error code: those that list it, else all of them.

        A code that no tool lists is the kernel's, and any call can end with it.
        """
        tools = [*old["tools"].values(), *new["tools"].values()]
        everyone = sorted(self.kept.values())
        if not any(code in tool.get("errors", []) for tool in tools):
            return tuple(everyone)
        listing = {
            after
            for before, after in self.kept.items()
            if code in [*self.old[before].get("errors", []), *self.new[after].get("errors", [])]
        }
        return tuple(sorted(listing))


def _aliases(tool: Entry) -> dict[str, Any]:
    return {alias["name"]: alias for alias in tool.get("aliases", [])}


def _twin(tool: Entry, new: Entry, free: list[str]) -> str | None:
    """A new tool with the same schemas: the old one under another name.

    Tools without arguments all look alike, so those also need the same description.
    """
    alike = [name for name in free if _shape(new[name]) == _shape(tool)]
    described = [n for n in alike if same(new[n].get("description"), tool.get("description"))]
    if described:
        return described[0]
    return alike[0] if alike and _telling(tool) else None


def _shape(tool: Entry) -> tuple[str, str]:
    return text(tool.get("inputSchema", {})), text(tool.get("outputSchema"))


def _telling(tool: Entry) -> bool:
    schema = tool.get("inputSchema", {})
    return isinstance(schema, dict) and bool(schema.get("properties"))
