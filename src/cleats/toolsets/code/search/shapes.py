"""The shape of a search's answer."""

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}
_MAYBE_NUMBER: Final = {"type": ["number", "null"]}
_TEXTS: Final = {"type": "array", "items": _TEXT}

_HIT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["file", "startLine", "endLine", "kind", "name", "headline", "score"],
    "properties": {
        "id": {"type": "string", "description": "Stays the same while the chunk does."},
        "repo": {"type": "string", "description": "Its alias, in the answer of a workspace."},
        "file": {"type": "string", "description": "Path in the repository."},
        "start": {"type": "integer", "minimum": 0, "description": "Bytes from the file's start."},
        "end": _COUNT,
        "startLine": {"type": "integer", "minimum": 1},
        "endLine": {"type": "integer", "minimum": 1, "description": "The last line, included."},
        "ext": _TEXT,
        "lang": _TEXT,
        "kind": _TEXT,
        "name": {"type": "string", "description": "Qualified within the file: Class.method."},
        "headline": {"type": "string", "description": "One line that stands for it."},
        "signature": {"type": "string", "description": "Where it says more than the headline."},
        "score": {"type": "number"},
        "scoreType": _TEXT,
        "sparseScore": _MAYBE_NUMBER,
        "sparseType": _MAYBE_TEXT,
        "annScore": _MAYBE_NUMBER,
        "annSource": _MAYBE_TEXT,
        "annType": _MAYBE_TEXT,
        "preContext": {**_TEXTS, "description": "Lines before it."},
        "postContext": {**_TEXTS, "description": "Lines after it."},
        "text": {
            "type": "string",
            "description": "Its lines: alone in a full answer, else with as many around as asked.",
        },
        "truncated": {"const": True, "description": "The text does not reach its end."},
        "docmeta": {"type": "object", "description": "What the code says of itself."},
        "mode": _TEXT,
        "imports": _TEXTS,
        "exports": _TEXTS,
        "lastAuthor": _MAYBE_TEXT,
        "lastModified": _MAYBE_TEXT,
        "lastCommit": _MAYBE_TEXT,
        "churn": {"type": ["integer", "null"]},
        "chunkAuthors": _TEXTS,
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
                            "name": _TEXT,
                            "points": {"type": "number"},
                            "rank": {"type": ["integer", "null"]},
                            "score": _MAYBE_NUMBER,
                        },
                    },
                },
            },
        },
    },
}

_HITS: Final = {"type": "array", "items": _HIT}

_GROUP: Final = {
    "type": "object",
    "required": ["file", "hitCount", "topScore"],
    "properties": {
        "bundleId": _TEXT,
        "repo": _TEXT,
        "file": _TEXT,
        "hitCount": _COUNT,
        "totalScore": {"type": "number"},
        "topScore": {"type": "number"},
        "modeCount": _COUNT,
        "modes": _TEXTS,
        "hits": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["mode", "index", "score", "scoreType", "id", "file", "start", "end"],
                "properties": {
                    "mode": _TEXT,
                    "index": _COUNT,
                    "score": {"type": "number"},
                    "scoreType": _TEXT,
                    "id": _TEXT,
                    "file": _TEXT,
                    "start": _COUNT,
                    "end": _COUNT,
                },
            },
        },
    },
}

OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "required": [
        *("backend", "code", "prose", "extractedProse", "records", "bundles", "stats"),
    ],
    "properties": {
        "backend": {"type": "string", "description": "What ranked."},
        "code": {**_HITS, "description": "Declarations and other code, best first."},
        "prose": {**_HITS, "description": "Sections of documents, best first."},
        "extractedProse": {**_HITS, "description": "Comments and docstrings, best first."},
        "records": {**_HITS, "description": "Findings, decisions and logs, best first."},
        "bundles": {
            "type": "object",
            "description": "The same hits by file, the most telling file first.",
            "required": ["schemaVersion", "groups"],
            "properties": {
                "schemaVersion": {"const": 1},
                "groups": {"type": "array", "items": _GROUP},
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
                "branch": _MAYBE_TEXT,
                "branchFilter": _TEXT,
                "branchMatch": {"type": "boolean"},
                "filters": {
                    "type": "array",
                    "description": "When nothing passes: what each filter lets through alone.",
                    "items": {
                        "type": "object",
                        "required": ["argument", "chunks"],
                        "properties": {
                            "argument": _TEXT,
                            "chunks": _COUNT,
                            "known": {**_TEXTS, "description": "Values that chunks have."},
                        },
                    },
                },
                "notes": {
                    "type": "array",
                    "description": "What has to be known of the answer: how it came about.",
                    "items": {
                        "type": "object",
                        "required": ["code", "message"],
                        "properties": {"code": _TEXT, "message": _TEXT},
                    },
                },
                "repos": {
                    "type": "array",
                    "description": "The repositories of a workspace that were searched.",
                    "items": {
                        "type": "object",
                        "required": ["alias", "repoId", "chunks", "branch"],
                        "properties": {
                            "alias": _TEXT,
                            "repoId": _TEXT,
                            "chunks": _COUNT,
                            "branch": _MAYBE_TEXT,
                        },
                    },
                },
            },
        },
    },
}

_SHOWN: Final = (
    *("repo", "file", "startLine", "endLine", "kind", "name", "headline", "signature", "score"),
    *("text", "truncated"),
)
_LISTED_HIT: Final = {
    "type": "object",
    "required": _HIT["required"],
    "properties": {name: _HIT["properties"][name] for name in _SHOWN},
}
_LIKE_CODE: Final = {"type": "array", "items": {"type": "object"}}

LISTED: Final[dict[str, Any]] = {
    "type": "object",
    "required": OUTPUT["required"],
    "properties": {
        "backend": _TEXT,
        "code": {
            "type": "array",
            "description": "Declarations and other code, best first. Full answers say more.",
            "items": _LISTED_HIT,
        },
        "prose": {**_LIKE_CODE, "description": "Sections of documents, in the same form."},
        "extractedProse": {**_LIKE_CODE, "description": "Comments and docstrings."},
        "records": {**_LIKE_CODE, "description": "Findings, decisions and logs."},
        "bundles": {"type": "object", "description": "The files with the most telling hits."},
        "stats": {"type": "object", "description": "What was searched, and the query as read."},
    },
}
"""What a list of tools shows of it: enough to read a compact answer."""
