"""The public API of a Java library: the public types of its main sources, with their public methods."""

import re
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.api.declarations import (
    CLASS_LABELS,
    Declaration,
    DocCleaner,
    make_members,
    make_symbol,
    read_declarations,
)
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_PACKAGE_PATTERN: Final = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_INNER_CODE_PATTERN: Final = re.compile(r"\{@(?:code|literal)\s+([^{}]*)\}")
_INNER_LINK_PATTERN: Final = re.compile(r"\{@(?:link|linkplain|value)\s+#?([^\s{}(]+)(?:\([^)]*\))?([^{}]*)\}")
_CODE_TAG_PATTERN: Final = re.compile(r"<(code|tt|kbd)>([^<]*)</\1>")
_MAX_NESTED_TAGS: Final = 3
_PARAGRAPH_TAG_PATTERN: Final = re.compile(
    r"</?(?:p|ul|ol|pre|blockquote|table|h\d|dl|div)\b[^>]*>|<br\s*/?>", re.IGNORECASE
)
_TAG_PATTERN: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_BLOCK_TAG_PATTERN: Final = re.compile(r"^\s*@\w+", re.MULTILINE)
_ENTITIES: Final = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&nbsp;": " "}
_ENTITY_PATTERN: Final = re.compile("|".join(_ENTITIES))


def read_surface(tree: CheckoutTree, manifest: PackageManifest) -> ApiSurface:
    """Return the public types in the main sources of the module that the manifest describes."""
    root = manifest.path.rpartition("/")[0]
    folder = f"{root}/src/main/java" if root else "src/main/java"
    paths = [path for path in tree.paths_below(folder) if path.endswith(".java") and not _is_internal(path)]
    files = read_declarations(tree, paths, "java")
    symbols: dict[str, Symbol] = {}
    for path in sorted(files, key=lambda item: (item.count("/"), item)):
        for symbol in list_public_types(files[path].declarations, clean_doc):
            symbols.setdefault(symbol.name, symbol)
    modules = []
    for path in files:
        package = _PACKAGE_PATTERN.search(tree.read_text(path) or "")
        modules.append((package[1] if package else manifest.path, path))
    return ApiSurface(tuple(symbols.values()), tuple(modules))


def _is_internal(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return parts[-1] in ("package-info.java", "module-info.java") or "internal" in parts


def list_public_types(declarations: list[Declaration], cleaner: DocCleaner) -> list[Symbol]:
    """Return the public types of a file with their public members; a type inside another one is `Outer.Inner`."""
    namespaces = {item.name for item in declarations if item.kind == "namespace"}
    types = {item.name: item for item in declarations if item.kind in CLASS_LABELS}
    symbols = []
    for name, item in types.items():
        owners = [outer for outer in types if name.startswith(f"{outer}.")]
        if any(types[outer].visibility != "public" for outer in (*owners, name)):
            continue
        namespace = max((space for space in namespaces if name.startswith(f"{space}.")), key=len, default="")
        public_name = name.removeprefix(f"{namespace}.") if namespace else name
        inner = [other for other in declarations if other.owner == name and _is_public_member(other)]
        makers = [other for other in inner if other.kind == "constructor"]
        members = make_members([other for other in inner if other.kind != "constructor"], public_name, cleaner)
        symbols.append(
            make_symbol(item, public_name, "class", cleaner, members=members, maker=makers[0] if makers else None)
        )
    return symbols


def _is_public_member(declaration: Declaration) -> bool:
    is_override = "override" in {word.lower() for word in (*declaration.decorators, *declaration.modifiers)}
    is_member = declaration.kind in ("method", "constructor", "property")
    is_lambda = declaration.kind == "method" and declaration.own_name.isupper()
    return is_member and declaration.visibility == "public" and not is_override and not is_lambda


def clean_doc(doc: str, _name: str) -> str:
    """Return the description of a Javadoc comment as text, with names as code."""
    text = _BLOCK_TAG_PATTERN.split(doc, maxsplit=1)[0]
    text = _INNER_CODE_PATTERN.sub(r"`\1`", text)
    text = _INNER_LINK_PATTERN.sub(lambda match: match[2].strip() or f"`{match[1].replace('#', '.')}`", text)
    for _ in range(_MAX_NESTED_TAGS):  # from the inside
        text = _CODE_TAG_PATTERN.sub(lambda match: f"`{match[2].replace('`', '')}`", text)
    text = _PARAGRAPH_TAG_PATTERN.sub("\n\n", text)
    return _ENTITY_PATTERN.sub(lambda match: _ENTITIES[match[0]], _TAG_PATTERN.sub("", text)).strip()
