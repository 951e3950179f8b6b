"""The output schema of a search."""

from typing import Any, Final

from cleats.toolsets.code.schema_atoms import (
    COUNT_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    add_description,
    array_schema,
    object_schema,
    repeat_schema,
    text_schema,
)

_NUMBER_SCHEMA: Final = {"type": "number"}
_NULLABLE_NUMBER_SCHEMA: Final = {"type": ["number", "null"]}
_NULLABLE_INTEGER_SCHEMA: Final = {"type": ["integer", "null"]}
_OBJECT_SCHEMA: Final = {"type": "object"}
_LINE_SCHEMA: Final = {"type": "integer", "minimum": 1}
_TEXT_LIST_SCHEMA: Final = array_schema(TEXT_SCHEMA)

_SCORE_PART_SCHEMA: Final = object_schema(
    name=TEXT_SCHEMA, points=_NUMBER_SCHEMA, rank=_NULLABLE_INTEGER_SCHEMA, score=_NULLABLE_NUMBER_SCHEMA
)
_HIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["file", "startLine", "endLine", "kind", "name", "headline", "score"],
    "properties": {
        "id": text_schema("Stays the same while the chunk does."),
        "repo": text_schema("Its alias, in the answer of a workspace."),
        "file": text_schema("Path in the repository."),
        "start": add_description(COUNT_SCHEMA, "Bytes from the file's start."),
        "end": COUNT_SCHEMA,
        "startLine": _LINE_SCHEMA,
        "endLine": add_description(_LINE_SCHEMA, "The last line, included."),
        **repeat_schema(TEXT_SCHEMA, "ext lang kind"),
        "name": text_schema("Qualified within the file: Class.method."),
        "headline": text_schema("One line that summarises it."),
        "signature": text_schema("Where it says more than the headline."),
        "score": _NUMBER_SCHEMA,
        "scoreType": TEXT_SCHEMA,
        "sparseScore": _NULLABLE_NUMBER_SCHEMA,
        "sparseType": NULLABLE_TEXT_SCHEMA,
        "annScore": _NULLABLE_NUMBER_SCHEMA,
        **repeat_schema(NULLABLE_TEXT_SCHEMA, "annSource annType"),
        "preContext": array_schema(TEXT_SCHEMA, "Lines before it."),
        "postContext": array_schema(TEXT_SCHEMA, "Lines after it."),
        "text": text_schema("Its lines: alone in a full answer, else with as many around as asked."),
        "truncated": {"const": True, "description": "The text does not reach its end."},
        "docmeta": add_description(_OBJECT_SCHEMA, "What the code says of itself."),
        "mode": TEXT_SCHEMA,
        **repeat_schema(_TEXT_LIST_SCHEMA, "imports exports"),
        **repeat_schema(NULLABLE_TEXT_SCHEMA, "lastAuthor lastModified lastCommit"),
        "churn": _NULLABLE_INTEGER_SCHEMA,
        "chunkAuthors": _TEXT_LIST_SCHEMA,
        "risk": {"type": ["object", "null"]},
        "lint": {"type": "array"},
        "scoreBreakdown": object_schema(
            "How the score came about: it is the sum of the points.",
            selected=_OBJECT_SCHEMA,
            parts=array_schema(_SCORE_PART_SCHEMA),
        ),
    },
}

_GROUPED_HIT_SCHEMA: Final = object_schema(
    mode=TEXT_SCHEMA,
    index=COUNT_SCHEMA,
    score=_NUMBER_SCHEMA,
    scoreType=TEXT_SCHEMA,
    **repeat_schema(TEXT_SCHEMA, "id file"),
    **repeat_schema(COUNT_SCHEMA, "start end"),
)
_GROUP_SCHEMA: Final = {
    "type": "object",
    "required": ["file", "hitCount", "topScore"],
    "properties": {
        **repeat_schema(TEXT_SCHEMA, "bundleId repo file"),
        "hitCount": COUNT_SCHEMA,
        **repeat_schema(_NUMBER_SCHEMA, "totalScore topScore"),
        "modeCount": COUNT_SCHEMA,
        "modes": _TEXT_LIST_SCHEMA,
        "hits": array_schema(_GROUPED_HIT_SCHEMA),
    },
}

_FILTER_SCHEMA: Final = {
    "type": "object",
    "required": ["argument", "chunks"],
    "properties": {
        "argument": TEXT_SCHEMA,
        "chunks": COUNT_SCHEMA,
        "known": array_schema(TEXT_SCHEMA, "Values that chunks have."),
    },
}
_STATS_SCHEMA: Final = {
    "type": "object",
    "required": ["chunks", "considered", "query", "branch"],
    "properties": {
        "chunks": {"type": "integer", "description": "In the whole index."},
        "considered": {
            "type": "object",
            "description": "What the filters left, by mode.",
            "additionalProperties": {"type": "integer"},
        },
        "query": text_schema("The query as it was understood."),
        "branch": NULLABLE_TEXT_SCHEMA,
        "branchFilter": TEXT_SCHEMA,
        "branchMatch": {"type": "boolean"},
        "filters": array_schema(_FILTER_SCHEMA, "When nothing passes: what each filter lets through alone."),
        "notes": array_schema(
            object_schema(code=TEXT_SCHEMA, message=TEXT_SCHEMA),
            "What has to be known of the answer: how it came about.",
        ),
        "repos": array_schema(
            object_schema(alias=TEXT_SCHEMA, repoId=TEXT_SCHEMA, chunks=COUNT_SCHEMA, branch=NULLABLE_TEXT_SCHEMA),
            "The repositories of a workspace that were searched.",
        ),
    },
}

SEARCH_OUTPUT_SCHEMA: Final[dict[str, Any]] = object_schema(
    backend=text_schema("What ranked."),
    code=array_schema(_HIT_SCHEMA, "Declarations and other code, best first."),
    prose=array_schema(_HIT_SCHEMA, "Sections of documents, best first."),
    extractedProse=array_schema(_HIT_SCHEMA, "Comments and docstrings, best first."),
    records=array_schema(_HIT_SCHEMA, "Findings, decisions and logs, best first."),
    bundles=object_schema(
        "The same hits by file, the most telling file first.",
        schemaVersion={"const": 1},
        groups=array_schema(_GROUP_SCHEMA),
    ),
    stats=_STATS_SCHEMA,
)

_LISTED_HIT_KEYS: Final = (
    *("repo", "file", "startLine", "endLine", "kind", "name", "headline", "signature", "score"),
    *("text", "truncated"),
)
_LISTED_HIT_SCHEMA: Final = {
    "type": "object",
    "required": _HIT_SCHEMA["required"],
    "properties": {name: _HIT_SCHEMA["properties"][name] for name in _LISTED_HIT_KEYS},
}

LISTED_OUTPUT_SCHEMA: Final[dict[str, Any]] = object_schema(
    backend=TEXT_SCHEMA,
    code=array_schema(_LISTED_HIT_SCHEMA, "Declarations and other code, best first. Full answers say more."),
    prose=array_schema(_OBJECT_SCHEMA, "Sections of documents, in the same form."),
    extractedProse=array_schema(_OBJECT_SCHEMA, "Comments and docstrings."),
    records=array_schema(_OBJECT_SCHEMA, "Findings, decisions and logs."),
    bundles=add_description(_OBJECT_SCHEMA, "The files with the most telling hits."),
    stats=add_description(_OBJECT_SCHEMA, "What was searched, and the query as read."),
)
"""The outline that a list of tools shows: enough to read a compact answer."""
