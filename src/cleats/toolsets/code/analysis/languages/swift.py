"""The language table of Swift.

Its grammar gives statements and calls the same kind, so kinds are distinguished before the walk.
"""

import re

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, swift_patterns, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration, record_return_type
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_TYPE_NODE_KINDS = kind_set("""
    user_type optional_type array_type dictionary_type function_type tuple_type metatype opaque_type existential_type
    protocol_composition_type type_annotation type_pack_expansion
""")
_TRANSFER_KINDS = {
    b"return": "return_statement",
    b"throw": "throw_statement",
    b"break": "break_statement",
    b"continue": "continue_statement",
}
_BASE_KINDS = kind_set("inheritance_specifier")
_CLASS_SYNTAX = {
    "class": table.DeclarationSyntax("class", bases=_BASE_KINDS),
    "actor": table.DeclarationSyntax("class", bases=_BASE_KINDS),
    "struct": table.DeclarationSyntax("struct", bases=_BASE_KINDS),
    "enum": table.DeclarationSyntax("enum", bases=_BASE_KINDS),
    "extension": table.DeclarationSyntax("impl", bases=_BASE_KINDS),
}
_FUNCTION_SYNTAX = table.DeclarationSyntax("function", inside="method", parameters=(), result=())
_MACRO_SYNTAX = table.DeclarationSyntax("macro", name=("simple_identifier",), parameters=(), result=(), body=())
_CONSTRUCTOR_SYNTAX = table.DeclarationSyntax("constructor", parameters=(), result=(), name=())
_PROPERTY_SYNTAX = table.DeclarationSyntax(
    "property", parameters=(), result=(), body=("computed_value", "willset_didset_block")
)
_SUBSCRIPT_SYNTAX = table.DeclarationSyntax("property", parameters=(), result=(), name=(), body=("computed_property",))
_LAMBDA_SYNTAX = table.DeclarationSyntax("function", inside="method", parameters=(), result=(), body=("statements",))
_CONSTANT_SYNTAX = table.DeclarationSyntax("constant", parameters=(), body=())
_BINDING_ASSIGNMENT = table.AssignmentSyntax(left="name", right="value", type="type_annotation")
_PLAIN_ASSIGNMENT = table.AssignmentSyntax(left="target", right="result")
_AUGMENTED_ASSIGNMENT = table.AssignmentSyntax(left="target", right="result", augmented=True)
_CLASS_KEYWORD_PATTERN = re.compile(rb"(?:^|\s)(class|struct|enum|extension|actor)\s*$")
_OPERATOR_NAME_PATTERN = re.compile(rb"func\s+([^\s(<\w]+|[^\s(\w]+)\s*[(<]")


def _split_kinds(syntax: SyntaxTree) -> None:
    """Split kinds that the grammar lumps together: `x[0]` and calls, jumps, parts of `Outer.Inner<Int>()`."""
    kinds, data = syntax.kinds, syntax.data
    for node, kind in enumerate(kinds):
        if kind == "call_suffix" and data[syntax.starts[node]] == ord("["):
            kinds[syntax.parents[node]] = "index_expression"
        elif kind == "control_transfer_statement":
            start = syntax.starts[node]
            for word, transfer_kind in _TRANSFER_KINDS.items():
                if data.startswith(word, start):
                    kinds[node] = transfer_kind
        elif kind == "user_type" and kinds[syntax.parents[node]] == "constructor_expression":
            name_nodes = [child for child in syntax.children(node) if kinds[child] == "type_identifier"]
            syntax.ends[name_nodes[0]] = syntax.ends[name_nodes[-1]]


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if "fileprivate" in frame.modifiers:
        frame.visibility = "private"
    elif "open" in frame.modifiers:
        frame.visibility = "public"
    elif parent.kind == "interface":
        frame.visibility = frame.visibility or parent.visibility
    if frame.visibility or frame.kind == "impl":
        return
    if parent.parent is None or parent.kind in table.TYPE_KINDS:
        inherited = parent.visibility if parent.kind == "impl" else ""
        frame.visibility = inherited or "internal"


