"""The spans of a drive: one for each step and publication, one for each gate and model call.

A step hangs below the call that drives the run; so does a publication, which has its two steps
below it. Gates and model calls hang below their step. A drive that no call asked for has a span
of its own, below the call that started the run, whose ids the log has; else it begins a trace.

What a worker did it tells when it ends, with the moments of each beginning and end, so spans of
gates and model calls are made afterwards. Their ids, as those of the step, go into the log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from opentelemetry.trace import Tracer

from cleats.contract.errors import ToolError
from cleats.runtime.branch import Branch, Place
from cleats.toolsets.launch.drive.records import Item
from cleats.toolsets.launch.drive.steps import Work
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.store.port import LeaseLost

Payload: TypeAlias = Mapping[str, Any]
Facts: TypeAlias = dict[str, Any]


class Trail:
    """Where the spans of one drive hang."""

    def __init__(self, tracer: Tracer, run_id: str, place: Place, parent: str = "") -> None:
        self.trace = Trace(place.trace_id, place.span_id, parent)
        """For what is written into the log between two steps."""
        self._tracer = tracer
        self._run = {"cleats.run_id": run_id}
        self._call = place
        self._publication: Branch | None = None

    @contextmanager
    def step(self, work: Work, item: Item) -> Iterator[Branch]:
        """The span of a step, around all that is done for it."""
        facts = {
            **self._run,
            "cleats.step": work.step,
            "cleats.worker": work.kind.worker,
            "cleats.attempt": item.attempt,
            "cleats.work_item_id": item.work_item_id,
        }
        if work.kind.name == "draft":
            facts["cleats.section"] = work.scope
        above = self._publication.place if self._publication else self._call
        span = Branch(self._tracer, f"step {work.kind.name}", above, facts)
        with _ending(span):
            yield span

    @contextmanager
    def publication(self) -> Iterator[None]:
        """The span of a publication: its steps hang below it."""
        span = Branch(self._tracer, "publication", self._call, self._run)
        self._publication = span
        try:
            with _ending(span):
                yield
        finally:
            self._publication = None

    def told(self, step: Branch, drafts: Sequence[Draft]) -> list[Draft]:
        """What a worker told, each part with the ids of its own span, which has ended."""
        begun: dict[tuple[str, str], Branch] = {}
        made = []
        for draft in drafts:
            span = self._part(step, draft, begun)
            made.append(draft if span is None else replace(draft, trace=ids(span)))
        for left in begun.values():
            left.end(finished=False)
        return made

    def _part(
        self, step: Branch, draft: Draft, begun: dict[tuple[str, str], Branch]
    ) -> Branch | None:
        if draft.type == "PR_OPENED":
            return self._publication
        if (part := _PARTS.get(draft.type)) is None:
            return None
        kind, phase, facts = part
        key = (kind, str(draft.payload.get(_NAMES[kind], "")))
        if phase == "begins":
            name = f"{kind} {draft.payload.get('gate') or draft.payload.get('model', '')}"
            told = {**self._run, **facts(draft.payload)}
            span = begun[key] = step.below(name, told, began=draft.ns or None)
        elif (ended := begun.pop(key, None)) is not None:
            span = ended
            if phase == "fails":
                span.error = str(draft.payload.get("error_class", "failed"))
            elif not draft.payload.get("ok", True):
                span.error = "GATE_FAILED"
            span.end(finished=True, facts=facts(draft.payload), at=draft.ns)
        else:
            return None
        return span


@contextmanager
def driving(tracer: Tracer, run_id: str, call: Place | None, journaled: Trace) -> Iterator[Trail]:
    """The trail of a drive, below its call; without one, below what the log has or below nothing.

    `journaled` are the ids in the first event of the run: those of the call that started it.
    """
    if call is not None:
        yield Trail(tracer, run_id, call)
        return
    known = bool(journaled.trace_id.strip("0") and journaled.span_id.strip("0"))
    origin = Place(*journaled[:2], remote=True) if known else None
    span = Branch(tracer, "drive", origin, {"cleats.run_id": run_id})
    with _ending(span):
        yield Trail(tracer, run_id, span.place, origin.span_id if origin else "")


def ids(span: Branch) -> Trace:
    """A span as events name it."""
    return Trace(span.place.trace_id, span.place.span_id, span.under.span_id if span.under else "")


@contextmanager
def _ending(span: Branch) -> Iterator[None]:
    finished = False
    try:
        yield
        finished = True
    except LeaseLost:  # cancelled, or taken over: nothing failed
        raise
    except ToolError as error:
        span.error = error.code.name
        raise
    except Exception as crash:
        span.error = type(crash).__name__
        raise
    finally:
        span.end(finished=finished)


def _of_gate(payload: Payload) -> Facts:
    names = {"gate": "cleats.gate", "profile": "cleats.profile", "issues": "cleats.issues"}
    return {there: payload[name] for name, there in names.items() if name in payload}


def _asked(payload: Payload) -> Facts:
    """A model call, by the names that OpenTelemetry has for it."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": str(payload.get("model", "")),
        "cleats.call_id": str(payload.get("call_id", "")),
        "cleats.prompt_hash": str(payload.get("prompt_hash", "")),
    }


def _answered(payload: Payload) -> Facts:
    used = payload.get("token_usage", {})
    return {
        "gen_ai.usage.input_tokens": used.get("input_tokens", 0),
        "gen_ai.usage.output_tokens": used.get("output_tokens", 0),
        "gen_ai.response.finish_reasons": [str(payload.get("finish_reason", ""))],
    }


def _unanswered(payload: Payload) -> Facts:
    status = payload.get("http_status")
    return {"http.response.status_code": status} if status else {}


_NAMES: Final = {"gate": "gate", "chat": "call_id"}
"""What tells two parts of a kind apart."""

_PARTS: Final[Mapping[str, tuple[str, str, Callable[[Payload], Facts]]]] = {
    "GATE_RUN_STARTED": ("gate", "begins", _of_gate),
    "GATE_RUN_FINISHED": ("gate", "ends", _of_gate),
    "LLM_CALL_STARTED": ("chat", "begins", _asked),
    "LLM_CALL_FINISHED": ("chat", "ends", _answered),
    "LLM_CALL_FAILED": ("chat", "fails", _unanswered),
}
