"""The format of a language table, which holds everything that the engine knows about a language.

To write one, dump the tree of a sample file with the grammar (`str(tree.root_node)` shows kinds and
fields), then write the rows of `Language` from the top down into a TOML file with the name of the language:

1. `declares`: every node that becomes a chunk. `DeclarationSyntax.inside` is the kind it has
   directly within a type (a `function` is then a `method`).
2. `wraps`: nodes around a declaration that belong to its range (decorators, `export`).
3. `parameters`, `modifiers`, `settle`: the contents of a declaration's header.
4. Expressions: `names`, `members`, `indexes`, `calls`, `assigns`. Names of children are fields of
   the grammar or, where a child has no field, its kind.
5. Statements that are counted: `returns`, `throws`, `branches`, `loops` and so on.
6. `hooks` for everything that no row can express. A hook receives the `SyntaxWalker` and the node
   and may call any of its methods; if it returns False, the tables continue with the node.

A kind that means the same in every grammar which has it is in the default of its row, so most tables need
no row for control flow. A table has such a row only where one of the kinds means something else in its grammar.

A kind without a row is passed through: its children are visited, and their values flow to the node
around it. So a table only names the kinds that matter. Statements need no row: an expression that
is not inside another one starts its own step.

Anonymous tokens (keywords, operators) are only in the tree if `modifiers` or `tokens` names them. A
row may name a field or a kind that is missing in a broken file: every lookup is optional.

Where a row maps a kind to its parts, the part "" is the first child that is not another part. A key
of a row may name several kinds, separated by spaces, that share what it maps to. In TOML, a set and the
labels of a child are a text with spaces; a set that begins with `+` adds to the default of its row.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

if TYPE_CHECKING:
    from cleats.toolsets.code.analysis.languages.syntax import Frame, SyntaxTree
    from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

KindSet: TypeAlias = frozenset[str]
NodeHook: TypeAlias = "Callable[[SyntaxWalker, int, ValueFlow | None], bool | None]"
"""Handles a node, unless it returns False. The flow receives the node's value; it is None for a statement."""


def kind_set(words: str) -> KindSet:
    """Return the kinds that a text lists, separated by white space."""
    return frozenset(words.split())


MIN_CONSTANT_LINES = 3
"""Lines from which a variable at the top level becomes a chunk; one that is named like a constant always does."""

CONSTANT_NAME_PATTERN = re.compile(r"_*[A-Z][A-Z0-9]*_?[A-Z0-9_]*[A-Z0-9]")
"""Names that are written like constants: `MAX_SIZE`."""

COMPARISON_OPERATORS: KindSet = kind_set("== != === !== < > <= >= <> <=> instanceof in =~ !~")
"""Operators whose value is a boolean or an ordering."""

TYPE_KINDS: KindSet = kind_set("class interface trait struct enum impl")
"""Kinds of chunks whose functions are methods."""

TEXT_KINDS: KindSet = kind_set("""string_content string_fragment string_literal_content raw_string_content
    raw_string_literal_content raw_str_part multiline_string_fragment verbatim_string_literal
    interpreted_string_literal_content heredoc_content nowdoc_string line_str_text multi_line_str_text""")

BRANCH_KINDS: KindSet = kind_set("""if_statement if_expression if elsif unless elif_clause else_if_clause
    if_modifier unless_modifier switch_case conditional_expression ternary_expression conditional catch_clause
    except_clause except_group_clause rescue_modifier""")


class DeclarationSyntax(Struct, frozen=True):
    """A kind of node that declares something."""

    kind: str
    inside: str = ""
    """The kind directly inside a type; empty if it is the same as `kind`."""
    name: tuple[str, ...] = ("name",)
    """Labels of the child that is the name; the first one present is used."""
    parameters: tuple[str, ...] = ("parameters",)
    result: tuple[str, ...] = ("return_type",)
    body: tuple[str, ...] = ("body",)
    bases: KindSet = frozenset()
    """Fields or kinds of the children that list what it extends. A node of such a kind inside another is searched as
    well; everything else in it is a base."""
    lines: int = 1
    """Minimum number of lines for it to become a chunk."""
    top: bool = False
    """True if it becomes a chunk only outside every other declaration."""


