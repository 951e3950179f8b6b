"""The language table of Ruby.

Much of what is a keyword elsewhere is a call in Ruby: `raise`, `private`, `require`.
"""

from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration, visit_static_members
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.ruby_words import (
    RAISE_WORDS,
    VISIBILITY_SCOPE_KINDS,
    infer_type,
    visit_identifier,
    visit_word_call,
)
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_NAMESPACE_SYNTAX = table.DeclarationSyntax("namespace")
_MIXIN_SYNTAX = table.DeclarationSyntax("trait")
_CREATED_TYPE_SYNTAX = {
    "Struct.new": table.DeclarationSyntax("struct"),
    "Data.define": table.DeclarationSyntax("struct"),
    "Class.new": table.DeclarationSyntax("class"),
    "Module.new": table.DeclarationSyntax("trait"),
}
_ITERATOR_METHODS = kind_set("""
    map map! flat_map collect filter_map select filter reject find detect inject reduce times upto downto step loop
    cycle any? all? find_each sort_by group_by
""")
"""Iterators, in addition to all methods whose names begin with `each`."""

_CONTROL_KINDS = kind_set("if unless case case_match while until for begin")
_VALUELESS_KINDS = kind_set("assignment operator_assignment nil if_modifier") | kind_set("""
    unless_modifier while_modifier until_modifier return comment yield ensure rescue else
""")

_TARGET_LIST_KINDS = ("left_assignment_list", "destructured_left_assignment", "rest_assignment")


def _mark_assigned_members(syntax: SyntaxTree) -> None:
    """Mark `a.b` in a list of targets, which is written like a call, as a member."""
    for node, kind in enumerate(syntax.kinds):
        if kind == "call" and syntax.kinds[syntax.parents[node]] in _TARGET_LIST_KINDS:
            syntax.kinds[node] = "assigned_member"


def _adjust_name(_walk: SyntaxWalker, _header: int, frame: Frame) -> None:
    """Name `class Shop::Desk` like `Desk` in `module Shop`."""
    if "::" in frame.name:
        name = frame.name.replace("::", ".").strip(".")
        frame.qualified_name = frame.qualified_name.removesuffix(frame.name) + name
        frame.name = name


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    is_method = frame.kind in ("method", "function")
    if frame.signature.startswith(("def self.", "def ::")) and is_method:
        frame.modifiers["static"] = None
    if not is_method or "static" in frame.modifiers or not frame.visibility:
        is_visible = parent.parent is None or parent.kind in VISIBILITY_SCOPE_KINDS
        frame.visibility = "public" if is_visible else ""
    if frame.kind == "method" and frame.name == "initialize":
        frame.kind = "constructor"