def _visit_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a class, struct, enum, actor or extension, which have one kind."""
    syntax = walk.syntax
    name_node = syntax.find_child(node, "name")
    if name_node == NO_NODE:
        return False
    match = _CLASS_KEYWORD_PATTERN.search(syntax.data[syntax.starts[node] : syntax.starts[name_node]])
    word = match.group(1).decode() if match else "class"
    name = " ".join(syntax.text(name_node).partition("<")[0].split())
    if not name:
        return False
    frame = read_declaration(walk, node, node, _CLASS_SYNTAX[word], name)
    if word == "actor":
        frame.modifiers["actor"] = None
    return True


def _visit_function(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    syntax = walk.syntax
    name = syntax.text(syntax.find_child(node, "simple_identifier")).strip("`")
    if not name:
        header = syntax.data[syntax.starts[node] : syntax.ends[node]][:200]
        match = _OPERATOR_NAME_PATTERN.search(header)
        name = match.group(1).decode("utf-8", "replace") if match else ""
    if not name:
        return False
    is_macro = syntax.kinds[node] == "macro_declaration"
    frame = read_declaration(walk, node, node, _MACRO_SYNTAX if is_macro else _FUNCTION_SYNTAX, name)
    _record_return_type(walk, frame, node)
    thrown_type = syntax.find_child(syntax.find_child(node, "throws_clause"), "type")
    if thrown_type != NO_NODE:
        frame.throws[syntax.text(thrown_type)] = None
    return True


def _visit_initializer(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    kind = walk.syntax.kinds[node]
    if kind == "init_declaration":
        read_declaration(walk, node, node, _CONSTRUCTOR_SYNTAX, "init")
    elif kind == "deinit_declaration":
        read_declaration(walk, node, node, _FUNCTION_SYNTAX, "deinit")
    else:
        _record_return_type(walk, read_declaration(walk, node, node, _SUBSCRIPT_SYNTAX, "subscript"), node)


def _record_return_type(walk: SyntaxWalker, frame: Frame, node: int) -> None:
    syntax, result_node = walk.syntax, NO_NODE
    for child in syntax.children(node):
        if syntax.kinds[child] in _TYPE_NODE_KINDS and syntax.fields[child] != "body":
            result_node = child
    record_return_type(walk, frame, result_node)


def _visit_parameter(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a parameter, whose name and type have the same field; callers may use another name."""
    syntax, frame = walk.syntax, walk.frame
    name = ""
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind in _TYPE_NODE_KINDS:
            if name and not walk.closure_depth:
                assignments.record_type(walk, "param", name, assignments.read_type(walk, child), "annotation")
            walk.record_uses(child)
        elif syntax.fields[child] == "name" or kind == "simple_identifier":
            name = syntax.text(child)
    if name and not walk.closure_depth and name not in frame.params:
        frame.params.append(name)


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a property; accessors, a closure or a long top-level value make it a chunk."""
    syntax = walk.syntax
    name_node, value_node = syntax.find_child(node, "name"), syntax.find_child(node, "value")
    name = syntax.text(name_node)
    if not name.isidentifier():
        return False
    type_node = syntax.find_child(node, "type_annotation")
    if syntax.find_child(node, "computed_value", "willset_didset_block") != NO_NODE:
        _record_return_type(walk, read_declaration(walk, node, node, _PROPERTY_SYNTAX, name), node)
    elif syntax.kinds[value_node] == "lambda_literal":
        read_declaration(walk, node, value_node, _LAMBDA_SYNTAX, name)
    elif walk.frame is walk.module and syntax.count_lines(node) >= table.MIN_CONSTANT_LINES:
        frame = read_declaration(walk, node, node, _CONSTANT_SYNTAX, name)
        if type_node != NO_NODE:
            frame.types[TypeFact("local", name, assignments.read_type(walk, type_node), "annotation")] = None
    else:
        assignments.visit_assignment(walk, node, flow, _BINDING_ASSIGNMENT)
    return True


def _visit_binding(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    if walk.syntax.kinds[walk.syntax.parents[node]] != "property_declaration":
        return False
    assignments.collect_targets(walk, node, [], is_written=False)
    return True


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    syntax = walk.syntax
    left_node, right_node = syntax.find_child(node, "target"), syntax.find_child(node, "result")
    if NO_NODE in (left_node, right_node):
        return False
    is_plain = syntax.data[syntax.ends[left_node] : syntax.starts[right_node]].strip() == b"="
    assignments.visit_assignment(walk, node, flow, _PLAIN_ASSIGNMENT if is_plain else _AUGMENTED_ASSIGNMENT)
    return True


def _visit_statements(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit statements; a body that is one expression returns it."""
    syntax = walk.syntax
    first_child, body = node + 1, syntax.parents[node]
    if first_child >= syntax.stops[node] or syntax.stops[first_child] != syntax.stops[node] or walk.closure_depth:
        return False
    kind, body_kind = syntax.kinds[first_child], syntax.kinds[body]
    is_value = kind.endswith(("_expression", "_literal")) or kind == "simple_identifier"
    if not is_value or body_kind not in ("function_body", "computed_property", "computed_getter"):
        return False
    if body_kind == "function_body":
        header = syntax.data[syntax.starts[syntax.parents[body]] : syntax.starts[body]]
        if b"->" not in header:
            return False
    walk.frame.returns = True
    walk.visit_returned(first_child)
    return True


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        frame.calls.pop("defer", None)
    walk.export_public("impl")


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    path = syntax.find_child(node, "identifier")
    return ["".join(syntax.text(path).split())] if path != NO_NODE else []