class ParameterSyntax(Struct, frozen=True):
    """The syntax of one parameter."""

    name: tuple[str, ...] = ("name",)
    type: tuple[str, ...] = ("type",)
    default: tuple[str, ...] = ("value",)


class CallSyntax(Struct, frozen=True):
    """The syntax of a call."""

    function: tuple[str, ...] = ("function",)
    arguments: tuple[str, ...] = ("arguments",)
    receiver: tuple[str, ...] = ()
    """Labels of the object where it is not part of `function` (Java, Ruby)."""
    joint: str = "."
    """Text between the receiver and the function."""
    prefix: str = ""
    """Text before the callee in steps: `new `."""


class AssignmentSyntax(Struct, frozen=True):
    """The syntax of an assignment, a declaration, a loop variable or a `with`."""

    left: str = "left"
    right: str = "right"
    type: str = "type"
    augmented: bool = False
    """True if the target is read as well (`+=`)."""
    loop: bool = False
    """True if the value is iterated over, so that it is neither an alias of the target nor tells its type."""
    typed_field: bool = False
    """True if it declares a field of the enclosing type; the left side is the name, whatever its kind."""


class CarrierSyntax(Struct, frozen=True):
    """The syntax that names a function or class written as a value: `const f = () => {}`."""

    name: str
    value: str
    kind: str = "function"
    lines: int = 1


