"""What the manifest, the licence and the API let us say."""

import re
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.source import licences
from cleats.toolsets.launch.source.api import words
from cleats.toolsets.launch.source.api.model import Surface
from cleats.toolsets.launch.source.claims import Citation, Ledger
from cleats.toolsets.launch.source.formats import Format
from cleats.toolsets.launch.source.licences import Licence
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.statements import Subject, summary_sentence
from cleats.toolsets.launch.source.tree import Tree

API_CLAIMS: Final = 150
"""Claims about names; a larger API is listed, not told."""

_RUNTIMES: Final = {
    "pip": "Python",
    "npm": "Node.js",
    "maven": "Java",
    "cargo": "Rust",
    "go": "Go",
    "composer": "PHP",
    "gem": "Ruby",
    "swiftpm": "Swift",
}
_HEAD: Final = 5
"""Lines of a licence that name it, blank ones before its title included."""

_WAYS: Final = {"import": "reads", "export": "writes", "both": "reads and writes"}
DEVELOPMENT: Final = re.compile(
    r"(dev|development|tests?|testing|docs?|rtd|lint|linting|coverage|cov|bench\w*|profiling|ci|mypy"
    r"|typing|types|pre[-_]?commit|release|build|all[-_]dev|tox|nox|compare)([-_].*)?",
    re.IGNORECASE,
)
"""Extras that only those who work on the package want."""


def cite(said: Said) -> Citation:
    """The place of something that a manifest says."""
    return Citation(said.path, said.line, said.last, said.basis)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Says what a package's own files support."""

    ledger: Ledger
    product: str
    manifest: Manifest

    def version(self) -> None:
        """The version, where a file of the repository says it."""
        if said := self.manifest.version:
            text = f"The version of {self.product} in this repository is {said.value}."
            self.ledger.add(text, "other", [cite(said)], group="compatibility_notes")

    def description(self, subject: Subject) -> str:
        """The summary as a claim; "" without one that can be said."""
        said = self.manifest.description
        text = summary_sentence(said.value, subject) if said else ""
        return self.ledger.add(text, "feature", [cite(said)]) if said and text else ""

    def runtime(self) -> str:
        """Which versions of its language or runtime it needs; the claim's id."""
        said = self.manifest.requires
        name = _RUNTIMES.get(self.manifest.ecosystem, "")
        if said is None:
            return ""
        if self.manifest.ecosystem == "nuget":
            frameworks = " and ".join(f"`{each}`" for each in said.value.split(";") if each)
            text = f"{self.product} targets {frameworks}."
        elif self.manifest.ecosystem == "source":
            text = f"{self.product} is built with {said.value}."
        elif plain := re.fullmatch(r">=\s*v?([\d.]+)", said.value):
            text = f"{self.product} requires {name} {plain[1]} or later."
        elif re.fullmatch(r"[\d.]+", said.value):
            text = f"{self.product} requires {name} {said.value}."
        else:
            text = f"{self.product} requires a {name} version that satisfies `{said.value}`."
        return self.ledger.add(text, "other", [cite(said)], group="compatibility_notes")

    def licence(self, licence: Licence | None, more: list[Citation]) -> str:
        """Under which licence it is."""
        if licence is None or not licence.spdx:
            return ""
        called = licences.NAMES.get(licence.spdx)
        words_for = f"{called} (`{licence.spdx}`)" if called else f"`{licence.spdx}`"
        text = f"{self.product} is licensed under the {words_for.removeprefix('The ')}."
        if not called:
            text = f"The licence of {self.product} is {words_for}."
        return self.ledger.add(text, "other", more, group="compatibility_notes")

    def dependencies(self) -> str:
        """What it needs at run time; "" where the manifest leaves that to a tool."""
        needs = self.manifest.dependencies
        if needs is None or self.manifest.ecosystem == "source":
            return ""
        place = cite(self.manifest.name or Said("", self.manifest.path))
        names = [self.bare(each.value) for each in needs if not _conditional(each.value)]
        if not needs:
            peers = self.manifest.optional.get("peerDependencies")
            if not peers:
                text = f"{self.product} has no required runtime dependencies."
                return self.ledger.add(text, "other", [place], group="compatibility_notes")
        elif names and len(names) <= 12:
            listed = _listed([f"`{name}`" for name in dict.fromkeys(names)])
            text = f"{self.product} depends on {listed} at run time."
            citations = [cite(each) for each in needs]
            return self.ledger.add(text, "other", citations, group="compatibility_notes")
        return ""

    def commands(self) -> None:
        """What one can type once it is installed."""
        for said in self.manifest.commands:
            runs = f", which runs `{said.detail}`" if said.detail else ""
            text = f"Installing {self.product} provides the `{said.value}` command{runs}."
            self.ledger.add(text, "feature", [cite(said)], group="key_features")

    def imported(self, names: list[Said]) -> None:
        """What a program imports."""
        if not names:
            return
        shown = _listed([f"`{each.value}`" for each in names], "or")
        how = {
            "pip": f"Python code imports {self.product} as {shown}.",
            "npm": f"JavaScript code imports {self.product} from {shown}.",
            "nuget": f"The namespace of {self.product} is {shown}.",
            "maven": f"The Java package of {self.product} is {shown}.",
            "go": f"Go code imports {self.product} from {shown}.",
            "cargo": f"Rust code uses {self.product} as the crate {shown}.",
            "composer": f"The PHP namespace of {self.product} is {shown}.",
            "gem": f'Ruby code loads {self.product} with `require "{names[0].value}"`.',
            "swiftpm": f"Swift code imports {self.product} as {shown}.",
        }.get(self.manifest.ecosystem)
        if how:
            places = [cite(each) for each in (*names, self.manifest.name) if each]
            self.ledger.add(how, "api", places, group="quickstart_steps")

    def api(self, surface: Surface) -> dict[str, str]:
        """A claim for each public name, the documented ones first; name and claim id."""
        told: dict[str, str] = {}
        ranked = sorted(surface.symbols, key=lambda each: (not each.exported, not each.doc))
        for symbol in ranked[:API_CLAIMS]:
            places = [Citation(symbol.path, symbol.line, symbol.end, "source_code")]
            if symbol.maker[0]:
                places.append(Citation(symbol.path, *symbol.maker, "source_code"))
            if symbol.doc:
                end = max(symbol.doc_line, symbol.doc_end)
                places.append(Citation(symbol.path, symbol.doc_line, end, "api_doc"))
            if text := words.described(symbol, self.product):
                told[symbol.name] = self.ledger.add(text, "api", places)
            elif symbol.exported and not symbol.deprecated:
                text = words.listed(symbol, self.product)
                told[symbol.name] = self.ledger.add(text, "api", places)
        return told

    def formats(self, found: list[Format]) -> list[dict[str, str]]:
        """What the code says about formats, with its claims."""
        made: list[dict[str, str]] = []
        for each in found:
            verb = _WAYS.get(each.direction, "supports")
            if each.is_function:
                text = f"{self.product} {verb} the {each.name} format with `{each.said_by}()`."
            elif each.supported:
                text = (
                    f"{self.product} lists {each.name} in `{each.said_by}` as a format it {verb}."
                )
            else:
                text = f"{self.product} names the {each.name} format in `{each.said_by}`."
            known = each.is_function or each.supported
            claim = self.ledger.add(text, "format", each.citations)
            made.append(
                {
                    "format": each.name,
                    "status": "implemented" if known else "unknown",
                    "direction": each.direction,
                    "claim_id": claim,
                }
            )
        return made

    def bare(self, requirement: str) -> str:
        """The name in a requirement, without versions and conditions."""
        if self.manifest.ecosystem == "npm":
            return requirement.rpartition("@")[0] or requirement
        if self.manifest.ecosystem == "pip":
            match = re.match(r"[A-Za-z0-9][\w.-]*(\[[^\]]*\])?", requirement.strip())
            return match[0] if match else requirement
        return requirement


