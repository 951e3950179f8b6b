"""The tools of the launch toolset.

A run turns a product's repository into the pages of its site: it reads the source, collects facts with evidence, plans
and drafts pages, writes them to a worktree of the site, checks and repairs them, and opens a pull request. Each tool
moves a run by one well defined step or reads its output; `states` defines which step is possible when.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import LAUNCH
from cleats.contract.tools import Alias, Handler, Hints, Tool, Toolset, outline_schema
from cleats.settings import Settings
from cleats.system import postgres
from cleats.toolsets.launch.resources import RunResources
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.telemetry.api import TelemetryApi
from cleats.toolsets.launch.tool_schemas import (
    ARTIFACT_SCHEMA,
    COUNT_SCHEMA,
    IDEMPOTENCY_KEY_SCHEMA,
    PAGE_CONFIG_SCHEMA,
    REPORT_SCHEMA,
    REPOSITORY_CONFIG_SCHEMA,
    RUN_ID_SCHEMA,
    RUN_SCHEMA,
    RUN_STATUS_SCHEMA,
    STARTED_FIELDS,
    STATE_SCHEMA,
    TEXT_SCHEMA,
    Schema,
    make_answer_schema,
    make_array_schema,
    make_input_schema,
)

RUN_ERRORS: Final = (ErrorCode.INVALID_INPUT, ErrorCode.RUN_NOT_FOUND)
"""Errors that every tool for one run may return."""

START_ERRORS: Final = (ErrorCode.INVALID_INPUT, ErrorCode.SCHEMA_VALIDATION_FAILED)
REMOTE_ERRORS: Final = (ErrorCode.INVALID_URL, ErrorCode.REPO_NOT_FOUND, ErrorCode.TOOLCHAIN_MISSING)
WORKER_ERRORS: Final = (
    ErrorCode.ILLEGAL_STATE,
    ErrorCode.SCHEMA_VALIDATION_FAILED,
    ErrorCode.TOOLCHAIN_MISSING,
    ErrorCode.ALLOWED_PATHS_VIOLATION,
)
"""Errors that any worker may fail with."""

START_HINTS: Final = Hints(read_only=False, idempotent=False, open_world=True)
STEP_HINTS: Final = Hints(read_only=False)

RUN_ID_PROPERTIES: Final = {"run_id": RUN_ID_SCHEMA}
RUN_ID_EXAMPLE: Final = {"run_id": "r_2026-01-21T10-00-00Z_1a2b3c4d"}

RUN_CONFIG_ARGUMENT: Final = {
    "type": "object",
    "description": (
        "Required: github_repo_url, github_ref (the commit, 40 hexadecimal digits), family or "
        "product_slug, target_platform, required_sections (of products, docs, reference, kb, "
        "blog). Often given: profile, site_repo_url, locales, validation_profile (local, ci, "
        "prod), drive ({mode: auto | stepwise, auto_fix, auto_pr}). The whole schema is the "
        "resource resource://launch/run_config.schema.json."
    ),
}
FILTER_ARGUMENT: Final = {
    "type": "object",
    "properties": {
        "product_slug": {"type": "string", "description": "Only runs of this product."},
        "state": {**STATE_SCHEMA, "description": "Only runs in this state."},
    },
    "additionalProperties": False,
}


def build_tools(service: LaunchService) -> list[Tool]:
    """Build all tools, in the order in which a run uses them."""
    return [*_build_start_tools(service), *_build_read_tools(service), *_build_step_tools(service)]


def _build_start_tools(service: LaunchService) -> list[Tool]:
    return [
        _make_tool(
            "launch_start_run",
            service.start,
            "Start a run",
            "Start a run that writes the pages of a product from its repository, and answer at once with its run_id. "
            "The run goes on by itself to its first decision (failed validation, or READY_FOR_PR); with drive.mode "
            "stepwise each launch_resume takes one step. Follow it with launch_get_status. When it rests in "
            "VALIDATING, read validation_report.json and call launch_fix_next, or edit the worktree and call "
            "launch_validate; when it is READY_FOR_PR, call launch_open_pr.",
            STARTED_FIELDS,
            properties={"run_config": RUN_CONFIG_ARGUMENT, "idempotency_key": IDEMPOTENCY_KEY_SCHEMA},
            required=("run_config",),
            timeout=300,
            hints=START_HINTS,
            errors=START_ERRORS,
            example={
                "run_config": {
                    "github_repo_url": "https://github.com/owner/aspose-3d-foss-python",
                    "github_ref": "0123456789abcdef0123456789abcdef01234567",
                    "family": "3d",
                    "target_platform": "python",
                    "required_sections": ["products", "docs"],
                },
                "idempotency_key": "3d-python-1",
            },
        ),
        _make_tool(
            "launch_start_run_from_product_url",
            service.start_from_url,
            "Start a run from a product page",
            "Start a run by the address of a product page, such as https://products.aspose.org/3d/en/python/. "
            "Product, platform and language are read from it; the repository from the registry of products, at its "
            "head. INVALID_INPUT with missing_fields says what has to be given to launch_start_run instead.",
            {**STARTED_FIELDS, "derived_config": PAGE_CONFIG_SCHEMA},
            properties={
                "url": {
                    "type": "string",
                    "description": "https://{site}/{product}/{locale}/{platform}/, with or "
                    "without a page below it; on the blog the locale comes first.",
                },
                "idempotency_key": IDEMPOTENCY_KEY_SCHEMA,
            },
            required=("url",),
            timeout=300,
            hints=START_HINTS,
            errors=(*START_ERRORS, *REMOTE_ERRORS, ErrorCode.UNSUPPORTED_SITE),
            aliases=(Alias("launch_start_run_from_url", "2.2.0"),),
            example={"url": "https://products.aspose.org/3d/en/python/"},
        ),
        _make_tool(
            "launch_start_run_from_github_repo_url",
            service.start_from_repository,
            "Start a run from a repository",
            "Start a run by the address of a public GitHub repository alone. Product family and "
            "platform are inferred from its name, README and package files, and the commit is "
            "the one its head is at. When that is not unambiguous no run is made: INVALID_INPUT "
            "names missing_fields and suggested_values, and every signal that was seen.",
            {**STARTED_FIELDS, "derived_config": REPOSITORY_CONFIG_SCHEMA},
            properties={
                "github_repo_url": {"type": "string", "description": "https://github.com/owner/name"},
                "idempotency_key": IDEMPOTENCY_KEY_SCHEMA,
            },
            required=("github_repo_url",),
            timeout=300,
            hints=START_HINTS,
            errors=(*START_ERRORS, *REMOTE_ERRORS),
            example={"github_repo_url": "https://github.com/aspose-3d/Aspose.3D-for-Python-via-.NET"},
        ),
    ]


def _build_read_tools(service: LaunchService) -> list[Tool]:
    return [
        _make_tool(
            "launch_get_status",
            service.get_status,
            "Status of a run",
            "Where a run is: its state, the state of each section, the open issues (the worst "
            "first) and the artifacts it has written so far. A failed step is an open issue too.",
            {"status": RUN_STATUS_SCHEMA},
            timeout=5,
            errors=RUN_ERRORS,
        ),
        _make_tool(
            "launch_get_artifact",
            service.get_artifact,
            "Read an artifact",
            "Read one artifact of a run, by a name that launch_get_status lists: page_plan.json, product_facts.json, "
            "evidence_map.json, validation_report.json, reports/diff_report.md, drafts and logs; and run_config.yaml, "
            "snapshot.json and events.ndjson of any run. Text comes as it is; anything else as base64, and "
            "content_type then ends in ;base64. sha256 is of the raw bytes.",
            {"run_id": TEXT_SCHEMA, "artifact": ARTIFACT_SCHEMA},
            properties={
                "run_id": RUN_ID_SCHEMA,
                "artifact_name": {"type": "string", "description": "A name, folders included."},
            },
            required=("run_id", "artifact_name"),
            timeout=30,
            errors=RUN_ERRORS,
            example={**RUN_ID_EXAMPLE, "artifact_name": "page_plan.json"},
        ),
        _make_tool(
            "launch_list_runs",
            service.list_runs,
            "List runs",
            "List runs, the newest first, all or those of one product or state.",
            {"runs": make_array_schema(RUN_SCHEMA)},
            properties={
                "filter": FILTER_ARGUMENT,
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 200,
                    "default": 50,
                    "description": "How many at most.",
                },
                "cursor": {"type": "string", "description": "next_cursor of the page before; without it the first."},
            },
            required=(),
            optional_fields={"next_cursor": TEXT_SCHEMA},
            timeout=10,
            errors=(ErrorCode.INVALID_INPUT,),
            example={"filter": {"product_slug": "3d", "state": "DONE"}},
        ),
    ]


def _build_step_tools(service: LaunchService) -> list[Tool]:
    return [
        _make_tool(
            "launch_validate",
            service.validate,
            "Validate a run's pages",
            "Run the gates on the worktree as it is now and answer with the report. `ok` says "
            "that the gates ran; whether they passed is validation_report.ok. The run has to be "
            "in LINKING or later; a pass makes it READY_FOR_PR.",
            {"run_id": TEXT_SCHEMA, "validation_report": REPORT_SCHEMA},
            timeout=600,
            hints=STEP_HINTS,
            errors=(*RUN_ERRORS, *WORKER_ERRORS),
        ),
        _make_tool(
            "launch_fix_next",
            service.fix_next,
            "Fix the next issue",
            "Take the worst open issue that a rule can fix, fix it and validate again. The run "
            "has to be in VALIDATING with a report that is not ok. fixed_issue_id is null when "
            "the issue is still there; call again for the next one. FIX_EXHAUSTED means that no "
            "attempt is left, or (details.reason no_fixable_issue) that no rule fits the rest.",
            {
                "run_id": TEXT_SCHEMA,
                "fixed_issue_id": {"type": ["string", "null"]},
                "applied_patch_ids": make_array_schema(TEXT_SCHEMA),
                "remaining_blockers": COUNT_SCHEMA,
                "validation_report": REPORT_SCHEMA,
            },
            timeout=900,
            hints=Hints(read_only=False, idempotent=False),
            errors=(*RUN_ERRORS, *WORKER_ERRORS, ErrorCode.FIX_EXHAUSTED),
        ),
        _make_tool(
            "launch_resume",
            service.resume,
            "Resume a run",
            "Go on with a run that rests, or that lost its server, until the next stable boundary: PLAN_READY, "
            "DRAFT_READY, VALIDATING with a report that is not ok, or READY_FOR_PR. A run that another server drives "
            "is waited for. Also tries a step again that failed for a passing reason.",
            {"status": RUN_STATUS_SCHEMA},
            timeout=300,
            hints=Hints(read_only=False, open_world=True),
            errors=(
                *(*RUN_ERRORS, *WORKER_ERRORS),
                *(ErrorCode.REPO_NOT_FOUND, ErrorCode.FIX_EXHAUSTED),
                ErrorCode.COMMIT_SERVICE_ERROR,
            ),
        ),
        _make_tool(
            "launch_cancel",
            service.cancel,
            "Cancel a run",
            "End a run for good, wherever it is driven; what works for it is stopped. Its artifacts can still be read.",
            {"run_id": TEXT_SCHEMA, "cancelled": {"type": "boolean"}, "state": STATE_SCHEMA},
            timeout=10,
            hints=Hints(read_only=False, destructive=True),
            errors=(*RUN_ERRORS, ErrorCode.ILLEGAL_STATE),
        ),
        _make_tool(
            "launch_open_pr",
            service.open_pr,
            "Open the pull request",
            "Commit the pages to a branch of their own and open the request. The run has to be "
            "READY_FOR_PR with a report that is ok, and the worktree must be as it was "
            "validated. Calling again after a lost answer makes no second one.",
            {"run_id": TEXT_SCHEMA, "pr_url": TEXT_SCHEMA, "branch": TEXT_SCHEMA, "commit_sha": TEXT_SCHEMA},
            timeout=300,
            hints=Hints(read_only=False, open_world=True),
            errors=(*RUN_ERRORS, *WORKER_ERRORS, ErrorCode.COMMIT_SERVICE_ERROR, ErrorCode.REPO_NOT_FOUND),
        ),
    ]


def _make_tool(
    name: str,
    handler: Handler,
    title: str,
    description: str,
    fields: Mapping[str, Schema],
    *,
    timeout: float,
    errors: tuple[ErrorCode, ...],
    properties: Mapping[str, Schema] = RUN_ID_PROPERTIES,
    required: Sequence[str] = ("run_id",),
    optional_fields: Mapping[str, Schema] | None = None,
    hints: Hints = Hints(),  # noqa: B008 - frozen
    aliases: tuple[Alias, ...] = (),
    example: Mapping[str, Any] = RUN_ID_EXAMPLE,
) -> Tool:
    """Make a tool, by default one that takes only the id of a run; `fields` are those of its answer."""
    output = make_answer_schema(fields, optional_fields)
    return Tool(
        name=name,
        title=title,
        description=description,
        input=make_input_schema(properties, required),
        output=output,
        listed_output=outline_schema(output),
        payload=LAUNCH,
        run=handler,
        timeout=timeout,
        aliases=aliases,
        hints=hints,
        errors=tuple(dict.fromkeys(errors)),
        examples=({"arguments": example},),
    )


def build_toolset(settings: Settings) -> Toolset:
    """Build the toolset for the runs of this user."""
    launch_toolset = build_service_toolset(LaunchService(settings))
    url = settings.database_url
    return replace(launch_toolset, ready=partial(postgres.check_database, url)) if url else launch_toolset


def build_service_toolset(service: LaunchService) -> Toolset:
    """Build the toolset for a service; every call of its tools is recorded."""
    recorder = service.recorder
    return Toolset(
        name="launch",
        purpose=("Write the pages of a product from its repository, check them and open the pull request."),
        tools=[recorder.wrap_tool(tool) for tool in build_tools(service)],
        running=service.running,
        resources=RunResources(service),
        routes=TelemetryApi(recorder).build_routes(),
    )