class Language(Struct, frozen=True):
    """Everything that the engine knows about one language."""

    id: str
    grammar: str
    """The module with the grammar, imported on first use; `maker` is the function in it that returns it."""
    maker: str = "language"

    # Declarations
    declares: Mapping[str, DeclarationSyntax] = {}
    carriers: Mapping[str, CarrierSyntax] = {}
    closures: KindSet = kind_set("""lambda lambda_expression lambda_literal closure_expression func_literal
        arrow_function anonymous_function function_expression generator_function anonymous_method_expression""")
    """Functions without a name. They belong to the enclosing chunk unless a carrier names them; one whose body is an
    expression returns it."""
    endless: KindSet = frozenset()
    """Declarations whose body may also be an expression, which they then return."""
    wraps: KindSet = frozenset()
    """Nodes around a single declaration that belong to its range, header and decorators."""
    parameters: Mapping[str, ParameterSyntax] = {}
    """Kinds in parameter lists. Every kind in `names` and `targets` is a parameter as well."""
    decorators: KindSet = frozenset()
    """Kinds of decorators: among the children of a declaration or its wraps, or just before it."""
    modifiers: Mapping[str, str] = {}
    """Keywords (tokens or nodes) of a header, and their words in `Chunk.modifiers`. A word that is a visibility sets
    it; `async` and `generator` set those flags and are not listed."""
    modifier_lists: KindSet = frozenset()
    """Nodes that hold modifiers."""
    not_bases: KindSet = frozenset()
    """Kinds in a list of bases that are not bases."""
    begin: "Callable[[SyntaxWalker, int, Frame], None]" = lambda _walk, _head, _frame: None
    """Called before a header is read, for names that differ from the text in their position."""
    settle: "Callable[[Frame, Frame], None]" = lambda _frame, _around: None
    """Called after a header is read, with the declaration and its parent: sets the visibility that a name or a location
    implies, and kinds that depend on the name."""
    docstring: "Callable[[SyntaxTree, int], int]" = lambda _syntax, _body: -1
    """Returns the node in a body that documents it, or -1."""
    doc_comments: tuple[str, ...] = ("//", "/*")
    """Prefixes of comments that document the declaration below them."""
    void: KindSet = frozenset()
    """Texts of return types which mean that nothing is returned."""

    # Expressions
    names: KindSet = kind_set("identifier")
    type_names: KindSet = frozenset()
    """Names of types; they are used, not read."""
    members: Mapping[str, tuple[str, str]] = {}
    """Kind to (object, member); an empty object is the first child, an empty member the last."""
    joints: Mapping[str, str] = {}
    """Members that are not dotted, and the text between the object and the member: `::`."""
    indexes: Mapping[str, str] = {}
    """Kind to the child that is indexed."""
    calls: Mapping[str, CallSyntax] = field(default_factory=lambda: {"call_expression": CallSyntax()})
    keywords: Mapping[str, tuple[str, str]] = {}
    """Named arguments: kind to (name, value)."""
    suffixes: KindSet = frozenset()
    """Nodes after a callee that hold more than one list of arguments."""
    transparent: KindSet = frozenset()
    """Nodes around an object or callee that do not change its name: parentheses, casts, `!`."""
    assigns: Mapping[str, AssignmentSyntax] = {}
    targets: KindSet = frozenset()
    """Patterns: every name in them receives a value."""
    removes: KindSet = kind_set("delete_statement delete_expression unset_statement unset_command")
    """Statements that change or delete their operands: `del`."""
    updates: KindSet = kind_set("update_expression inc_statement dec_statement")
    """Expressions such as `i++`, whose operand is read and written."""
    types: KindSet = frozenset()
    """Nodes that consist entirely of a type."""
    texts: KindSet = TEXT_KINDS
    """Nodes with the literal text of strings."""
    literals: Mapping[str, str] = {}
    """Kinds of literals, and the types of their values."""
    classes: Mapping[str, str] = {}
    """Literals with the methods of a class, and its name: `/x/.exec(y)` is not `exec(y)`."""
    casts: Mapping[str, str] = {}
    """Expressions that state their type, and the child with the type; the last child if empty."""
    made: "Callable[[SyntaxTree, int], str] | None" = None
    """Returns the type that an expression reveals. Without it, a call of a capitalised name creates an object of that
    type; calls with a prefix always do."""
    verdicts: Mapping[str, KindSet] = field(
        default_factory=lambda: {"binary_expression": COMPARISON_OPERATORS, "unary_expression": kind_set("!")}
    )
    """Expressions that only state something about their operands, so that the operands do not flow into their value:
    kind to operators, or an empty set for every expression of the kind."""
    choices: Mapping[str, tuple[str | int, ...]] = field(
        default_factory=lambda: {"conditional_expression ternary_expression": ("condition",)}
    )
    """Expressions that are one of several values: kind to the parts that make the choice, as fields, kinds or
    positions."""
    lists: KindSet = frozenset()
    """Lists that are equivalent to their only element: `x` in Go's `a := x` is a list of one."""
    nothing: KindSet = frozenset()
    """Literals that do not count as a value when they are returned."""

    # Control flow
    returns: KindSet = kind_set("return_statement return_expression return co_return_statement")
    throws: KindSet = kind_set("throw_statement throw_expression raise_statement")
    panics: KindSet = frozenset()
    """Callees that throw: `panic`."""
    awaits: KindSet = kind_set("await_expression await co_await_expression")
    yields: KindSet = frozenset()
    branches: KindSet = BRANCH_KINDS
    """Kinds, or `parent>kind` where it depends on the parent."""
    arms: KindSet = frozenset()
    """Parts of branches and loops that do not always run, where no field says so (`consequence`, `alternative` and
    `body` do)."""
    cases: KindSet = kind_set("""case_statement switch_section switch_expression_arm switch_block_statement_group
        switch_rule switch_entry expression_case type_case communication_case match_conditional_expression match_arm
        when when_entry""")
    """Branches that are an arm as a whole: `case 1: …`."""
    case_test: str = ""
    """The child without which a case is a default: the value in `case 1: …`."""
    defaults: KindSet = kind_set("default_case default_statement match_default_expression")
    """Arms that do not count as a branch: `default: …`."""
    loops: KindSet = kind_set("""for_statement foreach_statement enhanced_for_statement for_in_statement
        for_range_loop c_style_for_statement for_expression for while_statement while_expression while
        while_modifier until until_modifier loop_expression do_statement do_while_statement""")
    breaks: KindSet = kind_set("break_statement break_expression break")
    continues: KindSet = kind_set("continue_statement continue_expression next")

    # The rest
    comments: KindSet = kind_set("comment line_comment block_comment multiline_comment html_comment")
    imports: "Mapping[str, str | Callable[[SyntaxTree, int], list[str]]]" = {}
    """Import statements, and the child that names the module, or a function that returns what they import. Nothing else
    is read from them."""
    ignored: KindSet = frozenset()
    """Nodes that are not visited."""
    unseen: KindSet = frozenset()
    """Nodes that are left out of the tree: frequent leaves that no row and no hook needs."""
    tokens: KindSet = frozenset()
    """Anonymous tokens that hooks need."""
    hooks: Mapping[str, Any] = {}
    """Kind to `NodeHook`."""
    ease: "Callable[[bytes], bytes]" = lambda data: data
    """Rewrites syntax that is newer than the grammar into syntax it knows, without changing the length; called when the
    grammar has failed."""
    unwrap: "Callable[[bytes], bytes]" = lambda data: data
    """Blanks out text that hides declarations from the grammar, without changing the length; the result is only used if
    the grammar can parse it."""
    fallback: str = ""
    """The language, a superset of this one, that reads files which this grammar cannot parse."""
    prepare: "Callable[[SyntaxTree], None]" = lambda _syntax: None
    """Called before the walk, to give separate kinds to nodes that the grammar does not distinguish: `x[0]` and `x(0)`
    in Swift."""
    finish: "Callable[[SyntaxWalker], None]" = lambda _walk: None
    """Called after the file has been walked: exports, and names that are made public later."""

    def __post_init__(self) -> None:
        """Give each kind its own row where the key of a row names several."""
        for name in self.__struct_fields__:
            rows = getattr(self, name)
            if isinstance(rows, dict):
                force_setattr(self, name, {kind: row for kinds, row in rows.items() for kind in kinds.split()})


