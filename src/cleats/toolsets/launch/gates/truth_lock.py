"""Every statement of fact on a page is proved by lines of the product's own repository.

A marked statement must name claims that exist, say what they say, and rest on lines that are
there and speak of it. An unmarked bullet is no fact and may not look like one. Some things are
never guessed: formats, figures, security, compliance, performance.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker
from cleats.toolsets.launch.gates.site import PageFile, Site
from cleats.toolsets.launch.gates.statements import (
    Statement,
    about,
    leads_on,
    names_only,
    plain,
    statements,
)
from cleats.toolsets.launch.gates.wording import (
    Weights,
    negated,
    numbers,
    share,
    stems,
    unknown_names,
)

DRIFT = 0.6
"""How much of a statement's words its claims or their sources must hold. A rewording keeps most
of them; another statement under the same marker does not."""

TOPICS: Mapping[str, re.Pattern[str]] = {
    "security": re.compile(r"(?i)\b(?:secur(?:e|ely|ity)|encrypt\w*|vulnerab\w*|tamper-?proof)\b"),
    "compliance": re.compile(
        r"(?i)\b(?:complian(?:t|ce)|certified|GDPR|HIPAA|SOC ?2|FIPS|ISO \d+)\b"
    ),
    "performance": re.compile(
        r"(?i)\b(?:fast(?:er|est)?|blazing\w*|high[- ]performance|performant|low[- ]latency|"
        r"lightning|scal(?:able|es)|memory[- ]efficient|\d+x)\b"
    ),
}
SPECULATIVE = re.compile(
    r"(?i)\b(?:may|might|could|probably|possibly|perhaps|likely|presumably|should be able|"
    r"is expected to|are expected to|seems?|appears? to|planned|upcoming)\b"
)
FORMATS = frozenset(
    re.findall(
        r"\w+",
        """
    3DS 3MF AMF AVIF BMP CAD CSV DAE DOC DOCM DOCX DRC DWF DWG DXF EML EMF EPS EPUB FBX GIF GLB GLTF
    HEIC HTML IFC JPEG JPG JSON LATEX MBOX MHT MHTML MOBI MPP MPX MSG OBJ ODP ODS ODT ONE PCD PDF
    PLY PNG POT POTX PPS PPSX PPT PPTX PSB PSD PST RTF RVM STL SVG TGA TIF TIFF TSV TXT U3D USD
    USDZ VCF VDX VRML VSD VSDX VSX WEBP WMF X3D XLS XLSB XLSM XLSX XML XPS YAML ZIP 7Z TAR GZ
    """,
    )
)
"""What a reader takes for a file format when it stands in capitals."""
_FORMAT = re.compile(r"(?<![\w./-])(?:[A-Z0-9]{2,5}|[Gg][Ll][Tt][Ff]|LaTeX)(?![\w-])")
_NOTHING = re.compile(r"(?i)\b(?:no|none|nothing|without)\b")
_CODE = re.compile(r"`([^`]+)`")
_HOLDS = re.compile(
    r"(?i)\b(?:import|export|convert|load|save|read|write|open|support|format)\w*\b"
)


class Evidence:
    """The claims of the run, and the lines they rest on."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lines: dict[str, list[str] | None] = {}

    @property
    def claims(self) -> Mapping[str, Mapping[str, Any]]:
        return self._site.evidence

    @cached_property
    def weights(self) -> Weights:
        """How much the words of the claims tell."""
        return Weights(claim["claim_text"] for claim in self.claims.values())

    @cached_property
    def formats(self) -> frozenset[str]:
        """The formats that the product is known to have, in capitals."""
        listed = self._site.facts.get("supported_formats", ())
        known = {
            str(each["format"]).upper().lstrip(".")
            for each in listed
            if each.get("status") == "implemented"
        }
        for claim in self.claims.values():
            known.update(found_formats(claim["claim_text"]))
        return frozenset(known)

    def cited(self, citation: Mapping[str, Any]) -> str | None:
        """The text of the lines that a citation names; None when they are not there."""
        path = str(citation["path"])
        if path not in self._lines:
            self._lines[path] = self._read(path)
        lines = self._lines[path]
        start, end = int(citation["start_line"]), int(citation["end_line"])
        if lines is None or not 1 <= start <= end <= len(lines):
            return None
        return "\n".join(lines[start - 1 : end])

    def _read(self, path: str) -> list[str] | None:
        root = self._site.job.repo.resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or Path(path).is_absolute() or not file.is_file():
            return None
        # A form feed or U+2028 ends no line for those who cite: only line ends do.
        text = file.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        return text.replace("\r", "\n").removesuffix("\n").split("\n")

    def sources(self, claim: Mapping[str, Any]) -> str:
        """Everything that a claim rests on: the lines, and the names of their files."""
        cited = ((each["path"], self.cited(each)) for each in claim["citations"])
        return "\n".join(f"{path}\n{lines}" for path, lines in cited if lines is not None)


