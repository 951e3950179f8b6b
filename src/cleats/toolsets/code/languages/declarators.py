"""Declarations as C and C++ write them: the name somewhere within what is around it.

In `int *(*f(int a))[3]` the name is `f`, the parameter `a`, and all the rest is type. The hooks
here find names and parameters in such declarators, and tell a function from its prototype.
"""

import re

from cleats.toolsets.code.facts import Typed
from cleats.toolsets.code.languages.assignments import (
    UNTYPED,
    add_type,
    assign,
    assign_or_augment,
    is_field,
    type_text,
)
from cleats.toolsets.code.languages.heads import declare, parameters
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Assign, Declares
from cleats.toolsets.code.languages.walk import Flow, Walk

FUNCTION = Declares("function", inside="method", parameters=(), result=("type",))
NAMED = frozenset({"identifier", "field_identifier", "type_identifier"})
SPECIFIERS = {
    "struct_specifier": Declares("struct", bases=frozenset({"base_class_clause"})),
    "class_specifier": Declares("class", bases=frozenset({"base_class_clause"})),
    "union_specifier": Declares("struct"),
    "enum_specifier": Declares("enum"),
}
_PURE = Declares("method", parameters=(), result=("type",), body=("default_value",))
_CONSTANT = Declares("constant", parameters=(), body=())
_CONSTANT_LINES = 3
_ALIAS = Declares("type", parameters=(), result=(), body=())
_WORDS = ("virtual_specifier", "type_qualifier", "noexcept")
_KEYWORDS = ("if", "else", "for", "while", "switch", "return", "sizeof", "catch")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_TOKEN = re.compile(rb"[A-Za-z_]\w*(\s*\()?")
_CONDITION = Assign(left="declarator", right="value", type="no type")


def plain_name(text: str) -> str:
    """A name without what it is generic over, dotted: `Box.pull` for `Box<T>::pull`."""
    text = " ".join(text.split())
    before = ""
    while text != before:
        before, text = text, _ARGUMENTS.sub("", text)
    parts = (part.strip().removeprefix("inline ") for part in text.split("::"))
    return ".".join(part for part in parts if part)[:200]


def own_declarator(syntax: Syntax, node: int) -> int:
    """The declarator with the name and the parameters of a function; `NONE` if it has none."""
    at = syntax.child(node, "declarator")
    found = NONE
    while at != NONE:
        kind = syntax.kinds[at]
        if kind in ("function_declarator", "operator_cast"):
            found = at
        if kind == "qualified_identifier" and found == NONE:
            at = syntax.child(at, "name")
            continue
        if not kind.endswith("_declarator"):
            return found
        inner = syntax.child(at, "declarator")
        at = inner if inner != NONE else _wrapped(syntax, at)
    return found


def _wrapped(syntax: Syntax, node: int) -> int:
    """What parentheses or a reference are around."""
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind.endswith("_declarator") or kind in NAMED:
            return child
    return NONE