SWIFT = table.Language(
    id="swift",
    grammar="tree_sitter_swift",
    declares={
        "class_declaration": _CLASS_SYNTAX["class"],
        "protocol_declaration": table.DeclarationSyntax("interface", bases=_BASE_KINDS),
        "function_declaration protocol_function_declaration": _FUNCTION_SYNTAX,
        "macro_declaration": _MACRO_SYNTAX,
        "typealias_declaration": table.DeclarationSyntax("type", body=()),
    },
    closures=kind_set("lambda_literal"),
    decorators=kind_set("attribute"),
    modifiers={
        "async": "async",
        "throws throws_clause": "throws",
        "visibility_modifier member_modifier property_modifier mutation_modifier inheritance_modifier": "",
        "function_modifier ownership_modifier parameter_modifier": "",
    },
    modifier_lists=kind_set("modifiers"),
    settle=_set_visibility,
    void=kind_set("Void () Never"),
    names=kind_set("simple_identifier self_expression super_expression"),
    type_names=kind_set("type_identifier"),
    members={"navigation_expression": ("target", "suffix")},
    indexes={"index_expression": ""},
    calls={
        "call_expression": table.CallSyntax(
            function=(
                "simple_identifier",
                "navigation_expression",
                "call_expression",
                "index_expression",
                "self_expression",
                "super_expression",
                "prefix_expression",
                "postfix_expression",
            ),
            arguments=("call_suffix",),
        ),
        # Only where the type has arguments: `Set<String>()`.
        "constructor_expression": table.CallSyntax(function=("constructed_type",), arguments=("constructor_suffix",)),
    },
    suffixes=kind_set("call_suffix constructor_suffix"),
    keywords={"value_argument": ("name", "value")},
    transparent=kind_set("""
        navigation_suffix postfix_expression prefix_expression as_expression await_expression try_expression
        tuple_expression user_type
    """),
    assigns={
        "assignment": _PLAIN_ASSIGNMENT,
        "property_declaration protocol_property_declaration": _BINDING_ASSIGNMENT,
        "for_statement": table.AssignmentSyntax(left="item", right="collection", loop=True),
    },
    types=_TYPE_NODE_KINDS | {"type_arguments", "type_parameters", "type_constraints", "enum_type_parameters"},
    texts=kind_set("line_str_text multi_line_str_text raw_str_part"),
    literals={
        "line_string_literal multi_line_string_literal raw_string_literal": "String",
        "integer_literal hex_literal": "Int",
        "real_literal": "Double",
        "boolean_literal": "Bool",
        "array_literal": "Array",
        "dictionary_literal": "Dictionary",
    },
    casts={"as_expression": ""},
    verdicts=dict.fromkeys(("equality_expression", "comparison_expression", "check_expression"), frozenset()),
    choices={"ternary_expression": ("condition",), "switch_statement": ("expr",)},
    nothing=kind_set("nil_literal"),
    panics=kind_set("fatalError preconditionFailure"),
    awaits=kind_set("await_expression"),
    branches=kind_set("ternary_expression"),
    arms=kind_set("statements"),
    cases=kind_set("switch_entry"),
    loops=kind_set("for_statement repeat_while_statement"),
    comments=kind_set("comment multiline_comment"),
    imports={"import_declaration": _read_imports},
    # Operators that are nodes, and would be the first child of `!list.has(x)` and `try f().x`.
    unseen=kind_set("bang try_operator"),
    ignored=kind_set("""
        directive statement_label availability_condition diagnostic macro_definition break_statement continue_statement
    """),
    hooks={
        "class_declaration": _visit_class,
        "function_declaration protocol_function_declaration macro_declaration": _visit_function,
        "init_declaration deinit_declaration subscript_declaration": _visit_initializer,
        "parameter lambda_parameter": _visit_parameter,
        "property_declaration": _visit_property,
        "pattern": _visit_binding,
        "assignment": _visit_assignment,
        "statements": _visit_statements,
        "throw_statement": swift_patterns.visit_throw,
        "enum_entry": swift_patterns.visit_enum_cases,
        "await_expression": swift_patterns.visit_await,
        "switch_entry": swift_patterns.visit_switch_entry,
        "switch_pattern": swift_patterns.visit_switch_pattern,
        "catch_block": swift_patterns.visit_catch,
        "if_statement guard_statement while_statement": swift_patterns.visit_conditions,
    },
    prepare=_split_kinds,
    ease=grammar_workarounds.rewrite_swift,
    finish=_collect_exports,
)
