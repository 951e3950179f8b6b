"""The shape of a language's table. One table per language is all the engine needs to know.

To write one, dump the tree of a sample file with the grammar at hand (`str(tree.root_node)` shows
kinds and fields), then fill in `Language` from the top down:

1. `declares`: every node that becomes a chunk of its own. `Declares.inside` is the kind it has
   directly within a type (a `function` is then a `method`).
2. `wraps`: nodes around a declaration that belong to its range (decorators, `export`).
3. `parameters`, `modifiers`, `settle`: what a declaration's head says.
4. Expressions: `names`, `members`, `indexes`, `calls`, `assigns`. Names of children are fields of
   the grammar or, where a child has no field, its kind.
5. Statements that count: `returns`, `throws`, `branches`, `loops` and so on.
6. `hooks` for what no row can say. A hook sees the `Walk` and the node, may call anything on it
   and returns whether it has dealt with the node: False lets the tables go on.

A kind without any row is passed through: its children are visited, and values in it flow to
whatever is around it. So a table names what matters and nothing else. Statements need no row: an
expression that is not inside of another one opens a step of its own.

Anonymous tokens (keywords, operators) are only in the tree if `modifiers` or `tokens` names them.
A row may point at a field or a kind that is missing in a broken file: every lookup is optional.

Where a row maps a kind to its parts, the part "" means: the first child that is no other part.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from cleats.toolsets.code.languages.frame import Frame
    from cleats.toolsets.code.languages.syntax import Syntax
    from cleats.toolsets.code.languages.walk import Flow, Walk

Kinds: TypeAlias = frozenset[str]
Hook: TypeAlias = "Callable[[Walk, int, Flow | None], bool]"
"""Deals with a node; the flow is where its value goes, None when it is a statement."""

COMPARISONS: Kinds = frozenset(
    {"==", "!=", "===", "!==", "<", ">", "<=", ">=", "<>", "<=>", "instanceof", "in", "=~", "!~"}
)
"""Operators whose value is true or false, or less and more."""

ARITHMETIC: Kinds = frozenset({"-", "*", "/", "%", "**", "|", "&", "^", "<<", ">>", ">>>"})
"""Operators whose value is a number in languages that turn text into numbers."""

TYPES: Kinds = frozenset({"class", "interface", "trait", "struct", "enum", "impl"})
"""Kinds of chunks whose functions are methods."""


class Declares(Struct, frozen=True):
    """A kind of node that is a declaration."""

    kind: str
    inside: str = ""
    """Its kind directly inside of a type; the same as `kind` when empty."""
    name: tuple[str, ...] = ("name",)
    """The child that is its name; of several, the first there is."""
    parameters: tuple[str, ...] = ("parameters",)
    result: tuple[str, ...] = ("return_type",)
    body: tuple[str, ...] = ("body",)
    bases: Kinds = frozenset()
    """Fields or kinds of children that list what it extends. Such a kind inside of such a kind is
    looked into, anything else there is a base."""
    lines: int = 1
    """It is a chunk only if it has this many lines."""
    top: bool = False
    """It is a chunk only outside of every other declaration."""


class Parameter(Struct, frozen=True):
    """How one parameter is written."""

    name: tuple[str, ...] = ("name",)
    type: tuple[str, ...] = ("type",)
    default: tuple[str, ...] = ("value",)


class Call(Struct, frozen=True):
    """How a call is written."""

    function: tuple[str, ...] = ("function",)
    arguments: tuple[str, ...] = ("arguments",)
    receiver: tuple[str, ...] = ()
    """Where the object is no part of `function` (Java, Ruby)."""
    joint: str = "."
    """Between the receiver and the function."""
    prefix: str = ""
    """Before the callee in steps: `new `."""


class Assign(Struct, frozen=True):
    """Something that gives a value to a name: assignment, declaration, loop variable, `with`."""

    left: str = "left"
    right: str = "right"
    type: str = "type"
    augmented: bool = False
    """The target is read too (`+=`)."""
    loop: bool = False
    """The value is gone through, so it says nothing about the target's type and is no alias."""
    typed_field: bool = False
    """It declares a field of the type around it; the left side is its name, whatever its kind."""


class Carrier(Struct, frozen=True):
    """Something that names a function or class written as a value: `const f = () => {}`."""

    name: str
    value: str
    kind: str = "function"
    lines: int = 1


