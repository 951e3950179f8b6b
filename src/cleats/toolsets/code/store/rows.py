"""What a file leaves in the catalogue, ready to be written by a process that knows nothing else."""

from msgspec import Struct

from cleats.toolsets.code.facts import Mode


class ChunkRow(Struct, array_like=True, frozen=True):
    """One chunk: its columns, and the rest packed."""

    mode: Mode
    kind: str
    name: str
    start: int
    end: int
    start_line: int
    end_line: int
    headline: str
    facts: bytes
    """The `Chunk` in msgpack, without its steps."""
    summary: bytes | None
    """The risk `Summary` in msgpack, for what can have one."""


class FileRow(Struct, array_like=True, frozen=True):
    """One file: everything that its path and its bytes say."""

    path: str
    size: int
    mtime_ns: int
    """`UNSURE` when the file may have changed right after it was read."""
    hash: bytes
    lang: str
    mode: Mode
    lines: int
    problem: str
    facts: bytes
    """`Relations` in msgpack."""
    text: bytes
    """The bytes of the file, deflated."""
    vectors: bytes
    attributes: bytes
    chunks: list[ChunkRow]


class Relations(Struct):
    """What a file takes from others and gives to them."""

    imports: list[str] = []
    exports: list[str] = []


UNSURE = -1
"""An mtime that no file has: only its hash can say whether the file is the same."""
