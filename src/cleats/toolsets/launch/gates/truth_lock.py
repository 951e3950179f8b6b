"""Every statement of fact on a page must be proved by lines of the product's own repository.

Some topics are never guessed: formats, figures, security, compliance, performance.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.evidence_reader import EvidenceReader
from cleats.toolsets.launch.gates.model import FixCase, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.page_text import remove_lines
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue
from cleats.toolsets.launch.site import claim_markers
from cleats.toolsets.launch.source.text import english

MIN_WORD_OVERLAP = 0.6
"""Minimum share of a statement's words that its claims or their sources must contain. A rewording
keeps most of them; another statement under the same marker does not."""

PROTECTED_TOPIC_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "security": re.compile(r"(?i)\b(?:secur(?:e|ely|ity)|encrypt\w*|vulnerab\w*|tamper-?proof)\b"),
    "compliance": re.compile(r"(?i)\b(?:complian(?:t|ce)|certified|GDPR|HIPAA|SOC ?2|FIPS|ISO \d+)\b"),
    "performance": re.compile(
        r"(?i)\b(?:fast(?:er|est)?|blazing\w*|high[- ]performance|performant|low[- ]latency|"
        r"lightning|scal(?:able|es)|memory[- ]efficient|\d+x)\b"
    ),
}
"""Patterns of topics about which a launch must not guess, by topic."""
SPECULATION_PATTERN = english.load_expression("speculation")
_CODE_OR_LINK_PATTERN = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+")
_NAME_LIST_PATTERN = re.compile(r"(?:Also public|Public|Other members|Members): (?:`[^`]+`(?:, |\.))+\s*")
_ABSENCE_PATTERN = re.compile(r"(?i)\b(?:no|none|nothing|without)\b")
_FORMAT_VERB_PATTERN = re.compile(r"(?i)\b(?:import|export|convert|load|save|read|write|open|support|format)\w*\b")


def check_truth(site: LaunchSite) -> Iterator[GateMessage]:
    evidence = EvidenceReader(site)
    yield from _check_identity(site)
    locations_by_claim: dict[str, list[tuple[str, int]]] = {}
    for file in site.files:
        for claim in file.claims:
            locations_by_claim.setdefault(claim.claim_id, []).append((file.path, claim.line))
        for statement in page_text.list_statements(file):
            yield from _check_statement(site, evidence, file, statement)
        is_changed = any(change.path == file.path for change in site.changes)  # else it lists an earlier commit
        if evidence.claims and is_changed:
            yield from _check_evidence_list(site, file)
        yield f"{file.path}: {len(file.claims)} claims"
    for claim_id in sorted(locations_by_claim.keys() & evidence.claims.keys()):
        for kind, message in _check_claim(site, evidence, evidence.claims[claim_id]):
            yield from (kind.draft(message, *location) for location in locations_by_claim[claim_id])
    for claim_id, kind, message in _find_contradictions(site):
        yield from (kind.draft(message, *location) for location in locations_by_claim.get(claim_id, ()))


def _check_identity(site: LaunchSite) -> Iterator[IssueDraft]:
    facts, evidence = site.facts, site.load_document("evidence_map.json")
    for name, document in (("product_facts.json", facts), ("evidence_map.json", evidence)):
        if not document:
            yield MISSING_EVIDENCE.draft(f"the run has no {name}")
        elif document.get("repo_sha") != site.config["github_ref"]:
            yield OTHER_COMMIT.draft(f"{name} belongs to another commit than the run", name)
    if facts and evidence and facts.get("repo_url") != evidence.get("repo_url"):
        yield OTHER_COMMIT.draft("the facts and the evidence belong to different repositories", "product_facts.json")


def _check_evidence_list(site: LaunchSite, file: PageFile) -> Iterator[IssueDraft]:
    """Check that the list of evidence names exactly the claims and programs of the page, with their places."""
    evidence_list = claim_markers.parse_evidence_list(file.body, file.body_line)
    line_by_claim = {claim.claim_id: claim.line for claim in reversed(file.claims) if claim.claim_id in site.evidence}
    for claim_id in sorted(line_by_claim.keys() - evidence_list.places_by_claim.keys()):
        message = f"the page does not list the evidence of the claim {claim_id}"
        yield WRONG_EVIDENCE_LIST.draft(message, file.path, line_by_claim[claim_id])
    for claim_id, places in evidence_list.places_by_claim.items():
        if claim_id not in line_by_claim:
            message = f"the page lists evidence of the claim {claim_id}, which no statement names"
            yield WRONG_EVIDENCE_LIST.draft(message, file.path, evidence_list.line)
        elif places != claim_markers.format_places(site.evidence[claim_id]):
            message = f"the page lists other evidence of the claim {claim_id} than the evidence map"
            yield WRONG_EVIDENCE_LIST.draft(message, file.path, evidence_list.line)
    if list(evidence_list.program_places) != claim_markers.list_program_places(file.body, site.passed_programs):
        message = "the page lists other programs that ran than the catalogue of snippets"
        yield WRONG_EVIDENCE_LIST.draft(message, file.path, evidence_list.line)
    if evidence_list.line and evidence_list.commit != site.config["github_ref"]:
        message = "the page lists evidence of another commit than that of the run"
        yield WRONG_EVIDENCE_LIST.draft(message, file.path, evidence_list.line)


def _check_statement(
    site: LaunchSite, evidence: EvidenceReader, file: PageFile, statement: page_text.Statement
) -> Iterator[IssueDraft]:
    unknown_ids = [cited_id for cited_id in statement.claim_ids if cited_id not in evidence.claims]
    for claim_id in unknown_ids:
        yield UNKNOWN_CLAIM.draft(f"the claim {claim_id} is not in the evidence", file.path, statement.line)
    if not statement.claim_ids:
        yield from _check_unmarked(site, evidence, file, statement)
        return
    claims = [evidence.claims[cited_id] for cited_id in statement.claim_ids if cited_id not in unknown_ids]
    if claims:
        for kind, message in _check_against_claims(site, evidence, statement, claims):
            yield kind.draft(message, file.path, statement.line)


def _check_against_claims(
    site: LaunchSite, evidence: EvidenceReader, statement: page_text.Statement, claims: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[IssueKind, str]]:
    text = page_text.strip_markup(statement.text)
    claimed_text = " ".join(claim["claim_text"] for claim in claims)
    sources = (evidence.read_sources(claim) for claim in claims)
    evidence_text = "\n".join([claimed_text, page_text.strip_markup(claimed_text), *sources])
    product_name = str(site.facts.get("product_name", ""))
    # Names in code are looked up separately.
    prose = page_text.strip_markup(page_text.NAMED_CODE_PATTERN.sub(" ", statement.text))
    overlap = page_text.measure_overlap(prose, evidence_text, ignored=product_name, weigh=evidence.weigh_word)
    # A list of names states that they exist; each is looked up below.
    if overlap < MIN_WORD_OVERLAP and not _NAME_LIST_PATTERN.fullmatch(statement.text):
        yield DRIFTED_STATEMENT, "the statement does not say what its claim says"
    elif _is_contradiction(statement.text, claimed_text):
        yield DRIFTED_STATEMENT, "the statement says the opposite of its claim"
    for number in sorted(page_text.find_numbers(text) - page_text.find_numbers(evidence_text)):
        yield UNKNOWN_FIGURE, f"the figure {number} is not in the evidence of the statement"
    for name in sorted(page_text.find_formats(text) - page_text.find_formats(evidence_text)):
        yield UNKNOWN_FORMAT, f"the evidence of the statement does not mention the format {name}"
    for name in page_text.find_unknown_names(statement.text, evidence_text):
        yield UNKNOWN_NAME, f"the evidence of the statement does not mention `{name}`"
    is_speculative = SPECULATION_PATTERN.search(text) and not SPECULATION_PATTERN.search(evidence_text)
    if is_speculative and not site.config.get("allow_inference", False):
        yield SPECULATIVE_STATEMENT, "the statement is a guess, and this launch does not allow inference"


def _is_contradiction(statement: str, claimed_text: str) -> bool:
    """Return whether only one of two texts denies something; a list of names without a negation says nothing else."""
    is_negated = page_text.is_negated(statement)
    is_list = page_text.has_only_names(statement) and not is_negated
    return not is_list and is_negated != page_text.is_negated(claimed_text)


def _check_unmarked(
    site: LaunchSite, evidence: EvidenceReader, file: PageFile, statement: page_text.Statement
) -> Iterator[IssueDraft]:
    text, line = page_text.strip_markup(statement.text), statement.line
    if statement.kind == "bullet" and not page_text.is_navigation_item(statement.text) and page_text.stem_words(text):
        yield UNMARKED_FACT.draft("a bullet states a fact without a claim", file.path, line)
        return
    if statement.kind == "row" and not page_text.has_only_names(statement.text):
        yield UNMARKED_FACT.draft("a row of a table states a fact without a claim", file.path, line)
        return
    for topic, topic_pattern in PROTECTED_TOPIC_PATTERNS.items():
        if match := topic_pattern.search(text):
            yield PROTECTED_TOPIC.draft(f"{match.group()!r} speaks of {topic} without a claim", file.path, line)
    if _FORMAT_VERB_PATTERN.search(text):
        for name in sorted(page_text.find_formats(text) - evidence.formats):
            yield UNKNOWN_FORMAT.draft(f"no evidence mentions the format {name}", file.path, line)
    if statement.kind == "text" and page_text.find_product_sentence(str(site.facts.get("product_name", "")), text):
        yield PRODUCT_SENTENCE.draft("a sentence says what the product is or does without a claim", file.path, line)
    # Figures in code and addresses are parts of names.
    figures = sorted(page_text.find_numbers(_CODE_OR_LINK_PATTERN.sub(" ", statement.text)))
    if statement.kind == "text" and figures:
        message = f"the figure {figures[0]} is in a statement without a claim"
        yield UNKNOWN_FIGURE.draft(message, file.path, line)


def _check_claim(
    site: LaunchSite, evidence: EvidenceReader, claim: Mapping[str, Any]
) -> Iterator[tuple[IssueKind, str]]:
    claim_id, text = claim["claim_id"], claim["claim_text"]
    if not claim["citations"]:
        yield UNCITED_CLAIM, f"the claim {claim_id} cites nothing"
        return
    for citation in claim["citations"]:
        if evidence.read_citation(citation) is None:
            location = f"{citation['path']}:{citation['start_line']}-{citation['end_line']}"
            yield BROKEN_CITATION, f"the claim {claim_id} cites lines that do not exist: {location}"
            return
    # No line can show that a manifest lacks something.
    cites_manifests = all(citation.get("source_type") == "manifest" for citation in claim["citations"])
    is_absence = cites_manifests and _ABSENCE_PATTERN.search(text)
    if not is_absence and not is_supported(site, text, evidence.read_sources(claim)):
        yield UNSUPPORTED_CLAIM, f"the lines that the claim {claim_id} cites do not support it"
    if is_forbidden_inference(site, claim):
        yield FORBIDDEN_INFERENCE, f"the claim {claim_id} is inferred, which is not allowed for its topic"


def is_supported(site: LaunchSite, text: str, sources: str) -> bool:
    """Return whether lines speak of what a claim says; the product's name alone counts only in code."""
    code_words = {word for span in page_text.NAMED_CODE_PATTERN.findall(text) for word in re.findall(r"\w{2,}", span)}
    if code_words & set(re.findall(r"\w{2,}", sources)):
        return True
    name = str(site.facts.get("product_name", ""))
    remaining_text = text.replace(name, " ") if name else text
    return page_text.measure_overlap(remaining_text, sources) > 0


