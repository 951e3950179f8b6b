"""The table of every kind of contract change.

A rule states how far a change raises the contract's SemVer version (`level`), and if the tool's own
integer has to rise (`integer`). Findings, reports, `cleats contract rules` and the SARIF metadata
are read from this table. The id of a rule is stable: people put it into `--ignore` and into their
commit messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class BumpLevel(StrEnum):
    """The part of a SemVer version that a change has to raise."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """The rank for comparisons: as strings, `major` would come before `minor`."""
        return _LEVEL_RANKS[self]


_LEVEL_RANKS: Final = {level: rank for rank, level in enumerate(BumpLevel)}


class FindingSeverity(StrEnum):
    """The severity of a finding. A warning changes no call, but models read the changed text."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class ContractRule:
    """One kind of change, and the version bump it requires."""

    id: str
    level: BumpLevel
    integer: bool
    purpose: str
    warns: bool = False

    @property
    def severity(self) -> FindingSeverity:
        if self.level is BumpLevel.MAJOR:
            return FindingSeverity.ERROR
        return FindingSeverity.WARNING if self.warns else FindingSeverity.INFO


MAJOR, MINOR, PATCH, NONE = BumpLevel.MAJOR, BumpLevel.MINOR, BumpLevel.PATCH, BumpLevel.NONE