def _visit_module(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a module; one with methods is a mixin, any other only a namespace."""
    syntax = walk.syntax
    name_node, body = syntax.find_child(node, "name"), syntax.find_child(node, "body")
    if name_node == NO_NODE:
        return False
    is_mixin = any(syntax.kinds[child] == "method" for child in syntax.children(body))
    read_declaration(walk, node, node, _MIXIN_SYNTAX if is_mixin else _NAMESPACE_SYNTAX, syntax.text(name_node))
    return True


def _visit_singleton_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `class << self`, whose contents belong to the class itself."""
    saved_visibility, walk.frame.section_visibility = walk.frame.section_visibility, ""
    visit_static_members(walk, node, None)
    walk.frame.section_visibility = saved_visibility


def _visit_block(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a block; the block of an iterator is a loop whose parameters receive the elements."""
    syntax = walk.syntax
    saved_calls, walk.calls = walk.calls, []
    call_node = syntax.parents[node]
    method = syntax.find_child(call_node, "method")
    names: list[str] = []
    parameters_node = syntax.find_child(node, "parameters")
    if NO_NODE not in (method, parameters_node):
        assignments.collect_targets(walk, parameters_node, names)
    if syntax.text(method) in _ITERATOR_METHODS or syntax.text(method).startswith("each"):
        walk.frame.loops += 1
        value, receiver = ValueFlow(), syntax.find_child(call_node, "receiver")
        if syntax.kinds[receiver] in walk.language.names:
            value.names.append(syntax.text(receiver))
        walk.record_step(node, names, value)
    body = syntax.find_child(node, "body")
    if body != NO_NODE:
        walk.visit_arm(body, None)
    walk.calls = saved_calls


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an assignment; `a.b = c` looks like a call, `A = Struct.new(:x)` declares a type."""
    syntax = walk.syntax
    left_node, right_node = syntax.find_child(node, "left"), syntax.find_child(node, "right")
    if NO_NODE in (left_node, right_node):
        return False
    if syntax.kinds[left_node] == "constant" and syntax.kinds[right_node] == "call":
        receiver, method = syntax.find_child(right_node, "receiver"), syntax.find_child(right_node, "method")
        if NO_NODE not in (receiver, method):
            row = _CREATED_TYPE_SYNTAX.get(f"{syntax.text(receiver)}.{syntax.text(method)}")
            if row is not None:
                _read_created_type(walk, read_declaration(walk, node, node, row, syntax.text(left_node)), right_node)
                return True
    if syntax.kinds[left_node] != "call":
        return False
    receiver, method = syntax.find_child(left_node, "receiver"), syntax.find_child(left_node, "method")
    if NO_NODE in (receiver, method):
        return False
    saved_calls, walk.calls = walk.calls, []
    walk.visit(right_node, value := ValueFlow())
    name = f"{walk.read_name(receiver, ValueFlow())}.{syntax.text(method)}"
    walk.frame.writes[name] = walk.frame.mutates[name] = None
    if syntax.kinds[node] == "operator_assignment":
        walk.frame.reads[name] = None
        value.names.append(name)
    elif syntax.kinds[right_node] in walk.language.names:
        walk.frame.aliases[f"{name}={syntax.text(right_node)}"] = None
    walk.record_step(node, [name], value)
    walk.calls = saved_calls
    if flow is not None:
        flow.names.append(name)
    return True


def _read_created_type(walk: SyntaxWalker, frame: Frame, call_node: int) -> None:
    """Read the arguments of a created type: the base of a class, the fields of a struct."""
    syntax = walk.syntax
    block, arguments_node = syntax.find_child(call_node, "block"), syntax.find_child(call_node, "arguments")
    if block != NO_NODE:
        header = syntax.data[frame.start : syntax.starts[block]].decode("utf-8", "replace")
        frame.signature = " ".join(header.split())
    for child in syntax.children(arguments_node):
        if syntax.kinds[child] == "simple_symbol":
            frame.params.append(syntax.text(child).lstrip(":"))
        elif frame.kind == "class":
            frame.bases.append(syntax.text(child))


def _visit_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit the body of a method, which returns its last expression."""
    syntax = walk.syntax
    if syntax.kinds[syntax.parents[node]] not in ("method", "singleton_method") or walk.closure_depth:
        return False
    children = list(syntax.children(node))
    for child in children[:-1]:
        walk.visit(child, None)
    for last in children[-1:]:
        kind = syntax.kinds[last]
        if kind in _VALUELESS_KINDS or kind in _CONTROL_KINDS or _is_valueless(walk, last):
            walk.visit(last, None)
        else:
            walk.frame.returns = True
            walk.visit_returned(last)
    return True


def _is_valueless(walk: SyntaxWalker, node: int) -> bool:
    syntax = walk.syntax
    if walk.frame.name.rpartition(".")[2] == "initialize":
        return True
    if syntax.kinds[node] == "identifier":
        return syntax.text(node) in RAISE_WORDS
    method = syntax.text(syntax.find_child(node, "method"))
    return method in (*RAISE_WORDS, "puts", "print", "p", "loop", "each")


def _visit_intrinsic(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit backticks, `yield` and `super` as calls."""
    if flow is None:
        walk.visit_as_statement(_visit_intrinsic, node)
        return
    kind = walk.syntax.kinds[node]
    walk.visit_children(node, argument_flow := ValueFlow())
    walk.record_call(node, "`" if kind == "subshell" else kind, [argument_flow.to_argument()], flow)


def _visit_rescue(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a `rescue`, whose variable receives the exception."""
    walk.frame.branches += 1
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] == "variable":
            assignments.collect_targets(walk, child, [])
        elif syntax.fields[child] == "exceptions":
            walk.record_uses(child)
        else:
            walk.visit_arms([child])


def _visit_in_clause(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a pattern, whose names receive what they match."""
    syntax = walk.syntax
    pattern = syntax.find_child(node, "pattern")
    if pattern == NO_NODE or syntax.kinds[node] != "in_clause":
        return False
    for descendant in range(pattern, syntax.stops[pattern]):
        if syntax.kinds[descendant] == "identifier":
            walk.frame.writes[syntax.text(descendant)] = None
        elif syntax.kinds[descendant] == "constant":
            walk.frame.uses[syntax.text(descendant)] = None
    walk.frame.branches += 1
    walk.visit_arms(child for child in syntax.children(node) if child != pattern)
    return True


RUBY = table.Language(
    id="ruby",
    grammar="tree_sitter_ruby",
    declares={
        "class": table.DeclarationSyntax("class", bases=kind_set("superclass")),
        "module": _NAMESPACE_SYNTAX,
        "method singleton_method": table.DeclarationSyntax("function", inside="method"),
        "assignment": table.DeclarationSyntax("constant", name=("left",), lines=3, top=True),
    },
    carriers={"assignment": table.CarrierSyntax("left", "right")},
    closures=kind_set("lambda"),
    endless=kind_set("method singleton_method"),
    parameters={
        "optional_parameter keyword_parameter splat_parameter hash_splat_parameter": table.ParameterSyntax(),
        "block_parameter": table.ParameterSyntax(),
    },
    begin=_adjust_name,
    settle=_adjust_declaration,
    doc_comments=("# ", "#\n", "##", "#\t"),
    names=kind_set("identifier constant instance_variable class_variable global_variable self"),
    members={"scope_resolution": ("scope", "name"), "assigned_member": ("receiver", "method")},
    joints={"scope_resolution": "::"},
    indexes={"element_reference": "object"},
    calls={"call": table.CallSyntax(function=("method",), receiver=("receiver",))},
    keywords={"pair": ("key", "value")},
    transparent=kind_set("parenthesized_statements"),
    assigns={
        "assignment": table.AssignmentSyntax(),
        "operator_assignment": table.AssignmentSyntax(augmented=True),
        "for": table.AssignmentSyntax(left="pattern", right="value", loop=True),
    },
    targets=kind_set("left_assignment_list destructured_parameter"),
    texts=kind_set("string_content heredoc_content simple_symbol"),
    literals={
        "string heredoc_beginning": "String",
        "integer": "Integer",
        "float": "Float",
        "true false": "Boolean",
        "array string_array symbol_array": "Array",
        "hash": "Hash",
        "simple_symbol": "Symbol",
        "regex": "Regexp",
        "range": "Range",
        "lambda": "Proc",
    },
    verdicts={"binary": table.COMPARISON_OPERATORS, "unary": kind_set("! not")},
    choices={"conditional if unless": ("condition",), "case": ("value",)},
    made=infer_type,
    lists=kind_set("argument_list"),
    nothing=kind_set("nil"),
    returns=kind_set("return"),
    branches=kind_set("if elsif unless if_modifier unless_modifier conditional rescue_modifier"),
    cases=kind_set("when"),
    loops=kind_set("for while until while_modifier until_modifier"),
    breaks=kind_set("break"),
    continues=kind_set("next"),
    ignored=kind_set("undef hash_key_symbol"),
    hooks={
        "module": _visit_module,
        "singleton_class": _visit_singleton_class,
        "identifier": visit_identifier,
        "call": visit_word_call,
        "block do_block": _visit_block,
        "assignment operator_assignment": _visit_assignment,
        "body_statement": _visit_body,
        "subshell yield super": _visit_intrinsic,
        "rescue": _visit_rescue,
        "in_clause": _visit_in_clause,
    },
    prepare=_mark_assigned_members,
    finish=SyntaxWalker.export_public,
)
