"""The output schema of a search."""

from typing import Any, Final

_TEXT_SCHEMA: Final = {"type": "string"}
_COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
_NULLABLE_TEXT_SCHEMA: Final = {"type": ["string", "null"]}
_NULLABLE_NUMBER_SCHEMA: Final = {"type": ["number", "null"]}
_TEXT_LIST_SCHEMA: Final = {"type": "array", "items": _TEXT_SCHEMA}

_HIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["file", "startLine", "endLine", "kind", "name", "headline", "score"],
    "properties": {
        "id": {"type": "string", "description": "Stays the same while the chunk does."},
        "repo": {"type": "string", "description": "Its alias, in the answer of a workspace."},
        "file": {"type": "string", "description": "Path in the repository."},
        "start": {"type": "integer", "minimum": 0, "description": "Bytes from the file's start."},
        "end": _COUNT_SCHEMA,
        "startLine": {"type": "integer", "minimum": 1},
        "endLine": {"type": "integer", "minimum": 1, "description": "The last line, included."},
        "ext": _TEXT_SCHEMA,
        "lang": _TEXT_SCHEMA,
        "kind": _TEXT_SCHEMA,
        "name": {"type": "string", "description": "Qualified within the file: Class.method."},
        "headline": {"type": "string", "description": "One line that stands for it."},
        "signature": {"type": "string", "description": "Where it says more than the headline."},
        "score": {"type": "number"},
        "scoreType": _TEXT_SCHEMA,
        "sparseScore": _NULLABLE_NUMBER_SCHEMA,
        "sparseType": _NULLABLE_TEXT_SCHEMA,
        "annScore": _NULLABLE_NUMBER_SCHEMA,
        "annSource": _NULLABLE_TEXT_SCHEMA,
        "annType": _NULLABLE_TEXT_SCHEMA,
        "preContext": {**_TEXT_LIST_SCHEMA, "description": "Lines before it."},
        "postContext": {**_TEXT_LIST_SCHEMA, "description": "Lines after it."},
        "text": {
            "type": "string",
            "description": "Its lines: alone in a full answer, else with as many around as asked.",
        },
        "truncated": {"const": True, "description": "The text does not reach its end."},
        "docmeta": {"type": "object", "description": "What the code says of itself."},
        "mode": _TEXT_SCHEMA,
        "imports": _TEXT_LIST_SCHEMA,
        "exports": _TEXT_LIST_SCHEMA,
        "lastAuthor": _NULLABLE_TEXT_SCHEMA,
        "lastModified": _NULLABLE_TEXT_SCHEMA,
        "lastCommit": _NULLABLE_TEXT_SCHEMA,
        "churn": {"type": ["integer", "null"]},
        "chunkAuthors": _TEXT_LIST_SCHEMA,
        "risk": {"type": ["object", "null"]},
        "lint": {"type": "array"},
        "scoreBreakdown": {
            "type": "object",
            "description": "How the score came about: it is the sum of the points.",
            "required": ["selected", "parts"],
            "properties": {
                "selected": {"type": "object"},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "points", "rank", "score"],
                        "properties": {
                            "name": _TEXT_SCHEMA,
                            "points": {"type": "number"},
                            "rank": {"type": ["integer", "null"]},
                            "score": _NULLABLE_NUMBER_SCHEMA,
                        },
                    },
                },
            },
        },
    },
}

_HITS_SCHEMA: Final = {"type": "array", "items": _HIT_SCHEMA}

_GROUP_SCHEMA: Final = {
    "type": "object",
    "required": ["file", "hitCount", "topScore"],
    "properties": {
        "bundleId": _TEXT_SCHEMA,
        "repo": _TEXT_SCHEMA,
        "file": _TEXT_SCHEMA,
        "hitCount": _COUNT_SCHEMA,
        "totalScore": {"type": "number"},
        "topScore": {"type": "number"},
        "modeCount": _COUNT_SCHEMA,
        "modes": _TEXT_LIST_SCHEMA,
        "hits": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["mode", "index", "score", "scoreType", "id", "file", "start", "end"],
                "properties": {
                    "mode": _TEXT_SCHEMA,
                    "index": _COUNT_SCHEMA,
                    "score": {"type": "number"},
                    "scoreType": _TEXT_SCHEMA,
                    "id": _TEXT_SCHEMA,
                    "file": _TEXT_SCHEMA,
                    "start": _COUNT_SCHEMA,
                    "end": _COUNT_SCHEMA,
                },
            },
        },
    },
}