def function(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A function that has a body; one without is a prototype and no declaration of its own."""
    syntax = walk.syntax
    own = own_declarator(syntax, node)
    if syntax.child(node, "body", "try_statement") == NONE or own == NONE:
        walk.use(node)
        return True
    name = function_name(syntax, node, own)
    if not name:
        return False
    frame = declare(walk, node, node, FUNCTION, name)
    if "." in name and frame.kind == "function" and _is_qualified(syntax, node, own):
        frame.kind = "method"
    if frame.kind == "method":
        above, _, last = name.rpartition(".")
        around = above.rpartition(".")[2] if above else walk.frame.name.rpartition(".")[2]
        if last == around:
            frame.kind = "constructor"
    return True


def _is_qualified(syntax: Syntax, node: int, own: int) -> bool:
    named = [syntax.child(each, "declarator") for each in (node, own)]
    return any(at != NONE and syntax.kinds[at] == "qualified_identifier" for at in named)


def function_name(syntax: Syntax, node: int, own: int) -> str:
    """The name of a function, dotted; empty for what only looks like one."""
    if syntax.kinds[own] == "operator_cast":
        given, declarator = syntax.child(own, "type"), syntax.child(node, "declarator")
        scope = syntax.data[syntax.starts[declarator] : syntax.starts[own]].decode(
            "utf-8", "replace"
        )
        name = f"operator {syntax.text(given)}" if given != NONE else "operator"
        return f"{plain_name(scope)}.{name}".lstrip(".")
    named = syntax.child(own, "declarator")
    if named == NONE:
        return ""
    text = syntax.text(named)
    name, found, operator = text.rpartition("operator")
    if found:
        return f"{plain_name(name)}.operator{operator}".lstrip(".") if name else text
    name = plain_name(text)
    if name in _KEYWORDS:
        return ""  # What the grammar makes of `else if (x) {` where it has lost its way.
    if name.isupper() and syntax.child(node, "type") == NONE:
        # `TEST(Desk, Opens) { … }` is a macro that makes a function named after both.
        given = syntax.child(own, "parameters")
        words = [syntax.text(child) for child in syntax.children(given)] if given != NONE else []
        if words and all(word.isidentifier() for word in words):
            return ".".join(words)
    return name


def parameters_of(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The parameters and the words after them, if this is the head of a function at hand."""
    syntax, frame = walk.syntax, walk.frame
    at = syntax.parents[node]
    while at != NONE and syntax.kinds[at].endswith("_declarator"):
        at = syntax.parents[at]
    kind = syntax.kinds[at] if at != NONE else ""
    is_head = kind in ("function_definition", "field_declaration") or (
        # A variable that points to a function has parameters too.
        kind == "declaration" and frame.kind == "function" and frame.end == syntax.ends[at]
    )
    is_own = is_head and own_declarator(syntax, at) == node
    if not is_own and kind not in ("lambda_expression", "operator_cast"):
        return False
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if syntax.fields[child] == "parameters":
            parameters(walk, child, None if walk.silent else frame)
        elif kind in _WORDS and not walk.silent:
            frame.modifiers[syntax.text(child)] = None
        elif kind == "trailing_return_type" and not walk.silent:
            frame.types.pop(Typed("return", "", frame.return_type, "annotation"), None)
            frame.return_type = type_text(walk, child)
            add_type(walk, "return", "", frame.return_type, "annotation")
            walk.use(child)
        elif syntax.fields[child] == "declarator":
            if kind.endswith("_declarator"):
                walk.visit(child, None)
        else:
            walk.visit(child, None)
    return True


def is_prototype(syntax: Syntax, node: int) -> bool:
    """Whether a declarator declares a function rather than a pointer to one."""
    while syntax.kinds[node] in ("pointer_declarator", "reference_declarator"):
        inner = _wrapped(syntax, node)
        if inner == NONE:
            return False
        node = inner
    if syntax.kinds[node] != "function_declarator":
        return False
    inner = syntax.child(node, "declarator")
    return inner != NONE and syntax.kinds[inner] != "parenthesized_declarator"


def variables(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A declaration of variables; one at the top that fills lines is a chunk."""
    syntax = walk.syntax
    declarators = [at for at in syntax.children(node) if syntax.fields[at] == "declarator"]
    if len(declarators) == 1 and _is_constant(walk, node, declarators[0]):
        declare(walk, node, node, _CONSTANT, named_in(walk, declarators[0])[0])
        return True
    if syntax.child(node, "value") != NONE and declarators:
        assign(walk, node, flow, _CONDITION)
        return True
    for child in syntax.children(node):
        if child not in declarators or syntax.kinds[child] == "init_declarator":
            walk.visit(child, None)
        elif is_prototype(syntax, child):
            walk.use(child)
        else:
            _note_types(walk, node, child)
    return True


def _is_constant(walk: Walk, node: int, declarator: int) -> bool:
    syntax = walk.syntax
    if walk.frame.kind not in ("module", "namespace") or walk.silent:
        return False
    value = syntax.child(declarator, "value")
    if value == NONE or syntax.kinds[value] in walk.language.closures:
        return False
    lines = syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) + 1
    return lines >= _CONSTANT_LINES and bool(named_in(walk, declarator))


def named_in(walk: Walk, node: int) -> list[str]:
    """The names that a declarator declares."""
    syntax, types = walk.syntax, walk.language.types
    found: list[str] = []
    at = node
    while at < syntax.stops[node]:
        kind = syntax.kinds[at]
        if kind in types or syntax.fields[at] in ("size", "value", "default_value"):
            at = syntax.stops[at]
            continue
        if kind in NAMED:
            found.append(syntax.text(at))
        at += 1
    return found


def _note_types(walk: Walk, node: int, declarator: int) -> None:
    given = walk.syntax.child(node, "type")
    text = type_text(walk, given) if given != NONE else ""
    if not text or text in UNTYPED or "{" in text:
        return
    for name in named_in(walk, declarator):
        add_type(walk, "field" if is_field(walk, name) else "local", name, text, "annotation")


def initialised(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`int *x = y`: the type stands before all declarators."""
    declarator = walk.syntax.child(node, "declarator")
    if declarator != NONE:
        _note_types(walk, walk.syntax.parents[node], declarator)
    return False


def fields(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The fields of a type, and prototypes of its methods.

    One that is `= 0` is all there is of its method.
    """
    syntax = walk.syntax
    declarator = syntax.child(node, "declarator")
    is_pure = NONE not in (declarator, syntax.child(node, "default_value"))
    if is_pure and is_prototype(syntax, declarator):
        own = own_declarator(syntax, node)
        if own != NONE and (name := function_name(syntax, node, own)):
            frame = declare(walk, node, node, _PURE, name)
            frame.modifiers["abstract"] = None
            return True
    for child in syntax.children(node):
        if syntax.fields[child] != "declarator":
            walk.visit(child, None)
        elif is_prototype(syntax, child):
            walk.use(child)
        else:
            _note_types(walk, node, child)
    return True


def specifier(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`struct x` declares something only with a body."""
    syntax = walk.syntax
    if syntax.child(node, "body") == NONE:
        walk.use(node)
        return True
    named = syntax.child(node, "name")
    if named != NONE and syntax.kinds[named] == "template_type":
        # What a template is made special for may hold any expression.
        named = syntax.child(named, "name")
    if named == NONE:
        return False
    declare(walk, node, node, SPECIFIERS[syntax.kinds[node]], plain_name(syntax.text(named)))
    return True


def typedef(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`typedef struct { … } x` is a declaration of `x`."""
    syntax = walk.syntax
    given, declarator = syntax.child(node, "type"), syntax.child(node, "declarator")
    kind = syntax.kinds[given] if given != NONE else ""
    names = named_in(walk, declarator) if declarator != NONE else []
    if kind not in SPECIFIERS or syntax.child(given, "body") == NONE or not names:
        return alias(walk, node, names[0] if names else "")
    frame = declare(walk, node, given, SPECIFIERS[kind], names[0])
    tag = syntax.child(given, "name")
    if tag != NONE:
        frame.uses[syntax.text(tag)] = None
    return True


def alias(walk: Walk, node: int, name: str) -> bool:
    """Another name for a type; one in a type or a function is a detail of that."""
    if name and walk.frame.kind in ("module", "namespace") and not walk.silent:
        declare(walk, node, node, _ALIAS, name)
        walk.frames[-1].uses.pop(name, None)
    else:
        walk.use(node)
    return True


def assigned(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`*x = y` changes what `x` points to."""
    syntax = walk.syntax
    left = syntax.child(node, "left")
    if left != NONE and syntax.kinds[left] == "pointer_expression":
        pointer = syntax.child(left, "argument")
        if pointer != NONE and syntax.kinds[pointer] == "identifier":
            walk.frame.mutates[syntax.text(pointer)] = None
    return assign_or_augment(walk, node, flow)


def case(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`default:` is no branch."""
    if walk.syntax.child(node, "value") != NONE:
        return False
    walk.arm(node, flow)
    return True


def designated(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`.x = 1` names a field of what is made."""
    value = walk.syntax.child(node, "value")
    if value == NONE:
        return False
    walk.visit(value, flow)
    return True


def conditional(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What `#if` asks for is used; what is in it is code like any other."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] in ("name", "condition"):
            walk.use(child)
        else:
            walk.visit(child, None)
    return True


def replacement(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The text of a macro, in which names are only words."""
    syntax, frame = walk.syntax, walk.frame
    for found in _TOKEN.finditer(syntax.data, syntax.starts[node], syntax.ends[node]):
        word = found.group().rstrip(b"( \t").decode()
        if found.group(1) and word not in ("if", "for", "while", "switch", "return", "sizeof"):
            frame.calls[word] = None
        elif word not in frame.params:
            frame.uses[word] = None
    return True


def included(syntax: Syntax, node: int) -> list[str]:
    """`#include`."""
    path = syntax.child(node, "path")
    return [syntax.text(path).strip('<>" ')] if path != NONE else []


def export(walk: Walk) -> None:
    """What other files can link to."""
    for frame in walk.frames:
        is_top = frame.top or (frame.around is not None and frame.around.kind == "namespace")
        if is_top and frame.visibility == "public":
            walk.exports[frame.name] = None
