"""The model behind searches by meaning: a table of words, which comes with this program."""

import json
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code import dense

DATA: Final = Path(dense.__file__).parent / "data"
"""Where it is; what reads it would bring numpy along."""

_FILES: Final = ("table.json", "vectors.npy", "words.txt")


def shipped(model: str | None) -> dict[str, Any]:
    """What is known about the model.

    Raises:
        ToolError: INVALID_REQUEST, another one was asked for.
    """
    about = json.loads((DATA / "table.json").read_text("utf-8"))
    name = str(about["model"])
    if model is not None and model.lower() not in _spellings(name):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{model!r} cannot be used: vectors are made with a table of words from {name}.",
            hint="It comes with this program, so nothing has to be downloaded; leave out model.",
        )
    return {
        "model": name,
        "available": True,
        "shipped": True,
        "downloaded": False,
        "output": str(DATA),
        "dims": about["dims"],
        "words": about["words"],
        "bytes": sum((DATA / file).stat().st_size for file in _FILES),
        "fingerprint": about["fingerprint"],
    }


def words() -> int:
    """How many words the table has; they are also the built-in dictionary."""
    return int(shipped(None)["words"])


def _spellings(name: str) -> set[str]:
    return {name.lower(), name.rpartition("/")[2].lower()}
