"""The telemetry API: routes under `/api/v1/runs`, over the ledger of this machine."""

import logging
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final, TypeVar

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.routes import Route, RouteAnswer, RouteHandler, RouteRequest
from cleats.contract.versions import TOOLING_VERSION
from cleats.contract.violations import Validator
from cleats.toolsets.launch.telemetry import shapes
from cleats.toolsets.launch.telemetry.ledger import FILTERS, Ledger

log = logging.getLogger(__name__)

T = TypeVar("T")

PAGE: Final = 50
MOST: Final = 500
FARTHEST: Final = 1 << 40

CatchUp = Callable[[str], None]
"""Bring the records of a run up to its journal."""


class Api:
    """What the routes do."""

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        catch_up: CatchUp,
        events: Callable[[str], list[Mapping[str, Any]]],
    ) -> None:
        self._ledger = ledger
        self._catch_up = catch_up
        self._events = events

    def routes(self) -> list[Route]:
        runs, one = "/api/v1/runs", "/api/v1/runs/{event_id}"
        commit = one + "/associate-commit"
        made = [
            Route("POST", runs, self.begin, "Record that work began.", _MADE, shapes.RECORD),
            Route("GET", runs, self.list, "Records, the newest first.", _LIST, query=_QUERY),
            Route("POST", f"{runs}/batch", self.batch, "Up to 1,000 records.", _BATCH, _RECORDS),
            Route("GET", one, self.one, "One record.", _ONE),
            Route("PATCH", one, self.update, "What became of it.", _ONE, shapes.UPDATE),
            Route("POST", commit, self.commit, "The commit it made.", _ONE, shapes.COMMIT),
            Route("GET", one + "/events", self.events, "The journal of its run.", _EVENTS),
            Route("GET", "/api/v1/metadata", self.metadata, "What is recorded here.", _FACTS),
            Route("GET", "/telemetry/{run_id}", self.run, "A run and all below it.", _RUN),
        ]
        return [replace(route, run=_told(route.run)) for route in made]

    async def begin(self, request: RouteRequest) -> RouteAnswer:
        record = _checked("record", request.body)

        def keep() -> tuple[bool, dict[str, Any]]:
            ledger = self._ledger()
            before = ledger.find(record["event_id"])
            if before is None:
                ledger.keep([record])
            return before is None, before or _found(ledger.find(record["event_id"]))

        new, whole = await to_thread.run_sync(keep)
        return RouteAnswer(whole, 201 if new else 200)

    async def batch(self, request: RouteRequest) -> RouteAnswer:
        sent = _checked("batch", request.body)
        validator = _validator("record")

        def keep(ledger: Ledger) -> dict[str, Any]:
            good, errors = [], []
            for index, record in enumerate(sent):
                if wrong := next(iter(validator.violations(record)), None):
                    errors.append({"index": index, "path": wrong.path, "message": wrong.message})
                else:
                    good.append(record)
            new = [each for each in good if ledger.find(each["event_id"]) is None]
            ledger.keep(new)
            inserted = len({each["event_id"] for each in new})
            return {"inserted": inserted, "duplicates": len(good) - inserted, "errors": errors}

        return RouteAnswer(await self._in_thread(keep))

    async def list(self, request: RouteRequest) -> RouteAnswer:
        unknown = request.query.keys() - {*FILTERS, "limit", "offset"}
        if unknown:
            raise _invalid(f"there is no filter {min(unknown)!r}", f"Use {', '.join(FILTERS)}.")
        limit = _number(request, "limit", PAGE, most=MOST)
        offset = _number(request, "offset", 0, most=FARTHEST)
        wanted = {name: request.query[name] for name in FILTERS if name in request.query}
        runs = await self._in_thread(lambda ledger: ledger.list(wanted, limit=limit, offset=offset))
        return RouteAnswer({"runs": runs, "count": len(runs), "limit": limit, "offset": offset})

    async def one(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        return RouteAnswer(_found(await self._in_thread(lambda ledger: ledger.find(event_id))))

    async def update(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        update = _checked("update", request.body)

        def keep(ledger: Ledger) -> dict[str, Any] | None:
            ledger.keep([], [(event_id, update)])
            return ledger.find(event_id)

        return RouteAnswer(_found(await self._in_thread(keep)))

    async def commit(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        commit = _checked("commit", request.body)

        def keep(ledger: Ledger) -> dict[str, Any] | None:
            return ledger.find(event_id) if ledger.associate(event_id, commit) else None

        return RouteAnswer(_found(await self._in_thread(keep)))

    async def events(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]

        def read(ledger: Ledger) -> list[Mapping[str, Any]]:
            record = _found(ledger.find(event_id))
            return self._events(record.get("parent_run_id") or record["run_id"])

        return RouteAnswer({"events": await self._in_thread(read)})

    async def metadata(self, _request: RouteRequest) -> RouteAnswer:
        counts = await self._in_thread(lambda ledger: ledger.counts())
        return RouteAnswer({"version": TOOLING_VERSION, "counts": counts})

    async def run(self, request: RouteRequest) -> RouteAnswer:
        run_id = request.path["run_id"]

        def read(ledger: Ledger) -> Any:
            self._catch_up(run_id)
            return ledger.of_run(run_id)

        records = await self._in_thread(read)
        if not records:
            raise ToolError(ErrorCode.NOT_FOUND, "nothing is recorded of this run")
        return RouteAnswer({"run_id": run_id, "records": records})

    async def _in_thread(self, work: Callable[[Ledger], T]) -> T:
        return await to_thread.run_sync(lambda: work(self._ledger()))


_CHECKED: Final = {
    "record": shapes.RECORD,
    "update": shapes.UPDATE,
    "commit": shapes.COMMIT,
    "batch": shapes.BATCH,
}


@cache
def _validator(name: str) -> Validator:
    return Validator(_CHECKED[name])


def _told(run: RouteHandler) -> RouteHandler:
    async def told(request: RouteRequest) -> RouteAnswer:
        try:
            return await run(request)
        except (sqlite3.Error, OSError) as error:
            log.warning("telemetry.records error=%s", error)
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                "The file of the records cannot be used now.",
                hint="Make room or move it away; records of runs are made anew from their logs.",
            ) from None

    return told


def _checked(name: str, body: Any) -> Any:
    found = [each.as_json() for each in _validator(name).violations(body)]
    if found:
        where = found[0]["instancePath"] or "the body"
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{where}: {found[0]['message']}", details=found)
    return body


def _found(record: dict[str, Any] | None) -> dict[str, Any]:
    if record is None:
        raise ToolError(ErrorCode.NOT_FOUND, "there is no record with this event_id")
    return record


_WHOLE: Final = re.compile(r"[0-9]{1,15}")


def _number(request: RouteRequest, name: str, default: int, *, most: int) -> int:
    said = request.query.get(name, str(default))
    if not _WHOLE.fullmatch(said) or int(said) > most:
        raise _invalid(f"{name} must be a whole number up to {most}", "")
    return int(said)


def _invalid(message: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_REQUEST, message, hint=hint)


_STORED: Final = shapes.STORED
_ROWS: Final = {"type": "array", "items": _STORED}
_ONE: Final = {200: _STORED}
_MADE: Final = {200: _STORED, 201: _STORED}
_COUNT: Final = {"type": "integer", "minimum": 0}
_RECORDS: Final = {**shapes.BATCH, "items": shapes.RECORD}
_QUERY: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"type": "string"} for name in FILTERS},
    "limit": {**_COUNT, "maximum": MOST, "default": PAGE},
    "offset": {**_COUNT, "maximum": FARTHEST, "default": 0},
}
_LIST: Final = {
    200: {
        "type": "object",
        "required": ["runs", "count", "limit", "offset"],
        "properties": {"runs": _ROWS, "count": _COUNT, "limit": _COUNT, "offset": _COUNT},
    }
}
_BATCH: Final = {
    200: {
        "type": "object",
        "required": ["inserted", "duplicates", "errors"],
        "properties": {
            "inserted": _COUNT,
            "duplicates": _COUNT,
            "errors": {"type": "array", "items": {"type": "object"}},
        },
    }
}
_EVENTS: Final = {
    200: {
        "type": "object",
        "required": ["events"],
        "properties": {"events": {"type": "array", "items": {"type": "object"}}},
    }
}
_FACTS: Final = {200: {"type": "object", "required": ["version", "counts"]}}
_RUN: Final = {
    200: {
        "type": "object",
        "required": ["run_id", "records"],
        "properties": {"run_id": {"type": "string"}, "records": _ROWS},
    }
}
