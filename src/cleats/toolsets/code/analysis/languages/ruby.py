"""The language table of Ruby.

Much of what is a keyword elsewhere is a call in Ruby: `raise`, `private`, `require`.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration, visit_static_members
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_VISIBILITY_WORDS = {
    "private": "private",
    "protected": "protected",
    "public": "public",
    "private_class_method": "private",
    "public_class_method": "public",
    "private_constant": "private",
}
_REFINEMENT_SYNTAX = table.DeclarationSyntax("impl", parameters=(), body=("block",))
_RAISE_WORDS = ("raise", "fail")
_RAISE_METHOD_PATTERN = re.compile(rb"\bdef (?:self\.)?(raise|fail)(?![\w?!=])")
_VISIBILITY_SCOPE_KINDS = table.TYPE_KINDS | {"namespace"}
"""Kinds of chunks in which a visibility can be declared."""
_NAMESPACE_SYNTAX = table.DeclarationSyntax("namespace")
_MIXIN_SYNTAX = table.DeclarationSyntax("trait")
_CREATED_TYPE_SYNTAX = {
    **dict.fromkeys(("Struct.new", "Data.define"), table.DeclarationSyntax("struct")),
    "Class.new": table.DeclarationSyntax("class"),
    "Module.new": _MIXIN_SYNTAX,
}
_ITERATOR_METHODS = kind_set("""map map! flat_map collect filter_map select filter reject find detect inject reduce
    times upto downto step loop cycle any? all? find_each sort_by group_by""")
"""Iterators, in addition to all methods whose names begin with `each`."""

_CONTROL_KINDS = kind_set("if unless case case_match while until for begin")
_VALUELESS_KINDS = kind_set("""assignment operator_assignment nil if_modifier unless_modifier while_modifier
    until_modifier return comment yield ensure rescue else""")

_TARGET_LIST_KINDS = ("left_assignment_list", "destructured_left_assignment", "rest_assignment")


def _mark_assigned_members(syntax: SyntaxTree) -> None:
    """Mark `a.b` in a list of targets, which is written like a call, as a member."""
    for node, kind in enumerate(syntax.kinds):
        if kind == "call" and syntax.kinds[syntax.parents[node]] in _TARGET_LIST_KINDS:
            syntax.kinds[node] = "assigned_member"


def _adjust_name(_walk: SyntaxWalker, _header: int, frame: Frame) -> None:
    """Name `class Shop::Desk` like `Desk` in `module Shop`."""
    if "::" in frame.name:
        frame.rename(frame.name.replace("::", ".").strip("."))


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    is_method = frame.kind in ("method", "function")
    if frame.signature.startswith(("def self.", "def ::")) and is_method:
        frame.modifiers["static"] = None
    if not is_method or "static" in frame.modifiers or not frame.visibility:
        is_visible = parent.parent is None or parent.kind in _VISIBILITY_SCOPE_KINDS
        frame.visibility = "public" if is_visible else ""
    if frame.kind == "method" and frame.name == "initialize":
        frame.kind = "constructor"


def _visit_module(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a module; one with methods is a mixin, any other only a namespace."""
    name_node, body = walk.find_child(node, "name"), walk.find_child(node, "body")
    if name_node == NO_NODE:
        return False
    is_mixin = any(walk.kinds[child] == "method" for child in walk.children(body))
    read_declaration(walk, node, node, _MIXIN_SYNTAX if is_mixin else _NAMESPACE_SYNTAX, walk.text(name_node))
    return True


