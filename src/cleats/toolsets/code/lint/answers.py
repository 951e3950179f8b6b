"""What linters answer, as findings."""

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import msgspec

Tool: TypeAlias = Literal["ruff", "eslint"]
Warn: TypeAlias = Callable[[str], None]


class Finding(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One complaint. Lines are counted from 1, the last one included."""

    line: int
    end_line: int
    code: str
    message: str
    tool: Tool


class _Place(msgspec.Struct):
    row: int = 1


class _Ruffle(msgspec.Struct):
    filename: str
    message: str
    location: _Place | None = None
    end_location: _Place | None = None
    code: str | None = None


class _Message(msgspec.Struct, rename="camel"):
    message: str
    rule_id: str | None = None
    line: int | None = None
    end_line: int | None = None
    fatal: bool = False


class _Complaints(msgspec.Struct, rename="camel"):
    file_path: str
    messages: list[_Message]


def read_ruff(answer: bytes) -> Iterator[tuple[str, Finding]]:
    """Read one JSON object per line."""
    for line in answer.splitlines():
        try:
            told = msgspec.json.decode(line, type=_Ruffle)
        except msgspec.MsgspecError:  # a line that is not for us
            continue
        first = (told.location or _Place()).row
        last = max(first, (told.end_location or told.location or _Place()).row)
        yield told.filename, Finding(first, last, told.code or "syntax", told.message, "ruff")


def read_eslint(answer: bytes, warn: Warn) -> Iterator[tuple[str, Finding]]:
    """Read one JSON array."""
    try:
        told = msgspec.json.decode(answer or b"[]", type=list[_Complaints])
    except msgspec.MsgspecError as error:
        warn(f"eslint answered with something else: {error}")
        return
    for file in told:
        for each in file.messages:
            if each.rule_id is None and not each.fatal:
                continue  # about ESLint itself, such as that it ignores a file
            first = each.line or 1
            last = max(first, each.end_line or first)
            code = each.rule_id or "syntax"
            yield file.file_path, Finding(first, last, code, each.message, "eslint")