def check(site: Site) -> Iterator[Said]:
    evidence = Evidence(site)
    yield from _identity(site)
    uses: dict[str, list[tuple[str, int]]] = {}
    for file in site.files:
        for claim in file.claims:
            uses.setdefault(claim.claim_id, []).append((file.path, claim.line))
        for statement in statements(file):
            yield from _statement(site, evidence, file, statement)
        yield f"{file.path}: {len(file.claims)} claims"
    for claim_id in sorted(uses.keys() & evidence.claims.keys()):
        for code, message in _claim(site, evidence, evidence.claims[claim_id]):
            yield from (blocker(code, message, *place) for place in uses[claim_id])
    for claim_id, code, message in _contradictions(site):
        yield from (blocker(code, message, *place) for place in uses.get(claim_id, ()))


def _identity(site: Site) -> Iterator[Finding]:
    facts, evidence = site.facts, site.document("evidence_map.json")
    for name, document in (("product_facts.json", facts), ("evidence_map.json", evidence)):
        if not document:
            yield blocker("GATE_TRUTH_NO_EVIDENCE", f"the run has no {name}")
        elif document.get("repo_sha") != site.config["github_ref"]:
            message = f"{name} speaks of another commit than the run"
            yield blocker("GATE_TRUTH_IDENTITY", message, name)
    if facts and evidence and facts.get("repo_url") != evidence.get("repo_url"):
        message = "the facts and the evidence speak of different repositories"
        yield blocker("GATE_TRUTH_IDENTITY", message, "product_facts.json")


def _statement(
    site: Site, evidence: Evidence, file: PageFile, statement: Statement
) -> Iterator[Finding]:
    unknown = [each for each in statement.claim_ids if each not in evidence.claims]
    for claim_id in unknown:
        message = f"no evidence has the claim {claim_id}"
        yield blocker("GATE_TRUTH_UNKNOWN_CLAIM", message, file.path, statement.line)
    if not statement.claim_ids:
        yield from _unproved(site, evidence, file, statement)
        return
    claims = [evidence.claims[each] for each in statement.claim_ids if each not in unknown]
    if claims:
        for code, message in _against(site, evidence, statement, claims):
            yield blocker(code, message, file.path, statement.line)


