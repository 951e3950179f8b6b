"""File formats that the code itself names: in a list of extensions or formats, or in a function."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cleats.toolsets.launch.source import programs
from cleats.toolsets.launch.source.api.model import Surface
from cleats.toolsets.launch.source.claims import Citation
from cleats.toolsets.launch.source.roots import kind_of
from cleats.toolsets.launch.source.tree import Tree

KNOWN: Final = {
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
"""Names that can only mean a file format, in lower case, and how they are written."""

_SYNONYMS: Final = {"htm": "html", "yml": "yaml", "jpg": "jpeg", "tif": "tiff", "md": "markdown"}
_LIST: Final = re.compile(r"(formats?|extensions?|suffix(es)?|file_?types?)")
"""Words of a name, in lower case, that make it a list of formats; a `Formatter` is none."""

_SUPPORTED: Final = re.compile(r"supported|readable|writable|input|output|import|export|load|save")
_IN: Final = re.compile(r"(read|load|loads|parse|import|from|open|decode)", re.IGNORECASE)
_OUT: Final = re.compile(r"(write|save|dump|dumps|export|to|encode|render)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and where the code names it. `direction` is import, export, both or unknown."""

    name: str
    direction: str
    citations: tuple[Citation, ...]
    said_by: str
    """The constant or function that names it."""
    is_function: bool = False
    supported: bool = False
    """Whether the name says that the formats in it work."""


def find(tree: Tree, surface: Surface, packages: list[str]) -> list[Format]:
    """The formats of a Python package, by name."""
    found: dict[str, list[tuple[str, Citation, str]]] = {}
    for symbol in surface.symbols:
        if symbol.kind == "function" and (named := _in_function(symbol.name)):
            place = Citation(symbol.path, symbol.line, symbol.end, "source_code")
            found.setdefault(named[0], []).append((named[1], place, symbol.name))
    functions = {symbol.name for symbol in surface.symbols if symbol.kind == "function"}
    for path in tree.below(*packages):
        if path.endswith(".py") and kind_of(path) == "source":
            for name, place, constant in _in_constants(tree, path):
                found.setdefault(name, []).append((_way(path, constant), place, constant))
    return [
        Format(
            KNOWN[name],
            _direction({each[0] for each in places}),
            tuple(dict.fromkeys(each[1] for each in places)),
            places[0][2],
            is_function="." in places[0][2] and places[0][2] in functions,
            supported=bool(_SUPPORTED.search(places[0][2].lower())),
        )
        for name, places in sorted(found.items())
    ]


def _in_function(name: str) -> tuple[str, str] | None:
    """`read_csv` reads CSV: the verb and the format must be the whole name."""
    parts = name.rsplit(".", 1)[-1].lower().split("_")
    if len(parts) != 2:
        return None
    for verb, word in (parts, parts[::-1]):
        known = _SYNONYMS.get(word, word)
        if known not in KNOWN:
            continue
        if _IN.fullmatch(verb):
            return known, "import"
        if _OUT.fullmatch(verb):
            return known, "export"
    return None


def _in_constants(tree: Tree, path: str) -> Iterator[tuple[str, Citation, str]]:
    module = programs.parse(tree.text(path))
    if module is None:
        return
    for node, owner in _assignments(module):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        if not names or node.value is None or not (_is_list(names[0]) or _is_list(owner)):
            continue
        vague = not owner and "_" not in names[0] and not _SUPPORTED.search(names[0].lower())
        hidden = names[0].startswith("_") or vague
        for text, line in [] if hidden else _words(node.value):
            word = text.lower().lstrip(".")
            known = _SYNONYMS.get(word, word)
            if known in KNOWN:
                shown = f"{owner}.{names[0]}" if owner else names[0]
                yield known, Citation(path, line, line, "source_code"), shown


def _is_list(name: str) -> bool:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    pairs = ["_".join(pair) for pair in pairwise(parts)]
    return any(_LIST.fullmatch(part) for part in (*parts, *pairs))


def _assignments(module: ast.Module) -> Iterator[tuple[ast.Assign | ast.AnnAssign, str]]:
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node, ""
        elif isinstance(node, ast.ClassDef) and _is_list(node.name):
            for inner in node.body:
                if isinstance(inner, ast.Assign | ast.AnnAssign):
                    yield inner, node.name


def _words(node: ast.expr) -> list[tuple[str, int]]:
    """The strings of a list, or the keys of a table; of one alone, itself."""
    if isinstance(node, ast.Dict):
        return [pair for key in node.keys if key is not None for pair in _words(key)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [pair for item in node.elts for pair in _words(item)]
    if isinstance(node, ast.Call) and node.args:
        return _words(node.args[0])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [(node.value, node.lineno)]
    return []


def _way(path: str, constant: str) -> str:
    """What a list of formats is for, where its name or its module says so."""
    words = re.split(r"[^a-z]+", f"{path}_{constant}".lower())
    reads = {"reader", "readers", "import", "importer", "load", "loader", "input", "readable"}
    writes = {"writer", "writers", "export", "exporter", "save", "saver", "output", "writable"}
    if reads.intersection(words) and not writes.intersection(words):
        return "import"
    return "export" if writes.intersection(words) and not reads.intersection(words) else "unknown"


def _direction(seen: set[str]) -> str:
    if {"import", "export"} <= seen:
        return "both"
    return next((each for each in ("import", "export") if each in seen), "unknown")
