"""Schemas of the arguments and results of the triage tools."""

from typing import Any, Final, get_args

from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA
from cleats.toolsets.code.records.model import DecisionStatus
from cleats.toolsets.code.schema_atoms import (
    COUNT_SCHEMA,
    FLAG_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    add_description,
    array_schema,
    choice_argument,
    count_schema,
    flag_argument,
    flag_schema,
    object_schema,
    repeat_schema,
    text_argument,
    text_schema,
)

SOURCE_NAMES: Final = (
    *("dependabot", "aws_inspector", "sarif", "osv", "pip_audit", "npm_audit", "cyclonedx"),
    *("generic", "manual"),
)
"""The names of the sources; a server lists them before it imports the readers."""

_OPEN_SCHEMA: Final = {"type": "object"}
_META_TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 500}
_TEXTS_ARGUMENT_SCHEMA: Final = {"type": "array", "maxItems": 50, "items": _META_TEXT_SCHEMA}

META_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": 50,
    "description": "What to note on every record: whom it belongs to, how exposed it is, and labels of your own.",
    "properties": {
        **repeat_schema(_META_TEXT_SCHEMA, "service env team owner repo"),
        "internetExposed": FLAG_SCHEMA,
        **repeat_schema(_META_TEXT_SCHEMA, "publicEndpoint dataSensitivity businessCriticality"),
        "compensatingControls": _TEXTS_ARGUMENT_SCHEMA,
    },
    "propertyNames": {"minLength": 1, "maxLength": 100},
    "additionalProperties": {
        "anyOf": [{"type": "string", "maxLength": 500}, {"type": "number"}, {"type": "boolean"}],
    },
}
"""The schema of the argument `meta`."""


def _with_optional(schema: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **properties}}


INGEST_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "source": choice_argument(
        "What wrote the file: alerts of dependabot's API, aws_inspector list-findings, SARIF 2.1.0, OSV entries or "
        "osv-scanner, JSON of pip_audit or npm_audit, a cyclonedx SBOM or VEX; generic and manual are objects in the "
        "words of a record.",
        SOURCE_NAMES,
    ),
    "inputPath": text_argument(
        "The file of JSON or JSON lines, absolute or from the root of the repository; 64 MiB at most."
    ),
    "meta": META_SCHEMA,
    "buildIndex": flag_argument("Build the index or bring it up to date afterwards, so that the records are found."),
    "incremental": flag_argument("With buildIndex: read only what has changed.", default=True),
    "stubEmbeddings": flag_schema("With buildIndex: leave out the vectors, or with false make them."),
    "repoPath": REPO_PATH_SCHEMA,
}

INGEST_OUTPUT_SCHEMA: Final = _with_optional(
    object_schema(
        source=TEXT_SCHEMA,
        repoPath=TEXT_SCHEMA,
        recordsDir=text_schema("Where the records of this repository are kept."),
        total=count_schema("Findings in the file."),
        written=count_schema("Records that are new or have changed."),
        **repeat_schema(COUNT_SCHEMA, "created updated unchanged"),
        duplicates=count_schema("Findings that the file has more than once; the first counts."),
        errors=count_schema("Lines and findings that could not be understood."),
        recordIds=array_schema(TEXT_SCHEMA, "Ids, in the order of the file; the first 500."),
        records=array_schema(
            object_schema(
                recordId=TEXT_SCHEMA,
                change={"enum": ["created", "updated", "unchanged"]},
                jsonPath=TEXT_SCHEMA,
                file=text_schema("The path by which a search shows it."),
            ),
            "The same, with where they are.",
        ),
        errorDetails=array_schema(
            object_schema(
                index=count_schema("The finding's number in the file, or its line, from 0."), message=TEXT_SCHEMA
            ),
            "The first 100 errors.",
        ),
    ),
    index=object_schema(
        "With buildIndex: the index that answers from now on.",
        generation=TEXT_SCHEMA,
        published=FLAG_SCHEMA,
        records=count_schema("Records in it, of this repository and of logs."),
        seconds={"type": "number", "minimum": 0},
    ),
)