RULES: Final[Mapping[str, ContractRule]] = {
    rule.id: rule
    for rule in [
        # id, SemVer level, whether the tool's integer has to rise, purpose, whether models read it
        #
        # Names
        ContractRule("TOOL_ADDED", MINOR, False, "A tool is new."),
        ContractRule("TOOL_REMOVED", MAJOR, False, "A tool is gone; every call to it fails."),
        ContractRule(
            "TOOL_RENAMED",
            MAJOR,
            True,
            "A tool has a new name and the old one lives on as an alias. Still breaking: listings"
            " no longer show the name that clients were configured with.",
        ),
        ContractRule(
            "TOOL_RENAMED_WITHOUT_ALIAS",
            MAJOR,
            True,
            "A tool has a new name and the old one is gone; an alias would have kept callers.",
        ),
        ContractRule("TOOLSET_CHANGED", MAJOR, False, "A tool moved; a server of its old toolset lacks it."),
        ContractRule("ALIAS_ADDED", MINOR, False, "A tool answers to one more name."),
        ContractRule("ALIAS_REMOVED", MAJOR, True, "A name that a tool answered to is gone."),
        ContractRule("ALIAS_DEPRECATION_CHANGED", PATCH, False, "An alias is deprecated since another time."),
        # Inputs: safe when everything that was accepted still is
        ContractRule("INPUT_REQUIRED_ADDED", MAJOR, True, "An argument must be sent that did not have to be."),
        ContractRule("INPUT_REQUIRED_REMOVED", MINOR, False, "An argument no longer has to be sent."),
        ContractRule(
            "INPUT_PROPERTY_ADDED",
            MINOR,
            False,
            "An optional argument is new. Counted as an addition even where the old schema let"
            " unknown arguments pass, since no caller had a reason to send this one.",
        ),
        ContractRule(
            "INPUT_PROPERTY_REMOVED",
            MAJOR,
            True,
            "An argument is gone. Breaking even where unknown arguments pass: it does nothing now.",
        ),
        ContractRule("INPUT_PROPERTY_RENAMED", MAJOR, True, "An argument has another name."),
        ContractRule("INPUT_TYPE_CHANGED", MAJOR, True, "An argument takes another type of value."),
        ContractRule("INPUT_NARROWED", MAJOR, True, "A value that was accepted is refused."),
        ContractRule("INPUT_WIDENED", MINOR, False, "Values are accepted that were refused."),
        ContractRule(
            "INPUT_DEFAULT_CHANGED",
            MAJOR,
            True,
            "Leaving an argument out means something else, or something that was not stated.",
        ),
        ContractRule(
            "INPUT_MEANING_CHANGED",
            MAJOR,
            True,
            "The same value means something else: `x-meaning` was raised, or the encoding changed.",
        ),
        ContractRule("INPUT_REWRITTEN", PATCH, False, "Written differently, and proved to be the same."),
        ContractRule("INPUT_DOCS_CHANGED", PATCH, False, "The words about an argument changed.", True),
        # Outputs: safe when nothing can be answered that could not be before
        ContractRule("OUTPUT_SCHEMA_ADDED", MINOR, False, "A tool says what it answers and did not before."),
        ContractRule("OUTPUT_SCHEMA_REMOVED", MAJOR, True, "A tool no longer says what it answers."),
        ContractRule(
            "OUTPUT_REQUIRED_ADDED",
            MINOR,
            True,
            "A field is always present that was absent, or was sometimes. Readers do not break, but"
            " the result has another structure.",
        ),
        ContractRule("OUTPUT_REQUIRED_REMOVED", MAJOR, True, "A field that was always present may be absent."),
        ContractRule(
            "OUTPUT_PROPERTY_ADDED",
            MINOR,
            False,
            "An optional field is new. Counted as an addition even where the old schema was closed:"
            " a reader has to pass over fields that it does not know.",
        ),
        ContractRule("OUTPUT_PROPERTY_REMOVED", MAJOR, True, "A field is gone."),
        ContractRule("OUTPUT_PROPERTY_RENAMED", MAJOR, True, "A field has another name."),
        ContractRule("OUTPUT_TYPE_CHANGED", MAJOR, True, "A field can hold another type of value."),
        ContractRule("OUTPUT_WIDENED", MAJOR, True, "A value can be answered that could not be before."),
        ContractRule("OUTPUT_NARROWED", MINOR, False, "Fewer values can be answered than before."),
        ContractRule("OUTPUT_MEANING_CHANGED", MAJOR, True, "The same value means something else."),
        ContractRule("OUTPUT_REWRITTEN", PATCH, False, "Written differently, and proved to be the same."),
        ContractRule("OUTPUT_DOCS_CHANGED", PATCH, False, "The words about a field changed.", True),
        ContractRule("PAYLOAD_CHANGED", MAJOR, True, "The answer is wrapped in another shape."),
        # The envelope: an output that every tool shares
        ContractRule("ENVELOPE_ADDED", MINOR, False, "The shape of answers is stated and was not before."),
        ContractRule("ENVELOPE_FIELD_ADDED", MINOR, False, "An optional field of the envelope is new."),
        ContractRule("ENVELOPE_FIELD_PROMISED", MINOR, True, "A field of the envelope is always present now."),
        ContractRule(
            "ENVELOPE_CHANGED",
            MAJOR,
            True,
            "A field of the envelope is gone, renamed, sometimes absent, of another type or of another meaning.",
        ),
        ContractRule("ENVELOPE_NARROWED", MINOR, False, "Fewer envelopes can be answered than before."),
        ContractRule("ENVELOPE_DOCS_CHANGED", PATCH, False, "The envelope is described in other words."),
        # Errors
        ContractRule("ERROR_ADDED", MINOR, True, "An error code is new."),
        ContractRule("ERROR_REMOVED", MAJOR, True, "An error code is gone."),
        ContractRule("ERROR_RENAMED", MAJOR, True, "An error code has another name."),
        ContractRule("ERROR_CHANGED", MAJOR, True, "An error code has another number, status or retry advice."),
        ContractRule("ERROR_DOCS_CHANGED", PATCH, False, "An error code is explained in other words."),
        ContractRule("TOOL_ERROR_ADDED", MINOR, True, "A tool can fail in one more way."),
        ContractRule("TOOL_ERROR_REMOVED", MINOR, True, "A tool no longer fails in one of its ways."),
        # Behaviour that no schema shows
        ContractRule("TIMEOUT_LOWERED", MAJOR, True, "A call that was still running in time is stopped."),
        ContractRule("TIMEOUT_RAISED", MINOR, True, "A call may run longer before it is stopped."),
        ContractRule("SEMANTICS_ADDED", MINOR, True, "A behaviour is promised that was not."),
        ContractRule("SEMANTICS_CHANGED", MAJOR, True, "Something behaves in another way."),
        ContractRule("SEMANTICS_REMOVED", MAJOR, True, "A behaviour is no longer promised."),
        ContractRule(
            "ANNOTATION_LESS_SAFE",
            MAJOR,
            True,
            "A tool needs more care than it said: it writes, destroys, must not be repeated or"
            " reaches outside. A client may have been calling it without asking.",
        ),
        ContractRule("ANNOTATION_SAFER", MINOR, False, "A tool needs less care than it said."),
        ContractRule("ANNOTATION_CHANGED", PATCH, False, "A remark about a tool changed."),
        # Words
        ContractRule("DESCRIPTION_CHANGED", PATCH, False, "The description of a tool changed.", True),
        ContractRule("TITLE_CHANGED", PATCH, False, "The display name of a tool changed."),
        ContractRule("EXAMPLES_CHANGED", PATCH, False, "The examples of a tool changed."),
        ContractRule("INSTRUCTIONS_CHANGED", PATCH, False, "The server's advice to models changed.", True),
        ContractRule("SERVER_CHANGED", NONE, False, "The server calls itself by another name or version."),
        # The rest
        ContractRule(
            "CANNOT_PROVE_SAFE",
            MAJOR,
            True,
            "Something changed and nobody can tell whether callers notice. Counted as breaking.",
        ),
    ]
}
"""The rules by id, in the order in which reports show them."""

RULE_ORDER: Final[Mapping[str, int]] = {name: place for place, name in enumerate(RULES)}
