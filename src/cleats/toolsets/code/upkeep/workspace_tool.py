"""The tool `workspace_status`."""

from collections.abc import Mapping
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Context, Tool, arguments
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.upkeep.forms import COUNT, FLAG, MAYBE, MOMENT, TEXT, many, record
from cleats.toolsets.code.upkeep.site import Site, moment
from cleats.toolsets.code.workspace import Member

MODES: Final = {
    "code": "code",
    "prose": "prose",
    "extractedProse": "extracted-prose",
    "records": "records",
}
"""The modes of an index, by the names that answers have for them."""

PATH: Final = {
    **TEXT,
    "minLength": 1,
    "description": (
        'A file such as {"schemaVersion": 1, "repos": [{"root": "../app", "alias": "app"}]}, '
        "with roots relative to it; comments are allowed."
    ),
}

OUTPUT: Final = record(
    workspacePath=TEXT,
    name=TEXT,
    manifestHash={**TEXT, "description": "Changes when the file says something else."},
    repoSetId={**TEXT, "description": "A name for the set of the enabled repositories."},
    ready={**FLAG, "description": "Whether every enabled repository can be searched."},
    repos=many(
        record(
            repoId=TEXT,
            alias=TEXT,
            root=TEXT,
            exists={**FLAG, "description": "Whether there is such a folder."},
            enabled=FLAG,
            priority={"type": "integer"},
            tags=many(TEXT),
            modes=record(
                "Whether each mode can be searched, and how many pieces it has.",
                **{mode: record(available=FLAG, chunks=COUNT) for mode in MODES},
            ),
            signature={
                **MAYBE,
                "description": "Changes with every new index; null without one.",
            },
            builtAt=MOMENT,
            commit=MAYBE,
        ),
        "The ones with a higher priority first.",
    ),
)


class WorkspaceTool:
    """Reports on workspaces."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def status(self, given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        """Answer one call."""
        return await to_thread.run_sync(self._described, given)

    def _described(self, given: Mapping[str, Any]) -> dict[str, Any]:
        workspace = self._site.indexes.workspace(given["workspacePath"], given.get("repoPath"))
        repos = [self._repo(member) for member in workspace.members]
        return {
            "workspacePath": str(workspace.path),
            "name": workspace.name,
            "manifestHash": workspace.manifest_hash,
            "repoSetId": workspace.repo_set_id,
            "ready": all(each["signature"] for each in repos if each["enabled"]),
            "repos": repos,
        }

    def _repo(self, member: Member) -> dict[str, Any]:
        meta = self._meta(member)
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
                shown: {
                    "available": mode in meta.get("modes", ()),
                    "chunks": counts.get(mode, 0),
                }
                for shown, mode in MODES.items()
            },
            "signature": meta.get("signature"),
            "builtAt": moment(meta["created"]) if meta else None,
            "commit": meta.get("commit"),
        }

    def _meta(self, member: Member) -> dict[str, Any]:
        from cleats.toolsets.code.store.catalogue import Catalogue  # noqa: PLC0415

        lease = self._site.indexes.shelf(member.repository).current() if member.exists else None
        if lease is None:
            return {}
        with lease, Catalogue.open(lease.catalogue) as catalogue:
            return {**catalogue.meta(), "signature": lease.name}

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
                        "workspacePath": PATH,
                        "repoPath": {
                            **REPO_PATH,
                            "description": (
                                "Take the path from this repository, and refuse whatever is "
                                "outside of it."
                            ),
                        },
                    },
                    required=["workspacePath"],
                ),
                output=OUTPUT,
                run=self.status,
                errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN),
                examples=({"arguments": {"workspacePath": "workspace.jsonc"}},),
            ),
        )
