"""Declarators of C and C++, which nest the name inside the rest of the declaration.

In `int *(*f(int a))[3]` the name is `f`, the parameter `a`, and everything else is type. The hooks
here find names and parameters in such declarators, and distinguish a function from its prototype.
"""

import re

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import is_constant_chunk, read_declaration, read_parameters
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

FUNCTION_SYNTAX = table.DeclarationSyntax("function", inside="method", parameters=(), result=("type",))
NAME_KINDS = kind_set("identifier field_identifier type_identifier")
SPECIFIER_SYNTAX = {
    "struct_specifier": table.DeclarationSyntax("struct", bases=kind_set("base_class_clause")),
    "class_specifier": table.DeclarationSyntax("class", bases=kind_set("base_class_clause")),
    "union_specifier": table.DeclarationSyntax("struct"),
    "enum_specifier": table.DeclarationSyntax("enum"),
}
_PURE_METHOD_SYNTAX = table.DeclarationSyntax("method", parameters=(), result=("type",), body=("default_value",))
_CONSTANT_SYNTAX = table.DeclarationSyntax("constant", parameters=(), body=())
_ALIAS_SYNTAX = table.DeclarationSyntax("type", parameters=(), result=(), body=())
_SUFFIX_MODIFIER_KINDS = ("virtual_specifier", "type_qualifier", "noexcept")
_STATEMENT_KEYWORDS = ("if", "else", "for", "while", "switch", "return", "sizeof", "catch")
_TEMPLATE_ARGUMENTS_PATTERN = re.compile(r"<[^<>]*>")
_WORD_PATTERN = re.compile(rb"[A-Za-z_]\w*(\s*\()?")
_CONDITION_ASSIGNMENT = table.AssignmentSyntax(left="declarator", right="value", type="no type")


def strip_template_arguments(text: str) -> str:
    """Return a dotted name without template arguments: `Box.pull` for `Box<T>::pull`."""
    text = " ".join(text.split())
    previous = ""
    while text != previous:
        previous, text = text, _TEMPLATE_ARGUMENTS_PATTERN.sub("", text)
    parts = (part.strip().removeprefix("inline ") for part in text.split("::"))
    return ".".join(part for part in parts if part)[:200]


def find_function_declarator(syntax: SyntaxTree, node: int) -> int:
    """Return the declarator with the name and parameters of a function, or `NO_NODE`."""
    declarator = syntax.find_child(node, "declarator")
    function_declarator = NO_NODE
    while declarator != NO_NODE:
        if (kind := syntax.kinds[declarator]) in ("function_declarator", "operator_cast"):
            function_declarator = declarator
        if kind == "qualified_identifier" and function_declarator == NO_NODE:
            declarator = syntax.find_child(declarator, "name")
            continue
        if not kind.endswith("_declarator"):
            return function_declarator
        inner = syntax.find_child(declarator, "declarator")
        declarator = inner if inner != NO_NODE else _find_wrapped_declarator(syntax, declarator)
    return function_declarator


def _find_wrapped_declarator(syntax: SyntaxTree, node: int) -> int:
    kinds = ((child, syntax.kinds[child]) for child in syntax.children(node))
    return next((child for child, kind in kinds if kind.endswith("_declarator") or kind in NAME_KINDS), NO_NODE)