def _visit_singleton_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `class << self`, whose contents belong to the class itself."""
    saved_visibility, walk.frame.section_visibility = walk.frame.section_visibility, ""
    visit_static_members(walk, node, None)
    walk.frame.section_visibility = saved_visibility


def _visit_block(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a block; the block of an iterator is a loop whose parameters receive the elements."""
    saved_calls, walk.calls = walk.calls, []
    call_node = walk.parents[node]
    method = walk.find_child(call_node, "method")
    names: list[str] = []
    parameters_node = walk.find_child(node, "parameters")
    if NO_NODE not in (method, parameters_node):
        assignments.collect_targets(walk, parameters_node, names)
    if walk.text(method) in _ITERATOR_METHODS or walk.text(method).startswith("each"):
        walk.frame.loops += 1
        value, receiver = ValueFlow(), walk.find_child(call_node, "receiver")
        if walk.kinds[receiver] in walk.language.names:
            value.names.append(walk.text(receiver))
        walk.record_step(node, names, value)
    if (body := walk.find_child(node, "body")) != NO_NODE:
        walk.visit_arm(body, None)
    walk.calls = saved_calls


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an assignment; `a.b = c` looks like a call, `A = Struct.new(:x)` declares a type."""
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    if NO_NODE in (left_node, right_node):
        return False
    if walk.kinds[left_node] == "constant" and walk.kinds[right_node] == "call":
        receiver, method = walk.find_child(right_node, "receiver"), walk.find_child(right_node, "method")
        if row := _CREATED_TYPE_SYNTAX.get(f"{walk.text(receiver)}.{walk.text(method)}"):
            _read_created_type(walk, read_declaration(walk, node, node, row, walk.text(left_node)), right_node)
            return True
    if walk.kinds[left_node] != "call":
        return False
    receiver, method = walk.find_child(left_node, "receiver"), walk.find_child(left_node, "method")
    if NO_NODE in (receiver, method):
        return False
    targets: list[str] = []
    with walk.open_step(node, targets) as value:
        walk.visit(right_node, value)
        name = f"{walk.read_name(receiver, ValueFlow())}.{walk.text(method)}"
        walk.frame.writes[name] = walk.frame.mutates[name] = None
        if walk.kinds[node] == "operator_assignment":
            walk.record_read(name, value)
        elif walk.kinds[right_node] in walk.language.names:
            walk.frame.aliases[f"{name}={walk.text(right_node)}"] = None
        targets.append(name)
    if flow is not None:
        flow.names.append(name)
    return True


def _read_created_type(walk: SyntaxWalker, frame: Frame, call_node: int) -> None:
    """Read the arguments of a created type: the base of a class, the fields of a struct."""
    block, arguments_node = walk.find_child(call_node, "block"), walk.find_child(call_node, "arguments")
    if block != NO_NODE:
        header = walk.data[frame.start : walk.starts[block]].decode("utf-8", "replace")
        frame.signature = " ".join(header.split())
    for child in walk.children(arguments_node):
        if walk.kinds[child] == "simple_symbol":
            frame.params.append(walk.text(child).lstrip(":"))
        elif frame.kind == "class":
            frame.bases.append(walk.text(child))


def _visit_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit the body of a method, which returns its last expression."""
    if walk.kinds[walk.parents[node]] not in ("method", "singleton_method") or walk.closure_depth:
        return False
    children = list(walk.children(node))
    walk.visit_all(children[:-1])
    for last in children[-1:]:
        if (kind := walk.kinds[last]) in _VALUELESS_KINDS or kind in _CONTROL_KINDS or _is_valueless(walk, last):
            walk.visit(last, None)
        else:
            walk.frame.returns = True
            walk.visit_returned(last)
    return True


def _is_valueless(walk: SyntaxWalker, node: int) -> bool:
    if walk.frame.name.rpartition(".")[2] == "initialize":
        return True
    if walk.kinds[node] == "identifier":
        return walk.text(node) in _RAISE_WORDS
    method = walk.text(walk.find_child(node, "method"))
    return method in (*_RAISE_WORDS, "puts", "print", "p", "loop", "each")


