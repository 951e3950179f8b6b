"""Artifacts of a run as they are handed out: by the names of the index, never by path.

Besides the artifacts of its index, every run has three documents that are rendered on request: its
configuration, its snapshot and its log.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.run_files import VIEW_NAMES, render_view

BASE64_SUFFIX: Final = ";base64"
"""Suffix of the media type when the content is encoded as base64."""

_TEXT_TYPE_PREFIXES: Final = ("text/", "application/json", "application/x-", "application/toml", "image/svg")


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """An artifact: its name, media type and bytes."""

    name: str
    content_type: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the artifact as JSON: text as it is, anything else as marked base64."""
        kind, content = self.content_type, self._decode_text()
        if content is None:
            kind, content = f"{kind}{BASE64_SUFFIX}", b64encode(self.data).decode()
        return {
            "name": self.name,
            "content_type": kind,
            "sha256": self.sha256,
            "content": content,
        }

    def _decode_text(self) -> str | None:
        if not self.content_type.startswith(_TEXT_TYPE_PREFIXES):
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


def read_artifact(engine: RunEngine, run_id: str, name: str) -> RunArtifact:
    """Return one artifact of a run.

    Raises:
        ToolError: RUN_NOT_FOUND; INVALID_INPUT, the run has no artifact of this name, and the
            details list the names it has.
    """
    run = engine.store.get(run_id)
    index: Mapping[str, Any] = run.snapshot["artifacts_index"]
    if name in index:
        data = RunFolder(engine.runs / run_id).get_object(index[name]["sha256"])
    elif name in VIEW_NAMES:
        data = render_view(engine.store, run, name)
    else:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{run_id} has no artifact {name[:200]!r}",
            hint="Use a name that the details list.",
            details={"known": sorted({*index, *VIEW_NAMES})},
        )
    return RunArtifact(name, artifacts.guess_content_type(name), data)