def visit_function(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a function with a body; one without is a prototype and not a separate declaration."""
    declarator = find_function_declarator(walk, node)
    if walk.find_child(node, "body", "try_statement") == NO_NODE or declarator == NO_NODE:
        walk.record_uses(node)
        return True
    if not (name := read_function_name(walk, node, declarator)):
        return False
    frame = read_declaration(walk, node, node, FUNCTION_SYNTAX, name)
    name_kinds = [walk.kinds[walk.find_child(parent, "declarator")] for parent in (node, declarator)]
    if "." in name and frame.kind == "function" and "qualified_identifier" in name_kinds:
        frame.kind = "method"
    if frame.kind == "method":
        scope, _, last_name = name.rpartition(".")
        type_name = scope.rpartition(".")[2] if scope else walk.frame.name.rpartition(".")[2]
        if last_name == type_name:
            frame.kind = "constructor"
    return True


def read_function_name(syntax: SyntaxTree, node: int, function_declarator: int) -> str:
    """Return the dotted name of a function; empty for a node that only looks like one."""
    if syntax.kinds[function_declarator] == "operator_cast":
        detail_node, declarator = syntax.find_child(function_declarator, "type"), syntax.find_child(node, "declarator")
        scope = syntax.data[syntax.starts[declarator] : syntax.starts[function_declarator]].decode("utf-8", "replace")
        name = f"operator {syntax.text(detail_node)}" if detail_node != NO_NODE else "operator"
        return f"{strip_template_arguments(scope)}.{name}".lstrip(".")
    if (name_node := syntax.find_child(function_declarator, "declarator")) == NO_NODE:
        return ""
    text = syntax.text(name_node)
    name, separator, operator = text.rpartition("operator")
    if separator:
        return f"{strip_template_arguments(name)}.operator{operator}".lstrip(".") if name else text
    if (name := strip_template_arguments(text)) in _STATEMENT_KEYWORDS:
        return ""  # After a syntax error the grammar can take `else if (x) {` for a function.
    if name.isupper() and syntax.find_child(node, "type") == NO_NODE:
        # `TEST(Desk, Opens) { … }` is a macro that defines a function named after both.
        detail_node = syntax.find_child(function_declarator, "parameters")
        words = [syntax.text(child) for child in syntax.children(detail_node)]
        if words and all(word.isidentifier() for word in words):
            return ".".join(words)
    return name


def visit_function_declarator(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Read the parameters and trailing modifiers if this is the header of the current function."""
    frame = walk.frame
    owner = walk.parents[node]
    while walk.kinds[owner].endswith("_declarator"):
        owner = walk.parents[owner]
    kind = walk.kinds[owner]
    is_head = kind in ("function_definition", "field_declaration") or (
        # A variable that points to a function has parameters too.
        kind == "declaration" and frame.kind == "function" and frame.end == walk.ends[owner]
    )
    is_own = is_head and find_function_declarator(walk, owner) == node
    if not is_own and kind not in ("lambda_expression", "operator_cast"):
        return False
    for child in walk.children(node):
        kind = walk.kinds[child]
        if walk.fields[child] == "parameters":
            read_parameters(walk, child, None if walk.closure_depth else frame)
        elif kind in _SUFFIX_MODIFIER_KINDS and not walk.closure_depth:
            frame.modifiers[walk.text(child)] = None
        elif kind == "trailing_return_type" and not walk.closure_depth:
            frame.types.pop(TypeFact("return", "", frame.return_type, "annotation"), None)
            frame.return_type = assignments.read_type(walk, child)
            assignments.record_type(walk, "return", "", frame.return_type, "annotation")
            walk.record_uses(child)
        elif walk.fields[child] == "declarator":
            if kind.endswith("_declarator"):
                walk.visit(child, None)
        else:
            walk.visit(child, None)
    return True


def is_prototype(syntax: SyntaxTree, node: int) -> bool:
    """Return whether a declarator declares a function rather than a pointer to one."""
    while syntax.kinds[node] in ("pointer_declarator", "reference_declarator"):
        node = _find_wrapped_declarator(syntax, node)
    if syntax.kinds[node] != "function_declarator":
        return False
    inner = syntax.find_child(node, "declarator")
    return inner != NO_NODE and syntax.kinds[inner] != "parenthesized_declarator"


def visit_variables(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a declaration of variables; a long one at the top level is a chunk."""
    declarator_nodes = [child_node for child_node in walk.children(node) if walk.fields[child_node] == "declarator"]
    if len(declarator_nodes) == 1 and _is_constant(walk, node, declarator_nodes[0]):
        read_declaration(walk, node, node, _CONSTANT_SYNTAX, collect_declared_names(walk, declarator_nodes[0])[0])
    elif walk.find_child(node, "value") != NO_NODE and declarator_nodes:
        assignments.visit_assignment(walk, node, flow, _CONDITION_ASSIGNMENT)
    else:
        _visit_declarators(walk, node)


def _visit_declarators(walk: SyntaxWalker, node: int) -> None:
    for child in walk.children(node):
        if walk.fields[child] != "declarator" or walk.kinds[child] == "init_declarator":
            walk.visit(child, None)
        elif is_prototype(walk, child):
            walk.record_uses(child)
        else:
            _record_declarator_types(walk, node, child)


def _is_constant(walk: SyntaxWalker, node: int, declarator: int) -> bool:
    if walk.frame.kind not in ("module", "namespace") or walk.closure_depth:
        return False
    value = walk.find_child(declarator, "value")
    if value == NO_NODE or walk.kinds[value] in walk.language.closures:
        return False
    names = collect_declared_names(walk, declarator)
    return bool(names) and is_constant_chunk(walk, node, names[0])


def collect_declared_names(walk: SyntaxWalker, node: int) -> list[str]:
    """Return the names that a declarator declares."""
    types = walk.language.types
    names: list[str] = []
    descendant = node
    while descendant < walk.stops[node]:
        if (kind := walk.kinds[descendant]) in types or walk.fields[descendant] in ("size", "value", "default_value"):
            descendant = walk.stops[descendant]
            continue
        if kind in NAME_KINDS:
            names.append(walk.text(descendant))
        descendant += 1
    return names


def _record_declarator_types(walk: SyntaxWalker, node: int, declarator: int) -> None:
    type_node = walk.find_child(node, "type")
    if "{" not in assignments.read_type(walk, type_node):
        for name in collect_declared_names(walk, declarator):
            assignments.record_variable_type(walk, name, type_node)


def visit_initializer(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type of `int *x = y`, which is written before all declarators."""
    _record_declarator_types(walk, walk.parents[node], walk.find_child(node, "declarator"))
    return False


def visit_fields(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit the fields of a type and the prototypes of its methods.

    A prototype with `= 0` is the only declaration of its method.
    """
    declarator = walk.find_child(node, "declarator")
    is_pure = NO_NODE not in (declarator, walk.find_child(node, "default_value"))
    if is_pure and is_prototype(walk, declarator):
        function_declarator = find_function_declarator(walk, node)
        if function_declarator != NO_NODE and (name := read_function_name(walk, node, function_declarator)):
            frame = read_declaration(walk, node, node, _PURE_METHOD_SYNTAX, name)
            frame.modifiers["abstract"] = None
            return
    _visit_declarators(walk, node)


def visit_specifier(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `struct x`, which is a declaration only if it has a body."""
    if walk.find_child(node, "body") == NO_NODE:
        walk.record_uses(node)
        return True
    name_node = walk.find_child(node, "name")
    if walk.kinds[name_node] == "template_type":
        # The arguments of a template specialisation may contain any expression.
        name_node = walk.find_child(name_node, "name")
    if name_node == NO_NODE:
        return False
    read_declaration(
        walk, node, node, SPECIFIER_SYNTAX[walk.kinds[node]], strip_template_arguments(walk.text(name_node))
    )
    return True


def visit_typedef(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a typedef: `typedef struct { … } x` declares `x`."""
    type_node, declarator = walk.find_child(node, "type"), walk.find_child(node, "declarator")
    kind, names = walk.kinds[type_node], collect_declared_names(walk, declarator)
    if kind not in SPECIFIER_SYNTAX or walk.find_child(type_node, "body") == NO_NODE or not names:
        return declare_alias(walk, node, names[0] if names else "")
    frame = read_declaration(walk, node, type_node, SPECIFIER_SYNTAX[kind], names[0])
    if (tag := walk.find_child(type_node, "name")) != NO_NODE:
        frame.uses[walk.text(tag)] = None
    return True


def declare_alias(walk: SyntaxWalker, node: int, name: str) -> bool:
    """Declare another name for a type; an alias in a type or a function is a detail of it."""
    if name and walk.frame.kind in ("module", "namespace") and not walk.closure_depth:
        read_declaration(walk, node, node, _ALIAS_SYNTAX, name)
        walk.frames[-1].uses.pop(name, None)
    else:
        walk.record_uses(node)
    return True


def visit_pointer_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an assignment; `*x = y` changes what `x` points to."""
    left_node = walk.find_child(node, "left")
    if walk.kinds[left_node] == "pointer_expression":
        pointer = walk.find_child(left_node, "argument")
        if walk.kinds[pointer] == "identifier":
            walk.frame.mutates[walk.text(pointer)] = None
    return assignments.visit_plain_or_augmented(walk, node, flow)


def visit_designated_initializer(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit the value of `.x = 1`, which names a field of the new object."""
    if (value := walk.find_child(node, "value")) == NO_NODE:
        return False
    walk.visit(value, flow)
    return True


def visit_preprocessor_condition(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `#if`: names in its condition are used, its body is ordinary code."""
    for child in walk.children(node):
        if walk.fields[child] in ("name", "condition"):
            walk.record_uses(child)
        else:
            walk.visit(child, None)


def visit_macro_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the words in the text of a macro as calls and uses."""
    frame = walk.frame
    for match in _WORD_PATTERN.finditer(walk.data, walk.starts[node], walk.ends[node]):
        word = match.group().rstrip(b"( \t").decode()
        if match.group(1) and word not in ("if", "for", "while", "switch", "return", "sizeof"):
            frame.calls[word] = None
        elif word not in frame.params:
            frame.uses[word] = None
