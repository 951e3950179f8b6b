"""What is known about a file and the pieces it is cut into: the values between parser and index.

Everything here is derived from the bytes of one file alone, so it can be made in any process, kept
by content hash, and never needs a second look. What depends on more than the file (git, risk that
crosses files, lint) is added later and stored beside it.

Laws of the values:

- A chunk's facts cover its own text: its range without the ranges of chunks nested in it.
- Lists have no duplicates and keep the order of first appearance.
- Names are as written, dotted with `.` whatever the language's own separator for members
  (`self.session.get`, `os.path.join`, `std::move` stays `std::move`); an index is `[]`
  (`cache[]`).
"""

from typing import Final, Literal

from msgspec import Struct

Mode = Literal["code", "prose", "extracted-prose", "records"]
Where = Literal["param", "field", "local", "return"]
Origin = Literal["annotation", "default", "literal", "call"]

RECORD: Final = "record"
"""The language of a record of triage, which is a file of no repository."""


class Typed(Struct, array_like=True, frozen=True, gc=False):
    """A type that was declared, or that a value gives away."""

    where: Where
    name: str
    type: str
    origin: Origin


BEHIND = "…"
"""What literal text begins with when another value comes before it: `host + "/path"`."""


class Argument(Struct, array_like=True, frozen=True, gc=False):
    """One argument of a call."""

    names: list[str]
    """Names read in it, outside of calls nested in it."""
    calls: list[int]
    """Calls nested in it, as positions in the step's own list."""
    text: str = ""
    """Literal text in it, cut at 120 characters: a mode, a piece of SQL."""
    keyword: str = ""


class Invocation(Struct, array_like=True, frozen=True, gc=False):
    """One call within a step."""

    callee: str
    """As written: `cursor.execute`, `eval`, `new Function`. A chain keeps its calls without their
    arguments: `db.query().filter`."""
    arguments: list[Argument]
    line: int


class Step(Struct, array_like=True, frozen=True, gc=False):
    """One statement of a body, as far as values flow through it."""

    line: int
    targets: list[str]
    """What receives the value: `x`, `self.x`, `x[]`, or `return`. Empty for a bare expression."""
    names: list[str]
    """Names read directly by the value, outside of calls."""
    calls: list[Invocation]
    """Every call of the statement, inner ones first."""
    outer: list[int]
    """Calls whose result is (part of) the value itself, as positions in `calls`."""
    text: str = ""
    """Literal text of the value outside of calls, cut at 120 characters."""
    block: int = 0
    """The innermost branch or loop body it stands in, counted from 1 in order of appearance; 0
    where the statement always runs. An assignment in one branch leaves the other's value alone."""


class Chunk(Struct, omit_defaults=True, gc=False):
    """One piece of a file that can be found: a declaration, a section, a block of lines."""

    kind: str
    """One of `kinds.KINDS`."""
    name: str
    """Qualified within the file: `Class.method`. A section's is its heading."""
    start: int
    end: int
    """Bytes from the start of the file."""
    start_line: int
    end_line: int
    """Counted from 1, both included."""
    mode: Mode = "code"
    own: list[tuple[int, int]] = []
    """The byte ranges of its own text, when nested chunks have been cut out of the whole."""
    lang: str = ""
    """Only where it differs from the file's: a code fence, a script in a page."""

    signature: str = ""
    params: list[str] = []
    types: list[Typed] = []
    return_type: str = ""
    decorators: list[str] = []
    bases: list[str] = []
    visibility: str = ""
    """`public`, `protected`, `private`, `internal`, `package`, or `dunder`."""
    modifiers: list[str] = []
    """`static`, `abstract`, `final`, `const`, `export`, `override`, and what else is written."""
    is_async: bool = False
    is_generator: bool = False
    returns: bool = False
    """It returns a value somewhere, or is declared to."""

    calls: list[str] = []
    uses: list[str] = []
    """Every name it refers to: variables, attributes, types, not its own locals' definitions."""
    reads: list[str] = []
    writes: list[str] = []
    mutates: list[str] = []
    """`obj.field`, `arr[]`: what is changed in place."""
    aliases: list[str] = []
    """`lhs=rhs` where one name is given to another."""
    throws: list[str] = []
    awaits: list[str] = []
    branches: int = 0
    loops: int = 0
    breaks: int = 0
    continues: int = 0

    doc: str = ""
    comments: str = ""
    steps: list[Step] = []
    fields: dict[str, str] = {}
    """What a record or a config entry says, flat, by dotted key; `meta` filters on it."""


class FileFacts(Struct, omit_defaults=True, gc=False):
    """Everything one file's bytes say."""

    lang: str
    mode: Mode
    lines: int
    chunks: list[Chunk] = []
    imports: list[str] = []
    """Modules as written: `os.path`, `./store`, `java.util.List`, `<stdio.h>` as `stdio.h`."""
    exports: list[str] = []
    problem: str = ""
    """Why it was understood only in part: `syntax error near line 12`. Empty when all is well."""
