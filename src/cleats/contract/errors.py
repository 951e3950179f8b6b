"""The table of every way in which a call can fail.

HTTP statuses, JSON-RPC numbers, retry hints and `docs/errors.md` are all read from `ErrorCode`.
Adding, removing or renaming a row is a contract change, and `cleats contract check` reports it.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, Final, NamedTuple

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TOOL_ERROR = -32000
"""The number for failures without a specific one: clients read the string code."""


class ErrorRow(NamedTuple):
    http: int
    meaning: str
    remedy: str
    rpc: int = TOOL_ERROR
    retryable: bool = False


@unique  # equal rows would silently become aliases of one another
class ErrorCode(Enum):
    """The error table. The name of a row is the error code."""

    # Requests that never reach a tool
    INVALID_REQUEST = ErrorRow(
        400,
        "The request is malformed or does not match the tool's schema.",
        "Fix the arguments; `details` names each one that is wrong.",
        rpc=INVALID_PARAMS,
    )
    UNKNOWN_TOOL = ErrorRow(
        404, "No tool has this name.", "List the tools and use one of their names.", rpc=INVALID_PARAMS
    )
    QUEUE_OVERLOADED = ErrorRow(
        503, "The server's queue is full.", "Retry later, or send fewer calls at once.", rpc=-32001, retryable=True
    )
    UNAUTHORIZED = ErrorRow(401, "The token is missing or invalid.", "Send a valid token.")
    FORBIDDEN = ErrorRow(
        403, "The caller has no access to this.", "Ask for access, or use a path or a tool that is allowed."
    )
    RATE_LIMITED = ErrorRow(
        429,
        "The token has exceeded its rate limit.",
        "Wait for the time in `Retry-After`, then retry.",
        retryable=True,
    )
    UNAVAILABLE = ErrorRow(
        503,
        "The server is stopping, or a service that it needs is unreachable.",
        "Retry later, or ask another instance.",
        retryable=True,
    )

    # How any tool can end
    TOOL_TIMEOUT = ErrorRow(
        504,
        "The tool ran past its deadline and was stopped.",
        "Narrow the request, or raise the timeout.",
        retryable=True,
    )
    CANCELLED = ErrorRow(499, "The caller withdrew the request, or the run was cancelled.", "Nothing to do.")
    INTERNAL = ErrorRow(
        500, "An unexpected error: a bug on our side.", "Report it with the log line of the call.", rpc=INTERNAL_ERROR
    )

    # Code
    NOT_FOUND = ErrorRow(
        404,
        "The named file, index or resource does not exist.",
        "Check the name or path; build the index if it is missing.",
    )
    NO_INDEX = ErrorRow(409, "The repository has no index yet.", "Build one with `build_index`.")
    CAPABILITY_MISSING = ErrorRow(
        501,
        "An optional dependency or a platform capability is missing.",
        "Install it (`cleats doctor` says how), or change the configuration.",
    )
    DOWNLOAD_VERIFY_FAILED = ErrorRow(
        502, "A download does not match its checksum.", "Retry; check the network and the proxy.", retryable=True
    )
    ARCHIVE_UNSAFE = ErrorRow(
        422, "An archive holds an entry that would escape its target or is not a regular file.", "Use a safer archive."
    )
    ARCHIVE_TOO_LARGE = ErrorRow(
        413, "An archive is over a size or entry limit.", "Use a smaller archive, or raise the limit."
    )

    # Launch
    INVALID_INPUT = ErrorRow(
        400,
        "A field of the request is missing or has no usable value.",
        "Fill in the fields that `details` names.",
        rpc=INVALID_PARAMS,
    )
    SCHEMA_VALIDATION_FAILED = ErrorRow(
        422, "A configuration or an artifact does not match its schema.", "Fix the fields that `details` names."
    )
    INVALID_URL = ErrorRow(
        400,
        "The URL is invalid or matches none of the known patterns.",
        "Use a URL that matches a documented pattern.",
    )
    UNSUPPORTED_SITE = ErrorRow(
        400, "The host of the URL is not part of the profile.", "Use a host that the profile lists."
    )
    REPO_NOT_FOUND = ErrorRow(
        404, "The repository does not exist or cannot be reached.", "Check the URL and your access to it."
    )
    RUN_NOT_FOUND = ErrorRow(404, "No run has this id.", "List the runs and use one of their ids.")
    ILLEGAL_STATE = ErrorRow(
        409,
        "The tool is not allowed in the current state of the run.",
        "Read the status of the run; `details` names the allowed states.",
    )
    TOOLCHAIN_MISSING = ErrorRow(
        501, "A program that a gate needs is not installed.", "Install it; `cleats doctor` says how."
    )
    GATE_FAILED = ErrorRow(
        422, "Validation finished and found blockers.", "Fix them with `launch_fix_next`, or by hand."
    )
    FIX_EXHAUSTED = ErrorRow(
        409,
        "The run has used up its fix attempts, or no rule can fix what is left.",
        "If the attempts are used up, the run has failed: start a new one with a higher limit. If no rule is left, "
        "fix the rest by hand and validate.",
    )
    ALLOWED_PATHS_VIOLATION = ErrorRow(
        403, "A write outside the allowed paths was refused.", "Widen `allowed_paths`, or keep the change inside them."
    )
    COMMIT_SERVICE_ERROR = ErrorRow(
        502,
        "The publishing service refused or failed.",
        "Retry when `retryable` is true; else read `details`.",
        retryable=True,
    )

    @property
    def http(self) -> int:
        return self.value.http

    @property
    def rpc(self) -> int:
        return self.value.rpc


KERNEL_CODES = (
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_TOOL,
    ErrorCode.QUEUE_OVERLOADED,
    ErrorCode.TOOL_TIMEOUT,
    ErrorCode.CANCELLED,
    ErrorCode.INTERNAL,
)
"""The codes that any tool may answer with, without listing them."""


CODES_BEYOND_SPECS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.RATE_LIMITED: "Rate limits apply to one token; QUEUE_OVERLOADED reports the load of all callers.",
    ErrorCode.UNAVAILABLE: "An unreachable store or a stopping server is not a bug (INTERNAL).",
}
"""The codes that no specification has, each with the reason why none of the others would do."""


def unwrap_tool_error(crash: Exception) -> "ToolError | None":
    """Return the error that an exception is, or that the groups of task groups hold as the only one."""
    while isinstance(crash, ExceptionGroup) and len(crash.exceptions) == 1:
        crash = crash.exceptions[0]
    return crash if isinstance(crash, ToolError) else None


class ToolError(Exception):
    """A failure that the caller can act on.

    Raise it anywhere below the dispatcher; nothing in between may catch it. `details` holds facts
    for programs, `hint` the next step for a reader.
    """

    def __init__(
        self, code: ErrorCode, message: str, *, hint: str = "", retryable: bool | None = None, details: Any = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = code.value.retryable if retryable is None else retryable
        self.details = details

    @property
    def explanation(self) -> str:
        """The message, followed by the hint: what happened, then what to do."""
        if not self.hint:
            return self.message
        return f"{self.message}{'' if self.message.endswith(('.', '!', '?', ':')) else '.'} {self.hint}"

    def as_json(self) -> dict[str, Any]:
        """Return code, message and details as JSON: the error of the envelope, which has no other field.

        Retryability and hint are details too. Only the violations of a schema are a list of details; the error table
        says that such an error is not retryable, and the message has the hint.
        """
        details = self.details
        if not details or isinstance(details, Mapping):
            details = {**(details or {}), "retryable": self.retryable, **({"hint": self.hint} if self.hint else {})}
        return {"code": self.code.name, "message": self.explanation, "details": details}
