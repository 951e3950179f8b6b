"""The language table of Ruby.

Much of what is a keyword elsewhere is a call in Ruby: `raise`, `private`, `require`.
"""

from cleats.toolsets.code.analysis.facts import CallArgument
from cleats.toolsets.code.analysis.languages.assignments import collect_targets
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.ruby_words import (
    RAISE_WORDS,
    VISIBILITY_SCOPE_KINDS,
    infer_type,
    visit_identifier,
    visit_word_call,
)
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import (
    COMPARISON_OPERATORS,
    AssignmentSyntax,
    CallSyntax,
    CarrierSyntax,
    DeclarationSyntax,
    Language,
    ParameterSyntax,
)
from cleats.toolsets.code.analysis.languages.walk import MAX_TEXT_CHARS, SyntaxWalker, ValueFlow, deduplicate_names

_NAMESPACE_SYNTAX = DeclarationSyntax("namespace")
_MIXIN_SYNTAX = DeclarationSyntax("trait")
_CREATED_TYPE_SYNTAX = {
    "Struct.new": DeclarationSyntax("struct"),
    "Data.define": DeclarationSyntax("struct"),
    "Class.new": DeclarationSyntax("class"),
    "Module.new": DeclarationSyntax("trait"),
}
_ITERATOR_METHODS = frozenset(
    {
        "map",
        "map!",
        "flat_map",
        "collect",
        "filter_map",
        "select",
        "filter",
        "reject",
        "find",
        "detect",
        "inject",
        "reduce",
        "times",
        "upto",
        "downto",
        "step",
        "loop",
        "cycle",
        "any?",
        "all?",
        "find_each",
        "sort_by",
        "group_by",
    }
)
"""Iterators, in addition to all methods whose names begin with `each`."""

_CONTROL_KINDS = frozenset({"if", "unless", "case", "case_match", "while", "until", "for", "begin"})
_VALUELESS_KINDS = frozenset({"assignment", "operator_assignment", "nil", "if_modifier"}) | {
    "unless_modifier",
    "while_modifier",
    "until_modifier",
    "return",
    "comment",
    "yield",
    "ensure",
    "rescue",
    "else",
}

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
    is_mixin = body != NO_NODE and any(syntax.kinds[child] == "method" for child in syntax.children(body))
    read_declaration(walk, node, node, _MIXIN_SYNTAX if is_mixin else _NAMESPACE_SYNTAX, syntax.text(name_node))
    return True


def _visit_singleton_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `class << self`, whose contents belong to the class itself."""
    frame_count, saved_visibility = len(walk.frames), walk.frame.section_visibility
    walk.frame.section_visibility = ""
    walk.visit_children(node, None)
    walk.frame.section_visibility = saved_visibility
    for frame in walk.frames[frame_count:]:
        if frame.parent is walk.frame:
            frame.modifiers["static"] = None
    return True


def _visit_block(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a block; the block of an iterator is a loop whose parameters receive the elements."""
    syntax = walk.syntax
    saved_calls, walk.calls = walk.calls, []
    call_node = syntax.parents[node]
    method = syntax.find_child(call_node, "method") if call_node != NO_NODE else NO_NODE
    names: list[str] = []
    parameters_node = syntax.find_child(node, "parameters")
    if NO_NODE not in (method, parameters_node):
        collect_targets(walk, parameters_node, names)
    if method != NO_NODE and _is_iterator(syntax.text(method)):
        walk.frame.loops += 1
        value, receiver = ValueFlow(), syntax.find_child(call_node, "receiver")
        if receiver != NO_NODE and syntax.kinds[receiver] in walk.language.names:
            value.names.append(syntax.text(receiver))
        walk.record_step(node, names, value)
    body = syntax.find_child(node, "body")
    if body != NO_NODE:
        walk.visit_arm(body, None)
    walk.calls = saved_calls
    return True


def _is_iterator(name: str) -> bool:
    return name in _ITERATOR_METHODS or name.startswith("each")


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
    for child in syntax.children(arguments_node) if arguments_node != NO_NODE else ():
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
    method = syntax.find_child(node, "method")
    return method != NO_NODE and syntax.text(method) in (*RAISE_WORDS, "puts", "print", "p", "loop", "each")


