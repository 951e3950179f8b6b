"""The language table of Python."""

from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow


def _visit_match(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a `match`; the names in its patterns receive the matched value."""
    names: list[str] = []
    bodies = [child for child in walk.children(node) if walk.fields[child] != "subject"]
    clauses = [clause for body in bodies for clause in walk.children(body)]
    with walk.open_step(node, names) as subject:
        walk.visit_all((child for child in walk.children(node) if walk.fields[child] == "subject"), subject)
        for part in (part for clause in clauses for part in walk.children(clause)):
            if walk.kinds[part] == "case_pattern":
                _split_pattern_names(walk, part, names, [])
        walk.frame.writes.update(dict.fromkeys(names))
    walk.visit_all(bodies)


def _visit_case_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the classes and constants in a pattern as used; `_visit_match` handles the rest."""
    used: list[str] = []
    _split_pattern_names(walk, node, [], used)
    walk.frame.uses.update(dict.fromkeys(used))


def _split_pattern_names(syntax: SyntaxTree, node: int, names: list[str], used: list[str]) -> None:
    """Collect the names that a pattern assigns, and those that it refers to."""
    is_class = syntax.kinds[node] == "class_pattern"
    is_keyword = syntax.kinds[node] == "keyword_pattern"
    for child in syntax.children(node):
        kind, is_first = syntax.kinds[child], child == node + 1
        if kind == "dotted_name":
            is_new = syntax.stops[child] - child == 2 and not (is_class and is_first)
            (names if is_new else used).append(syntax.text(child))
        elif kind == "identifier":
            if not (is_keyword and is_first):
                names.append(syntax.text(child))
        else:
            _split_pattern_names(syntax, child, names, used)


_PROPERTY_DECORATORS = ("property", "cached_property", "functools.cached_property", "abc.abstractproperty")
_MODIFIERS_BY_DECORATOR = {
    "staticmethod": "static",
    "classmethod": "class",
    "abstractmethod": "abstract",
    "abc.abstractmethod": "abstract",
    "final": "final",
    "typing.final": "final",
    "override": "override",
    "typing.override": "override",
}


def _adjust_declaration(frame: Frame, _parent: Frame) -> None:
    if frame.kind == "type":
        frame.name = frame.name.partition("[")[0]
        frame.qualified_name = frame.qualified_name.partition("[")[0]
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
            decorator in _PROPERTY_DECORATORS or decorator.endswith((".setter", ".deleter", ".getter"))
            for decorator in frame.decorators
        ):
            frame.kind = "property"
    for decorator in frame.decorators:
        if decorator in _MODIFIERS_BY_DECORATOR:
            frame.modifiers[_MODIFIERS_BY_DECORATOR[decorator]] = None
    if frame.kind == "class":
        _adjust_class_kind(frame)


def _adjust_class_kind(frame: Frame) -> None:
    bases = {base.rpartition(".")[2].partition("[")[0] for base in frame.bases}
    if "Protocol" in bases:
        frame.kind = "interface"
    elif bases & {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}:
        frame.kind = "enum"


def _find_docstring(syntax: SyntaxTree, body: int) -> int:
    for child in syntax.children(body):
        if (kind := syntax.kinds[child]) == "comment":
            continue
        inner = child + 1 if kind == "expression_statement" else child
        if inner < syntax.stops[body] and syntax.kinds[inner] == "string":
            return inner if syntax.stops[inner] == syntax.stops[child] else NO_NODE
        return NO_NODE
    return NO_NODE


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    imports = []
    for child in syntax.children(node):
        is_aliased = syntax.kinds[child] == "aliased_import"
        name = syntax.find_child(child, "name") if is_aliased else child
        if name != NO_NODE:
            imports.append(syntax.text(name))
    return imports


def _read_from_imports(syntax: SyntaxTree, node: int) -> list[str]:
    if (module := syntax.find_child(node, "module_name")) == NO_NODE:
        return []
    text = syntax.text(module)
    if text.strip("."):
        return [text]
    # `from . import store` names a module after the dots.
    names = [child for child in syntax.children(node) if syntax.fields[child] == "name"]
    module_nodes = [
        syntax.find_child(name, "name") if syntax.kinds[name] == "aliased_import" else name for name in names
    ]
    return [text + syntax.text(name) for name in module_nodes if name != NO_NODE] or [text]


def _visit_dunder_all(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the strings assigned to `__all__` as the exports."""
    if walk.frame is not walk.module:
        return False
    if (left_node := walk.find_child(node, "left")) != NO_NODE and walk.text(left_node) == "__all__":
        for descendant in range(node, walk.stops[node]):
            if walk.kinds[descendant] == "string_content":
                walk.exports[walk.text(descendant)] = None
    return False


def _visit_except_alias(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type of `e` in `except E as e`; no value flows from one name to the other."""
    alias = walk.find_child(node, "alias")
    if alias == NO_NODE or not walk.kinds[walk.parents[node]].startswith("except"):
        return False
    name = walk.text(alias)
    walk.frame.writes[name] = None
    assignments.record_type(walk, "local", name, assignments.read_type(walk, node + 1), "annotation")
    walk.visit(node + 1, None)
    return True


PYTHON = table.load_table(
    "python",
    settle=_adjust_declaration,
    docstring=_find_docstring,
    imports={
        "import_statement": _read_imports,
        "import_from_statement": _read_from_imports,
        "future_import_statement": lambda _syntax, _node: ["__future__"],
    },
    hooks={
        "assignment": _visit_dunder_all,
        "as_pattern": _visit_except_alias,
        "match_statement": _visit_match,
        "case_pattern": _visit_case_pattern,
        "comparison_operator": assignments.visit_membership,
    },
    finish=lambda walk: None if walk.exports else walk.export_public(),
)
