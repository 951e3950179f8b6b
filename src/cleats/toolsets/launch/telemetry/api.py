"""The telemetry API: routes below `/api/v1/runs` for the ledger of this machine."""

import logging
import re
import sqlite3
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.routes import Route, RouteAnswer, RouteHandler, RouteRequest
from cleats.contract.versions import TOOLING_VERSION
from cleats.contract.violations import Validator
from cleats.toolsets.launch.telemetry.ledger import FILTER_COLUMNS, TelemetryLedger
from cleats.toolsets.launch.telemetry.recorder import TelemetryRecorder

Schema: TypeAlias = Mapping[str, Any]

_FIELDS: Final = tomllib.loads(Path(__file__).with_name("record_fields.toml").read_text(encoding="utf-8"))
_COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
_REQUIRED_FIELDS: Final = ["event_id", "run_id", "agent_name", "job_type", "start_time"]


def _make_closed_schema(properties: Schema, **rules: Any) -> Schema:
    return {"type": "object", **rules, "properties": properties, "additionalProperties": False}


RECORD_SCHEMA: Final = _make_closed_schema({**_FIELDS["record"], **_FIELDS["outcome"]}, required=_REQUIRED_FIELDS)
"""A record when it begins; `event_id` makes sending it twice the same as sending it once."""

UPDATE_SCHEMA: Final = _make_closed_schema(_FIELDS["outcome"], minProperties=1)
"""A later update of a record."""

COMMIT_SCHEMA: Final = _make_closed_schema(_FIELDS["commit"], required=["commit_hash", "commit_source"])
BATCH_SCHEMA: Final[Schema] = {"type": "array", "maxItems": 1000, "items": {"type": "object"}}
STORED_RECORD_SCHEMA: Final[Schema] = {
    "type": "object",
    "required": [*_REQUIRED_FIELDS, "status"],
    "properties": {**RECORD_SCHEMA["properties"], "commits": {"type": "array", "items": COMMIT_SCHEMA}},
}
"""A record as it is returned."""


log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_PAGE_RECORDS: Final = 50
MAX_PAGE_RECORDS: Final = 500
MAX_LIST_OFFSET: Final = 1 << 40


