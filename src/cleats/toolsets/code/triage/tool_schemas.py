"""Schemas of the arguments and results of the triage tools."""

from typing import Any, Final, get_args

from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA
from cleats.toolsets.code.records.model import DecisionStatus
from cleats.toolsets.code.triage.lookup import META_SCHEMA

SOURCE_NAMES: Final = (
    *("dependabot", "aws_inspector", "sarif", "osv", "pip_audit", "npm_audit", "cyclonedx"),
    *("generic", "manual"),
)
"""The names of the sources; a server lists them before it imports the readers."""

_TEXT_SCHEMA: Final = {"type": "string"}
_COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
_FLAG_SCHEMA: Final = {"type": "boolean"}
_TEXTS_SCHEMA: Final = {"type": "array", "items": _TEXT_SCHEMA}
_OPTIONAL_FLAG_SCHEMA: Final = {"type": ["boolean", "null"], "default": None}
_ID_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 200}


def _object_schema(description: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {**schema, "description": description} if description else schema


def _with_description(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _list_schema(description: str, items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": items}


_TEXTS_ARGUMENT_SCHEMA: Final = {
    "type": "array",
    "maxItems": 50,
    "items": {"type": "string", "minLength": 1, "maxLength": 500},
}

INGEST_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "source": {
        "type": "string",
        "enum": list(SOURCE_NAMES),
        "description": (
            "What wrote the file: alerts of dependabot's API, aws_inspector list-findings, "
            "SARIF 2.1.0, OSV entries or osv-scanner, JSON of pip_audit or npm_audit, a "
            "cyclonedx SBOM or VEX; generic and manual are objects in the words of a record."
        ),
    },
    "inputPath": {
        "type": "string",
        "minLength": 1,
        "description": ("The file of JSON or JSON lines, absolute or from the root of the repository; 64 MiB at most."),
    },
    "meta": META_SCHEMA,
    "buildIndex": {
        "type": "boolean",
        "default": False,
        "description": ("Build the index or bring it up to date afterwards, so that the records are found."),
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
    "repoPath": REPO_PATH_SCHEMA,
}

INGEST_OUTPUT_SCHEMA: Final = {
    **_object_schema(
        source=_TEXT_SCHEMA,
        repoPath=_TEXT_SCHEMA,
        recordsDir=_with_description(_TEXT_SCHEMA, "Where the records of this repository are kept."),
        total=_with_description(_COUNT_SCHEMA, "Findings in the file."),
        written=_with_description(_COUNT_SCHEMA, "Records that are new or have changed."),
        created=_COUNT_SCHEMA,
        updated=_COUNT_SCHEMA,
        unchanged=_COUNT_SCHEMA,
        duplicates=_with_description(_COUNT_SCHEMA, "Findings that the file has more than once; the first counts."),
        errors=_with_description(_COUNT_SCHEMA, "Lines and findings that could not be understood."),
        recordIds=_list_schema("Ids, in the order of the file; the first 500.", _TEXT_SCHEMA),
        records=_list_schema(
            "The same, with where they are.",
            _object_schema(
                recordId=_TEXT_SCHEMA,
                change={"enum": ["created", "updated", "unchanged"]},
                jsonPath=_TEXT_SCHEMA,
                file=_with_description(_TEXT_SCHEMA, "The path by which a search shows it."),
            ),
        ),
        errorDetails=_list_schema(
            "The first 100 errors.",
            _object_schema(
                index=_with_description(_COUNT_SCHEMA, "The finding's number in the file, or its line, from 0."),
                message=_TEXT_SCHEMA,
            ),
        ),
    ),
}
INGEST_OUTPUT_SCHEMA["properties"]["index"] = {
    "type": "object",
    "description": "With buildIndex: the index that answers from now on.",
    "required": ["generation", "published", "records", "seconds"],
    "properties": {
        "generation": _TEXT_SCHEMA,
        "published": _FLAG_SCHEMA,
        "records": _with_description(_COUNT_SCHEMA, "Records in it, of this repository and of logs."),
        "seconds": {"type": "number", "minimum": 0},
    },
}

DECISION_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "finding": _with_description(_ID_SCHEMA, "The id of the finding, as triage_ingest or a search gave it."),
    "status": {
        "type": "string",
        "enum": list(get_args(DecisionStatus)),
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
    "codes": _with_description(
        _TEXTS_ARGUMENT_SCHEMA,
        "Justifications by their codes, such as those of VEX: code_not_reachable.",
    ),
    "evidence": _with_description(_TEXTS_ARGUMENT_SCHEMA, "What it rests on: paths, links, commits."),
    "meta": META_SCHEMA,
    "repoPath": REPO_PATH_SCHEMA,
}

DECISION_OUTPUT_SCHEMA: Final = _object_schema(
    recordId=_with_description(_TEXT_SCHEMA, "The id of the decision."),
    findingId=_TEXT_SCHEMA,
    status=_TEXT_SCHEMA,
    expiresAt={"type": ["string", "null"]},
    expired=_with_description(_FLAG_SCHEMA, "Whether it is over already."),
    recordsDir=_TEXT_SCHEMA,
    jsonPath=_TEXT_SCHEMA,
    file=_with_description(_TEXT_SCHEMA, "The path by which a search shows it, once it is in the index."),
)

PACK_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "recordId": _with_description(_ID_SCHEMA, "The id of the finding."),
    "outPath": {
        "type": "string",
        "minLength": 1,
        "maxLength": 4000,
        "description": ("Also write it to this new .json file, in the repository or in the data folder."),
    },
    "ann": _with_description(
        _OPTIONAL_FLAG_SCHEMA,
        "Whether meaning counts: true for every question, false for none; by default only for the title.",
    ),
    "stubEmbeddings": {
        "type": "boolean",
        "default": False,
        "description": "Go by words alone, the same as ann=false.",
    },
    "repoPath": REPO_PATH_SCHEMA,
}

_OPEN_SCHEMA: Final = {"type": "object"}

FINDING_SCHEMA: Final = {
    "type": "object",
    "description": "The finding; what is empty is left out.",
    "required": ["recordId", "recordType", "source", "createdAt", "updatedAt"],
    "properties": {
        "recordId": _TEXT_SCHEMA,
        "recordType": _TEXT_SCHEMA,
        "source": _TEXT_SCHEMA,
        "createdAt": _TEXT_SCHEMA,
        "updatedAt": _TEXT_SCHEMA,
        **dict.fromkeys(("service", "env", "team", "owner", "repo", "status"), _TEXT_SCHEMA),
        "labels": {"type": "object", "additionalProperties": _TEXT_SCHEMA},
        **dict.fromkeys(("vuln", "package", "asset", "exposure"), _OPEN_SCHEMA),
        "locations": {"type": "array", "items": _OPEN_SCHEMA},
        "parseWarnings": _TEXTS_SCHEMA,
    },
}

_HIT_SCHEMA: Final = _object_schema(
    file=_TEXT_SCHEMA,
    startLine=_COUNT_SCHEMA,
    endLine=_COUNT_SCHEMA,
    kind=_TEXT_SCHEMA,
    name=_TEXT_SCHEMA,
    headline=_TEXT_SCHEMA,
    score={"type": "number"},
    scoreType=_TEXT_SCHEMA,
    scoreBreakdown=_OPEN_SCHEMA,
    snippet=_with_description(_TEXT_SCHEMA, "The beginning of its text, 240 characters at most."),
)

_QUERY_SCHEMA: Final = _object_schema(
    query=_TEXT_SCHEMA,
    mode={"enum": ["code", "prose", "extracted-prose"]},
    about=_with_description(
        _TEXT_SCHEMA,
        "What of the finding: vulnerability, package, import, manifest, endpoint, title, location.",
    ),
    hits=_list_schema("The best, 5 at most.", _HIT_SCHEMA),
)
_QUERY_SCHEMA["properties"]["filters"] = {"type": "object", "additionalProperties": _TEXT_SCHEMA}

PACK_OUTPUT_SCHEMA: Final = _object_schema(
    recordId=_TEXT_SCHEMA,
    generatedAt={"type": "string", "format": "date-time"},
    finding=FINDING_SCHEMA,
    history=_list_schema(
        "Decisions about this finding and about others like it, nearest and newest first; 5 at most.",
        {
            **_object_schema(
                recordId=_TEXT_SCHEMA,
                relation={
                    "enum": ["finding", "vulnerability", "package", "manifest"],
                    "description": "What it shares with the finding.",
                },
                decidedAt=_TEXT_SCHEMA,
                expired=_FLAG_SCHEMA,
                vulnId=_TEXT_SCHEMA,
                packageName=_TEXT_SCHEMA,
                service=_TEXT_SCHEMA,
                env=_TEXT_SCHEMA,
                findingRecordId=_TEXT_SCHEMA,
                status={"enum": list(get_args(DecisionStatus))},
            ),
        },
    ),
    repoEvidence=_object_schema(
        "What the code says to it.", queries=_list_schema("One for each question and mode.", _QUERY_SCHEMA)
    ),
)
PACK_OUTPUT_SCHEMA["properties"]["warnings"] = _list_schema(
    "What the reader should know about the pack itself.", _object_schema(code=_TEXT_SCHEMA, message=_TEXT_SCHEMA)
)
PACK_OUTPUT_SCHEMA["properties"]["outPath"] = _with_description(_TEXT_SCHEMA, "The file that it was written to.")