def licence_of(tree: Tree, manifest: Manifest | None) -> tuple[Licence | None, list[Citation]]:
    """The licence that the manifest names, else that of the licence file; and all who say so."""
    said = manifest.licence if manifest else None
    spdx = licences.from_words(said.value) if said else ""
    places = [cite(said)] if said and spdx else []
    marks = [
        each for each in (manifest.classifiers if manifest else ()) if "License ::" in each.value
    ]
    for mark in marks:
        meant = licences.from_words(mark.value)
        if meant and len(marks) == 1 and meant == (spdx or meant):
            spdx, places = meant, [*places, cite(mark)]
    files = licences.files(tree)
    known = {path: licences.from_text(tree.text(path) or "") for path in files}
    main = files[0] if files and re.fullmatch(r"\w+(\.(md|txt|rst))?", files[0]) else ""
    for path in files:
        alone = path == main or len(set(known.values())) == 1
        if known[path] and alone and not spdx:
            spdx = known[path]
        if known[path] == spdx and spdx:
            lines = (tree.text(path) or "").count("\n")
            places.append(Citation(path, 1, max(1, min(lines, _HEAD)), "manifest"))
    if not spdx:
        return (Licence("", files[0]) if files else None), []
    return Licence(spdx, files[0] if files else ""), places


def _conditional(requirement: str) -> bool:
    return ";" in requirement


def _listed(words_given: list[str], joint: str = "and") -> str:
    if len(words_given) < 2:
        return "".join(words_given)
    return f"{', '.join(words_given[:-1])} {joint} {words_given[-1]}"
