"""The launch toolset's table of contents.

A run turns a product's repository into the pages of its site: it reads the source, collects facts
with evidence, plans and drafts pages, puts them into a worktree of the site, checks them, repairs
them, and opens a pull request. Each tool moves a run by one well defined step or reads what it
has made; what may be called when is in `states`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cleats.contract.errors import ErrorCode
from cleats.contract.outline import outline
from cleats.contract.payload import LAUNCH
from cleats.contract.tools import Alias, Handler, Hints, Tool, Toolset
from cleats.runtime import postgres
from cleats.settings import Settings
from cleats.toolsets.launch import shapes
from cleats.toolsets.launch.resources import Artifacts
from cleats.toolsets.launch.service import Launches
from cleats.toolsets.launch.telemetry.api import Api

if TYPE_CHECKING:
    from cleats.contract.binding import Schema

RUN: Final = (ErrorCode.INVALID_INPUT, ErrorCode.RUN_NOT_FOUND)
"""What every tool about one run may answer."""

STARTING: Final = (ErrorCode.INVALID_INPUT, ErrorCode.SCHEMA_VALIDATION_FAILED)
REMOTE: Final = (ErrorCode.INVALID_URL, ErrorCode.REPO_NOT_FOUND, ErrorCode.TOOLCHAIN_MISSING)
WORKING: Final = (
    ErrorCode.ILLEGAL_STATE,
    ErrorCode.SCHEMA_VALIDATION_FAILED,
    ErrorCode.TOOLCHAIN_MISSING,
    ErrorCode.ALLOWED_PATHS_VIOLATION,
)
"""What a worker may fail with, whatever it does."""

STARTS: Final = Hints(read_only=False, idempotent=False, open_world=True)
WORKS: Final = Hints(read_only=False)

ONE_RUN: Final = {"run_id": "r_2026-01-21T10-00-00Z_1a2b3c4d"}

RUN_CONFIG: Final = {
    "type": "object",
    "description": (
        "Required: github_repo_url, github_ref (the commit, 40 hexadecimal digits), family or "
        "product_slug, target_platform, required_sections (of products, docs, reference, kb, "
        "blog). Often given: profile, site_repo_url, locales, validation_profile (local, ci, "
        "prod), drive ({mode: auto | stepwise, auto_fix, auto_pr}). The whole schema is the "
        "resource resource://launch/run_config.schema.json."
    ),
}
FILTER: Final = {
    "type": "object",
    "properties": {
        "product_slug": {"type": "string", "description": "Only runs of this product."},
        "state": {**shapes.STATE, "description": "Only runs in this state."},
    },
    "additionalProperties": False,
}


def tools(launches: Launches) -> list[Tool]:
    """Every tool, in the order in which a run meets them."""
    return [*_starting(launches), *_reading(launches), *_moving(launches)]


def _starting(launches: Launches) -> list[Tool]:
    return [
        _tool(
            "launch_start_run",
            launches.start,
            "Start a run",
            "Start a run that writes the pages of a product from its repository, and answer at "
            "once with its run_id. The run goes on by itself to its first decision (failed "
            "validation, or READY_FOR_PR); with drive.mode stepwise each launch_resume takes one "
            "step. Follow it with launch_get_status. When it rests in VALIDATING, read "
            "validation_report.json and call launch_fix_next, or edit the worktree and call "
            "launch_validate; when it is READY_FOR_PR, call launch_open_pr.",
            {"run_config": RUN_CONFIG, "idempotency_key": shapes.KEY},
            ("run_config",),
            shapes.answer(shapes.STARTED),
            timeout=300,
            hints=STARTS,
            errors=STARTING,
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
        _tool(
            "launch_start_run_from_product_url",
            launches.start_from_url,
            "Start a run from a product page",
            "Start a run by the address of a product page, such as "
            "https://products.aspose.org/3d/en/python/. Product, platform and language are read "
            "from it; the repository from the registry of products, at its head. INVALID_INPUT "
            "with missing_fields says what has to be given to launch_start_run instead.",
            {
                "url": {
                    "type": "string",
                    "description": "https://{site}/{product}/{locale}/{platform}/, with or "
                    "without a page below it; on the blog the locale comes first.",
                },
                "idempotency_key": shapes.KEY,
            },
            ("url",),
            shapes.answer({**shapes.STARTED, "derived_config": shapes.FROM_URL}),
            timeout=300,
            hints=STARTS,
            errors=(*STARTING, *REMOTE, ErrorCode.UNSUPPORTED_SITE),
            aliases=(Alias("launch_start_run_from_url", "2.2.0"),),
            example={"url": "https://products.aspose.org/3d/en/python/"},
        ),
        _tool(
            "launch_start_run_from_github_repo_url",
            launches.start_from_repository,
            "Start a run from a repository",
            "Start a run by the address of a public GitHub repository alone. Product family and "
            "platform are inferred from its name, README and package files, and the commit is "
            "the one its head is at. When that is not unambiguous no run is made: INVALID_INPUT "
            "names missing_fields and suggested_values, and every signal that was seen.",
            {
                "github_repo_url": {
                    "type": "string",
                    "description": "https://github.com/owner/name",
                },
                "idempotency_key": shapes.KEY,
            },
            ("github_repo_url",),
            shapes.answer({**shapes.STARTED, "derived_config": shapes.FROM_REPO}),
            timeout=300,
            hints=STARTS,
            errors=(*STARTING, *REMOTE),
            example={
                "github_repo_url": "https://github.com/aspose-3d/Aspose.3D-for-Python-via-.NET"
            },
        ),
    ]


def _reading(launches: Launches) -> list[Tool]:
    return [
        _tool(
            "launch_get_status",
            launches.status,
            "Status of a run",
            "Where a run is: its state, the state of each section, the open issues (the worst "
            "first) and the artifacts it has written so far. A failed step is an open issue too.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer({"status": shapes.RUN_STATUS}),
            timeout=5,
            errors=RUN,
            example=ONE_RUN,
        ),
        _tool(
            "launch_get_artifact",
            launches.artifact,
            "Read an artifact",
            "Read one artifact of a run, by a name that launch_get_status lists: page_plan.json, "
            "product_facts.json, evidence_map.json, validation_report.json, "
            "reports/diff_report.md, drafts and logs; and run_config.yaml, snapshot.json and "
            "events.ndjson of any run. Text comes as it is; anything else as base64, and "
            "content_type then ends in ;base64. sha256 is of the raw bytes.",
            {
                "run_id": shapes.RUN_ID,
                "artifact_name": {"type": "string", "description": "A name, folders included."},
            },
            ("run_id", "artifact_name"),
            shapes.answer({"run_id": shapes.TEXT, "artifact": shapes.ARTIFACT}),
            timeout=30,
            errors=RUN,
            example={**ONE_RUN, "artifact_name": "page_plan.json"},
        ),
        _tool(
            "launch_list_runs",
            launches.list,
            "List runs",
            "List runs, the newest first, all or those of one product or state.",
            {
                "filter": FILTER,
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 200,
                    "default": 50,
                    "description": "How many at most.",
                },
                "cursor": {
                    "type": "string",
                    "description": "next_cursor of the page before; without it the first.",
                },
            },
            (),
            shapes.answer({"runs": shapes.listing(shapes.RUN)}, {"next_cursor": shapes.TEXT}),
            timeout=10,
            errors=(ErrorCode.INVALID_INPUT,),
            example={"filter": {"product_slug": "3d", "state": "DONE"}},
        ),
    ]


def _moving(launches: Launches) -> list[Tool]:
    return [
        _tool(
            "launch_validate",
            launches.validate,
            "Validate a run's pages",
            "Run the gates on the worktree as it is now and answer with the report. `ok` says "
            "that the gates ran; whether they passed is validation_report.ok. The run has to be "
            "in LINKING or later; a pass makes it READY_FOR_PR.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer({"run_id": shapes.TEXT, "validation_report": shapes.REPORT}),
            timeout=600,
            hints=WORKS,
            errors=(*RUN, *WORKING),
            example=ONE_RUN,
        ),
        _tool(
            "launch_fix_next",
            launches.fix_next,
            "Fix the next issue",
            "Take the worst open issue that a rule can fix, fix it and validate again. The run "
            "has to be in VALIDATING with a report that is not ok. fixed_issue_id is null when "
            "the issue is still there; call again for the next one. FIX_EXHAUSTED means that no "
            "attempt is left, or (details.reason no_fixable_issue) that no rule fits the rest.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer(
                {
                    "run_id": shapes.TEXT,
                    "fixed_issue_id": {"type": ["string", "null"]},
                    "applied_patch_ids": shapes.listing(shapes.TEXT),
                    "remaining_blockers": shapes.WHOLE,
                    "validation_report": shapes.REPORT,
                }
            ),
            timeout=900,
            hints=Hints(read_only=False, idempotent=False),
            errors=(*RUN, *WORKING, ErrorCode.FIX_EXHAUSTED),
            example=ONE_RUN,
        ),
        _tool(
            "launch_resume",
            launches.resume,
            "Resume a run",
            "Go on with a run that rests, or that lost its server, until the next stable "
            "boundary: PLAN_READY, DRAFT_READY, VALIDATING with a report that is not ok, or "
            "READY_FOR_PR. A run that another server drives is waited for. Also tries a step "
            "again that failed for a passing reason.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer({"status": shapes.RUN_STATUS}),
            timeout=300,
            hints=Hints(read_only=False, open_world=True),
            errors=(
                *(*RUN, *WORKING),
                *(ErrorCode.REPO_NOT_FOUND, ErrorCode.FIX_EXHAUSTED),
                ErrorCode.COMMIT_SERVICE_ERROR,
            ),
            example=ONE_RUN,
        ),
        _tool(
            "launch_cancel",
            launches.cancel,
            "Cancel a run",
            "End a run for good, wherever it is driven; what works for it is stopped. Its "
            "artifacts can still be read.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer(
                {
                    "run_id": shapes.TEXT,
                    "cancelled": {"type": "boolean"},
                    "state": shapes.STATE,
                }
            ),
            timeout=10,
            hints=Hints(read_only=False, destructive=True),
            errors=(*RUN, ErrorCode.ILLEGAL_STATE),
            example=ONE_RUN,
        ),
        _tool(
            "launch_open_pr",
            launches.open_pr,
            "Open the pull request",
            "Commit the pages to a branch of their own and open the request. The run has to be "
            "READY_FOR_PR with a report that is ok, and the worktree must be as it was "
            "validated. Calling again after a lost answer makes no second one.",
            {"run_id": shapes.RUN_ID},
            ("run_id",),
            shapes.answer(
                {
                    "run_id": shapes.TEXT,
                    "pr_url": shapes.TEXT,
                    "branch": shapes.TEXT,
                    "commit_sha": shapes.TEXT,
                }
            ),
            timeout=300,
            hints=Hints(read_only=False, open_world=True),
            errors=(*RUN, *WORKING, ErrorCode.COMMIT_SERVICE_ERROR, ErrorCode.REPO_NOT_FOUND),
            example=ONE_RUN,
        ),
    ]


def _tool(  # noqa: PLR0917 - read as one sentence, in this order, everywhere above
    name: str,
    run: Handler,
    title: str,
    description: str,
    properties: "Mapping[str, Schema]",
    required: Sequence[str],
    output: Mapping[str, Any],
    *,
    timeout: float,
    errors: tuple[ErrorCode, ...],
    hints: Hints = Hints(),  # noqa: B008 - frozen
    aliases: tuple[Alias, ...] = (),
    example: Mapping[str, Any],
) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        input=shapes.given(properties, required),
        output=output,
        listed_output=outline(output),
        payload=LAUNCH,
        run=run,
        timeout=timeout,
        aliases=aliases,
        hints=hints,
        errors=tuple(dict.fromkeys(errors)),
        examples=({"arguments": example},),
    )


def toolset(settings: Settings) -> Toolset:
    """The tools over the runs of this user."""
    made = over(Launches(settings))
    url = settings.database_url
    return replace(made, ready=partial(postgres.answers, url)) if url else made


def over(launches: Launches) -> Toolset:
    """The tools over some runs, every call of them recorded."""
    watch = launches.watch
    watching = Api(lambda: watch.ledger, watch.catch_up, watch.journal)
    return Toolset(
        name="launch",
        purpose=(
            "Write the pages of a product from its repository, check them and open the pull "
            "request."
        ),
        tools=[watch.around(tool) for tool in tools(launches)],
        running=launches.running,
        resources=Artifacts(launches),
        routes=watching.routes(),
    )
