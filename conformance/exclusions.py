"""What the suite asks for and does not get, with the reason. Nothing else may fail.

An exclusion names a scenario, or one check of it, and where it applies. It must fail there: one
that passes is an error, so that this list can only shrink without anyone noticing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

HTTP = "http"
STDIO = "stdio"
BALANCED = "balanced"
TRANSPORTS = (HTTP, BALANCED, STDIO)

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One reason, and everything that it explains."""

    reason: str
    what: Sequence[str]
    """Each `scenario`, or `scenario:check`."""

    transports: Sequence[str] = TRANSPORTS
    revisions: Sequence[str] = (HANDSHAKE, STATELESS)

    def applies(self, transport: str, revision: str) -> bool:
        return transport in self.transports and revision in self.revisions


EXCLUSIONS: Sequence[Exclusion] = (
    Exclusion(
        "needs requests from the server to the client (sampling, elicitation) in the middle of a "
        "call; Cleats answers requests and sends none",
        [
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
        revisions=[HANDSHAKE],
    ),
    Exclusion(
        "not scored: needs the optional tasks extension, which Cleats does not have",
        [
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-status-notifications",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        ],
        revisions=[STATELESS],
    ),
    Exclusion(
        "looks at the Host header of HTTP, which stdio does not have; the relay checks none",
        ["dns-rebinding-protection"],
        transports=[STDIO],
    ),
    Exclusion(
        "looks at MCP headers of HTTP, which stdio does not have; the relay checks none",
        [
            "server-stateless:sep-2575-http-server-header-mismatch-400",
            "http-header-validation",
            "http-custom-header-server-validation",
        ],
        transports=[STDIO],
        revisions=[STATELESS],
    ),
    Exclusion(
        "not scored: hangs up an SSE stream and resumes it, and stdio has no streams",
        ["server-sse-polling"],
        transports=[STDIO],
        revisions=[HANDSHAKE],
    ),
    Exclusion(
        "looks at a session, or a stream that outlives its request; behind a balancer there is "
        "none",
        [
            "server-sse-multiple-streams",
            "server-session-lifecycle",
            "server-sse-polling",
        ],
        transports=[BALANCED],
        revisions=[HANDSHAKE],
    ),
    Exclusion(
        "makes one server change its lists by a call, and listens at the other; each server tells "
        "its own listeners of what it sees",
        [
            "server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription",
            "server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription",
        ],
        transports=[BALANCED],
        revisions=[STATELESS],
    ),
    Exclusion(
        "expects HTTP's answer to `initialize` after the era is settled (-32601); on a stdio "
        "connection the official SDK, and so Cleats, answers -32022 and names the versions served",
        ["server-stateless:sep-2575-http-server-method-not-found-404-initialize"],
        transports=[STDIO],
        revisions=[STATELESS],
    ),
)

RELAYED: Mapping[str, str] = {
    "server-initialize": "the session id",
    "server-session-lifecycle": "all of it",
    "server-stateless": "the HTTP statuses",
}
"""What passes over stdio because the relay does it, by scenario. Not a word about the server."""


def applying(
    transport: str, revision: str, exclusions: Iterable[Exclusion] = EXCLUSIONS
) -> dict[str, int]:
    """What is excluded in one run, each with the number of its reason, counted from one."""
    return {
        what: number
        for number, exclusion in enumerate(exclusions, 1)
        if exclusion.applies(transport, revision)
        for what in exclusion.what
    }