class TelemetryApi:
    """The handlers of the routes."""

    def __init__(self, recorder: TelemetryRecorder) -> None:
        self._recorder = recorder

    def build_routes(self) -> list[Route]:
        runs_path, record_path = "/api/v1/runs", "/api/v1/runs/{event_id}"
        batch_path, commit_path = f"{runs_path}/batch", f"{record_path}/associate-commit"
        routes = [
            Route("POST", runs_path, self.create_record, "Record that work began.", _CREATE_ANSWERS, RECORD_SCHEMA),
            Route(
                "GET", runs_path, self.list_records, "Records, the newest first.", _LIST_ANSWERS, query=_LIST_PARAMETERS
            ),
            Route("POST", batch_path, self.create_batch, "Up to 1,000 records.", _BATCH_ANSWERS, _BATCH_BODY_SCHEMA),
            Route("GET", record_path, self.get_record, "One record.", _RECORD_ANSWERS),
            Route("PATCH", record_path, self.update_record, "What became of it.", _RECORD_ANSWERS, UPDATE_SCHEMA),
            Route("POST", commit_path, self.associate_commit, "The commit it made.", _RECORD_ANSWERS, COMMIT_SCHEMA),
            Route("GET", record_path + "/events", self.list_events, "The journal of its run.", _EVENTS_ANSWERS),
            Route("GET", "/api/v1/metadata", self.get_metadata, "What is recorded here.", _METADATA_ANSWERS),
            Route("GET", "/telemetry/{run_id}", self.get_run, "A run and all below it.", _RUN_ANSWERS),
        ]
        return [replace(route, run=_wrap_storage_errors(route.run)) for route in routes]

    async def create_record(self, request: RouteRequest) -> RouteAnswer:
        record = _check_body("record", request.body)

        def store_record(ledger: TelemetryLedger) -> tuple[bool, dict[str, Any]]:
            existing = ledger.find(record["event_id"])
            if existing is None:
                ledger.store_records([record])
            return existing is None, existing or _require_record(ledger.find(record["event_id"]))

        is_new, stored_record = await self._run_in_thread(store_record)
        return RouteAnswer(stored_record, 201 if is_new else 200)

    async def create_batch(self, request: RouteRequest) -> RouteAnswer:
        records = _check_body("batch", request.body)
        validator = _load_validator("record")

        def store_records(ledger: TelemetryLedger) -> dict[str, Any]:
            valid_records, errors = [], []
            for index, record in enumerate(records):
                if violation := next(iter(validator.find_violations(record)), None):
                    errors.append({"index": index, "path": violation.path, "message": violation.message})
                else:
                    valid_records.append(record)
            new_records = [record for record in valid_records if ledger.find(record["event_id"]) is None]
            ledger.store_records(new_records)
            inserted = len({record["event_id"] for record in new_records})
            return {"inserted": inserted, "duplicates": len(valid_records) - inserted, "errors": errors}

        return RouteAnswer(await self._run_in_thread(store_records))

    async def list_records(self, request: RouteRequest) -> RouteAnswer:
        unknown = request.query.keys() - {*FILTER_COLUMNS, "limit", "offset"}
        if unknown:
            raise _make_invalid_error(f"there is no filter {min(unknown)!r}", f"Use {', '.join(FILTER_COLUMNS)}.")
        limit = _parse_number(request, "limit", DEFAULT_PAGE_RECORDS, maximum=MAX_PAGE_RECORDS)
        offset = _parse_number(request, "offset", 0, maximum=MAX_LIST_OFFSET)
        filters = {name: request.query[name] for name in FILTER_COLUMNS if name in request.query}
        runs = await self._run_in_thread(lambda ledger: ledger.list_records(filters, limit=limit, offset=offset))
        return RouteAnswer({"runs": runs, "count": len(runs), "limit": limit, "offset": offset})

    async def get_record(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        return RouteAnswer(_require_record(await self._run_in_thread(lambda ledger: ledger.find(event_id))))

    async def update_record(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        update = _check_body("update", request.body)

        def store_update(ledger: TelemetryLedger) -> dict[str, Any] | None:
            ledger.store_records([], [(event_id, update)])
            return ledger.find(event_id)

        return RouteAnswer(_require_record(await self._run_in_thread(store_update)))

    async def associate_commit(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]
        commit = _check_body("commit", request.body)

        def store_commit(ledger: TelemetryLedger) -> dict[str, Any] | None:
            return ledger.find(event_id) if ledger.associate_commit(event_id, commit) else None

        return RouteAnswer(_require_record(await self._run_in_thread(store_commit)))

    async def list_events(self, request: RouteRequest) -> RouteAnswer:
        event_id = request.path["event_id"]

        def read_journal(ledger: TelemetryLedger) -> list[Mapping[str, Any]]:
            record = _require_record(ledger.find(event_id))
            return self._recorder.read_journal(record.get("parent_run_id") or record["run_id"])

        return RouteAnswer({"events": await self._run_in_thread(read_journal)})

    async def get_metadata(self, _request: RouteRequest) -> RouteAnswer:
        counts = await self._run_in_thread(lambda ledger: ledger.count_records())
        return RouteAnswer({"version": TOOLING_VERSION, "counts": counts})

    async def get_run(self, request: RouteRequest) -> RouteAnswer:
        run_id = request.path["run_id"]

        def read_records(ledger: TelemetryLedger) -> Any:
            self._recorder.catch_up(run_id)
            return ledger.list_run_records(run_id)

        records = await self._run_in_thread(read_records)
        if not records:
            raise ToolError(ErrorCode.NOT_FOUND, "nothing is recorded of this run")
        return RouteAnswer({"run_id": run_id, "records": records})

    async def _run_in_thread(self, work: Callable[[TelemetryLedger], T]) -> T:
        return await to_thread.run_sync(lambda: work(self._recorder.ledger))


_BODY_SCHEMAS: Final = {
    "record": RECORD_SCHEMA,
    "update": UPDATE_SCHEMA,
    "commit": COMMIT_SCHEMA,
    "batch": BATCH_SCHEMA,
}


@cache
def _load_validator(name: str) -> Validator:
    return Validator(_BODY_SCHEMAS[name])


def _wrap_storage_errors(handler: RouteHandler) -> RouteHandler:
    async def handle_request(request: RouteRequest) -> RouteAnswer:
        try:
            return await handler(request)
        except (sqlite3.Error, OSError) as error:
            log.warning("telemetry.records error=%s", error)
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                "The file of the records cannot be used now.",
                hint="Make room or move it away; records of runs are made anew from their logs.",
            ) from None

    return handle_request


def _check_body(name: str, body: Any) -> Any:
    violations = [violation.as_json() for violation in _load_validator(name).find_violations(body)]
    if violations:
        pointer = violations[0]["instancePath"] or "the body"
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{pointer}: {violations[0]['message']}", details=violations)
    return body


def _require_record(record: dict[str, Any] | None) -> dict[str, Any]:
    if record is None:
        raise ToolError(ErrorCode.NOT_FOUND, "there is no record with this event_id")
    return record


def _parse_number(request: RouteRequest, name: str, default: int, *, maximum: int) -> int:
    text = request.query.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) > maximum:
        raise _make_invalid_error(f"{name} must be a whole number up to {maximum}", "")
    return int(text)


def _make_invalid_error(message: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_REQUEST, message, hint=hint)


def _make_answers(**properties: Schema) -> Mapping[int, Schema]:
    return {200: {"type": "object", "required": list(properties), "properties": properties}}


_RECORD_LIST_SCHEMA: Final = {"type": "array", "items": STORED_RECORD_SCHEMA}
_OBJECT_LIST_SCHEMA: Final = {"type": "array", "items": {"type": "object"}}
_RECORD_ANSWERS: Final = {200: STORED_RECORD_SCHEMA}
_CREATE_ANSWERS: Final = {200: STORED_RECORD_SCHEMA, 201: STORED_RECORD_SCHEMA}
_BATCH_BODY_SCHEMA: Final = {**BATCH_SCHEMA, "items": RECORD_SCHEMA}
_LIST_PARAMETERS: Final[Mapping[str, Schema]] = {
    **{name: {"type": "string"} for name in FILTER_COLUMNS},
    "limit": {**_COUNT_SCHEMA, "maximum": MAX_PAGE_RECORDS, "default": DEFAULT_PAGE_RECORDS},
    "offset": {**_COUNT_SCHEMA, "maximum": MAX_LIST_OFFSET, "default": 0},
}
_LIST_ANSWERS: Final = _make_answers(
    runs=_RECORD_LIST_SCHEMA, count=_COUNT_SCHEMA, limit=_COUNT_SCHEMA, offset=_COUNT_SCHEMA
)
_BATCH_ANSWERS: Final = _make_answers(inserted=_COUNT_SCHEMA, duplicates=_COUNT_SCHEMA, errors=_OBJECT_LIST_SCHEMA)
_EVENTS_ANSWERS: Final = _make_answers(events=_OBJECT_LIST_SCHEMA)
_METADATA_ANSWERS: Final = {200: {"type": "object", "required": ["version", "counts"]}}
_RUN_ANSWERS: Final = _make_answers(run_id={"type": "string"}, records=_RECORD_LIST_SCHEMA)