def _against(
    site: Site, evidence: Evidence, statement: Statement, claims: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Where a statement says something else than its claims: code and message."""
    text = plain(statement.text)
    claimed = " ".join(claim["claim_text"] for claim in claims)
    known = "\n".join([claimed, *(evidence.sources(claim) for claim in claims)])
    free = str(site.facts.get("product_name", ""))
    words = plain(_CODE.sub(" ", statement.text))  # names in code are looked up one by one
    if share(words, known, free=free, weights=evidence.weights) < DRIFT:
        yield "GATE_TRUTH_DRIFT", "the statement does not say what its claim says"
    elif negated(statement.text) != negated(claimed):
        yield "GATE_TRUTH_DRIFT", "the statement says the opposite of its claim"
    for number in sorted(numbers(text) - numbers(known)):
        message = f"the figure {number} is not in the evidence of the statement"
        yield "GATE_TRUTH_FIGURE", message
    for name in sorted(found_formats(text) - found_formats(known)):
        yield "GATE_TRUTH_FORMAT", f"the evidence of the statement does not know the format {name}"
    for name in unknown_names(statement.text, known):
        yield "GATE_TRUTH_NAME", f"the evidence of the statement does not know `{name}`"
    guesses = SPECULATIVE.search(text) and not SPECULATIVE.search(known)
    if guesses and not site.config.get("allow_inference", False):
        yield "GATE_TRUTH_SPECULATION", "the statement guesses, and this launch may not"


def _unproved(
    site: Site, evidence: Evidence, file: PageFile, statement: Statement
) -> Iterator[Finding]:
    text, line = plain(statement.text), statement.line
    if statement.kind == "bullet" and not leads_on(statement.text) and stems(text):
        message = "a bullet states a fact and names no claim"
        yield blocker("GATE_TRUTH_UNMARKED", message, file.path, line)
        return
    if statement.kind == "row" and not names_only(statement.text):
        message = "a row of a table states a fact and names no claim"
        yield blocker("GATE_TRUTH_UNMARKED", message, file.path, line)
        return
    for topic, words in TOPICS.items():
        if found := words.search(text):
            message = f"{found.group()!r} speaks of {topic} and names no claim"
            yield blocker("GATE_TRUTH_TOPIC", message, file.path, line)
    if _HOLDS.search(text):
        for name in sorted(found_formats(text) - evidence.formats):
            message = f"no evidence knows the format {name}"
            yield blocker("GATE_TRUTH_FORMAT", message, file.path, line)
    if statement.kind == "text" and about(str(site.facts.get("product_name", "")), text):
        message = "a sentence says what the product is or does and names no claim"
        yield blocker("GATE_TRUTH_SENTENCE", message, file.path, line)
    if statement.kind == "text" and (figures := sorted(numbers(_unspanned(statement.text)))):
        message = f"the figure {figures[0]} stands in a statement that names no claim"
        yield blocker("GATE_TRUTH_FIGURE", message, file.path, line)


def _unspanned(text: str) -> str:
    """A text without its code and its addresses, whose figures are names."""
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+", " ", text)


def _claim(site: Site, evidence: Evidence, claim: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why a claim does not hold: code and message."""
    name, text = claim["claim_id"], claim["claim_text"]
    if not claim["citations"]:
        yield "GATE_TRUTH_UNCITED", f"the claim {name} cites nothing"
        return
    for citation in claim["citations"]:
        if evidence.cited(citation) is None:
            place = f"{citation['path']}:{citation['start_line']}-{citation['end_line']}"
            message = f"the claim {name} cites lines that are not there: {place}"
            yield "GATE_TRUTH_CITATION", message
            return
    if not _absence(claim) and not supports(site, text, evidence.sources(claim)):
        yield "GATE_TRUTH_UNSUPPORTED", f"the lines that the claim {name} cites do not speak of it"
    if forbidden(site, claim):
        message = f"the claim {name} is inferred, and what it speaks of may not be"
        yield "GATE_TRUTH_INFERENCE", message


def supports(site: Site, text: str, sources: str) -> bool:
    """Whether lines speak of what a claim says; that they name the product proves nothing.

    A name in code is another matter: it stands for itself, also when the product is called so.
    """
    code = {word for span in _CODE.findall(text) for word in re.findall(r"\w{2,}", span)}
    if code & set(re.findall(r"\w{2,}", sources)):
        return True
    name = str(site.facts.get("product_name", ""))
    rest = text.replace(name, " ") if name else text
    return share(rest, sources) > 0


def _absence(claim: Mapping[str, Any]) -> bool:
    """Whether a claim says that a manifest lacks something: no line of it can show that."""
    manifest = all(each.get("source_type") == "manifest" for each in claim["citations"])
    return manifest and _NOTHING.search(claim["claim_text"]) is not None


def forbidden(site: Site, claim: Mapping[str, Any]) -> bool:
    """Whether a claim is a guess about something that may not be guessed."""
    if claim["truth_status"] != "inference" or site.config.get("allow_inference", False):
        return False
    text = claim["claim_text"]
    return claim["claim_kind"] == "format" or any(each.search(text) for each in TOPICS.values())


def _contradictions(site: Site) -> Iterator[tuple[str, str, str]]:
    """The claims that contradict others: id, code and message."""
    for each in site.document("evidence_map.json").get("contradictions", ()):
        both = {each["claim_a_id"], each["claim_b_id"]}
        losing = both - {each.get("winning_claim_id", "")}
        for claim_id in sorted(losing):
            other = next(iter(both - {claim_id}), claim_id)
            if len(losing) == 1:
                yield (
                    claim_id,
                    "GATE_TRUTH_CONTRADICTED",
                    f"the claim {claim_id} lost against {other}",
                )
            else:
                message = f"the claims {claim_id} and {other} contradict each other"
                yield claim_id, "GATE_TRUTH_CONTRADICTION", message


def found_formats(text: str) -> set[str]:
    """The file formats that a text names."""
    return {name.upper() for name in _FORMAT.findall(text)} & FORMATS


GATE = Gate(
    name="truth_lock", purpose=__doc__, check=check, reads_pages=True, local=60.0, strict=120.0
)
