"""The schemas of what the triage tools take and give."""

from typing import Any, Final, get_args

from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.triage.records import Status
from cleats.toolsets.code.triage.routing import META

SOURCES: Final = (
    *("dependabot", "aws_inspector", "sarif", "osv", "pip_audit", "npm_audit", "cyclonedx"),
    *("generic", "manual"),
)
"""The names of the sources; a server lists them before it can read one."""

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_FLAG: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_MAYBE: Final = {"type": ["boolean", "null"], "default": None}
_ID: Final = {"type": "string", "minLength": 1, "maxLength": 200}


def _object(description: str = "", **properties: Any) -> dict[str, Any]:
    made = {"type": "object", "required": list(properties), "properties": properties}
    return {**made, "description": description} if description else made


def _said(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _list(description: str, items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": items}


_GIVEN_TEXTS: Final = {
    "type": "array",
    "maxItems": 50,
    "items": {"type": "string", "minLength": 1, "maxLength": 500},
}

INGEST_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "source": {
        "type": "string",
        "enum": list(SOURCES),
        "description": (
            "What wrote the file: alerts of dependabot's API, aws_inspector list-findings, "
            "SARIF 2.1.0, OSV entries or osv-scanner, JSON of pip_audit or npm_audit, a "
            "cyclonedx SBOM or VEX; generic and manual are objects in the words of a record."
        ),
    },
    "inputPath": {
        "type": "string",
        "minLength": 1,
        "description": (
            "The file of JSON or JSON lines, absolute or from the root of the repository; 64 "
            "MiB at most."
        ),
    },
    "meta": META,
    "buildIndex": {
        "type": "boolean",
        "default": False,
        "description": (
            "Build the index or bring it up to date afterwards, so that the records are found."
        ),
    },
    "incremental": {
        "type": "boolean",
        "default": True,
        "description": "With buildIndex: read only what has changed.",
    },
    "stubEmbeddings": {
        "type": "boolean",
        "description": ("With buildIndex: leave out the vectors, or with false make them."),
    },
    "repoPath": REPO_PATH,
}

INGESTED: Final = {
    **_object(
        source=_TEXT,
        repoPath=_TEXT,
        recordsDir=_said(_TEXT, "Where the records of this repository are kept."),
        total=_said(_COUNT, "Findings in the file."),
        written=_said(_COUNT, "Records that are new or have changed."),
        created=_COUNT,
        updated=_COUNT,
        unchanged=_COUNT,
        duplicates=_said(_COUNT, "Findings that the file has more than once; the first counts."),
        errors=_said(_COUNT, "Lines and findings that could not be understood."),
        recordIds=_list("Ids, in the order of the file; the first 500.", _TEXT),
        records=_list(
            "The same, with where they are.",
            _object(
                recordId=_TEXT,
                change={"enum": ["created", "updated", "unchanged"]},
                jsonPath=_TEXT,
                file=_said(_TEXT, "The path by which a search shows it."),
            ),
        ),
        errorDetails=_list(
            "The first 100 errors.",
            _object(
                index=_said(_COUNT, "The finding's number in the file, or its line, from 0."),
                message=_TEXT,
            ),
        ),
    ),
}
INGESTED["properties"]["index"] = {
    "type": "object",
    "description": "With buildIndex: the index that answers from now on.",
    "required": ["generation", "published", "records", "seconds"],
    "properties": {
        "generation": _TEXT,
        "published": _FLAG,
        "records": _said(_COUNT, "Records in it, of this repository and of logs."),
        "seconds": {"type": "number", "minimum": 0},
    },
}

DECISION_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "finding": _said(_ID, "The id of the finding, as triage_ingest or a search gave it."),
    "status": {
        "type": "string",
        "enum": list(get_args(Status)),
        "description": "What to do about it, or why nothing.",
    },
    "justification": {
        "type": "string",
        "maxLength": 20_000,
        "description": "Why, for whoever reads it later.",
    },
    "reviewer": {"type": "string", "maxLength": 200, "description": "Who decided."},
    "expires": {
        "type": "string",
        "minLength": 1,
        "maxLength": 40,
        "description": "Until when it holds: 2027-01-31, that day included, or with a time.",
    },
    "codes": _said(
        _GIVEN_TEXTS,
        "Justifications by their codes, such as those of VEX: code_not_reachable.",
    ),
    "evidence": _said(_GIVEN_TEXTS, "What it rests on: paths, links, commits."),
    "meta": META,
    "repoPath": REPO_PATH,
}

