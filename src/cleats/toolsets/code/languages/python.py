"""Python."""

from cleats.toolsets.code.languages.assignments import add_type, type_text
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.membership import membership
from cleats.toolsets.code.languages.python_patterns import matched, pattern
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Assign, Call, Declares, Language, Parameter
from cleats.toolsets.code.languages.walk import Flow, Walk

_PROPERTIES = ("property", "cached_property", "functools.cached_property", "abc.abstractproperty")
_MODIFIERS = {
    "staticmethod": "static",
    "classmethod": "class",
    "abstractmethod": "abstract",
    "abc.abstractmethod": "abstract",
    "final": "final",
    "typing.final": "final",
    "override": "override",
    "typing.override": "override",
}


def _settle(frame: Frame, _around: Frame) -> None:
    if frame.kind == "type":
        frame.name = frame.name.partition("[")[0]
        frame.qualified = frame.qualified.partition("[")[0]
    name = frame.name
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        frame.visibility = "dunder"
    elif name.startswith("__"):
        frame.visibility = "private"
    else:
        frame.visibility = "protected" if name.startswith("_") else "public"
    if frame.kind == "method":
        if name in ("__init__", "__new__"):
            frame.kind = "constructor"
        elif any(
            decorator in _PROPERTIES or decorator.endswith((".setter", ".deleter", ".getter"))
            for decorator in frame.decorators
        ):
            frame.kind = "property"
    for decorator in frame.decorators:
        if decorator in _MODIFIERS:
            frame.modifiers[_MODIFIERS[decorator]] = None
    if frame.kind == "class":
        _settle_class(frame)


def _settle_class(frame: Frame) -> None:
    bases = {base.rpartition(".")[2].partition("[")[0] for base in frame.bases}
    if "Protocol" in bases:
        frame.kind = "interface"
    elif bases & {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}:
        frame.kind = "enum"


def _docstring(syntax: Syntax, body: int) -> int:
    for child in syntax.children(body):
        kind = syntax.kinds[child]
        if kind == "comment":
            continue
        inner = child + 1 if kind == "expression_statement" else child
        if inner < syntax.stops[body] and syntax.kinds[inner] == "string":
            return inner if syntax.stops[inner] == syntax.stops[child] else NONE
        return NONE
    return NONE


def _imported(syntax: Syntax, node: int) -> list[str]:
    found = []
    for child in syntax.children(node):
        aliased = syntax.kinds[child] == "aliased_import"
        name = syntax.child(child, "name") if aliased else child
        if name != NONE:
            found.append(syntax.text(name))
    return found


def _imported_from(syntax: Syntax, node: int) -> list[str]:
    module = syntax.child(node, "module_name")
    if module == NONE:
        return []
    text = syntax.text(module)
    if text.strip("."):
        return [text]
    # `from . import store` names a module after the dots.
    names = [child for child in syntax.children(node) if syntax.fields[child] == "name"]
    tops = [
        syntax.child(name, "name") if syntax.kinds[name] == "aliased_import" else name
        for name in names
    ]
    return [text + syntax.text(name) for name in tops if name != NONE] or [text]


def _all(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The strings given to `__all__` are the exports."""
    if walk.frame is not walk.module:
        return False
    syntax = walk.syntax
    left = syntax.child(node, "left")
    if left != NONE and syntax.text(left) == "__all__":
        for at in range(node, syntax.stops[node]):
            if syntax.kinds[at] == "string_content":
                walk.exports[syntax.text(at)] = None
    return False


def _caught(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`except E as e` says the type of `e`; no value is given from one name to another."""
    syntax = walk.syntax
    alias = syntax.child(node, "alias")
    if alias == NONE or not syntax.kinds[syntax.parents[node]].startswith("except"):
        return False
    name = syntax.text(alias)
    walk.frame.writes[name] = None
    add_type(walk, "local", name, type_text(walk, node + 1), "annotation")
    walk.visit(node + 1, None)
    return True


def _finish(walk: Walk) -> None:
    if not walk.exports:
        for frame in walk.frames:
            if frame.top and frame.visibility == "public":
                walk.exports[frame.name] = None


PYTHON = Language(
    id="python",
    grammar="tree_sitter_python",
    declares={
        "function_definition": Declares("function", inside="method"),
        "class_definition": Declares("class", bases=frozenset({"superclasses"})),
        "type_alias_statement": Declares("type", name=("left",), body=()),
        "assignment": Declares("constant", name=("left",), lines=3, top=True),
    },
    closures=frozenset({"lambda"}),
    wraps=frozenset({"decorated_definition", "expression_statement"}),
    parameters={
        "typed_parameter": Parameter(
            name=("identifier", "list_splat_pattern", "dictionary_splat_pattern")
        ),
        "default_parameter": Parameter(),
        "typed_default_parameter": Parameter(),
    },
    decorators=frozenset({"decorator"}),
    modifiers={"async": "async"},
    not_bases=frozenset({"keyword_argument", "dictionary_splat"}),
    settle=_settle,
    docstring=_docstring,
    void=frozenset({"None", "NoReturn", "Never", "typing.NoReturn", "typing.Never"}),
    # A field and a kind have one name here, so the member is the last part.
    members={"attribute": ("object", "")},
    indexes={"subscript": "value"},
    calls={"call": Call()},
    keywords={"keyword_argument": ("name", "value")},
    transparent=frozenset({"parenthesized_expression", "await"}),
    assigns={
        "assignment": Assign(),
        "augmented_assignment": Assign(augmented=True),
        "named_expression": Assign(left="name", right="value"),
        "as_pattern": Assign(left="alias", right=""),
        "for_statement": Assign(loop=True),
        "for_in_clause": Assign(loop=True),
    },
    targets=frozenset(
        {
            "pattern_list",
            "tuple_pattern",
            "list_pattern",
            "list_splat_pattern",
            "dictionary_splat_pattern",
            "as_pattern_target",
        }
    ),
    removes=frozenset({"delete_statement"}),
    types=frozenset({"type"}),
    texts=frozenset({"string_content", "false", "none"}),
    literals={
        "string": "str",
        "concatenated_string": "str",
        "integer": "int",
        "float": "float",
        "true": "bool",
        "false": "bool",
        "list": "list",
        "list_comprehension": "list",
        "dictionary": "dict",
        "dictionary_comprehension": "dict",
        "set": "set",
        "set_comprehension": "set",
        "tuple": "tuple",
        "none": "None",
    },
    verdicts={"comparison_operator": frozenset(), "not_operator": frozenset()},
    choices={"conditional_expression": (1,)},
    nothing=frozenset({"none"}),
    returns=frozenset({"return_statement"}),
    throws=frozenset({"raise_statement"}),
    awaits=frozenset({"await"}),
    yields=frozenset({"yield"}),
    branches=frozenset(
        {
            "if_statement",
            "elif_clause",
            "conditional_expression",
            "except_clause",
            "except_group_clause",
            "finally_clause",
            "try_statement>else_clause",
            "case_clause",
        }
    ),
    arms=frozenset({"block"}),
    loops=frozenset({"for_statement", "while_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={
        "import_statement": _imported,
        "import_from_statement": _imported_from,
        "future_import_statement": lambda _syntax, _node: ["__future__"],
    },
    unseen=frozenset({"string_start", "string_end"}),
    ignored=frozenset({"global_statement", "nonlocal_statement", "type_conversion"}),
    hooks={
        "assignment": _all,
        "as_pattern": _caught,
        "match_statement": matched,
        "case_pattern": pattern,
        "comparison_operator": membership,
    },
    finish=_finish,
)
