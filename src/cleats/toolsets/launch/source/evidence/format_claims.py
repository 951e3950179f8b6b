"""File formats that the code names: in a list of extensions or formats, or in a function name."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.ledger import Citation

FORMAT_NAMES: Final = {
    name.lower(): name
    for line in (
        "CSV TSV JSON JSONL NDJSON XML YAML TOML INI HTML XHTML MHTML Markdown RTF TXT",
        "PDF XPS EPUB DOC DOCX DOCM DOTX ODT OTT XLS XLSX XLSM XLSB XLTX XLTM ODS OTS PPT",
        "PPTX PPTM PPSX ODP PNG JPEG JPG GIF BMP TIFF WEBP SVG PSD ICO EMF WMF DICOM EXR",
        "TGA OBJ STL FBX GLTF GLB DAE 3DS PLY 3MF USDZ DRC AMF X3D VRML A3DW RVM U3D IFC",
        "DWG DXF DGN DWF IGES ZIP TAR GZIP BZ2 7Z RAR XZ LZMA ZSTD EML MSG MBOX PST ICS",
        "VCF MPP XER SQLITE PARQUET AVRO HDF5 MP3 WAV FLAC OGG MP4 AVI MKV TTF OTF WOFF",
        "WOFF2 SHP GEOJSON KML GPX GML LATEX",
    )
    for name in line.split()
}
"""Names that can only mean a file format: the lower-case key and the usual spelling."""

_FORMAT_SYNONYMS: Final = {"htm": "html", "yml": "yaml", "jpg": "jpeg", "tif": "tiff", "md": "markdown"}
_FORMAT_LIST_PATTERN: Final = re.compile(r"(formats?|extensions?|suffix(es)?|file_?types?)")
"""Words of a lower-case name that make it a list of formats; `Formatter` does not match."""

_SUPPORTED_NAME_PATTERN: Final = re.compile(r"supported|readable|writable|input|output|import|export|load|save")
_DIRECTION_BY_VERB: Final = {
    **dict.fromkeys(("read", "load", "loads", "parse", "import", "from", "open", "decode"), "import"),
    **dict.fromkeys(("write", "save", "dump", "dumps", "export", "to", "encode", "render"), "export"),
}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format and where the code names it. `direction` is import, export, both or unknown."""

    name: str
    direction: str
    citations: tuple[Citation, ...]
    declared_by: str
    """The constant or function that names it."""
    is_function: bool = False
    supported: bool = False
    """True if that name says that its formats are supported."""


def find_formats(tree: CheckoutTree, surface: ApiSurface, packages: list[str]) -> list[FileFormat]:
    """Return the formats of a Python package, sorted by name."""
    mentions_by_format: dict[str, list[tuple[str, Citation, str]]] = {}
    functions = {symbol.name: symbol for symbol in surface.symbols if symbol.kind == "function"}
    for symbol in functions.values():
        if parsed := _parse_function_name(symbol.name):
            citation = Citation(symbol.path, symbol.line, symbol.end, "source_code")
            mentions_by_format.setdefault(parsed[0], []).append((parsed[1], citation, symbol.name))
    for path in tree.paths_below(*packages):
        if path.endswith(".py") and classify_path(path) == "source":
            for name, citation, constant in _find_in_constants(tree, path):
                mentions_by_format.setdefault(name, []).append((_infer_direction(path, constant), citation, constant))
    return [
        FileFormat(
            FORMAT_NAMES[name],
            _merge_directions({mention[0] for mention in mentions}),
            tuple(dict.fromkeys(mention[1] for mention in mentions)),
            mentions[0][2],
            is_function="." in mentions[0][2] and mentions[0][2] in functions,
            supported=bool(_SUPPORTED_NAME_PATTERN.search(mentions[0][2].lower())),
        )
        for name, mentions in sorted(mentions_by_format.items())
    ]


def _parse_function_name(name: str) -> tuple[str, str] | None:
    """Parse a name such as `read_csv`, which must consist of a verb and a format only."""
    parts = name.rsplit(".", 1)[-1].lower().split("_")
    if len(parts) != 2:
        return None
    for verb, word in (parts, parts[::-1]):
        format_key = _FORMAT_SYNONYMS.get(word, word)
        direction = _DIRECTION_BY_VERB.get(verb)
        if direction and format_key in FORMAT_NAMES:
            return format_key, direction
    return None


def _find_in_constants(tree: CheckoutTree, path: str) -> Iterator[tuple[str, Citation, str]]:
    module = safe_parsing.parse_python(tree.read_text(path))
    if module is None:
        return
    for node, owner in _iterate_assignments(module):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not names or node.value is None or not (_is_format_list_name(names[0]) or _is_format_list_name(owner)):
            continue
        is_vague = not owner and "_" not in names[0] and not _SUPPORTED_NAME_PATTERN.search(names[0].lower())
        is_hidden = names[0].startswith("_") or is_vague
        for text, line in [] if is_hidden else _collect_strings(node.value):
            word = text.lower().lstrip(".")
            format_key = _FORMAT_SYNONYMS.get(word, word)
            if format_key in FORMAT_NAMES:
                qualified_name = f"{owner}.{names[0]}" if owner else names[0]
                yield format_key, Citation(path, line, line, "source_code"), qualified_name


def _is_format_list_name(name: str) -> bool:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    pairs = ["_".join(pair) for pair in pairwise(parts)]
    return any(_FORMAT_LIST_PATTERN.fullmatch(part) for part in (*parts, *pairs))


def _iterate_assignments(module: ast.Module) -> Iterator[tuple[ast.Assign | ast.AnnAssign, str]]:
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node, ""
        elif isinstance(node, ast.ClassDef) and _is_format_list_name(node.name):
            for inner in node.body:
                if isinstance(inner, ast.Assign | ast.AnnAssign):
                    yield inner, node.name


def _collect_strings(node: ast.expr) -> list[tuple[str, int]]:
    """Return the strings of a list, the keys of a table, or a single string, with their lines."""
    if isinstance(node, ast.Dict):
        return [pair for key in node.keys if key is not None for pair in _collect_strings(key)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [pair for item in node.elts for pair in _collect_strings(item)]
    if isinstance(node, ast.Call) and node.args:
        return _collect_strings(node.args[0])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [(node.value, node.lineno)]
    return []


def _infer_direction(path: str, constant: str) -> str:
    """Return the direction of a list of formats, where its name or its module tells it."""
    words = set(re.split(r"[^a-z]+", f"{path}_{constant}".lower()))
    reads = bool(words & {"reader", "readers", "import", "importer", "load", "loader", "input", "readable"})
    writes = bool(words & {"writer", "writers", "export", "exporter", "save", "saver", "output", "writable"})
    return "unknown" if reads == writes else "import" if reads else "export"


def _merge_directions(directions: set[str]) -> str:
    if {"import", "export"} <= directions:
        return "both"
    return next((direction for direction in ("import", "export") if direction in directions), "unknown")
