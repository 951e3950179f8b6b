"""The checks of the suite that may fail, with the reasons. No other check may fail.

An exclusion names a scenario, or one check of it, and the runs in which it applies. It must fail
there: an exclusion that passes is an error, so that an outdated one cannot stay in this list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

HTTP_TRANSPORT = "http"
STDIO_TRANSPORT = "stdio"
BALANCED_TRANSPORT = "balanced"
ALL_TRANSPORTS = (HTTP_TRANSPORT, BALANCED_TRANSPORT, STDIO_TRANSPORT)

HANDSHAKE_REVISION = "2025-11-25"
STATELESS_REVISION = "2026-07-28"


@dataclass(frozen=True, slots=True)
class SuiteExclusion:
    """One reason, and everything that it explains."""

    reason: str
    what: Sequence[str]
    """Each `scenario`, or `scenario:check`."""

    transports: Sequence[str] = ALL_TRANSPORTS
    revisions: Sequence[str] = (HANDSHAKE_REVISION, STATELESS_REVISION)

    def applies_to(self, transport: str, revision: str) -> bool:
        return transport in self.transports and revision in self.revisions


SUITE_EXCLUSIONS: Sequence[SuiteExclusion] = (
    SuiteExclusion(
        "needs requests from the server to the client (sampling, elicitation) in the middle of a "
        "call; Cleats answers requests and sends none",
        [
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
        revisions=[HANDSHAKE_REVISION],
    ),
    SuiteExclusion(
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
        revisions=[STATELESS_REVISION],
    ),
    SuiteExclusion(
        "looks at the Host header of HTTP, which stdio does not have; the relay checks none",
        ["dns-rebinding-protection"],
        transports=[STDIO_TRANSPORT],
    ),
    SuiteExclusion(
        "looks at MCP headers of HTTP, which stdio does not have; the relay checks none",
        [
            "server-stateless:sep-2575-http-server-header-mismatch-400",
            "http-header-validation",
            "http-custom-header-server-validation",
        ],
        transports=[STDIO_TRANSPORT],
        revisions=[STATELESS_REVISION],
    ),
    SuiteExclusion(
        "not scored: hangs up an SSE stream and resumes it, and stdio has no streams",
        ["server-sse-polling"],
        transports=[STDIO_TRANSPORT],
        revisions=[HANDSHAKE_REVISION],
    ),
    SuiteExclusion(
        "looks at a session, or a stream that outlives its request; behind a balancer there is none",
        [
            "server-sse-multiple-streams",
            "server-session-lifecycle",
            "server-sse-polling",
        ],
        transports=[BALANCED_TRANSPORT],
        revisions=[HANDSHAKE_REVISION],
    ),
    SuiteExclusion(
        "makes one server change its lists by a call, and listens at the other; each server tells "
        "its own listeners of what it sees",
        [
            "server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription",
            "server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription",
        ],
        transports=[BALANCED_TRANSPORT],
        revisions=[STATELESS_REVISION],
    ),
    SuiteExclusion(
        "expects HTTP's answer to `initialize` after the era is settled (-32601); on a stdio "
        "connection the official SDK, and so Cleats, answers -32022 and names the versions served",
        ["server-stateless:sep-2575-http-server-method-not-found-404-initialize"],
        transports=[STDIO_TRANSPORT],
        revisions=[STATELESS_REVISION],
    ),
)

RELAYED_SCENARIOS: Mapping[str, str] = {
    "server-initialize": "the session id",
    "server-session-lifecycle": "all of it",
    "server-stateless": "the HTTP statuses",
}
"""The part of a scenario that passes over stdio only because of the relay; says nothing of the
server."""


def select_exclusions(
    transport: str, revision: str, exclusions: Iterable[SuiteExclusion] = SUITE_EXCLUSIONS
) -> dict[str, int]:
    """Return the exclusions of one run, each with the number of its reason, counted from one."""
    return {
        what: number
        for number, exclusion in enumerate(exclusions, 1)
        if exclusion.applies_to(transport, revision)
        for what in exclusion.what
    }