def is_forbidden_inference(site: LaunchSite, claim: Mapping[str, Any]) -> bool:
    """Return whether a claim is an inference about something that must not be inferred."""
    if claim["truth_status"] != "inference" or site.config.get("allow_inference", False):
        return False
    patterns = PROTECTED_TOPIC_PATTERNS.values()
    return claim["claim_kind"] == "format" or any(pattern.search(claim["claim_text"]) for pattern in patterns)


def _find_contradictions(site: LaunchSite) -> Iterator[tuple[str, IssueKind, str]]:
    """Yield the id, kind and message of each claim that contradicts another."""
    for contradiction in site.load_document("evidence_map.json").get("contradictions", ()):
        claim_ids = {contradiction["claim_a_id"], contradiction["claim_b_id"]}
        losing_ids = claim_ids - {contradiction.get("winning_claim_id", "")}
        for claim_id in sorted(losing_ids):
            other_id = next(iter(claim_ids - {claim_id}), claim_id)
            if len(losing_ids) == 1:
                yield claim_id, LOST_CLAIM, f"the claim {claim_id} is contradicted by the stronger claim {other_id}"
            else:
                yield claim_id, OPEN_CONTRADICTION, f"the claims {claim_id} and {other_id} contradict each other"


# No fix adds a claim: a statement is restored to what the evidence says, or removed.