class Language(Struct, frozen=True):
    """Everything the engine knows about one language."""

    id: str
    grammar: str
    """The module with the grammar, imported on first use, and what in it makes the language."""
    maker: str = "language"

    # Declarations
    declares: Mapping[str, Declares] = {}
    carriers: Mapping[str, Carrier] = {}
    closures: Kinds = frozenset()
    """Functions without a name. They belong to the chunk around them unless a carrier names them;
    one whose body is an expression returns it."""
    endless: Kinds = frozenset()
    """Declarations whose body may be an expression as well, which they return then."""
    wraps: Kinds = frozenset()
    """Nodes around a single declaration that belong to its range, head and decorators."""
    parameters: Mapping[str, Parameter] = {}
    """Kinds found in parameter lists. Any kind of `names` and `targets` is a parameter as well."""
    decorators: Kinds = frozenset()
    """Among the children of a declaration or its wraps, or just before it."""
    modifiers: Mapping[str, str] = {}
    """Keywords (tokens or nodes) of a head and the word for them in `Chunk.modifiers`. A word that
    is a visibility sets it; `async` and `generator` set those flags and are not listed."""
    modifier_lists: Kinds = frozenset()
    """Nodes that hold modifiers."""
    not_bases: Kinds = frozenset()
    """What a list of bases holds besides bases."""
    begin: "Callable[[Walk, int, Frame], None]" = lambda _walk, _head, _frame: None
    """Called before a head is read: for names that are not what is written in their place."""
    settle: "Callable[[Frame, Frame], None]" = lambda _frame, _around: None
    """Called when a head has been read, with the declaration and the one around it: for the
    visibility that a name or a place implies, and for kinds that depend on the name."""
    docstring: "Callable[[Syntax, int], int]" = lambda _syntax, _body: -1
    """The node in a body that documents it, or -1."""
    doc_comments: tuple[str, ...] = ()
    """How a comment begins that documents the declaration below it."""
    void: Kinds = frozenset()
    """Texts of return types that mean that nothing is returned."""

    # Expressions
    names: Kinds = frozenset({"identifier"})
    type_names: Kinds = frozenset()
    """Names that stand for types; they are used, not read."""
    members: Mapping[str, tuple[str, str]] = {}
    """Kind to (object, member); an empty object is the first child, an empty member the last."""
    joints: Mapping[str, str] = {}
    """Members that are not dotted, and what stands between the object and the member: `::`."""
    indexes: Mapping[str, str] = {}
    """Kind to the object that is indexed."""
    calls: Mapping[str, Call] = {}
    keywords: Mapping[str, tuple[str, str]] = {}
    """Arguments with a name: kind to (name, value)."""
    suffixes: Kinds = frozenset()
    """What follows a callee where that is more than one list of arguments."""
    transparent: Kinds = frozenset()
    """Around an object or callee without changing its name: parentheses, casts, `!`."""
    assigns: Mapping[str, Assign] = {}
    targets: Kinds = frozenset()
    """Patterns: everything named in them receives a value."""
    removes: Kinds = frozenset()
    """Statements whose operands are changed in place or forgotten: `del`."""
    updates: Kinds = frozenset()
    """`i++`: the operand is read and written."""
    types: Kinds = frozenset()
    """Nodes that are types throughout."""
    texts: Kinds = frozenset()
    """The literal text in strings."""
    literals: Mapping[str, str] = {}
    """Kinds of literals and the type a value of that kind has."""
    classes: Mapping[str, str] = {}
    """Literals whose methods are those of a class, and its name: `/x/.exec(y)` is no `exec(y)`."""
    casts: Mapping[str, str] = {}
    """Expressions that say their own type, and the child that is it; the last one when empty."""
    made: "Callable[[Syntax, int], str] | None" = None
    """The type that an expression gives away. Without it, a call of a capitalised name makes an
    object of that type; calls with a prefix always do."""
    verdicts: Mapping[str, Kinds] = {}
    """Expressions that only tell something of what is in them, so that no value of it is in theirs:
    kind to operators, or none where all of the kind are meant."""
    choices: Mapping[str, tuple[str | int, ...]] = {}
    """Expressions that are one of several values: kind to the parts that choose, as fields, kinds
    or places."""
    lists: Kinds = frozenset()
    """Lists that stand for their only element: `x` in Go's `a := x` is a list of one."""
    nothing: Kinds = frozenset()
    """Literals whose return does not count as returning a value."""

    # Control flow
    returns: Kinds = frozenset()
    throws: Kinds = frozenset()
    panics: Kinds = frozenset()
    """Callees that throw: `panic`."""
    awaits: Kinds = frozenset()
    yields: Kinds = frozenset()
    branches: Kinds = frozenset()
    """Kinds, or `parent>kind` where it depends on the parent."""
    arms: Kinds = frozenset()
    """Parts of branches and loops that do not run always, where no field says it (`consequence`,
    `alternative` and `body` do)."""
    cases: Kinds = frozenset()
    """Branches that are an arm as a whole: `case 1: …`."""
    defaults: Kinds = frozenset()
    """Arms that are no branch of their own: `default: …`."""
    loops: Kinds = frozenset()
    breaks: Kinds = frozenset()
    continues: Kinds = frozenset()

    # The rest
    comments: Kinds = frozenset({"comment"})
    imports: "Mapping[str, Callable[[Syntax, int], list[str]]]" = {}
    """Import statements and what they import; nothing else is taken from them."""
    ignored: Kinds = frozenset()
    """Nodes that are not looked into."""
    unseen: Kinds = frozenset()
    """Nodes that are left out of the tree: frequent leaves that no row and no hook asks for."""
    tokens: Kinds = frozenset()
    """Anonymous tokens that hooks want to see."""
    hooks: Mapping[str, Any] = {}
    """Kind to `Hook`."""
    ease: "Callable[[bytes], bytes]" = lambda data: data
    """Puts what is newer than the grammar in words that it knows, byte for byte as long; called
    where the grammar has failed."""
    unwrap: "Callable[[bytes], bytes]" = lambda data: data
    """Takes away what hides declarations from the grammar, byte for byte as long; it counts only
    where the grammar can read what is left."""
    fallback: str = ""
    """The language that reads a file which this one's grammar fails at: one with more in it."""
    prepare: "Callable[[Syntax], None]" = lambda _syntax: None
    """Called before the walk, to give kinds of their own to nodes that the grammar lumps together:
    `x[0]` and `x(0)` in Swift."""
    finish: "Callable[[Walk], None]" = lambda _walk: None
    """Called when the file has been walked: exports, names made public afterwards."""
