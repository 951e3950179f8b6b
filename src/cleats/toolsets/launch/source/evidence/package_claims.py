"""Claims from the manifest, the licence, the API and the code of a package.

Formats are those that the code names: in a list of extensions or formats, or in a function name.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cleats.toolsets.launch.source.api import public_names
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES, parse_python
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import licences
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.evidence.licences import Licence
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.sentences import ProductSubject, build_summary_sentence

MAX_CLAIMED_MEMBERS: Final = 60
"""Members of a class that are described at most; a longer list is not read."""

_ECOSYSTEMS: Final = PLATFORM_TABLES["ecosystems"]
_FORMATS: Final = PLATFORM_TABLES["formats"]
FORMAT_NAMES: Final = {name.lower(): name for name in _FORMATS["names"].split()}
_DIRECTION_BY_VERB: Final = {verb: way for way, verbs in _FORMATS["verbs"].items() for verb in verbs.split()}
_FORMAT_LIST_PATTERN: Final = re.compile(r"(formats?|extensions?|suffix(es)?|file_?types?)")
"""Words of a lower-case name that make it a list of formats; `Formatter` does not match."""

_SUPPORTED_NAME_PATTERN: Final = re.compile(r"supported|readable|writable|input|output|import|export|load|save")
_LICENCE_HEAD_LINES: Final = 5
"""Lines of a licence text that name it, including blank ones before its title."""

_DIRECTION_VERBS: Final = {"import": "reads", "export": "writes", "both": "reads and writes"}
DEVELOPMENT_EXTRA_PATTERN: Final = english.load_expression("development_extra")
"""Extras that only developers of the package need."""


def cite_value(value: LocatedValue) -> Citation:
    """Return the citation of a value in a manifest."""
    return Citation(value.path, value.line, value.line, value.basis)


@dataclass(frozen=True, slots=True)
class PackageClaimWriter:
    """Writes the claims that the files of a package support."""

    ledger: ClaimLedger
    product: str
    manifest: PackageManifest

    def claim_version(self) -> None:
        """Claim the version, where a file of the repository states it."""
        if version := self.manifest.version:
            text = f"The version of {self.product} in this repository is {version.value}."
            self._add_note(text, [cite_value(version)])

    def _add_note(self, text: str, citations: list[Citation]) -> str:
        return self.ledger.add(text, "other", citations, group="compatibility_notes")

    def claim_description(self, subject: ProductSubject) -> str:
        """Claim the summary; return the claim id, "" without a usable summary."""
        description = self.manifest.description
        text = build_summary_sentence(description.value, subject) if description else ""
        return self.ledger.add(text, "feature", [cite_value(description)]) if description and text else ""

    def claim_runtime(self) -> str:
        """Claim the required versions of the language or runtime; return the claim id."""
        requirement = self.manifest.requires
        name = _ECOSYSTEMS.get(self.manifest.ecosystem, {}).get("runtime", "")
        if requirement is None:
            return ""
        if self.manifest.ecosystem == "nuget":
            frameworks = [f"`{framework}`" for framework in requirement.value.split(";") if framework]
            text = f"{self.product} targets {english.join_words(frameworks)}."
        elif self.manifest.ecosystem == "source":
            text = f"{self.product} is built with {requirement.value}."
        elif plain := re.fullmatch(r">=\s*v?([\d.]+)", requirement.value):
            text = f"{self.product} requires {name} {plain[1]} or later."
        elif re.fullmatch(r"[\d.]+", requirement.value):
            text = f"{self.product} requires {name} {requirement.value}."
        else:
            text = f"{self.product} requires a {name} version that satisfies `{requirement.value}`."
        return self._add_note(text, [cite_value(requirement)])

    def claim_licence(self, licence: Licence | None, citations: list[Citation]) -> str:
        """Claim the licence; return the claim id."""
        if licence is None or not licence.spdx:
            return ""
        text = f"The licence of {self.product} is `{licence.spdx}`."
        if licence_name := licences.LICENCE_NAMES.get(licence.spdx, "").removeprefix("The "):
            text = f"{self.product} is licensed under the {licence_name} (`{licence.spdx}`)."
        return self._add_note(text, citations)

    def claim_dependencies(self) -> str:
        """Claim the runtime dependencies; "" where the manifest leaves them to a tool."""
        dependencies = self.manifest.dependencies
        if dependencies is None or self.manifest.ecosystem == "source":
            return ""
        if not dependencies and not self.manifest.optional.get("peerDependencies"):
            citation = cite_value(self.manifest.name or LocatedValue("", self.manifest.path))
            return self._add_note(f"{self.product} has no required runtime dependencies.", [citation])
        unconditional = [dependency.value for dependency in dependencies if ";" not in dependency.value]
        if not 0 < len(unconditional) <= 12:
            return ""
        names = dict.fromkeys(f"`{self.strip_requirement(requirement)}`" for requirement in unconditional)
        text = f"{self.product} depends on {english.join_words(list(names))} at run time."
        return self._add_note(text, [cite_value(dependency) for dependency in dependencies])

    def claim_imports(self, names: list[LocatedValue]) -> None:
        """Claim the names that a program imports."""
        if not names:
            return
        if template := _ECOSYSTEMS.get(self.manifest.ecosystem, {}).get("import"):
            import_list = english.join_words([f"`{value.value}`" for value in names], "or")
            text = template.format(product=self.product, names=import_list, first=names[0].value)
            citations = [cite_value(value) for value in (*names, self.manifest.name) if value]
            self.ledger.add(text, "api", citations, group="quickstart_steps")

    def claim_api(self, surface: ApiSurface) -> dict[str, str]:
        """Claim each public name, its members and its notes; return the claim ids by name.

        The key of a note is the name and the line, as in `package.Thing:12`.
        """
        claim_ids: dict[str, str] = {}
        for symbol in surface.symbols:
            self._claim_symbol(symbol, claim_ids)
            for member in symbol.members[:MAX_CLAIMED_MEMBERS]:
                self._claim_symbol(member, claim_ids)
        return claim_ids

    def _claim_symbol(self, symbol: Symbol, claim_ids: dict[str, str]) -> None:
        citations = [Citation(symbol.path, symbol.line, symbol.end, "source_code")]
        if symbol.maker[0]:
            citations.append(Citation(symbol.path, *symbol.maker, "source_code"))
        if symbol.doc:
            end = max(symbol.doc_line, symbol.doc_end)
            citations.append(Citation(symbol.doc_path or symbol.path, symbol.doc_line, end, "api_doc"))
        text = public_names.describe_symbol(symbol, self.product) or public_names.quote_purpose(symbol)
        is_member = symbol.kind in ("method", "property")
        owner = f"`{symbol.name.rpartition('.')[0]}`" if is_member else self.product
        text = text or f"{symbol.quoted_name} is a public {symbol.label or symbol.kind} of {owner}."
        claim_ids[symbol.name] = self.ledger.add(text, "api", citations)
        for note in symbol.notes:
            citation = Citation(symbol.path, note.line, note.end, "api_doc")
            # A warning is quoted as it is written, so nothing is inferred.
            note_text = f"The documentation of {symbol.quoted_name} notes: {note.text}"
            claim_ids[f"{symbol.name}:{note.line}"] = self.ledger.add(note_text, "api", [citation], is_fact=True)

    def claim_formats(self, tree: CheckoutTree, surface: ApiSurface, packages: list[str]) -> list[dict[str, str]]:
        """Claim the formats that the code of a Python package names; return them by name, with their claim ids."""
        functions = {symbol.name for symbol in surface.symbols if symbol.kind == "function"}
        entries: list[dict[str, str]] = []
        for key, mentions in sorted(_find_format_mentions(tree, surface, packages).items()):
            name, declared_by = FORMAT_NAMES[key], mentions[0][2]
            known_directions = {direction for direction, _, _ in mentions} - {"unknown"}
            direction = "both" if len(known_directions) > 1 else next(iter(known_directions), "unknown")
            verb = _DIRECTION_VERBS.get(direction, "supports")
            is_function = "." in declared_by and declared_by in functions
            is_supported = bool(_SUPPORTED_NAME_PATTERN.search(declared_by.lower()))  # by its own name
            if is_function:
                text = f"{self.product} {verb} the {name} format with `{declared_by}()`."
            elif is_supported:
                text = f"{self.product} lists {name} in `{declared_by}` as a format it {verb}."
            else:
                text = f"{self.product} names the {name} format in `{declared_by}`."
            status = "implemented" if is_function or is_supported else "unknown"
            claim_id = self.ledger.add(text, "format", dict.fromkeys(citation for _, citation, _ in mentions))
            entries.append({"format": name, "status": status, "direction": direction, "claim_id": claim_id})
        return entries

    def strip_requirement(self, requirement: str) -> str:
        """Return the name in a requirement, without versions and conditions."""
        patterns = {"npm": r".+(?=@)", "pip": r"\s*([A-Za-z0-9][\w.-]*(\[[^\]]*\])?)"}
        match = re.match(patterns.get(self.manifest.ecosystem, ".*"), requirement)
        return match[0].strip() if match else requirement


def find_licence(tree: CheckoutTree, manifest: PackageManifest | None) -> tuple[Licence | None, list[Citation]]:
    """Return the licence of the manifest, else of the licence file, and all its citations."""
    declared = manifest.licence if manifest else None
    spdx = licences.parse_licence_name(declared.value) if declared else ""
    citations = [cite_value(declared)] if declared and spdx else []
    classifiers = [item for item in (manifest.classifiers if manifest else ()) if "License ::" in item.value]
    classifier_spdx = licences.parse_licence_name(classifiers[0].value) if len(classifiers) == 1 else ""
    if classifier_spdx and spdx in ("", classifier_spdx):
        spdx, citations = classifier_spdx, [*citations, cite_value(classifiers[0])]
    files = licences.find_licence_files(tree)
    spdx_by_path = {path: licences.identify_licence_text(tree.read_text(path) or "") for path in files}
    main_file = files[0] if files and re.fullmatch(r"\w+(\.(md|txt|rst))?", files[0]) else ""
    for path in files:
        is_decisive = path == main_file or len(set(spdx_by_path.values())) == 1
        if spdx_by_path[path] and is_decisive and not spdx:
            spdx = spdx_by_path[path]
        if spdx_by_path[path] == spdx and spdx:
            lines = (tree.read_text(path) or "").count("\n")
            citations.append(Citation(path, 1, max(1, min(lines, _LICENCE_HEAD_LINES)), "manifest"))
    if not spdx:
        return (Licence("", files[0]) if files else None), []
    return Licence(spdx, files[0] if files else ""), citations


def _find_format_mentions(
    tree: CheckoutTree, surface: ApiSurface, packages: list[str]
) -> dict[str, list[tuple[str, Citation, str]]]:
    """Return the mentions of each format: its direction, its place, and the function or constant that names it."""
    mentions_by_format: dict[str, list[tuple[str, Citation, str]]] = {}
    for symbol in surface.symbols:
        if symbol.kind == "function" and (parsed := _parse_function_name(symbol.name)):
            citation = Citation(symbol.path, symbol.line, symbol.end, "source_code")
            mentions_by_format.setdefault(parsed[0], []).append((parsed[1], citation, symbol.name))
    for path in tree.paths_below(*packages):
        if path.endswith(".py") and classify_path(path) == "source":
            for name, citation, constant in _find_in_constants(tree, path):
                mentions_by_format.setdefault(name, []).append((_infer_direction(path, constant), citation, constant))
    return mentions_by_format


def _parse_function_name(name: str) -> tuple[str, str] | None:
    """Parse a name such as `read_csv`, which must consist of a verb and a format only."""
    parts = name.rsplit(".", 1)[-1].lower().split("_")
    if len(parts) != 2:
        return None
    for verb, word in (parts, parts[::-1]):
        direction = _DIRECTION_BY_VERB.get(verb)
        if direction and (format_key := _find_format_key(word)):
            return format_key, direction
    return None


def _find_format_key(word: str) -> str:
    key = _FORMATS["synonyms"].get(word, word)
    return key if key in FORMAT_NAMES else ""


def _find_in_constants(tree: CheckoutTree, path: str) -> Iterator[tuple[str, Citation, str]]:
    module = parse_python(tree.read_text(path))
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
            if format_key := _find_format_key(text.lower().lstrip(".")):
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
    words = set(re.split(r"[^a-z]+", f"{path}_{constant}".lower()))
    directions = [direction for direction, nouns in _FORMATS["nouns"].items() if words & set(nouns.split())]
    return directions[0] if len(directions) == 1 else "unknown"
