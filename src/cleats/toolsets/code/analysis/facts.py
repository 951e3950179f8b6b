"""Facts about a file and its chunks: the values that the parsers pass to the index.

Everything here is derived from the bytes of one file, so it can be computed in any process, cached
by content hash, and never has to be read again. Facts that depend on more than the file (git, risk
across files, lint) are added later and stored separately.

Invariants:

- A chunk's facts cover its own text: its range without the ranges of nested chunks.
- Lists have no duplicates and keep the order of first appearance.
- Names are as written, but members are always separated by `.`, whatever the language uses
  (`self.session.get`, `os.path.join`; `std::move` stays `std::move`); an index is `[]`
  (`cache[]`).
"""

from typing import Final, Literal

from msgspec import Struct

Mode = Literal["code", "prose", "extracted-prose", "records"]
TypePosition = Literal["param", "field", "local", "return"]
TypeOrigin = Literal["annotation", "default", "literal", "call"]

TRIAGE_RECORD_LANGUAGE: Final = "record"
"""The language of triage records, which are not files of a repository."""


class TypeFact(Struct, array_like=True, frozen=True, gc=False):
    """A type that is declared, or that follows from a value."""

    where: TypePosition
    name: str
    type: str
    origin: TypeOrigin


CONTINUED_TEXT_MARK = "…"
"""The first character of literal text that follows another value: `host + "/path"`."""


class CallArgument(Struct, array_like=True, frozen=True, gc=False):
    """One argument of a call."""

    names: list[str]
    """Names read in it, except in nested calls."""
    calls: list[int]
    """Calls nested in it, as positions in the list of the step."""
    text: str = ""
    """Literal text in it, cut at 120 characters, for example a mode or a piece of SQL."""
    keyword: str = ""


class Invocation(Struct, array_like=True, frozen=True, gc=False):
    """One call within a step."""

    callee: str
    """As written: `cursor.execute`, `eval`, `new Function`. A chain keeps its calls without their arguments:
    `db.query().filter`."""
    arguments: list[CallArgument]
    line: int


class DataFlowStep(Struct, array_like=True, frozen=True, gc=False):
    """One statement of a body, described by the values that flow through it."""

    line: int
    targets: list[str]
    """The receivers of the value: `x`, `self.x`, `x[]`, or `return`. Empty for a bare expression."""
    names: list[str]
    """Names that the value reads directly, except in calls."""
    calls: list[Invocation]
    """Every call of the statement, inner ones first."""
    outer: list[int]
    """Calls whose result is (part of) the value itself, as positions in `calls`."""
    text: str = ""
    """Literal text of the value, except in calls, cut at 120 characters."""
    block: int = 0
    """The innermost branch or loop body around it, counted from 1 in order of appearance; 0 where the statement always
    runs. An assignment in one branch does not change the value in the other."""


class Chunk(Struct, omit_defaults=True, gc=False):
    """One piece of a file that a search can find: a declaration, a section, a block of lines."""

    kind: str
    """One of `kinds.CHUNK_KINDS`."""
    name: str
    """The name qualified within the file: `Class.method`. For a section, its heading."""
    start: int
    end: int
    """Byte offsets from the start of the file."""
    start_line: int
    end_line: int
    """Counted from 1, both included."""
    mode: Mode = "code"
    own: list[tuple[int, int]] = []
    """The byte ranges of its own text, if nested chunks have been cut out."""
    lang: str = ""
    """The language, only if it differs from the file's: a code fence, a script in a page."""

    signature: str = ""
    params: list[str] = []
    types: list[TypeFact] = []
    return_type: str = ""
    decorators: list[str] = []
    bases: list[str] = []
    visibility: str = ""
    """`public`, `protected`, `private`, `internal`, `package`, or `dunder`."""
    modifiers: list[str] = []
    """`static`, `abstract`, `final`, `const`, `export`, `override`, and any others as written."""
    is_async: bool = False
    is_generator: bool = False
    returns: bool = False
    """Whether it returns a value somewhere, or is declared to."""

    calls: list[str] = []
    uses: list[str] = []
    """Every name it refers to: variables, attributes and types, but not the definitions of locals."""
    reads: list[str] = []
    writes: list[str] = []
    mutates: list[str] = []
    """Values changed in place: `obj.field`, `arr[]`."""
    aliases: list[str] = []
    """`lhs=rhs` where one name is assigned to another."""
    throws: list[str] = []
    awaits: list[str] = []
    branches: int = 0
    loops: int = 0
    breaks: int = 0
    continues: int = 0

    doc: str = ""
    comments: str = ""
    steps: list[DataFlowStep] = []
    fields: dict[str, str] = {}
    """The content of a record or a config entry, flat, by dotted key; `meta` filters on it."""


class CommentBlock(Struct, frozen=True):
    """A comment or a piece of documentation, as prose."""

    start: int
    end: int
    start_line: int
    end_line: int
    text: str
    kind: Literal["comment", "docstring"]
    owner: str
    """The qualified name of the declaration that it is in or documents; empty for the file itself."""


class FileFacts(Struct, omit_defaults=True, gc=False):
    """Everything that is known from the bytes of one file."""

    lang: str
    mode: Mode
    lines: int
    chunks: list[Chunk] = []
    imports: list[str] = []
    """Modules as written: `os.path`, `./store`, `java.util.List`, `<stdio.h>` as `stdio.h`."""
    exports: list[str] = []
    problem: str = ""
    """The reason why it was parsed only in part: `syntax error near line 12`. Empty otherwise."""
