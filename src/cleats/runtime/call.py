"""One tool call, from the moment a surface accepts it until it has an outcome."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import AnswerMeta
from cleats.runtime.progress import ProgressReporter

EndReason: TypeAlias = Literal["withdrawn", "late"]


class CallScope:
    """A cancel scope. Enter it in the task that does the work, unless it has ended already."""

    __slots__ = ("_delivered", "_task", "ended")

    def __init__(self) -> None:
        self.ended: EndReason | None = None
        self._task: asyncio.Task[object] | None = None
        self._delivered = False

    def end(self, reason: EndReason) -> None:
        """Stop the work at its next await. The first reason counts; safe at any time."""
        if self.ended is None:
            self.ended = reason
            if self._task is not None:
                self._task.get_loop().call_soon(self._cancel_task)

    def __enter__(self) -> None:
        self._task = asyncio.current_task()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if not self._delivered or task is None:
            return False
        # Suppress our own cancellation only: that of an outer scope has to propagate.
        return task.uncancel() == 0 and kind is asyncio.CancelledError

    def _cancel_task(self) -> None:
        # Deferred by one iteration of the loop and checked here, so that work which ends in the
        # same iteration is not followed by a cancellation that nobody awaits.
        if self._task is not None:
            self._delivered = True
            self._task.cancel()


@dataclass(slots=True, kw_only=True, eq=False)
class ToolCall:
    """A tool call: the request, its origin, and the tool's reports. It is the tool's `Context`."""

    tool: str
    arguments: Mapping[str, Any]
    id: str | None = None
    surface: str = "direct"
    reporter: ProgressReporter | None = None
    traceparent: str | None = None
    meta: AnswerMeta = field(default_factory=AnswerMeta)
    scope: CallScope = field(default_factory=CallScope, repr=False)
    ids: tuple[int, int] = (0, 0)
    """The ids of its trace and its span, set when it is dispatched."""
    sampled: bool = True

    def cancel(self) -> None:
        """Withdraw the call. Safe before it starts and after it ends."""
        self.scope.end("withdrawn")

    def expire(self) -> None:
        """End the call because its time is up."""
        self.scope.end("late")

    def progress(
        self, message: str, *, phase: str = "progress", done: float | None = None, total: float | None = None
    ) -> None:
        if self.reporter is not None:
            self.reporter.report(message, phase=phase, done=done, total=total)

    def warn(self, code: str, message: str, **facts: Any) -> None:
        self.meta.warnings.append({"code": code, "message": message, **facts})

    def about(self, repo: str) -> None:
        self.meta.repo = repo

    def note(self, **facts: str) -> None:
        self.meta.notes.update(facts)

    @property
    def trace(self) -> tuple[str, str]:
        return f"{self.ids[0]:032x}", f"{self.ids[1]:016x}"


class Cancellable(Protocol):
    """A request that can be withdrawn."""

    def cancel(self) -> None:
        """Stop the request. Safe to repeat."""


RequestT = TypeVar("RequestT", bound=Cancellable)


class InFlightRequests(Generic[RequestT]):
    """The open requests of one connection. `1` and `"1"` are the same id."""

    def __init__(self) -> None:
        self._requests: dict[str, RequestT] = {}

    def __iter__(self) -> Iterator[RequestT]:
        return iter(list(self._requests.values()))

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request_id: str | float, request: RequestT) -> None:
        """Register a request.

        Raises:
            ToolError: INVALID_REQUEST, the id is still in use; the older request is untouched.
        """
        key = str(request_id)
        if key in self._requests:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"the id {key!r} belongs to a request that is still running",
                hint="Give every request a unique id.",
            )
        self._requests[key] = request

    def discard(self, request_id: str | float) -> None:
        self._requests.pop(str(request_id), None)

    def cancel(self, request_id: object) -> bool:
        """Withdraw a request by its wire id; return False if it is not in flight."""
        request = self._requests.get(str(request_id))
        if request is None:
            return False
        request.cancel()
        return True
