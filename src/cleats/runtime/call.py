"""One tool call, from the moment a surface accepts it until it is settled."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import Meta
from cleats.runtime.progress import Progress
from cleats.runtime.scope import Scope


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """What is asked, by whom, and what the tool says on the way. It is the tool's `Context`."""

    tool: str
    arguments: Mapping[str, Any]
    id: str | None = None
    surface: str = "direct"
    reporter: Progress | None = None
    traceparent: str | None = None
    meta: Meta = field(default_factory=Meta)
    scope: Scope = field(default_factory=Scope, repr=False)
    ids: tuple[int, int] = (0, 0)
    """Those of its trace and its span, once it is dispatched."""
    sampled: bool = True

    def cancel(self) -> None:
        """Withdraw the call. Safe before it starts and after it ends."""
        self.scope.end("withdrawn")

    def expire(self) -> None:
        """The call's time is up."""
        self.scope.end("late")

    def progress(
        self,
        message: str,
        *,
        phase: str = "progress",
        done: float | None = None,
        total: float | None = None,
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
    """Anything with an id that can be withdrawn."""

    def cancel(self) -> None:
        """Stop it. Safe to repeat."""


RequestT = TypeVar("RequestT", bound=Cancellable)


class InFlight(Generic[RequestT]):
    """The open requests of one connection. `1` and `"1"` are the same id."""

    def __init__(self) -> None:
        self._open: dict[str, RequestT] = {}

    def __iter__(self) -> Iterator[RequestT]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, request_id: str | float, request: RequestT) -> None:
        """Take a request in.

        Raises:
            ToolError: INVALID_REQUEST, the id is still in use; the older request is untouched.
        """
        key = str(request_id)
        if key in self._open:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"the id {key!r} belongs to a request that is still running",
                hint="Give every request an id of its own.",
            )
        self._open[key] = request

    def discard(self, request_id: str | float) -> None:
        self._open.pop(str(request_id), None)

    def cancel(self, request_id: object) -> bool:
        """Withdraw a request by its wire id; False when it is not in flight."""
        request = self._open.get(str(request_id))
        if request is None:
            return False
        request.cancel()
        return True
