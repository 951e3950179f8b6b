"""What a run has written, as it is handed out: by names of the index, and by no path.

Besides the artifacts of the index every run has three documents that are made when they are asked
for: its configuration, its snapshot and its log.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.exports import VIEWS, render
from cleats.toolsets.launch.folder import RunFolder

BASE64: Final = ";base64"
"""What a media type ends in when the content is not the text itself."""

_TEXT: Final = ("text/", "application/json", "application/x-", "application/toml", "image/svg")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A name, its bytes and what they are."""

    name: str
    content_type: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Text as it is, anything else as base64; the media type says which."""
        kind, content = self.content_type, self._text()
        if content is None:
            kind, content = f"{kind}{BASE64}", b64encode(self.data).decode()
        return {
            "name": self.name,
            "content_type": kind,
            "sha256": self.sha256,
            "content": content,
        }

    def _text(self) -> str | None:
        if not self.content_type.startswith(_TEXT):
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


def artifact(engine: Engine, run_id: str, name: str) -> Artifact:
    """One artifact of a run.

    Raises:
        ToolError: RUN_NOT_FOUND; INVALID_INPUT, the run has none of this name, and the details
            list those it has.
    """
    run = engine.store.get(run_id)
    index: Mapping[str, Any] = run.snapshot["artifacts_index"]
    if name in index:
        data = RunFolder(engine.runs / run_id).get(index[name]["sha256"])
    elif name in VIEWS:
        data = render(engine.store, run, name)
    else:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{run_id} has no artifact {name[:200]!r}",
            hint="Use a name that the details list.",
            details={"known": sorted({*index, *VIEWS})},
        )
    return Artifact(name, artifacts.content_type(name), data)
