"""Every kind of contract change, said once.

A rule says how far a change obliges the contract's SemVer version (`level`), and whether the
tool's own integer has to rise (`integer`). Findings, reports, `cleats contract rules` and the
SARIF metadata are read from this table. A rule's id is stable: it is what people put into
`--ignore` and into their commit messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Level(StrEnum):
    """How much of a SemVer version a change needs."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """For comparing: as strings, `major` would come before `minor`."""
        return _RANKS[self]


_RANKS: Final = {level: rank for rank, level in enumerate(Level)}


class Severity(StrEnum):
    """How loudly a finding is told. A warning changes no call, but a model reads it."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of change, and what it obliges its author to."""

    id: str
    level: Level
    integer: bool
    purpose: str
    warns: bool = False

    @property
    def severity(self) -> Severity:
        if self.level is Level.MAJOR:
            return Severity.ERROR
        return Severity.WARNING if self.warns else Severity.INFO


MAJOR, MINOR, PATCH, NONE = Level.MAJOR, Level.MINOR, Level.PATCH, Level.NONE

RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule
    for rule in [
        # id, SemVer level, whether the tool's integer has to rise, purpose, whether models read it
        #
        # Names
        Rule("TOOL_ADDED", MINOR, False, "A tool is new."),
        Rule("TOOL_REMOVED", MAJOR, False, "A tool is gone; every call to it fails."),
        Rule(
            "TOOL_RENAMED",
            MAJOR,
            True,
            "A tool has a new name and the old one lives on as an alias. Still breaking: listings"
            " no longer show the name that clients were configured with.",
        ),
        Rule(
            "TOOL_RENAMED_WITHOUT_ALIAS",
            MAJOR,
            True,
            "A tool has a new name and the old one is gone; an alias would have kept callers.",
        ),
        Rule(
            "TOOLSET_CHANGED", MAJOR, False, "A tool moved; a server of its old toolset lacks it."
        ),
        Rule("ALIAS_ADDED", MINOR, False, "A tool answers to one more name."),
        Rule("ALIAS_REMOVED", MAJOR, True, "A name that a tool answered to is gone."),
        Rule(
            "ALIAS_DEPRECATION_CHANGED", PATCH, False, "An alias is deprecated since another time."
        ),
        # Inputs: safe when everything that was accepted still is
        Rule(
            "INPUT_REQUIRED_ADDED", MAJOR, True, "An argument must be sent that did not have to be."
        ),
        Rule("INPUT_REQUIRED_REMOVED", MINOR, False, "An argument no longer has to be sent."),
        Rule(
            "INPUT_PROPERTY_ADDED",
            MINOR,
            False,
            "An optional argument is new. Counted as an addition even where the old schema let"
            " unknown arguments pass, since no caller had a reason to send this one.",
        ),
        Rule(
            "INPUT_PROPERTY_REMOVED",
            MAJOR,
            True,
            "An argument is gone. Breaking even where unknown arguments pass: it does nothing now.",
        ),
        Rule("INPUT_PROPERTY_RENAMED", MAJOR, True, "An argument has another name."),
        Rule("INPUT_TYPE_CHANGED", MAJOR, True, "An argument takes another type of value."),
        Rule("INPUT_NARROWED", MAJOR, True, "A value that was accepted is refused."),
        Rule("INPUT_WIDENED", MINOR, False, "Values are accepted that were refused."),
        Rule(
            "INPUT_DEFAULT_CHANGED",
            MAJOR,
            True,
            "Leaving an argument out means something else, or something that was not stated.",
        ),
        Rule(
            "INPUT_MEANING_CHANGED",
            MAJOR,
            True,
            "The same value means something else: `x-meaning` was raised, or the encoding changed.",
        ),
        Rule("INPUT_REWRITTEN", PATCH, False, "Written differently, and proved to be the same."),
        Rule("INPUT_DOCS_CHANGED", PATCH, False, "The words about an argument changed.", True),
        # Outputs: safe when nothing can be answered that could not be before
        Rule(
            "OUTPUT_SCHEMA_ADDED", MINOR, False, "A tool says what it answers and did not before."
        ),
        Rule("OUTPUT_SCHEMA_REMOVED", MAJOR, True, "A tool no longer says what it answers."),
        Rule(
            "OUTPUT_REQUIRED_ADDED",
            MINOR,
            True,
            "A field is always present that was absent, or was sometimes. Readers do not break, but"
            " the result has another structure.",
        ),
        Rule(
            "OUTPUT_REQUIRED_REMOVED", MAJOR, True, "A field that was always present may be absent."
        ),
        Rule(
            "OUTPUT_PROPERTY_ADDED",
            MINOR,
            False,
            "An optional field is new. Counted as an addition even where the old schema was closed:"
            " a reader has to pass over fields that it does not know.",
        ),
        Rule("OUTPUT_PROPERTY_REMOVED", MAJOR, True, "A field is gone."),
        Rule("OUTPUT_PROPERTY_RENAMED", MAJOR, True, "A field has another name."),
        Rule("OUTPUT_TYPE_CHANGED", MAJOR, True, "A field can hold another type of value."),
        Rule("OUTPUT_WIDENED", MAJOR, True, "A value can be answered that could not be before."),
        Rule("OUTPUT_NARROWED", MINOR, False, "Fewer values can be answered than before."),
        Rule("OUTPUT_MEANING_CHANGED", MAJOR, True, "The same value means something else."),
        Rule("OUTPUT_REWRITTEN", PATCH, False, "Written differently, and proved to be the same."),
        Rule("OUTPUT_DOCS_CHANGED", PATCH, False, "The words about a field changed.", True),
        Rule("PAYLOAD_CHANGED", MAJOR, True, "The answer is wrapped in another shape."),
        # The envelope: an output that every tool shares
        Rule("ENVELOPE_ADDED", MINOR, False, "The shape of answers is stated and was not before."),
        Rule("ENVELOPE_FIELD_ADDED", MINOR, False, "An optional field of the envelope is new."),
        Rule(
            "ENVELOPE_FIELD_PROMISED", MINOR, True, "A field of the envelope is always present now."
        ),
        Rule(
            "ENVELOPE_CHANGED",
            MAJOR,
            True,
            "A field of the envelope is gone, renamed, sometimes absent, of another type or of"
            " another meaning.",
        ),
        Rule("ENVELOPE_NARROWED", MINOR, False, "Fewer envelopes can be answered than before."),
        Rule("ENVELOPE_DOCS_CHANGED", PATCH, False, "The envelope is described in other words."),
        # Errors
        Rule("ERROR_ADDED", MINOR, True, "An error code is new."),
        Rule("ERROR_REMOVED", MAJOR, True, "An error code is gone."),
        Rule("ERROR_RENAMED", MAJOR, True, "An error code has another name."),
        Rule(
            "ERROR_CHANGED",
            MAJOR,
            True,
            "An error code has another number, status or retry advice.",
        ),
        Rule("ERROR_DOCS_CHANGED", PATCH, False, "An error code is explained in other words."),
        Rule("TOOL_ERROR_ADDED", MINOR, True, "A tool can fail in one more way."),
        Rule("TOOL_ERROR_REMOVED", MINOR, True, "A tool no longer fails in one of its ways."),
        # Behaviour that no schema shows
        Rule("TIMEOUT_LOWERED", MAJOR, True, "A call that was still running in time is stopped."),
        Rule("TIMEOUT_RAISED", MINOR, True, "A call may run longer before it is stopped."),
        Rule("SEMANTICS_ADDED", MINOR, True, "A behaviour is promised that was not."),
        Rule("SEMANTICS_CHANGED", MAJOR, True, "Something behaves in another way."),
        Rule("SEMANTICS_REMOVED", MAJOR, True, "A behaviour is no longer promised."),
        Rule(
            "ANNOTATION_LESS_SAFE",
            MAJOR,
            True,
            "A tool needs more care than it said: it writes, destroys, must not be repeated or"
            " reaches outside. A client may have been calling it without asking.",
        ),
        Rule("ANNOTATION_SAFER", MINOR, False, "A tool needs less care than it said."),
        Rule("ANNOTATION_CHANGED", PATCH, False, "A remark about a tool changed."),
        # Words
        Rule("DESCRIPTION_CHANGED", PATCH, False, "The description of a tool changed.", True),
        Rule("TITLE_CHANGED", PATCH, False, "The display name of a tool changed."),
        Rule("EXAMPLES_CHANGED", PATCH, False, "The examples of a tool changed."),
        Rule("INSTRUCTIONS_CHANGED", PATCH, False, "The server's advice to models changed.", True),
        Rule("SERVER_CHANGED", NONE, False, "The server calls itself by another name or version."),
        # The rest
        Rule(
            "CANNOT_PROVE_SAFE",
            MAJOR,
            True,
            "Something changed and nobody can tell whether callers notice. Counted as breaking.",
        ),
    ]
}
"""The rules by id, in the order in which reports show them."""

ORDER: Final[Mapping[str, int]] = {name: place for place, name in enumerate(RULES)}