DECISION_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "finding": text_argument("The id of the finding, as triage_ingest or a search gave it.", maxLength=200),
    "status": choice_argument("What to do about it, or why nothing.", get_args(DecisionStatus)),
    "justification": {"type": "string", "maxLength": 20_000, "description": "Why, for whoever reads it later."},
    "reviewer": {"type": "string", "maxLength": 200, "description": "Who decided."},
    "expires": text_argument("Until when it holds: 2027-01-31, that day included, or with a time.", maxLength=40),
    "codes": add_description(
        _TEXTS_ARGUMENT_SCHEMA, "Justifications by their codes, such as those of VEX: code_not_reachable."
    ),
    "evidence": add_description(_TEXTS_ARGUMENT_SCHEMA, "What it rests on: paths, links, commits."),
    "meta": META_SCHEMA,
    "repoPath": REPO_PATH_SCHEMA,
}

DECISION_OUTPUT_SCHEMA: Final = object_schema(
    recordId=text_schema("The id of the decision."),
    findingId=TEXT_SCHEMA,
    status=TEXT_SCHEMA,
    expiresAt=NULLABLE_TEXT_SCHEMA,
    expired=flag_schema("Whether it is over already."),
    recordsDir=TEXT_SCHEMA,
    jsonPath=TEXT_SCHEMA,
    file=text_schema("The path by which a search shows it, once it is in the index."),
)

PACK_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "recordId": text_argument("The id of the finding.", maxLength=200),
    "outPath": text_argument(
        "Also write it to this new .json file, in the repository or in the data folder.", maxLength=4000
    ),
    "ann": {
        "type": "boolean",
        "description": (
            "Whether meaning counts: true for every question, false for none; by default only for the title."
        ),
    },
    "stubEmbeddings": flag_argument("Go by words alone, the same as ann=false."),
    "repoPath": REPO_PATH_SCHEMA,
}

FINDING_SCHEMA: Final = _with_optional(
    object_schema(
        "The finding; what is empty is left out.",
        **repeat_schema(TEXT_SCHEMA, "recordId recordType source createdAt updatedAt"),
    ),
    **repeat_schema(TEXT_SCHEMA, "service env team owner repo status"),
    labels={"type": "object", "additionalProperties": TEXT_SCHEMA},
    **repeat_schema(_OPEN_SCHEMA, "vuln package asset exposure"),
    locations=array_schema(_OPEN_SCHEMA),
    parseWarnings=array_schema(TEXT_SCHEMA),
)

_HIT_SCHEMA: Final = object_schema(
    file=TEXT_SCHEMA,
    startLine=COUNT_SCHEMA,
    endLine=COUNT_SCHEMA,
    **repeat_schema(TEXT_SCHEMA, "kind name headline"),
    score={"type": "number"},
    scoreType=TEXT_SCHEMA,
    scoreBreakdown=_OPEN_SCHEMA,
    snippet=text_schema("The beginning of its text, 240 characters at most."),
)

_QUERY_SCHEMA: Final = _with_optional(
    object_schema(
        query=TEXT_SCHEMA,
        mode={"enum": ["code", "prose", "extracted-prose"]},
        about=text_schema("What of the finding: vulnerability, package, import, manifest, endpoint, title, location."),
        hits=array_schema(_HIT_SCHEMA, "The best, 5 at most."),
    ),
    filters={"type": "object", "additionalProperties": TEXT_SCHEMA},
)

_HISTORY_SCHEMA: Final = object_schema(
    recordId=TEXT_SCHEMA,
    relation={
        "enum": ["finding", "vulnerability", "package", "manifest"],
        "description": "What it shares with the finding.",
    },
    decidedAt=TEXT_SCHEMA,
    expired=FLAG_SCHEMA,
    **repeat_schema(TEXT_SCHEMA, "vulnId packageName service env findingRecordId"),
    status={"enum": list(get_args(DecisionStatus))},
)

PACK_OUTPUT_SCHEMA: Final = _with_optional(
    object_schema(
        recordId=TEXT_SCHEMA,
        generatedAt={"type": "string", "format": "date-time"},
        finding=FINDING_SCHEMA,
        history=array_schema(
            _HISTORY_SCHEMA,
            "Decisions about this finding and about others like it, nearest and newest first; 5 at most.",
        ),
        repoEvidence=object_schema(
            "What the code says to it.", queries=array_schema(_QUERY_SCHEMA, "One for each question and mode.")
        ),
    ),
    warnings=array_schema(
        object_schema(code=TEXT_SCHEMA, message=TEXT_SCHEMA), "What the reader should know about the pack itself."
    ),
    outPath=text_schema("The file that it was written to."),
)
