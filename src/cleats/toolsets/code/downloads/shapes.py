"""The schemas of what the download tools take and give."""

from collections.abc import Iterable
from typing import Any, Final

from cleats.toolsets.code.downloads.libraries import ARCHES, PLATFORMS, PROVIDERS
from cleats.toolsets.code.indexing.shapes import REPO_PATH, said

_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(description: str, **properties: Any) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": _object(**properties)}


def _argument(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, **more, "description": description}


def _choice(description: str, options: Iterable[str], **more: Any) -> dict[str, Any]:
    return {"type": "string", "enum": sorted(options), **more, "description": description}


def _flag(description: str, *, default: bool = False) -> dict[str, Any]:
    return {"type": "boolean", "default": default, "description": description}


_ADDRESS: Final = (
    "an http(s) or file URL, or a path from the root of the repository, with #sha256=... at its "
    "end to say what must come"
)
_WHERE: Final = "in the cache or in the repository, absolute or from its root"
_UPDATE: Final = "Ask the source whether it has another version, and take that."
_FORCE: Final = "Download also what is in place and unchanged."

MODELS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH,
    "model": _argument("The model that is wanted; without it, the one that searches use."),
    "cacheDir": _argument(f"Folder for a model that has to be downloaded, {_WHERE}."),
}

MODELS: Final = _object(
    repoPath=_TEXT,
    model=said(_TEXT, "What vectors are made with."),
    available=said(_FLAG, "Whether it can be used now."),
    shipped=said(_FLAG, "Whether it comes with this program."),
    downloaded=said(_FLAG, "Whether anything was downloaded."),
    output=said(_TEXT, "The folder that it is in."),
    dims=said(_COUNT, "Numbers of one vector."),
    words=said(_COUNT, "Words that it knows."),
    bytes=_COUNT,
    fingerprint=said(_TEXT, "Other when vectors of the two cannot be compared."),
)

_SOURCE: Final = r"^[a-z0-9][a-z0-9._-]{0,63}=."

DICTIONARIES_ARGUMENTS: Final = {
    "repoPath": REPO_PATH,
    "lang": _argument(
        "Names of the lists that are wanted, with commas; by default those of url, or all that "
        "are known.",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(,[a-z0-9][a-z0-9._-]{0,63})*$",
    ),
    "url": {
        "description": f"Where lists come from, each as name=source: {_ADDRESS}.",
        "anyOf": [
            {"type": "string", "pattern": _SOURCE},
            {
                "type": "array",
                "items": {"type": "string", "pattern": _SOURCE},
                "minItems": 1,
                "maxItems": 50,
            },
        ],
    },
    "dir": _argument(f"Folder for the lists, {_WHERE}."),
    "update": _flag(_UPDATE),
    "force": _flag(_FORCE),
}

_SKIPPED: Final = {
    "name": _TEXT,
    "reason": {"type": "string", "enum": ["built-in", "present", "not-modified", "unchanged"]},
}

DICTIONARIES: Final = _object(
    repoPath=_TEXT,
    output=said(_TEXT, "The folder with the lists and dictionaries.json, which describes them."),
    downloaded=_list(
        "Lists that are new or other than before.",
        name=_TEXT,
        url=_TEXT,
        path=_TEXT,
        sha256=_TEXT,
        bytes=_COUNT,
        words=_COUNT,
        resumed=said(_COUNT, "Bytes that an earlier call had fetched."),
    ),
    skipped=_list("Lists for which nothing had to be done.", **_SKIPPED, words=_COUNT),
)

_PROVIDER: Final = _choice("The extension.", PROVIDERS, default="sqlite-vec")
_PLATFORM: Final = _choice("The system it is for; this one by default.", PLATFORMS)
_ARCH: Final = _choice("The processor it is for; this one by default.", ARCHES)
_DIR: Final = _argument(
    f"Folder for extensions, {_WHERE}; each has a folder provider/platform-arch in it."
)

EXTENSIONS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH,
    "provider": _PROVIDER,
    "dir": _DIR,
    "out": _argument(f"Folder for this extension, new or empty, {_WHERE}; goes before dir."),
    "platform": _PLATFORM,
    "arch": _ARCH,
    "url": _argument(
        f"Where it comes from: {_ADDRESS}. A zip, a tar (gz, bz2, xz) or the library itself; over "
        "http only with a sha256. Without it, where it came from before."
    ),
    "update": _flag(_UPDATE),
    "force": _flag(_FORCE),
}

EXTENSIONS: Final = _object(
    repoPath=_TEXT,
    provider=_TEXT,
    platform=_TEXT,
    arch=_TEXT,
    output=said(_TEXT, "The folder of the extension."),
    extensionPath=said(_TEXT, "The library."),
    downloaded=_list(
        "What came.",
        name=_TEXT,
        url=_TEXT,
        sha256=_TEXT,
        bytes=_COUNT,
        files=said(_COUNT, "Files that were put in place."),
        resumed=said(_COUNT, "Bytes that an earlier call had fetched."),
    ),
    skipped=_list("What did not have to come.", **_SKIPPED),
)

_IDENTIFIER: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"

VERIFY_ARGUMENTS: Final = {
    "repoPath": REPO_PATH,
    "provider": _PROVIDER,
    "dir": _DIR,
    "path": _argument(
        "The library instead of the one in dir; it is loaded only if it is in the cache."
    ),
    "platform": _PLATFORM,
    "arch": _ARCH,
    "module": _argument("The module that it brings; vec0 by default.", pattern=_IDENTIFIER),
    "table": _argument(
        "Name of the table that is tried.", pattern=_IDENTIFIER, default="dense_vectors_ann"
    ),
    "column": _argument("Name of its column.", pattern=_IDENTIFIER, default="embedding"),
    "encoding": _choice("How a vector is given to it.", ["float32", "json"], default="float32"),
    "options": {
        "type": "string",
        "pattern": r"^[A-Za-z0-9_=,. \[\]-]*$",
        "default": "",
        "description": "What follows the column in the table, such as distance_metric=cosine.",
    },
    "annMode": _choice(
        "Whether the extension is meant to be used; nothing is loaded for built-in.",
        ["extension", "built-in"],
        default="extension",
    ),
    "load": _flag("Load it, in a process of its own; without, only look for it.", default=True),
}

_STEP: Final = {
    "type": "object",
    "required": ["attempted", "ok", "reason"],
    "properties": {
        "attempted": _FLAG,
        "ok": _FLAG,
        "reason": said({"type": ["string", "null"]}, "Why not; null when it went well."),
    },
}

VERIFIED: Final = _object(
    repoPath=_TEXT,
    config=_object(
        annMode=_TEXT,
        enabled=_FLAG,
        provider=_TEXT,
        module=_TEXT,
        table=_TEXT,
        column=_TEXT,
        encoding=_TEXT,
        options=_TEXT,
        platform=_TEXT,
        arch=_TEXT,
        platformKey=_TEXT,
    ),
    path=said(_TEXT, "Where the library is, or would be."),
    exists=_FLAG,
    load=said(_STEP, "Loading it into a SQLite of its own."),
    smoke=said(_STEP, "Making a table of vectors, writing one and finding it."),
)