def _visit_intrinsic(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit backticks, `yield` and `super` as calls."""
    if flow is None:
        saved_calls, walk.calls = walk.calls, []
        _visit_intrinsic(walk, node, value := ValueFlow())
        walk.record_step(node, [], value)
        walk.calls = saved_calls
        return True
    kind = walk.syntax.kinds[node]
    walk.visit_children(node, argument_flow := ValueFlow())
    argument = CallArgument(
        deduplicate_names(argument_flow.names), argument_flow.calls, argument_flow.text[:MAX_TEXT_CHARS]
    )
    walk.record_call(node, "`" if kind == "subshell" else kind, [argument], flow)
    return True


def _visit_rescue(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a `rescue`, whose variable receives the exception."""
    walk.frame.branches += 1
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] == "variable":
            collect_targets(walk, child, [])
        elif syntax.fields[child] == "exceptions":
            walk.record_uses(child)
        else:
            walk.visit_arms([child])
    return True


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


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        if frame.is_top_level and frame.visibility == "public":
            walk.exports[frame.name] = None


RUBY = Language(
    id="ruby",
    grammar="tree_sitter_ruby",
    declares={
        "class": DeclarationSyntax("class", bases=frozenset({"superclass"})),
        "module": _NAMESPACE_SYNTAX,
        "method": DeclarationSyntax("function", inside="method"),
        "singleton_method": DeclarationSyntax("function", inside="method"),
        "assignment": DeclarationSyntax("constant", name=("left",), lines=3, top=True),
    },
    carriers={"assignment": CarrierSyntax("left", "right")},
    closures=frozenset({"lambda"}),
    endless=frozenset({"method", "singleton_method"}),
    parameters={
        "optional_parameter": ParameterSyntax(),
        "keyword_parameter": ParameterSyntax(),
        "splat_parameter": ParameterSyntax(),
        "hash_splat_parameter": ParameterSyntax(),
        "block_parameter": ParameterSyntax(),
    },
    begin=_adjust_name,
    settle=_adjust_declaration,
    doc_comments=("# ", "#\n", "##", "#\t"),
    names=frozenset(
        {
            "identifier",
            "constant",
            "instance_variable",
            "class_variable",
            "global_variable",
            "self",
        }
    ),
    members={"scope_resolution": ("scope", "name"), "assigned_member": ("receiver", "method")},
    joints={"scope_resolution": "::"},
    indexes={"element_reference": "object"},
    calls={"call": CallSyntax(function=("method",), receiver=("receiver",))},
    keywords={"pair": ("key", "value")},
    transparent=frozenset({"parenthesized_statements"}),
    assigns={
        "assignment": AssignmentSyntax(),
        "operator_assignment": AssignmentSyntax(augmented=True),
        "for": AssignmentSyntax(left="pattern", right="value", loop=True),
    },
    targets=frozenset({"left_assignment_list", "destructured_parameter"}),
    texts=frozenset({"string_content", "heredoc_content", "simple_symbol"}),
    literals={
        "string": "String",
        "heredoc_beginning": "String",
        "integer": "Integer",
        "float": "Float",
        "true": "Boolean",
        "false": "Boolean",
        "array": "Array",
        "string_array": "Array",
        "symbol_array": "Array",
        "hash": "Hash",
        "simple_symbol": "Symbol",
        "regex": "Regexp",
        "range": "Range",
        "lambda": "Proc",
    },
    verdicts={"binary": COMPARISON_OPERATORS, "unary": frozenset({"!", "not"})},
    choices={
        "conditional": ("condition",),
        "if": ("condition",),
        "unless": ("condition",),
        "case": ("value",),
    },
    made=infer_type,
    lists=frozenset({"argument_list"}),
    nothing=frozenset({"nil"}),
    returns=frozenset({"return"}),
    branches=frozenset(
        {
            "if",
            "elsif",
            "unless",
            "if_modifier",
            "unless_modifier",
            "conditional",
            "rescue_modifier",
        }
    ),
    cases=frozenset({"when"}),
    loops=frozenset({"for", "while", "until", "while_modifier", "until_modifier"}),
    breaks=frozenset({"break"}),
    continues=frozenset({"next"}),
    ignored=frozenset({"undef", "hash_key_symbol"}),
    hooks={
        "module": _visit_module,
        "singleton_class": _visit_singleton_class,
        "identifier": visit_identifier,
        "call": visit_word_call,
        "block": _visit_block,
        "do_block": _visit_block,
        "assignment": _visit_assignment,
        "operator_assignment": _visit_assignment,
        "body_statement": _visit_body,
        "subshell": _visit_intrinsic,
        "yield": _visit_intrinsic,
        "super": _visit_intrinsic,
        "rescue": _visit_rescue,
        "in_clause": _visit_in_clause,
    },
    prepare=_mark_assigned_members,
    finish=_collect_exports,
)
