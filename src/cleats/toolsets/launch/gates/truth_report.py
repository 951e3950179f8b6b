"""The truth lock's own report: which page rests on which claims, and what does not hold."""

from collections.abc import Sequence
from typing import Any

from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.gates.truth_lock import forbidden
from cleats.toolsets.launch.issues import BLOCKING, Issue


def report(site: Site, issues: Sequence[Issue]) -> dict[str, Any]:
    """Fit the schema `truth_lock_report`."""
    pages = [
        {"path": file.path, "claim_ids": sorted({claim.claim_id for claim in file.claims})}
        for file in site.files
    ]
    used = {claim_id for page in pages for claim_id in page["claim_ids"]}
    known = site.evidence
    ours = [issue for issue in issues if issue.gate == "truth_lock"]
    return {
        "schema_version": "1.0",
        "ok": not any(issue.severity in BLOCKING for issue in ours),
        "pages": pages,
        "unresolved_claim_ids": sorted(used - known.keys()),
        "issues": [issue.as_json() for issue in ours],
        "inferred_claim_ids": sorted(
            each for each in used & known.keys() if known[each]["truth_status"] == "inference"
        ),
        "forbidden_inferred_claim_ids": sorted(
            each for each in used & known.keys() if forbidden(site, known[each])
        ),
    }