def fix_unmarked_statements(case: FixCase) -> str:
    """Restore the marker of a bullet, or mark the claim that it repeats; otherwise remove it."""
    evidence = case.site.evidence
    claim_ids_by_text = {_normalise_statement(claim["claim_text"]): claim_id for claim_id, claim in evidence.items()}
    for claim in case.drafted_file.claims if case.drafted_file else ():
        if claim.claim_id in evidence:
            claim_ids_by_text[_normalise_statement(claim.statement)] = claim.claim_id
    lines = case.text.split("\n")
    removed_lines = []
    for number in sorted(case.lines):
        unmarked_line = claim_markers.strip_claim_markers(lines[number - 1])
        if claim_id := claim_ids_by_text.get(_normalise_statement(unmarked_line)):
            lines[number - 1] = f"{unmarked_line.rstrip()} {claim_markers.render_claim_marker([claim_id])}"
        else:
            removed_lines.append(number)
    return _remove_items("\n".join(lines), removed_lines)


def fix_drifted_statements(case: FixCase) -> str:
    """Restate the claim, in the words of the draft if it has them."""
    drafted_claims = case.drafted_file.claims if case.drafted_file else ()
    drafted_statements = {claim.claim_id: claim.statement for claim in drafted_claims}
    lines = case.text.split("\n")
    removed_lines = []
    for number in sorted(case.lines):
        line = lines[number - 1]
        claim_ids = [claim_id for claim_id in claim_markers.find_claim_ids(line) if claim_id in case.site.evidence]
        item = page_text.LIST_ITEM_PATTERN.match(line)
        if len(claim_ids) != 1:
            removed_lines.append(number)
            continue
        statement = drafted_statements.get(claim_ids[0], "")
        present = page_text.LIST_ITEM_PATTERN.sub("", claim_markers.strip_claim_markers(line)).strip()
        if statement in ("", present):
            statement = " ".join(str(case.site.evidence[claim_ids[0]]["claim_text"]).split())
        new_line = f"{item.group(1) if item else ''}{statement} {claim_markers.render_claim_marker(claim_ids)}"
        if new_line == line:
            removed_lines.append(number)
        lines[number - 1] = new_line
    return _remove_items("\n".join(lines), removed_lines)


