"""What a snippet is good for, told by what is in it and where it stands."""

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.snippets.finding import Found, tag_of
from cleats.toolsets.launch.source import programs

_INSTALL: Final = re.compile(
    r"^\s*(?:sudo )?(?:python3? -m )?(pip3?|pipx|uv|npm|yarn|pnpm|cargo|go|gem|composer|dotnet"
    r"|conda|brew|apt(-get)?) (install|i|add|get|require|add package)\b",
    re.MULTILINE,
)
_IMPORTS: Final = re.compile(
    r"^\s*(?:import\s[^;]*?['\"][^'\"]+['\"]|import\s*['\"][^'\"]+['\"]"
    r"|(?:const|let|var)\s[^=]*=\s*(?:await import|require)\([^)]*\)(?:\.\w+)?)\s*;?[ \t]*(?://.*)?$"
    r"|^\s*//.*$|^\s*/\*[\s\S]*?\*/",
    re.MULTILINE,
)
"""What brings names in and does nothing with them, and comments."""

_START: Final = re.compile(
    r"\b(quick ?start|getting[- ]started|usage|basic (usage|example)|(simple|first|minimal) example"
    r"|example|tutorial|introduction|overview)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Product:
    """What of the product shows up in code."""

    identifier: str
    imports: Sequence[str]
    commands: Sequence[str]
    language: str


def tags(found: Found, product: Product) -> list[str]:
    """The tags of a snippet: where it is from, its title, and what it does."""
    made = [found.kind, tag_of(found)]
    own = uses_product(found, product)
    if found.language == "shell":
        if _INSTALL.search(found.code):
            made.append("install")
        if any(re.search(rf"(^|\s){re.escape(each)}\s", found.code) for each in product.commands):
            made.append("cli")
            if _START.search(found.title):
                made.append("quickstart")
    elif own:
        made.append("usage")
        if found.kind in ("example", "readme", "docs") and _START.search(found.title):
            made.append("quickstart")
    return [tag for tag in dict.fromkeys(made) if tag]


def uses_product(found: Found, product: Product) -> bool:
    """Whether the code imports the product, or names its module."""
    if found.language == "python":
        return bool(set(product.imports) & {*_imported(found.code), *_named(found.code)})
    quoted = [rf"""["']{re.escape(each)}(/[^"']*)?["']""" for each in product.imports]
    plain = [rf"\b{re.escape(each)}\b" for each in product.imports]
    patterns = quoted if found.language in ("javascript", "typescript") else plain
    return any(re.search(pattern, found.code) for pattern in patterns)


def only_imports(found: Found) -> bool:
    """Whether code does nothing but say what it would use."""
    if found.language == "python":
        module = programs.parse(found.code)
        words = (ast.Import, ast.ImportFrom, ast.Expr)
        return module is not None and all(
            isinstance(each, words) and not _acts(each) for each in module.body
        )
    if found.language in ("javascript", "typescript"):
        return not _IMPORTS.sub("", found.code).strip()
    return False


def _acts(statement: ast.stmt) -> bool:
    """Whether an expression is more than a text."""
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)


def dependencies(found: Found, product: Product) -> list[str]:
    """What has to be installed for it: the product, and modules that come from elsewhere."""
    if found.language != "python":
        return [product.identifier] if uses_product(found, product) else []
    others = [
        name
        for name in _imported(found.code)
        if name not in sys.stdlib_module_names and name not in product.imports
    ]
    own = [product.identifier] if uses_product(found, product) else []
    return list(dict.fromkeys([*own, *others]))


def _imported(code: str) -> list[str]:
    """The modules that code imports, by their first names."""
    names: list[str] = []
    for node in _nodes(code):
        if isinstance(node, ast.Import):
            names += [each.name.split(".")[0] for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module.split(".")[0])
    return list(dict.fromkeys(names))


def _named(code: str) -> set[str]:
    """Names that code reads an attribute of, as `module.function` does."""
    return {
        node.value.id
        for node in _nodes(code)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def _nodes(code: str) -> list[ast.AST]:
    module = programs.parse(code)
    return list(ast.walk(module)) if module else []