DECIDED: Final = _object(
    recordId=_said(_TEXT, "The id of the decision."),
    findingId=_TEXT,
    status=_TEXT,
    expiresAt={"type": ["string", "null"]},
    expired=_said(_FLAG, "Whether it is over already."),
    recordsDir=_TEXT,
    jsonPath=_TEXT,
    file=_said(_TEXT, "The path by which a search shows it, once it is in the index."),
)

PACK_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "recordId": _said(_ID, "The id of the finding."),
    "outPath": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4000,
        "description": (
            "Also write it to this new .json file, in the repository or in the data folder."
        ),
    },
    "ann": _said(
        _MAYBE,
        "Whether meaning counts: true for every question, false for none; by default only for "
        "the title.",
    ),
    "stubEmbeddings": {
        "type": "boolean",
        "default": False,
        "description": "Go by words alone, the same as ann=false.",
    },
    "repoPath": REPO_PATH,
}

_OPEN: Final = {"type": "object"}

FINDING: Final = {
    "type": "object",
    "description": "The finding; what is empty is left out.",
    "required": ["recordId", "recordType", "source", "createdAt", "updatedAt"],
    "properties": {
        "recordId": _TEXT,
        "recordType": _TEXT,
        "source": _TEXT,
        "createdAt": _TEXT,
        "updatedAt": _TEXT,
        **dict.fromkeys(("service", "env", "team", "owner", "repo", "status"), _TEXT),
        "labels": {"type": "object", "additionalProperties": _TEXT},
        **dict.fromkeys(("vuln", "package", "asset", "exposure"), _OPEN),
        "locations": {"type": "array", "items": _OPEN},
        "parseWarnings": _TEXTS,
    },
}

_HIT: Final = _object(
    file=_TEXT,
    startLine=_COUNT,
    endLine=_COUNT,
    kind=_TEXT,
    name=_TEXT,
    headline=_TEXT,
    score={"type": "number"},
    scoreType=_TEXT,
    scoreBreakdown=_OPEN,
    snippet=_said(_TEXT, "The beginning of its text, 240 characters at most."),
)

_QUERY: Final = _object(
    query=_TEXT,
    mode={"enum": ["code", "prose", "extracted-prose"]},
    about=_said(
        _TEXT,
        "What of the finding: vulnerability, package, import, manifest, endpoint, title, location.",
    ),
    hits=_list("The best, 5 at most.", _HIT),
)
_QUERY["properties"]["filters"] = {"type": "object", "additionalProperties": _TEXT}

PACK: Final = _object(
    recordId=_TEXT,
    generatedAt={"type": "string", "format": "date-time"},
    finding=FINDING,
    history=_list(
        "Decisions about this finding and about others like it, nearest and newest first; 5 at "
        "most.",
        {
            **_object(
                recordId=_TEXT,
                relation={
                    "enum": ["finding", "vulnerability", "package", "manifest"],
                    "description": "What it shares with the finding.",
                },
                decidedAt=_TEXT,
                expired=_FLAG,
                vulnId=_TEXT,
                packageName=_TEXT,
                service=_TEXT,
                env=_TEXT,
                findingRecordId=_TEXT,
                status={"enum": list(get_args(Status))},
            ),
        },
    ),
    repoEvidence=_object(
        "What the code says to it.", queries=_list("One for each question and mode.", _QUERY)
    ),
)
PACK["properties"]["warnings"] = _list(
    "What the reader should know about the pack itself.", _object(code=_TEXT, message=_TEXT)
)
PACK["properties"]["outPath"] = _said(_TEXT, "The file that it was written to.")