def fix_evidence_list(case: FixCase) -> str:
    """Write the list of evidence again from the markers of the page."""
    commit = str(case.site.config["github_ref"])
    return claim_markers.refresh_evidence_list(case.text, case.site.evidence, commit, case.site.passed_programs)


def remove_statements(case: FixCase) -> str:
    return _remove_items(case.text, case.lines)


def _normalise_statement(text: str) -> str:
    return " ".join(page_text.strip_markup(page_text.LIST_ITEM_PATTERN.sub("", text)).casefold().split()).rstrip(".")


def _remove_items(text: str, numbers: Iterable[int]) -> str:
    """Remove lines and, for an item of a list, also its continuation lines."""
    lines = text.split("\n")
    removed_lines = set()
    for number in numbers:
        removed_lines.add(number)
        item_match = page_text.LIST_ITEM_PATTERN.match(lines[number - 1])
        if item_match is None:
            continue
        width = len(item_match.group(1))
        for last_line, line in enumerate(lines[number:], start=number + 1):
            if not line.strip() or len(line) - len(line.lstrip()) < width:
                break
            removed_lines.add(last_line)
    return remove_lines(text, removed_lines)


_FOLLOW_EVIDENCE = "Say what the cited lines say, or remove the statement."
_NAME_CLAIM = "Name the claim that proves it at the end of the line, or remove it."

