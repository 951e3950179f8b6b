"""The table of every way in which a call can fail.

HTTP statuses, JSON-RPC numbers, retry hints and `docs/errors.md` are all read from `ErrorCode`.
Adding, removing or renaming a row is a contract change, and `cleats contract check` reports it.
"""

from enum import Enum, unique
from typing import Any, NamedTuple

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TOOL_ERROR = -32000
"""The number for failures without a specific one: clients read the string code."""


class ErrorRow(NamedTuple):
    http: int
    rpc: int
    retryable: bool
    meaning: str
    remedy: str


@unique  # equal rows would silently become aliases of one another
class ErrorCode(Enum):
    """The error table. The name of a row is the error code."""

    # Requests that never reach a tool
    INVALID_REQUEST = ErrorRow(
        400,
        INVALID_PARAMS,
        False,
        "The request is malformed or does not fit the tool's schema.",
        "Fix the arguments; `details` names each one that is wrong.",
    )
    UNKNOWN_TOOL = ErrorRow(
        404,
        INVALID_PARAMS,
        False,
        "No tool has this name.",
        "List the tools and use one of their names.",
    )
    QUEUE_OVERLOADED = ErrorRow(
        503,
        -32001,
        True,
        "The server's queue is full.",
        "Retry later, or send fewer calls at once.",
    )
    UNAUTHORIZED = ErrorRow(
        401,
        TOOL_ERROR,
        False,
        "The caller did not say who it is.",
        "Send a valid token.",
    )
    FORBIDDEN = ErrorRow(
        403,
        TOOL_ERROR,
        False,
        "The caller may not touch this.",
        "Ask for access, or use a path or a tool that is allowed.",
    )
    RATE_LIMITED = ErrorRow(
        429,
        TOOL_ERROR,
        True,
        "The caller has sent more requests than its token may.",
        "Wait as long as `Retry-After` says, then send it again.",
    )
    UNAVAILABLE = ErrorRow(
        503,
        TOOL_ERROR,
        True,
        "The server is about to stop, or something that it needs cannot be reached.",
        "Retry later, or ask another instance.",
    )

    # How any tool can end
    TOOL_TIMEOUT = ErrorRow(
        504,
        TOOL_ERROR,
        True,
        "The tool ran past its deadline and was stopped.",
        "Narrow the request, or raise the timeout.",
    )
    CANCELLED = ErrorRow(
        499,
        TOOL_ERROR,
        False,
        "The caller withdrew the request, or the run was cancelled.",
        "Nothing to do; this is what was asked for.",
    )
    INTERNAL = ErrorRow(
        500,
        INTERNAL_ERROR,
        False,
        "An unexpected error: a bug on our side.",
        "Report it with the log line of the call.",
    )

    # Code
    NOT_FOUND = ErrorRow(
        404,
        TOOL_ERROR,
        False,
        "The named file, index or resource does not exist.",
        "Check the name or path; build the index if it is one.",
    )
    NO_INDEX = ErrorRow(
        409,
        TOOL_ERROR,
        False,
        "The repository has no index yet.",
        "Build one with `build_index`.",
    )
    CAPABILITY_MISSING = ErrorRow(
        501,
        TOOL_ERROR,
        False,
        "An optional dependency or a capability of the platform is missing.",
        "Install it (`cleats doctor` says how), or change the configuration.",
    )
    DOWNLOAD_VERIFY_FAILED = ErrorRow(
        502,
        TOOL_ERROR,
        True,
        "A download does not match its checksum.",
        "Retry; check the network and the proxy.",
    )
    ARCHIVE_UNSAFE = ErrorRow(
        422,
        TOOL_ERROR,
        False,
        "An archive holds an entry that would escape its target or is not a plain file.",
        "Use a safer archive.",
    )
    ARCHIVE_TOO_LARGE = ErrorRow(
        413,
        TOOL_ERROR,
        False,
        "An archive is over a size or entry limit.",
        "Use a smaller archive, or raise the limit.",
    )

    # Launch
    INVALID_INPUT = ErrorRow(
        400,
        INVALID_PARAMS,
        False,
        "A field of the request is missing or has no usable value.",
        "Fill in the fields that `details` names.",
    )
    SCHEMA_VALIDATION_FAILED = ErrorRow(
        422,
        TOOL_ERROR,
        False,
        "A configuration or an artifact does not fit its schema.",
        "Fix what `details` points at.",
    )
    INVALID_URL = ErrorRow(
        400,
        TOOL_ERROR,
        False,
        "The URL cannot be read, or fits none of the known patterns.",
        "Use a URL of one of the documented patterns.",
    )
    UNSUPPORTED_SITE = ErrorRow(
        400,
        TOOL_ERROR,
        False,
        "The URL's host belongs to no site of the profile.",
        "Use a host that the profile lists.",
    )
    REPO_NOT_FOUND = ErrorRow(
        404,
        TOOL_ERROR,
        False,
        "The repository does not exist or cannot be reached.",
        "Check the URL and its access.",
    )
    RUN_NOT_FOUND = ErrorRow(
        404,
        TOOL_ERROR,
        False,
        "No run has this id.",
        "List the runs and use one of their ids.",
    )
    ILLEGAL_STATE = ErrorRow(
        409,
        TOOL_ERROR,
        False,
        "The run is in a state in which the tool cannot work.",
        "Read the run's status; `details` names the states that would do.",
    )
    TOOLCHAIN_MISSING = ErrorRow(
        501,
        TOOL_ERROR,
        False,
        "A tool that a gate needs is not installed.",
        "Install it; `cleats doctor` says how.",
    )
    GATE_FAILED = ErrorRow(
        422,
        TOOL_ERROR,
        False,
        "Validation finished and found blockers.",
        "Fix them with `launch_fix_next`, or by hand.",
    )
    FIX_EXHAUSTED = ErrorRow(
        409,
        TOOL_ERROR,
        False,
        "The run has used up its fix attempts, or no rule can fix what is left.",
        "At the limit the run has failed: start one with a higher limit. Where only no rule is "
        "left, fix the rest by hand and validate.",
    )
    ALLOWED_PATHS_VIOLATION = ErrorRow(
        403,
        TOOL_ERROR,
        False,
        "A write outside the allowed paths was refused.",
        "Widen `allowed_paths`, or keep the change inside them.",
    )
    COMMIT_SERVICE_ERROR = ErrorRow(
        502,
        TOOL_ERROR,
        True,
        "The publishing service refused or failed.",
        "Retry when `retryable` is true; else read `details`.",
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


class ToolError(Exception):
    """A failure that the caller can act on.

    Raise it anywhere below the dispatcher; nothing in between may catch it. `details` holds facts
    for programs, `hint` the next step for a reader.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        hint: str = "",
        retryable: bool | None = None,
        details: Any = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = code.value.retryable if retryable is None else retryable
        self.details = details

    def as_json(self) -> dict[str, Any]:
        """Return code, message and retryability as JSON, with hint and details if there are any."""
        body: dict[str, Any] = {
            "code": self.code.name,
            "message": self.message,
            "retryable": self.retryable,
        }
        if self.hint:
            body["hint"] = self.hint
        if self.details:
            body["details"] = self.details
        return body
