"""Public names that code uses, from its imports."""

import ast
import re
from functools import lru_cache

from cleats.toolsets.launch.source.checkout.safe_parsing import unparse_node, walk_python


@lru_cache(maxsize=512)
def find_used_names(code: str) -> frozenset[str]:
    """Return the full names that Python code imports or reads from imported modules.

    A word in the code does not prove it: `console.print` is not the `print` of the package.
    """
    nodes = walk_python(code)
    imported_names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first_name = alias.name.split(".")[0]
                imported_names[alias.asname or first_name] = alias.name if alias.asname else first_name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported_names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    names = set(imported_names.values())
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, _, rest = unparse_node(node).partition(".")
            if first in imported_names and re.fullmatch(r"[\w.]+", rest):
                names.add(f"{imported_names[first]}.{rest}")
    return frozenset(names)
