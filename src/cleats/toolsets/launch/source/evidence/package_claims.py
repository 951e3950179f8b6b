"""Claims from the manifest, the licence and the API of a package."""

import re
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.source.api import public_names
from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import licences
from cleats.toolsets.launch.source.evidence.format_claims import FileFormat
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.evidence.licences import Licence
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest
from cleats.toolsets.launch.source.text.sentences import ProductSubject, build_summary_sentence

MAX_API_CLAIMS: Final = 150
"""Claims about public names at most; the rest of a larger API is only listed."""

_RUNTIME_NAMES: Final = {
    "pip": "Python",
    "npm": "Node.js",
    "maven": "Java",
    "cargo": "Rust",
    "go": "Go",
    "composer": "PHP",
    "gem": "Ruby",
    "swiftpm": "Swift",
}
_IMPORT_SENTENCES: Final = {
    "pip": "Python code imports {product} as {names}.",
    "npm": "JavaScript code imports {product} from {names}.",
    "nuget": "The namespace of {product} is {names}.",
    "maven": "The Java package of {product} is {names}.",
    "go": "Go code imports {product} from {names}.",
    "cargo": "Rust code uses {product} as the crate {names}.",
    "composer": "The PHP namespace of {product} is {names}.",
    "gem": 'Ruby code loads {product} with `require "{first}"`.',
    "swiftpm": "Swift code imports {product} as {names}.",
}
_LICENCE_HEAD_LINES: Final = 5
"""Lines of a licence text that name it, including blank ones before its title."""

_DIRECTION_VERBS: Final = {"import": "reads", "export": "writes", "both": "reads and writes"}
DEVELOPMENT_EXTRA_PATTERN: Final = re.compile(
    r"(dev|development|tests?|testing|docs?|rtd|lint|linting|coverage|cov|bench\w*|profiling|ci|mypy"
    r"|typing|types|pre[-_]?commit|release|build|all[-_]dev|tox|nox|compare)([-_].*)?",
    re.IGNORECASE,
)
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
        name = _RUNTIME_NAMES.get(self.manifest.ecosystem, "")
        if requirement is None:
            return ""
        if self.manifest.ecosystem == "nuget":
            frameworks = " and ".join(f"`{framework}`" for framework in requirement.value.split(";") if framework)
            text = f"{self.product} targets {frameworks}."
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
        text = f"{self.product} depends on {_join_words(list(names))} at run time."
        return self._add_note(text, [cite_value(dependency) for dependency in dependencies])

    def claim_commands(self) -> None:
        """Claim the commands that the installation provides."""
        for command in self.manifest.commands:
            target = f", which runs `{command.detail}`" if command.detail else ""
            text = f"Installing {self.product} provides the `{command.value}` command{target}."
            self.ledger.add(text, "feature", [cite_value(command)], group="key_features")

    def claim_imports(self, names: list[LocatedValue]) -> None:
        """Claim the names that a program imports."""
        if not names:
            return
        if template := _IMPORT_SENTENCES.get(self.manifest.ecosystem):
            import_list = _join_words([f"`{value.value}`" for value in names], "or")
            text = template.format(product=self.product, names=import_list, first=names[0].value)
            citations = [cite_value(value) for value in (*names, self.manifest.name) if value]
            self.ledger.add(text, "api", citations, group="quickstart_steps")

    def claim_api(self, surface: ApiSurface) -> dict[str, str]:
        """Claim each public name, documented ones first; return the claim ids by name."""
        claim_ids: dict[str, str] = {}
        ranked = sorted(surface.symbols, key=lambda candidate: (not candidate.exported, not candidate.doc))
        for symbol in ranked[:MAX_API_CLAIMS]:
            citations = [Citation(symbol.path, symbol.line, symbol.end, "source_code")]
            if symbol.maker[0]:
                citations.append(Citation(symbol.path, *symbol.maker, "source_code"))
            if symbol.doc:
                end = max(symbol.doc_line, symbol.doc_end)
                citations.append(Citation(symbol.path, symbol.doc_line, end, "api_doc"))
            text = public_names.describe_symbol(symbol, self.product)
            if not text and symbol.exported and not symbol.deprecated:
                text = public_names.describe_as_public(symbol, self.product)
            if text:
                claim_ids[symbol.name] = self.ledger.add(text, "api", citations)
        return claim_ids

    def claim_formats(self, formats: list[FileFormat]) -> list[dict[str, str]]:
        """Claim the formats that the code names; return them with their claim ids."""
        entries: list[dict[str, str]] = []
        for file_format in formats:
            verb = _DIRECTION_VERBS.get(file_format.direction, "supports")
            if file_format.is_function:
                text = f"{self.product} {verb} the {file_format.name} format with `{file_format.declared_by}()`."
            elif file_format.supported:
                text = f"{self.product} lists {file_format.name} in `{file_format.declared_by}` as a format it {verb}."
            else:
                text = f"{self.product} names the {file_format.name} format in `{file_format.declared_by}`."
            is_implemented = file_format.is_function or file_format.supported
            claim = self.ledger.add(text, "format", file_format.citations)
            entries.append(
                {
                    "format": file_format.name,
                    "status": "implemented" if is_implemented else "unknown",
                    "direction": file_format.direction,
                    "claim_id": claim,
                }
            )
        return entries

    def strip_requirement(self, requirement: str) -> str:
        """Return the name in a requirement, without versions and conditions."""
        if self.manifest.ecosystem == "npm":
            return requirement.rpartition("@")[0] or requirement
        if self.manifest.ecosystem == "pip":
            match = re.match(r"[A-Za-z0-9][\w.-]*(\[[^\]]*\])?", requirement.strip())
            return match[0] if match else requirement
        return requirement


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


def _join_words(parts: list[str], conjunction: str = "and") -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {conjunction} {parts[-1]}"