MISSING_EVIDENCE = IssueKind("GATE_TRUTH_NO_EVIDENCE", "blocker", "Start the run again: its evidence is missing.")
OTHER_COMMIT = IssueKind("GATE_TRUTH_IDENTITY", "blocker", "Start the run again: its evidence is of another commit.")
UNMARKED_FACT = IssueKind("GATE_TRUTH_UNMARKED", "blocker", _NAME_CLAIM, fix_unmarked_statements)
_NAME_KNOWN_CLAIM = "Name a claim of evidence_map.json, or remove the statement."
UNKNOWN_CLAIM = IssueKind("GATE_TRUTH_UNKNOWN_CLAIM", "blocker", _NAME_KNOWN_CLAIM, fix_unmarked_statements)
DRIFTED_STATEMENT = IssueKind("GATE_TRUTH_DRIFT", "blocker", _FOLLOW_EVIDENCE, fix_drifted_statements)
UNKNOWN_FIGURE = IssueKind("GATE_TRUTH_FIGURE", "blocker", _FOLLOW_EVIDENCE, fix_drifted_statements)
UNKNOWN_FORMAT = IssueKind("GATE_TRUTH_FORMAT", "blocker", _FOLLOW_EVIDENCE, fix_drifted_statements)
UNKNOWN_NAME = IssueKind("GATE_TRUTH_NAME", "blocker", _FOLLOW_EVIDENCE, fix_drifted_statements)
SPECULATIVE_STATEMENT = IssueKind("GATE_TRUTH_SPECULATION", "blocker", _FOLLOW_EVIDENCE, fix_drifted_statements)
PRODUCT_SENTENCE = IssueKind("GATE_TRUTH_SENTENCE", "blocker", _NAME_CLAIM, fix_unmarked_statements)
PROTECTED_TOPIC = IssueKind("GATE_TRUTH_TOPIC", "blocker", "Support it with a claim, or remove it.", remove_statements)
WRONG_EVIDENCE_LIST = IssueKind(
    "GATE_TRUTH_LIST", "blocker", "Write the list of evidence as the evidence map has it.", fix_evidence_list
)
UNCITED_CLAIM = IssueKind("GATE_TRUTH_UNCITED", "blocker", _FOLLOW_EVIDENCE, remove_statements)
BROKEN_CITATION = IssueKind("GATE_TRUTH_CITATION", "blocker", _FOLLOW_EVIDENCE, remove_statements)
UNSUPPORTED_CLAIM = IssueKind("GATE_TRUTH_UNSUPPORTED", "blocker", _FOLLOW_EVIDENCE, remove_statements)
FORBIDDEN_INFERENCE = IssueKind(
    "GATE_TRUTH_INFERENCE",
    "blocker",
    "Remove it, or set allow_inference in the run's configuration.",
    remove_statements,
)
LOST_CLAIM = IssueKind(
    "GATE_TRUTH_CONTRADICTED", "blocker", "Remove it: a stronger source says otherwise.", remove_statements
)
OPEN_CONTRADICTION = IssueKind(
    "GATE_TRUTH_CONTRADICTION", "blocker", "Remove both, or settle in the source which one is right.", remove_statements
)

GATE = Gate("truth_lock", __doc__, check_truth, reads_pages=True)


def build_truth_report(site: LaunchSite, issues: Sequence[Issue]) -> dict[str, Any]:
    """Return the report, which matches the schema `truth_lock_report`."""
    pages = [{"path": file.path, "claim_ids": sorted({claim.claim_id for claim in file.claims})} for file in site.files]
    used_ids = {claim_id for page in pages for claim_id in page["claim_ids"]}
    known_claims = {claim_id: site.evidence[claim_id] for claim_id in sorted(used_ids & site.evidence.keys())}
    truth_issues = [issue for issue in issues if issue.gate == "truth_lock"]
    return {
        "schema_version": "1.0",
        "ok": not any(issue.severity in BLOCKING_SEVERITIES for issue in truth_issues),
        "pages": pages,
        "unresolved_claim_ids": sorted(used_ids - known_claims.keys()),
        "issues": [issue.as_json() for issue in truth_issues],
        "inferred_claim_ids": [key for key, claim in known_claims.items() if claim["truth_status"] == "inference"],
        "forbidden_inferred_claim_ids": [
            key for key, claim in known_claims.items() if is_forbidden_inference(site, claim)
        ],
    }