SEARCH_OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": [
        *("backend", "code", "prose", "extractedProse", "records", "bundles", "stats"),
    ],
    "properties": {
        "backend": {"type": "string", "description": "What ranked."},
        "code": {**_HITS_SCHEMA, "description": "Declarations and other code, best first."},
        "prose": {**_HITS_SCHEMA, "description": "Sections of documents, best first."},
        "extractedProse": {**_HITS_SCHEMA, "description": "Comments and docstrings, best first."},
        "records": {**_HITS_SCHEMA, "description": "Findings, decisions and logs, best first."},
        "bundles": {
            "type": "object",
            "description": "The same hits by file, the most telling file first.",
            "required": ["schemaVersion", "groups"],
            "properties": {
                "schemaVersion": {"const": 1},
                "groups": {"type": "array", "items": _GROUP_SCHEMA},
            },
        },
        "stats": {
            "type": "object",
            "required": ["chunks", "considered", "query", "branch"],
            "properties": {
                "chunks": {"type": "integer", "description": "In the whole index."},
                "considered": {
                    "type": "object",
                    "description": "What the filters left, by mode.",
                    "additionalProperties": {"type": "integer"},
                },
                "query": {"type": "string", "description": "The query as it was understood."},
                "branch": _NULLABLE_TEXT_SCHEMA,
                "branchFilter": _TEXT_SCHEMA,
                "branchMatch": {"type": "boolean"},
                "filters": {
                    "type": "array",
                    "description": "When nothing passes: what each filter lets through alone.",
                    "items": {
                        "type": "object",
                        "required": ["argument", "chunks"],
                        "properties": {
                            "argument": _TEXT_SCHEMA,
                            "chunks": _COUNT_SCHEMA,
                            "known": {**_TEXT_LIST_SCHEMA, "description": "Values that chunks have."},
                        },
                    },
                },
                "notes": {
                    "type": "array",
                    "description": "What has to be known of the answer: how it came about.",
                    "items": {
                        "type": "object",
                        "required": ["code", "message"],
                        "properties": {"code": _TEXT_SCHEMA, "message": _TEXT_SCHEMA},
                    },
                },
                "repos": {
                    "type": "array",
                    "description": "The repositories of a workspace that were searched.",
                    "items": {
                        "type": "object",
                        "required": ["alias", "repoId", "chunks", "branch"],
                        "properties": {
                            "alias": _TEXT_SCHEMA,
                            "repoId": _TEXT_SCHEMA,
                            "chunks": _COUNT_SCHEMA,
                            "branch": _NULLABLE_TEXT_SCHEMA,
                        },
                    },
                },
            },
        },
    },
}

_LISTED_HIT_KEYS: Final = (
    *("repo", "file", "startLine", "endLine", "kind", "name", "headline", "signature", "score"),
    *("text", "truncated"),
)
_LISTED_HIT_SCHEMA: Final = {
    "type": "object",
    "required": _HIT_SCHEMA["required"],
    "properties": {name: _HIT_SCHEMA["properties"][name] for name in _LISTED_HIT_KEYS},
}
_OBJECT_LIST_SCHEMA: Final = {"type": "array", "items": {"type": "object"}}

LISTED_OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": SEARCH_OUTPUT_SCHEMA["required"],
    "properties": {
        "backend": _TEXT_SCHEMA,
        "code": {
            "type": "array",
            "description": "Declarations and other code, best first. Full answers say more.",
            "items": _LISTED_HIT_SCHEMA,
        },
        "prose": {**_OBJECT_LIST_SCHEMA, "description": "Sections of documents, in the same form."},
        "extractedProse": {**_OBJECT_LIST_SCHEMA, "description": "Comments and docstrings."},
        "records": {**_OBJECT_LIST_SCHEMA, "description": "Findings, decisions and logs."},
        "bundles": {"type": "object", "description": "The files with the most telling hits."},
        "stats": {"type": "object", "description": "What was searched, and the query as read."},
    },
}
"""The outline that a list of tools shows: enough to read a compact answer."""
