"""The quickly available status of the server's repository, for `check_status`."""

from collections.abc import Mapping
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Tool, arguments
from cleats.toolsets.code.index.access import Indexes
from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA
from cleats.toolsets.code.maintenance.context import (
    COUNT_SCHEMA,
    FLAG_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    TIMESTAMP_SCHEMA,
    MaintenanceEnvironment,
    array_schema,
    format_timestamp,
    object_schema,
)
from cleats.toolsets.code.workspace import WorkspaceMember

FRESHNESS_TIMEOUT_SECONDS: Final = 1.0
"""Seconds that an answer waits for the freshness check; the next answer will have its result."""

REPOSITORY_SCHEMA: Final = {
    "type": "object",
    "description": "The repository around the server; absent when there is no such folder.",
    "required": ["repoPath", "repoId", "generation"],
    "properties": {
        "repoPath": TEXT_SCHEMA,
        "repoId": TEXT_SCHEMA,
        "generation": {**NULLABLE_TEXT_SCHEMA, "description": "The name of its index; null without one."},
        "stale": {**FLAG_SCHEMA, "description": "Whether the files have changed since; if it is known."},
        "added": COUNT_SCHEMA,
        "changed": COUNT_SCHEMA,
        "removed": COUNT_SCHEMA,
        "headMoved": {**FLAG_SCHEMA, "description": "Another commit or branch is checked out."},
    },
}


async def describe_repository(indexes: Indexes) -> dict[str, Any]:
    """Return the `repository` field of the answer, or an empty mapping."""
    try:
        repository = indexes.find_repository(None)
    except ToolError:
        return {}  # the server's folder was removed, which is no fault of the server
    status: dict[str, Any] = {
        "repoPath": str(repository.root),
        "repoId": repository.id,
        "generation": indexes.open_store(repository).read_current_name(),
    }
    if status["generation"] is not None:
        freshness = await indexes.check_freshness(repository, max_wait=FRESHNESS_TIMEOUT_SECONDS)
        if freshness is not None:
            status |= {
                "stale": freshness.is_stale,
                "added": freshness.added,
                "changed": freshness.changed,
                "removed": freshness.removed,
                "headMoved": freshness.head_moved,
            }
    return {"repository": status}


MODES_BY_ANSWER_KEY: Final = {
    "code": "code",
    "prose": "prose",
    "extractedProse": "extracted-prose",
    "records": "records",
}
"""The modes of an index, by their names in answers."""

WORKSPACE_PATH_ARGUMENT: Final = {
    **TEXT_SCHEMA,
    "minLength": 1,
    "description": (
        'A file such as {"schemaVersion": 1, "repos": [{"root": "../app", "alias": "app"}]}, '
        "with roots relative to it; comments are allowed."
    ),
}

WORKSPACE_OUTPUT: Final = object_schema(
    workspacePath=TEXT_SCHEMA,
    name=TEXT_SCHEMA,
    manifestHash={**TEXT_SCHEMA, "description": "Changes when the file says something else."},
    repoSetId={**TEXT_SCHEMA, "description": "A name for the set of the enabled repositories."},
    ready={**FLAG_SCHEMA, "description": "Whether every enabled repository can be searched."},
    repos=array_schema(
        object_schema(
            repoId=TEXT_SCHEMA,
            alias=TEXT_SCHEMA,
            root=TEXT_SCHEMA,
            exists={**FLAG_SCHEMA, "description": "Whether there is such a folder."},
            enabled=FLAG_SCHEMA,
            priority={"type": "integer"},
            tags=array_schema(TEXT_SCHEMA),
            modes=object_schema(
                "Whether each mode can be searched, and how many pieces it has.",
                **{mode: object_schema(available=FLAG_SCHEMA, chunks=COUNT_SCHEMA) for mode in MODES_BY_ANSWER_KEY},
            ),
            signature={
                **NULLABLE_TEXT_SCHEMA,
                "description": "Changes with every new index; null without one.",
            },
            builtAt=TIMESTAMP_SCHEMA,
            commit=NULLABLE_TEXT_SCHEMA,
        ),
        "The ones with a higher priority first.",
    ),
)


class WorkspaceTool:
    """The tool that reports on workspaces."""

    def __init__(self, environment: MaintenanceEnvironment) -> None:
        self._environment = environment

    async def report_status(self, args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        """Answer one call."""
        return await to_thread.run_sync(self._describe_workspace, args)

    def _describe_workspace(self, args: Mapping[str, Any]) -> dict[str, Any]:
        workspace = self._environment.indexes.read_workspace(args["workspacePath"], args.get("repoPath"))
        repos = [self._describe_member(member) for member in workspace.members]
        return {
            "workspacePath": str(workspace.path),
            "name": workspace.name,
            "manifestHash": workspace.manifest_hash,
            "repoSetId": workspace.repo_set_id,
            "ready": all(repo["signature"] for repo in repos if repo["enabled"]),
            "repos": repos,
        }

    def _describe_member(self, member: WorkspaceMember) -> dict[str, Any]:
        meta = self._read_metadata(member)
        counts = meta.get("counts", {}).get("chunks", {})
        return {
            "repoId": member.repository.id,
            "alias": member.alias,
            "root": str(member.root),
            "exists": member.exists,
            "enabled": member.enabled,
            "priority": member.priority,
            "tags": list(member.tags),
            "modes": {
                answer_key: {
                    "available": mode in meta.get("modes", ()),
                    "chunks": counts.get(mode, 0),
                }
                for answer_key, mode in MODES_BY_ANSWER_KEY.items()
            },
            "signature": meta.get("signature"),
            "builtAt": format_timestamp(meta["created"]) if meta else None,
            "commit": meta.get("commit"),
        }

    def _read_metadata(self, member: WorkspaceMember) -> dict[str, Any]:
        from cleats.toolsets.code.index.catalogue import IndexCatalogue  # noqa: PLC0415

        lease = self._environment.indexes.open_store(member.repository).lease_current() if member.exists else None
        if lease is None:
            return {}
        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            return {**catalogue.read_meta(), "signature": lease.name}

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="workspace_status",
                version=2,
                title="Show a workspace",
                description=(
                    "Read a file that names several repositories, and say for each whether it "
                    "exists, whether it is indexed, what can be searched in it and which index "
                    "answers. Changes nothing."
                ),
                input=arguments(
                    {
                        "workspacePath": WORKSPACE_PATH_ARGUMENT,
                        "repoPath": {
                            **REPO_PATH_SCHEMA,
                            "description": (
                                "Take the path from this repository, and refuse whatever is outside of it."
                            ),
                        },
                    },
                    required=["workspacePath"],
                ),
                output=WORKSPACE_OUTPUT,
                run=self.report_status,
                errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN),
                examples=({"arguments": {"workspacePath": "workspace.jsonc"}},),
            ),
        )
