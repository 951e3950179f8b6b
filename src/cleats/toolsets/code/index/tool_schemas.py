"""The input and output schemas of the index tools."""

from typing import Any, Final

_COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
_TEXT_SCHEMA: Final = {"type": "string"}
_NULLABLE_TEXT_SCHEMA: Final = {"type": ["string", "null"]}
_FLAG_SCHEMA: Final = {"type": "boolean"}


def _object_schema(description: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {**schema, "description": description} if description else schema


def _counts_schema(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": _COUNT_SCHEMA}


def add_description(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Return a schema with a description."""
    return {**schema, "description": description}


REPO_PATH_SCHEMA: Final = {
    "type": "string",
    "minLength": 1,
    "description": ("A folder of the repository; by default that around the server."),
}

BUILD_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "repoPath": REPO_PATH_SCHEMA,
    "mode": {
        "type": "string",
        "enum": ["all", "code", "prose", "extracted-prose", "records"],
        "default": "all",
        "description": (
            "What to index besides what the index has: prose are documents and takes extracted-"
            "prose (comments and docstrings) along, records are logs and findings."
        ),
    },
    "incremental": {
        "type": "boolean",
        "default": False,
        "description": "Read only what has changed; the result is that of a full build.",
    },
    "sqlite": {
        "type": "boolean",
        "description": (
            "Make, or with false drop, the index for the backend sqlite-fts; by default it stays as it is."
        ),
    },
    "stubEmbeddings": {
        "type": "boolean",
        "default": False,
        "description": "Leave out the vectors; searches of this index then go by words alone.",
    },
    "useArtifacts": {
        "type": "boolean",
        "default": False,
        "description": "Begin from an index that was built elsewhere, if artifactsDir has one.",
    },
    "artifactsDir": {
        "type": "string",
        "minLength": 1,
        "description": ("Folder that `cleats index export` wrote; ci-artifacts by default."),
    },
}

_FILES_SCHEMA: Final = _object_schema(
    "What became of the files.",
    total=add_description(_COUNT_SCHEMA, "Files in the index now."),
    added=_COUNT_SCHEMA,
    changed=_COUNT_SCHEMA,
    removed=_COUNT_SCHEMA,
    unchanged=_COUNT_SCHEMA,
    skipped=add_description(_COUNT_SCHEMA, "Files and folders left out, with those of earlier builds."),
)

_PROBLEMS_SCHEMA: Final = {
    "type": "array",
    "description": "The first files that were understood only in part.",
    "items": _object_schema(path=_TEXT_SCHEMA, problem=_TEXT_SCHEMA),
}

BUILD_OUTPUT_SCHEMA: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    mode=_TEXT_SCHEMA,
    sqlite=_FLAG_SCHEMA,
    vectors=_FLAG_SCHEMA,
    incremental=_FLAG_SCHEMA,
    restoredArtifacts=add_description(_FLAG_SCHEMA, "Whether it began from an index that was built elsewhere."),
    generation=add_description(_TEXT_SCHEMA, "The name of the index that answers from now on."),
    published=add_description(_FLAG_SCHEMA, "False when the index was up to date, and nothing was written."),
    modes={"type": "array", "items": _TEXT_SCHEMA, "description": "What the index holds."},
    files=_FILES_SCHEMA,
    chunks=_counts_schema("Pieces that can be found, by mode."),
    languages=_counts_schema("Files by language."),
    problems=_PROBLEMS_SCHEMA,
    problemCount=_COUNT_SCHEMA,
    skippedReasons=_counts_schema("What was left out, by reason."),
    seconds={"type": "number", "minimum": 0},
)

_INDEX_SCHEMA: Final = {
    "type": "object",
    "required": ["exists", "outdated"],
    "properties": {
        "exists": _FLAG_SCHEMA,
        "outdated": add_description(_FLAG_SCHEMA, "Whether another version of this program wrote it; build anew."),
        "generation": _TEXT_SCHEMA,
        "path": _TEXT_SCHEMA,
        "builtAt": {"type": "string", "format": "date-time"},
        "tool": add_description(_TEXT_SCHEMA, "The version of this program that built it."),
        "schema": _COUNT_SCHEMA,
        "commit": _NULLABLE_TEXT_SCHEMA,
        "branch": _NULLABLE_TEXT_SCHEMA,
        "dirty": add_description(_FLAG_SCHEMA, "Whether tracked files had uncommitted changes when it was built."),
        "bytes": _COUNT_SCHEMA,
        "modes": {"type": "array", "items": _TEXT_SCHEMA},
        "files": _COUNT_SCHEMA,
        "chunks": _counts_schema("Pieces that can be found, by mode."),
        "languages": _counts_schema("Files by language."),
        "problems": _PROBLEMS_SCHEMA,
        "problemCount": _COUNT_SCHEMA,
        "skippedReasons": _counts_schema("What was left out, by reason."),
        "skipped": {
            "type": "array",
            "description": "The first that were left out.",
            "items": _object_schema(path=_TEXT_SCHEMA, reason=_TEXT_SCHEMA, detail=_TEXT_SCHEMA),
        },
    },
}

STATUS_OUTPUT_SCHEMA: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    repoId=_TEXT_SCHEMA,
    cacheRoot=_TEXT_SCHEMA,
    repoCacheRoot=_TEXT_SCHEMA,
    git={
        "type": "object",
        "required": ["isRepo"],
        "properties": {
            "isRepo": _FLAG_SCHEMA,
            "head": _NULLABLE_TEXT_SCHEMA,
            "branch": _NULLABLE_TEXT_SCHEMA,
            "isDirty": _FLAG_SCHEMA,
            "warning": _TEXT_SCHEMA,
        },
    },
    index=_INDEX_SCHEMA,
    freshness={
        "type": ["object", "null"],
        "description": "How the index compares with the files; null without one.",
        "required": ["stale", "added", "changed", "removed", "headMoved", "outgrown"],
        "properties": {
            "stale": add_description(_FLAG_SCHEMA, "Whether an update would find anything to do."),
            "added": _COUNT_SCHEMA,
            "changed": _COUNT_SCHEMA,
            "removed": _COUNT_SCHEMA,
            "headMoved": add_description(_FLAG_SCHEMA, "Another commit or branch is checked out."),
            "outgrown": add_description(_FLAG_SCHEMA, "This version or its settings would read files otherwise."),
        },
    },
    vectors=_object_schema(
        "The vectors behind searches by meaning.",
        available=_FLAG_SCHEMA,
    ),
    sqlite=_object_schema("The full-text index of SQLite.", exists=_FLAG_SCHEMA, bytes=_COUNT_SCHEMA),
)