def _visit_intrinsic(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit backticks, `yield` and `super` as calls."""
    if flow is None:
        walk.visit_as_statement(_visit_intrinsic, node)
        return
    kind = walk.kinds[node]
    walk.visit_children(node, argument_flow := ValueFlow())
    walk.record_call(node, "`" if kind == "subshell" else kind, [argument_flow.to_argument()], flow)


def _visit_rescue(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a `rescue`, whose variable receives the exception."""
    walk.frame.branches += 1
    for child in walk.children(node):
        if walk.fields[child] == "variable":
            assignments.collect_targets(walk, child, [])
        elif walk.fields[child] == "exceptions":
            walk.record_uses(child)
        else:
            walk.visit_arms([child])


def _visit_in_clause(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a pattern, whose names receive what they match."""
    if (pattern := walk.find_child(node, "pattern")) == NO_NODE or walk.kinds[node] != "in_clause":
        return False
    for descendant in range(pattern, walk.stops[pattern]):
        if walk.kinds[descendant] == "identifier":
            walk.frame.writes[walk.text(descendant)] = None
        elif walk.kinds[descendant] == "constant":
            walk.frame.uses[walk.text(descendant)] = None
    walk.frame.branches += 1
    walk.visit_arms(child for child in walk.children(node) if child != pattern)
    return True


def _visit_identifier(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a name alone, which may set a visibility or be a call without arguments."""
    name, frame = walk.text(node), walk.frame
    if name in _VISIBILITY_WORDS and frame.kind in _VISIBILITY_SCOPE_KINDS:
        frame.section_visibility = _VISIBILITY_WORDS[name]
        return True
    if name in _RAISE_WORDS:
        return True
    if flow is None and name not in frame.params and name not in frame.writes:
        with walk.open_step(node, []) as value:
            walk.record_call(node, name, [], value)
        return True
    return False


def _visit_word_call(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a call of a word with a special meaning."""
    if (method := walk.find_child(node, "method")) == NO_NODE or walk.find_child(node, "receiver") != NO_NODE:
        return False
    name, arguments = walk.text(method), walk.find_child(node, "arguments")
    if arguments == NO_NODE:
        return False
    for words, action in _WORD_ACTIONS:
        if name in words:
            return action(walk, name, arguments)
    return False


def _visit_import(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    for descendant in range(arguments, walk.stops[arguments]):
        if walk.kinds[descendant] == "string_content":
            walk.imports[walk.text(descendant)] = None
    return False


def _visit_mixin(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    frame = walk.frame
    modules = [child for child in walk.children(arguments) if walk.kinds[child] in ("constant", "scope_resolution")]
    if frame.kind in _VISIBILITY_SCOPE_KINDS:
        frame.bases = list(dict.fromkeys([*frame.bases, *map(walk.text, modules)]))
    return False


@lru_cache(maxsize=1)  # called for every `raise` of a file
def _find_raise_methods(data: bytes) -> frozenset[str]:
    """Return the raise words that the file defines as methods, such as its own `fail(404)`."""
    return frozenset(match[1].decode() for match in _RAISE_METHOD_PATTERN.finditer(data))


def _visit_raise(walk: SyntaxWalker, word: str, arguments: int) -> bool:
    if word in _find_raise_methods(walk.data):
        return False
    children = list(walk.children(arguments))
    for child in children[:1]:
        is_message = walk.kinds[child] == "string"
        name = "RuntimeError" if is_message else _infer_type(walk, child) or walk.text(child)
        if name.replace("::", "").isidentifier():
            walk.frame.throws[name] = None
    walk.visit_all(children)
    return True


def _visit_visibility(walk: SyntaxWalker, word: str, arguments: int) -> bool:
    """Apply `private :x` to the named methods, and `private def x` to the declared one."""
    frame = walk.frame
    if frame.kind not in _VISIBILITY_SCOPE_KINDS:
        return False
    visibility, saved_visibility = _VISIBILITY_WORDS[word], frame.section_visibility
    names = set()
    frame.section_visibility = visibility
    for child in walk.children(arguments):
        if walk.kinds[child] in ("method", "singleton_method"):
            names.add(walk.text(walk.find_child(child, "name")))
        else:
            names.add(walk.text(child).strip(":\"'"))
        walk.visit(child, None)
    frame.section_visibility = saved_visibility
    for member in walk.frames:
        if member.parent is frame and member.name in names:
            member.visibility = visibility
    return True


def _visit_refinement(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    """Visit `refine String do … end`, which extends a type."""
    node = walk.parents[arguments]
    if walk.frame.kind not in _VISIBILITY_SCOPE_KINDS or walk.find_child(node, "block") == NO_NODE:
        return False
    read_declaration(walk, node, node, _REFINEMENT_SYNTAX, walk.text(arguments).strip("()"))
    return True


def _visit_attributes(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    for child in walk.children(arguments):
        walk.frame.uses[walk.text(child).strip(":\"'")] = None
    return False


_WORD_ACTIONS: "list[tuple[tuple[str, ...], Callable[[SyntaxWalker, str, int], bool]]]" = [
    (("require", "require_relative", "load", "autoload"), _visit_import),
    (("include", "extend", "prepend"), _visit_mixin),
    (_RAISE_WORDS, _visit_raise),
    (tuple(_VISIBILITY_WORDS), _visit_visibility),
    (("refine",), _visit_refinement),
    (("attr_accessor", "attr_reader", "attr_writer", "attr"), _visit_attributes),
]


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    """Return the type of the object that `X.new` creates."""
    if syntax.kinds[node] != "call":
        return ""
    receiver, method = syntax.find_child(node, "receiver"), syntax.find_child(node, "method")
    is_constructor = NO_NODE not in (receiver, method) and syntax.text(method) == "new"
    return syntax.text(receiver) if is_constructor else ""


RUBY = table.load_table(
    "ruby",
    declares={"module": _NAMESPACE_SYNTAX},
    begin=_adjust_name,
    settle=_adjust_declaration,
    made=_infer_type,
    hooks={
        "module": _visit_module,
        "singleton_class": _visit_singleton_class,
        "identifier": _visit_identifier,
        "call": _visit_word_call,
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
