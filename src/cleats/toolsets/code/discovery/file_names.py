"""Classification of files and folders by name alone: tables, and the functions that read them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.languages.language_names import (
    UNKNOWN_LANGUAGE,
    detect_language_by_path,
    get_language_mode,
)

VERSION_CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn"})

TOOL_OUTPUT_FOLDERS: Final[Mapping[str, str]] = {
    "node_modules": "packages installed by npm and its like",
    "bower_components": "packages installed by Bower",
    "jspm_packages": "packages installed by jspm",
    "__pycache__": "compiled Python",
    "__pypackages__": "packages installed by PDM",
    ".tox": "environments of tox",
    ".nox": "environments of Nox",
    ".eggs": "packages fetched by setuptools",
    ".mypy_cache": "cache of mypy",
    ".pytest_cache": "cache of pytest",
    ".ruff_cache": "cache of Ruff",
    ".hypothesis": "examples kept by Hypothesis",
    ".ipynb_checkpoints": "copies kept by Jupyter",
    ".gradle": "cache of Gradle",
    ".terraform": "modules fetched by Terraform",
    ".next": "output of Next.js",
    ".nuxt": "output of Nuxt",
    ".svelte-kit": "output of SvelteKit",
    ".parcel-cache": "cache of Parcel",
    ".turbo": "cache of Turborepo",
    ".yarn": "packages kept by Yarn",
    ".bundle": "packages installed by Bundler",
    ".dart_tool": "cache of Dart",
    ".stack-work": "output of Stack",
    ".sass-cache": "cache of Sass",
    ".serverless": "output of Serverless",
}
"""Folders that tools create. A folder with such a name is not skipped if a file in it is
tracked."""

TOOL_MARKER_FILES: Final[Mapping[str, str]] = {
    "pyvenv.cfg": "a virtual environment",
    "CACHEDIR.TAG": "marked as a cache by the tool that made it",
}
"""Files that mark their folder as tool output, whatever its name."""

_LOCKFILE_NAMES: Final = frozenset(
    {
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "deno.lock",
        "cargo.lock",
        "poetry.lock",
        "pipfile.lock",
        "pdm.lock",
        "uv.lock",
        "conda-lock.yml",
        "composer.lock",
        "gemfile.lock",
        "podfile.lock",
        "package.resolved",
        "cartfile.resolved",
        "pubspec.lock",
        "mix.lock",
        "rebar.lock",
        "flake.lock",
        "gradle.lockfile",
        "packages.lock.json",
        "project.assets.json",
        "module.bazel.lock",
        "renv.lock",
        "go.sum",
        "go.work.sum",
        "gopkg.lock",
        ".terraform.lock.hcl",
    }
)

_GENERATED_SUFFIXES: Final = (
    ".pb.go",
    ".pb.gw.go",
    ".pb.cc",
    ".pb.h",
    ".pb.swift",
    "_pb2.py",
    "_pb2.pyi",
    "_pb2_grpc.py",
    "_pb.js",
    "_pb.d.ts",
    ".g.dart",
    ".freezed.dart",
    ".g.cs",
    ".designer.cs",
    ".generated.cs",
    ".js.map",
    ".css.map",
    ".mjs.map",
    ".ts.map",
)

_MINIFIED_SUFFIXES: Final = (".min.js", ".min.mjs", ".min.css", "-min.js", "-min.css")

_BINARY_EXTENSIONS: Final = """
    7z a aac apk avi avif blend bmp bz2 cab class cur deb der dll dmg doc docx ear eot exe fbx flac
    gif glb gz heic icns ico iso jar jks jp2 jpeg jpg keystore ko lz4 lzma mid mov mp3 mp4 mpeg mpg
    msi npy npz o odp ods odt ogg opus otf p12 parquet pdb pdf pfx pkl png ppt pptx psd pyc pyd pyo
    rar rlib rpm so sqlite sqlite3 stl swf tar tgz tif tiff ttf wasm wav webm webp whl wmv woff
    woff2 xcf xls xlsx xz zip zst
"""
"""Extensions that are never text; the bytes of a file decide for all ambiguous ones."""

_BINARY_EXTENSION_SET: Final = frozenset(_BINARY_EXTENSIONS.split())

_DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs", "documentation"})
_DOCUMENT_OR_CODE_LANGUAGES: Final = frozenset({"html", ""})
"""Formats that are documents when they are in a document folder."""


_SECRET_NAMES: Final = frozenset(
    {
        ".env",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        ".dockercfg",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    }
)
_SECRET_SUFFIXES: Final = (".pem", ".key", ".ppk", ".kdbx", ".tfstate", ".tfvars")
_EXAMPLE_SUFFIXES: Final = ("example", "sample", "template", "dist", "default", "defaults", "test")
"""Suffixes of names such as `.env.example`, which is meant to be read."""


def _is_secret(name: str) -> bool:
    if name.startswith(".env."):
        return not name.endswith(_EXAMPLE_SUFFIXES)
    return name in _SECRET_NAMES or name.endswith(_SECRET_SUFFIXES)


class NameVerdict(NamedTuple):
    """A file classified by name: a skip reason, or a language (empty: unknown) and a mode."""

    reason: str
    lang: str
    mode: Mode


def classify_name(path: str) -> NameVerdict:
    """Classify a file by its name, without reading it."""
    name = path.rsplit("/", 1)[-1].lower()
    if _is_secret(name):
        return NameVerdict("secret", "", "code")
    if name in _LOCKFILE_NAMES:
        return NameVerdict("lockfile", "", "code")
    if name.endswith(_GENERATED_SUFFIXES):
        return NameVerdict("generated", "", "code")
    if name.endswith(_MINIFIED_SUFFIXES):
        return NameVerdict("minified", "", "code")
    dot = name.rfind(".")
    if dot > 0 and name[dot + 1 :] in _BINARY_EXTENSION_SET:
        return NameVerdict("binary", "", "code")
    lang = detect_language_by_path(name)
    return NameVerdict("", lang, select_mode(path, lang))


def select_mode(path: str, lang: str) -> Mode:
    """Return the mode of a file: that of its language, or prose if it is in a document folder."""
    if lang in _DOCUMENT_OR_CODE_LANGUAGES and not _DOCUMENT_FOLDERS.isdisjoint(path.lower().split("/")[:-1]):
        return "prose"
    return get_language_mode(lang or UNKNOWN_LANGUAGE)
