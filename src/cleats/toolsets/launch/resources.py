"""Artifacts as resources, for clients that attach files: `resource://run/{run_id}/{name}`.

The list contains the main artifacts of the latest runs; a template covers all others. The schema of
a run configuration is a resource too, so that a client can fill one in.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.resources import ListPage, Resource, ResourceContents, ResourceTemplate, slice_page
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.service import LaunchService

RUN_URI_PREFIX: Final = "resource://run/"
CONFIG_SCHEMA_URI: Final = "resource://launch/run_config.schema.json"

LISTED_ARTIFACTS: Final = (
    ("page_plan.json", "The pages of the run, and what each of them says."),
    ("reports/changes.zip", "The change as a ZIP file: a patch that git applies, and every changed file."),
    ("snapshot.json", "Everything that is known about the run."),
    ("validation_report.json", "What the gates found."),
)
"""Artifacts that are listed for each run, with descriptions; the template covers the others."""

MAX_LISTED_RUNS: Final = 50
"""Number of runs whose artifacts are listed."""

_NOT_FOUND_CODES: Final = frozenset({ErrorCode.RUN_NOT_FOUND, ErrorCode.INVALID_INPUT})
"""Errors that mean that a run or an artifact does not exist, so the URI is unknown."""


class RunResources:
    """The resources of the launch toolset."""

    templates: Sequence[ResourceTemplate] = (
        ResourceTemplate(
            uri=f"{RUN_URI_PREFIX}{{run_id}}/{{+name}}",
            name="run artifact",
            description="An artifact of a launch run, by a name that launch_get_status lists.",
        ),
    )

    def __init__(self, service: LaunchService) -> None:
        self._service = service

    async def list(self, after: str, limit: int) -> ListPage[Resource]:
        resources = [
            Resource(
                uri=CONFIG_SCHEMA_URI,
                name="run_config schema",
                mime_type="application/schema+json",
                description="What the run_config of launch_start_run may hold.",
            )
        ]
        for run in await self._service.list_latest(MAX_LISTED_RUNS):
            artifact_names = {*run.snapshot["artifacts_index"], "snapshot.json"}
            resources += [
                Resource(
                    uri=f"{RUN_URI_PREFIX}{run.run_id}/{name}",
                    name=f"{run.product_slug} {name} ({run.state})",
                    mime_type=artifacts.guess_content_type(name),
                    description=description,
                )
                for name, description in LISTED_ARTIFACTS
                if name in artifact_names
            ]
        resources.sort(key=lambda resource: resource.uri)
        return slice_page(resources, [resource.uri for resource in resources], after, limit)

    async def read(self, uri: str) -> ResourceContents | None:
        if uri == CONFIG_SCHEMA_URI:
            data = artifacts.encode_canonical_json(artifacts.load_schema("run_config"))
            return ResourceContents(uri, "application/schema+json", data)
        run_id, _, name = uri.removeprefix(RUN_URI_PREFIX).partition("/")
        if not uri.startswith(RUN_URI_PREFIX) or not name:
            return None
        try:
            artifact = await self._service.read_artifact(run_id, unquote(name))
        except ToolError as error:
            if error.code not in _NOT_FOUND_CODES:
                raise
            return None
        return ResourceContents(uri, artifact.content_type, artifact.data)

    async def list_children(self, uri: str) -> Sequence[Resource] | None:  # noqa: ARG002 - no folders
        return None
