"""The telemetry API: routes below `/api/v1/runs` for the ledger of this machine."""

import logging
import re
import sqlite3
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

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

DEFAULT_PAGE_RECORDS: Final = 50
MAX_PAGE_RECORDS: Final = 500
MAX_LIST_OFFSET: Final = 1 << 40


class TelemetryApi:
    """The handlers of the routes."""

    def __init__(self, recorder: TelemetryRecorder) -> None:
        self._recorder = recorder

    @property
    def _ledger(self) -> TelemetryLedger:
        return self._recorder.ledger

    def build_routes(self) -> list[Route]:
        runs_path, record_path = "/api/v1/runs", "/api/v1/runs/{event_id}"
        batch_path, commit_path = f"{runs_path}/batch", f"{record_path}/associate-commit"
        routes: list[tuple[Any, ...]] = [
            ("POST", runs_path, self.create_record, "Add a record of a launch run.", _CREATE_ANSWERS, RECORD_SCHEMA),
            ("GET", runs_path, self.list_records, "Records of launch runs.", _LIST_ANSWERS, None, _LIST_PARAMETERS),
            ("POST", batch_path, self.create_batch, "Add up to 1,000 records.", _BATCH_ANSWERS, _BATCH_BODY_SCHEMA),
            ("GET", record_path, self.get_record, "One record of a launch run.", _RECORD_ANSWERS),
            ("PATCH", record_path, self.update_record, "Add the outcome to a record.", _RECORD_ANSWERS, UPDATE_SCHEMA),
            ("POST", commit_path, self.associate_commit, "Add the commit to a record.", _RECORD_ANSWERS, COMMIT_SCHEMA),
            ("GET", record_path + "/events", self.list_events, "Event log of the run.", _EVENTS_ANSWERS),
            ("GET", "/api/v1/metadata", self.get_metadata, "Version, and number of records.", _METADATA_ANSWERS),
            ("GET", "/telemetry/{run_id}", self.get_run, "All records of one run.", _RUN_ANSWERS),
        ]
        return [Route(method, path, _run_in_thread(run), *texts) for method, path, run, *texts in routes]

    def create_record(self, request: RouteRequest) -> RouteAnswer:
        record = _check_body("record", request.body)
        existing = self._ledger.find(record["event_id"])
        if existing is not None:
            return RouteAnswer(existing, 200)
        self._ledger.store_records([record])
        return RouteAnswer(_require_record(self._ledger.find(record["event_id"])), 201)

    def create_batch(self, request: RouteRequest) -> RouteAnswer:
        valid_records, errors = [], []
        for index, record in enumerate(_check_body("batch", request.body)):
            if violation := next(iter(_load_validator("record").find_violations(record)), None):
                errors.append({"index": index, "path": violation.path, "message": violation.message})
            else:
                valid_records.append(record)
        new_records = [record for record in valid_records if self._ledger.find(record["event_id"]) is None]
        self._ledger.store_records(new_records)
        inserted = len({record["event_id"] for record in new_records})
        return RouteAnswer({"inserted": inserted, "duplicates": len(valid_records) - inserted, "errors": errors})

    def list_records(self, request: RouteRequest) -> RouteAnswer:
        unknown = request.query.keys() - {*FILTER_COLUMNS, "limit", "offset"}
        if unknown:
            hint = f"Use {', '.join(FILTER_COLUMNS)}."
            raise ToolError(ErrorCode.INVALID_REQUEST, f"unknown filter {min(unknown)!r}", hint=hint)
        limit = _parse_number(request, "limit", DEFAULT_PAGE_RECORDS, maximum=MAX_PAGE_RECORDS)
        offset = _parse_number(request, "offset", 0, maximum=MAX_LIST_OFFSET)
        filters = {name: request.query[name] for name in FILTER_COLUMNS if name in request.query}
        runs = self._ledger.list_records(filters, limit=limit, offset=offset)
        return RouteAnswer({"runs": runs, "count": len(runs), "limit": limit, "offset": offset})

    def get_record(self, request: RouteRequest) -> RouteAnswer:
        return RouteAnswer(_require_record(self._ledger.find(request.path["event_id"])))

    def update_record(self, request: RouteRequest) -> RouteAnswer:
        update = _check_body("update", request.body)
        self._ledger.store_records([], [(request.path["event_id"], update)])
        return self.get_record(request)

    def associate_commit(self, request: RouteRequest) -> RouteAnswer:
        commit = _check_body("commit", request.body)
        self._ledger.associate_commit(request.path["event_id"], commit)
        return self.get_record(request)

    def list_events(self, request: RouteRequest) -> RouteAnswer:
        record = _require_record(self._ledger.find(request.path["event_id"]))
        run_id = record.get("parent_run_id") or record["run_id"]
        return RouteAnswer({"events": self._recorder.read_journal(run_id)})

    def get_metadata(self, _request: RouteRequest) -> RouteAnswer:
        return RouteAnswer({"version": TOOLING_VERSION, "counts": self._ledger.count_records()})

    def get_run(self, request: RouteRequest) -> RouteAnswer:
        run_id = request.path["run_id"]
        self._recorder.catch_up(run_id)
        records = self._ledger.list_run_records(run_id)
        if not records:
            raise ToolError(ErrorCode.NOT_FOUND, "no record exists for this run")
        return RouteAnswer({"run_id": run_id, "records": records})


_BODY_SCHEMAS: Final = {
    "record": RECORD_SCHEMA,
    "update": UPDATE_SCHEMA,
    "commit": COMMIT_SCHEMA,
    "batch": BATCH_SCHEMA,
}


@cache
def _load_validator(name: str) -> Validator:
    return Validator(_BODY_SCHEMAS[name])


def _run_in_thread(handler: Callable[[RouteRequest], RouteAnswer]) -> RouteHandler:
    """Return a handler that runs another one in a thread and reports a fault of the file as unavailability."""

    async def handle_request(request: RouteRequest) -> RouteAnswer:
        try:
            return await to_thread.run_sync(handler, request)
        except (sqlite3.Error, OSError) as error:
            log.warning("telemetry.records error=%s", error)
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                "The file with the run records cannot be used.",
                hint="Free disk space or move the file away; run records are rebuilt from the event logs.",
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
        raise ToolError(ErrorCode.NOT_FOUND, "no record has this event_id")
    return record


def _parse_number(request: RouteRequest, name: str, default: int, *, maximum: int) -> int:
    text = request.query.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) > maximum:
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{name} must be a whole number up to {maximum}")
    return int(text)


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
