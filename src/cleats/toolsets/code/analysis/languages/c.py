"""The language tables of C and of C++: C with types that have methods, bases and visibility sections.

Types are recorded without the `*` of a pointer; members of a pointer are dotted as well.
"""

import re

from cleats.toolsets.code.analysis.kinds import PROTOTYPE_MODIFIER
from cleats.toolsets.code.analysis.languages import assignments, declarators, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_PROTOTYPE_SYNTAX = table.DeclarationSyntax("function", parameters=(), result=("type",), body=())
_NAMESPACE_SYNTAX = table.DeclarationSyntax("namespace")
_SECTION_WORDS = ("public", "protected", "private")
_IMPORT_PATTERN = re.compile(r"(?:export\s+)?import\s*([^\s;]+)")
_TYPED_FUNCTIONS = ("make_unique", "make_shared", "static_cast", "dynamic_cast", "reinterpret_cast")
_TYPE_NAME_KINDS = ("type_identifier", "qualified_identifier", "template_type")


def _visit_declaration(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a declaration of a function or of variables."""
    if name := _read_prototype_name(walk, node):
        frame = read_declaration(walk, node, node, _PROTOTYPE_SYNTAX, name)
        frame.modifiers[PROTOTYPE_MODIFIER] = None
    else:
        declarators.visit_variables(walk, node, flow)


def _read_prototype_name(walk: SyntaxWalker, node: int) -> str:
    if walk.frame.kind not in ("module", "namespace") or walk.closure_depth:
        return ""
    declarators_found = [child for child in walk.children(node) if walk.fields[child] == "declarator"]
    if len(declarators_found) != 1 or not declarators.is_prototype(walk, declarators_found[0]):
        return ""
    declarator = declarators.find_function_declarator(walk, node)
    if NO_NODE in (declarator, walk.find_child(node, "type")) or not _has_parameters(walk, declarator):
        return ""
    name = declarators.read_function_name(walk, node, declarator)
    return "" if "." in name else name


def _has_parameters(syntax: SyntaxTree, declarator: int) -> bool:
    """Return whether the parentheses contain parameters.

    `Lock lock(held);` creates a variable, but the grammar cannot know whether `held` is a type and takes it for a
    function.
    """
    parameters_node = syntax.find_child(declarator, "parameters")
    children = list(syntax.children(parameters_node))
    return not children or any(_is_parameter(syntax, child) for child in children)


def _is_parameter(syntax: SyntaxTree, node: int) -> bool:
    if not syntax.kinds[node].endswith("parameter_declaration"):
        return "variadic" in syntax.kinds[node]
    parts = list(syntax.children(node))
    return len(parts) > 1 or syntax.kinds[parts[0]] not in _TYPE_NAME_KINDS if parts else False


def _finish_file(walk: SyntaxWalker) -> None:
    """Merge prototypes of functions that the file defines into their parents; add exports."""
    defined_names = {
        (defined.kind, defined.qualified_name) for defined in walk.frames if PROTOTYPE_MODIFIER not in defined.modifiers
    }
    kept_frames: list[Frame] = []
    removed_ranges: dict[Frame, set[tuple[int, int]]] = {}
    for frame in walk.frames:
        parent = frame.parent
        is_redundant = PROTOTYPE_MODIFIER in frame.modifiers and (frame.kind, frame.qualified_name) in defined_names
        if is_redundant and parent is not None:
            removed_ranges.setdefault(parent, set()).add((frame.start, frame.end))
            parent.uses.update(frame.uses)
        else:
            kept_frames.append(frame)
    walk.frames = kept_frames
    for parent, spans in removed_ranges.items():
        parent.nested_ranges = [span for span in parent.nested_ranges if span not in spans]
    walk.export_public(in_namespaces=True)


_CONDITION_KINDS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef")

_NODE_HOOKS = {
    "function_definition": declarators.visit_function,
    "function_declarator": declarators.visit_function_declarator,
    "declaration": _visit_declaration,
    "init_declarator": declarators.visit_initializer,
    "field_declaration": declarators.visit_fields,
    "type_definition": declarators.visit_typedef,
    "assignment_expression": declarators.visit_pointer_assignment,
    "initializer_pair": declarators.visit_designated_initializer,
    "preproc_arg": declarators.visit_macro_body,
    **dict.fromkeys(_CONDITION_KINDS, declarators.visit_preprocessor_condition),
    **dict.fromkeys(declarators.SPECIFIER_SYNTAX, declarators.visit_specifier),
}


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if parent.kind == "module" and frame.kind != "macro":
        frame.visibility = "private" if "static" in frame.modifiers else "public"


C = table.load_table(
    "c",
    declares={"function_definition": declarators.FUNCTION_SYNTAX, **declarators.SPECIFIER_SYNTAX},
    settle=_set_visibility,
    made=lambda _syntax, _node: "",
    ease=grammar_workarounds.blank_macros,
    hooks={kind: hook for kind, hook in _NODE_HOOKS.items() if kind != "class_specifier"},
    finish=_finish_file,
)


def _set_cpp_visibility(frame: Frame, parent: Frame) -> None:
    if frame.visibility or frame.kind in ("macro", "namespace"):
        return
    if parent.kind in table.TYPE_KINDS:
        frame.visibility = "private" if parent.kind == "class" else "public"
    elif parent.kind in ("module", "namespace") and "." not in frame.name:
        frame.visibility = "private" if "static" in frame.modifiers else "public"


def _visit_section(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Apply `private:` to everything that follows."""
    if (word := walk.text(node).strip(": ")) in _SECTION_WORDS:
        walk.frame.section_visibility = word


def _visit_namespace(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a namespace; one without a name only hides its contents."""
    if (name_node := walk.find_child(node, "name")) == NO_NODE:
        saved_visibility, walk.frame.section_visibility = walk.frame.section_visibility, "private"
        walk.visit_children(node, None)
        walk.frame.section_visibility = saved_visibility
        return
    read_declaration(walk, node, node, _NAMESPACE_SYNTAX, declarators.strip_template_arguments(walk.text(name_node)))


def _visit_alias(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `using Row = std::vector<int>`, but not `using std::vector`."""
    return declarators.declare_alias(walk, node, walk.text(walk.find_child(node, "name")))


def _visit_member_initializer(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `: size_(size)`, which sets a member or calls the constructor of a base."""
    children = list(walk.children(node))
    if len(children) < 2:
        return False
    name = declarators.strip_template_arguments(walk.text(children[0]))
    is_member = walk.kinds[children[0]] == "field_identifier" and not name[:1].isupper()
    with walk.open_step(node, [name] if is_member else []) as value:
        walk.visit(children[1], value)
        (walk.frame.writes if is_member else walk.frame.calls)[name] = None
    return True


def _visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type of `e` in `catch (const E& e)`."""
    parameter = walk.find_child(walk.find_child(node, "parameters"), "parameter_declaration")
    type_node, declarator = walk.find_child(parameter, "type"), walk.find_child(parameter, "declarator")
    for name in declarators.collect_declared_names(walk, declarator):
        assignments.record_type(walk, "local", name, assignments.read_type(walk, type_node), "annotation")
    return False


def _mark_coroutine(walk: SyntaxWalker, _node: int, _flow: ValueFlow | None) -> bool:
    if not walk.closure_depth:
        walk.frame.is_async = True
    return False


def _visit_qualified_name(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a qualified name; a type, or a header such as `A::operator bool()`, is not read."""
    if walk.fields[node] == "type":
        walk.record_uses(node)
        return True
    if walk.fields[node] != "declarator":
        return False
    walk.visit(walk.find_child(node, "operator_cast"), None)
    return True


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    if syntax.kinds[node] == "compound_literal_expression":
        return syntax.text(syntax.find_child(node, "type"))
    function = syntax.find_child(node, "function") if syntax.kinds[node] == "call_expression" else NO_NODE
    if function == NO_NODE:
        return ""
    name_part = function
    while syntax.kinds[name_part] == "qualified_identifier" and syntax.find_child(name_part, "name") != NO_NODE:
        name_part = syntax.find_child(name_part, "name")
    if syntax.kinds[name_part] == "template_function":
        name, type_node = syntax.find_child(name_part, "name"), syntax.find_child(name_part, "arguments")
        if NO_NODE not in (name, type_node) and syntax.text(name) in _TYPED_FUNCTIONS:
            return syntax.text(type_node)[1:-1]
    is_type = syntax.kinds[name_part] in ("identifier", "template_function")
    return syntax.text(function) if is_type and syntax.text(name_part)[:1].isupper() else ""


def _read_import(syntax: SyntaxTree, node: int) -> list[str]:
    """Return the module of `import std;`, which only the grammar takes for a directive."""
    match = _IMPORT_PATTERN.match(syntax.text(node))
    return [match[1].strip('<>"')] if match else []


CPP = table.load_table(
    "cpp",
    base=C,
    declares={**C.declares, "namespace_definition": _NAMESPACE_SYNTAX},
    settle=_set_cpp_visibility,
    made=_infer_type,
    imports={"preproc_call": _read_import},
    hooks={
        **_NODE_HOOKS,
        "abstract_function_declarator": declarators.visit_function_declarator,
        "access_specifier": _visit_section,
        "namespace_definition": _visit_namespace,
        "qualified_identifier": _visit_qualified_name,
        "alias_declaration using_declaration": _visit_alias,
        "field_initializer": _visit_member_initializer,
        "catch_clause": _visit_catch,
        "co_await_expression co_return_statement": _mark_coroutine,
    },
    ease=grammar_workarounds.rewrite_cpp,
)