_ROW_TYPES: Final[Mapping[str, Callable[..., Any]]] = {
    "declares": DeclarationSyntax,
    "carriers": CarrierSyntax,
    "parameters": ParameterSyntax,
    "calls": CallSyntax,
    "assigns": AssignmentSyntax,
}


def load_table(name: str, *, base: Language | None = None, **code: Any) -> Language:
    """Return the language of the TOML file with its name in this folder.

    Rows that the file does not have are those of `base`. `code` has the rows that are no data: hooks, functions, and
    rows that hooks share.
    """
    document = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
    language = replace(base, id=name) if base else Language(id=name, grammar=document["grammar"])
    rows = {field_name: _read_field(language, field_name, value) for field_name, value in document.items()}
    for field_name, value in code.items():
        rows[field_name] = {**value, **rows.get(field_name, {})} if isinstance(value, dict) else value
    return replace(language, **rows)


def _read_field(language: Language, name: str, value: Any) -> Any:
    default = getattr(language, name)
    if name in _ROW_TYPES:
        return {kinds: _read_row(_ROW_TYPES[name], row) for kinds, row in value.items()}
    if name == "verdicts":
        return {kinds: kind_set(operators) for kinds, operators in value.items()}
    if isinstance(default, frozenset):
        return default | kind_set(value[1:]) if value.startswith("+") else kind_set(value)
    if name == "modifiers" and isinstance(value, str):  # each token is its own word
        return {word: word for word in value.split()}
    if isinstance(value, dict):
        return {kinds: tuple(row) if isinstance(row, list) else row for kinds, row in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _read_row(row_type: Callable[..., Any], row: Mapping[str, Any]) -> Any:
    """Return a row of TOML; sets and labels of children are the fields of `row_type` whose types say so."""
    fields: dict[str, Any] = {}
    for name, value in row.items():
        kind = row_type.__annotations__[name]
        fields[name] = kind_set(value) if kind == KindSet else value
        if kind == tuple[str, ...]:
            fields[name] = tuple(value.split())
    return row_type(**fields)
