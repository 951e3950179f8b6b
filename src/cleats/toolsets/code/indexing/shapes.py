"""The schemas of what the index tools take and give."""

from typing import Any, Final

_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string"}
_MAYBE: Final = {"type": ["string", "null"]}
_FLAG: Final = {"type": "boolean"}


def _object(description: str = "", **properties: Any) -> dict[str, Any]:
    made = {"type": "object", "required": list(properties), "properties": properties}
    return {**made, "description": description} if description else made


def _counts(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": _COUNT}


def said(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """A schema with a sentence about it."""
    return {**schema, "description": description}


REPO_PATH: Final = {
    "type": "string",
    "minLength": 1,
    "description": ("A folder of the repository; by default that around the server."),
}

BUILD_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "repoPath": REPO_PATH,
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
            "Make, or with false drop, the index for the backend sqlite-fts; by default it "
            "stays as it is."
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

_FILES: Final = _object(
    "What became of the files.",
    total=said(_COUNT, "Files in the index now."),
    added=_COUNT,
    changed=_COUNT,
    removed=_COUNT,
    unchanged=_COUNT,
    skipped=said(_COUNT, "Files and folders left out, with those of earlier builds."),
)

_PROBLEMS: Final = {
    "type": "array",
    "description": "The first files that were understood only in part.",
    "items": _object(path=_TEXT, problem=_TEXT),
}

BUILT: Final = _object(
    repoPath=_TEXT,
    mode=_TEXT,
    sqlite=_FLAG,
    vectors=_FLAG,
    incremental=_FLAG,
    restoredArtifacts=said(_FLAG, "Whether it began from an index that was built elsewhere."),
    generation=said(_TEXT, "The name of the index that answers from now on."),
    published=said(_FLAG, "False when the index was up to date, and nothing was written."),
    modes={"type": "array", "items": _TEXT, "description": "What the index holds."},
    files=_FILES,
    chunks=_counts("Pieces that can be found, by mode."),
    languages=_counts("Files by language."),
    problems=_PROBLEMS,
    problemCount=_COUNT,
    skippedReasons=_counts("What was left out, by reason."),
    seconds={"type": "number", "minimum": 0},
)

_INDEX: Final = {
    "type": "object",
    "required": ["exists", "outdated"],
    "properties": {
        "exists": _FLAG,
        "outdated": said(_FLAG, "Whether another version of this program wrote it; build anew."),
        "generation": _TEXT,
        "path": _TEXT,
        "builtAt": {"type": "string", "format": "date-time"},
        "tool": said(_TEXT, "The version of this program that built it."),
        "schema": _COUNT,
        "commit": _MAYBE,
        "branch": _MAYBE,
        "dirty": said(_FLAG, "Whether tracked files had uncommitted changes when it was built."),
        "bytes": _COUNT,
        "modes": {"type": "array", "items": _TEXT},
        "files": _COUNT,
        "chunks": _counts("Pieces that can be found, by mode."),
        "languages": _counts("Files by language."),
        "problems": _PROBLEMS,
        "problemCount": _COUNT,
        "skippedReasons": _counts("What was left out, by reason."),
        "skipped": {
            "type": "array",
            "description": "The first that were left out.",
            "items": _object(path=_TEXT, reason=_TEXT, detail=_TEXT),
        },
    },
}

STATUS: Final = _object(
    repoPath=_TEXT,
    repoId=_TEXT,
    cacheRoot=_TEXT,
    repoCacheRoot=_TEXT,
    git={
        "type": "object",
        "required": ["isRepo"],
        "properties": {
            "isRepo": _FLAG,
            "head": _MAYBE,
            "branch": _MAYBE,
            "isDirty": _FLAG,
            "warning": _TEXT,
        },
    },
    index=_INDEX,
    freshness={
        "type": ["object", "null"],
        "description": "How the index compares with the files; null without one.",
        "required": ["stale", "added", "changed", "removed", "headMoved", "outgrown"],
        "properties": {
            "stale": said(_FLAG, "Whether an update would find anything to do."),
            "added": _COUNT,
            "changed": _COUNT,
            "removed": _COUNT,
            "headMoved": said(_FLAG, "Another commit or branch is checked out."),
            "outgrown": said(_FLAG, "This version or its settings would read files otherwise."),
        },
    },
    vectors=_object(
        "The vectors behind searches by meaning.",
        available=_FLAG,
    ),
    sqlite=_object("The full-text index of SQLite.", exists=_FLAG, bytes=_COUNT),
)
