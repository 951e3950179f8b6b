"""Artifacts as resources, for clients that attach files: `resource://run/{run_id}/{name}`.

The list has the main artifacts of the latest runs; a template stands for all others. The schema
of a configuration is a resource too, so that a client can fill one in.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.listing import Page, page
from cleats.contract.resources import Contents, Resource, Template
from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.service import Launches

RUN: Final = "resource://run/"
SCHEMA: Final = "resource://launch/run_config.schema.json"

MAIN: Final = (
    ("page_plan.json", "The pages of the run, and what each of them says."),
    ("snapshot.json", "Everything that is known about the run."),
    ("validation_report.json", "What the gates found."),
)
"""What is listed of a run; the rest is behind the template."""

LATEST: Final = 50
"""Runs whose artifacts are listed."""

_ABSENT: Final = frozenset({ErrorCode.RUN_NOT_FOUND, ErrorCode.INVALID_INPUT})
"""What says that a run or a name is not there, and so no resource of ours."""


class Artifacts:
    """The resources of the launch toolset."""

    templates: Sequence[Template] = (
        Template(
            uri=f"{RUN}{{run_id}}/{{+name}}",
            name="run artifact",
            description="An artifact of a launch run, by a name that launch_get_status lists.",
        ),
    )

    def __init__(self, launches: Launches) -> None:
        self._launches = launches

    async def list(self, after: str, limit: int) -> Page[Resource]:
        found = [_schema()]
        for run in await self._launches.latest(LATEST):
            known = {*run.snapshot["artifacts_index"], "snapshot.json"}
            found += [
                Resource(
                    uri=f"{RUN}{run.run_id}/{name}",
                    name=f"{run.product_slug} {name} ({run.state})",
                    mime_type=artifacts.content_type(name),
                    description=about,
                )
                for name, about in MAIN
                if name in known
            ]
        found.sort(key=lambda each: each.uri)
        return page(found, [each.uri for each in found], after, limit)

    async def read(self, uri: str) -> Contents | None:
        if uri == SCHEMA:
            data = artifacts.canonical(artifacts.load("run_config"))
            return Contents(uri, "application/schema+json", data)
        run_id, _, name = uri.removeprefix(RUN).partition("/")
        if not uri.startswith(RUN) or not name:
            return None
        try:
            found = await self._launches.read(run_id, unquote(name))
        except ToolError as error:
            if error.code not in _ABSENT:
                raise
            return None
        return Contents(uri, found.content_type, found.data)

    async def children(self, uri: str) -> Sequence[Resource] | None:  # noqa: ARG002 - no folders
        return None


def _schema() -> Resource:
    return Resource(
        uri=SCHEMA,
        name="run_config schema",
        mime_type="application/schema+json",
        description="What the run_config of launch_start_run may hold.",
    )
