"""What a name alone says about a file or a folder: tables, and the one question put to them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.languages.names import UNKNOWN, by_path, mode_of

VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn"})

TOOL_OUTPUT: Final[Mapping[str, str]] = {
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
"""Folders that no person fills. None of these names is skipped where a file in it is tracked."""

TOOL_MARKS: Final[Mapping[str, str]] = {
    "pyvenv.cfg": "a virtual environment",
    "CACHEDIR.TAG": "marked as a cache by the tool that made it",
}
"""Files that tell the same of the folder they lie in, whatever that is called."""

_LOCKFILES: Final = frozenset(
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

_GENERATED_ENDS: Final = (
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

_MINIFIED_ENDS: Final = (".min.js", ".min.mjs", ".min.css", "-min.js", "-min.css")

_BINARY_EXTENSIONS: Final = """
    7z a aac apk avi avif blend bmp bz2 cab class cur deb der dll dmg doc docx ear eot exe fbx flac
    gif glb gz heic icns ico iso jar jks jp2 jpeg jpg keystore ko lz4 lzma mid mov mp3 mp4 mpeg mpg
    msi npy npz o odp ods odt ogg opus otf p12 parquet pdb pdf pfx pkl png ppt pptx psd pyc pyd pyo
    rar rlib rpm so sqlite sqlite3 stl swf tar tgz tif tiff ttf wasm wav webm webp whl wmv woff
    woff2 xcf xls xlsx xz zip zst
"""
"""Extensions that are never text; what may be either is left to a look at the bytes."""

_BINARY: Final = frozenset(_BINARY_EXTENSIONS.split())

_DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs", "documentation"})
_EITHER: Final = frozenset({"html", ""})
"""Formats that are documents when they lie among documents."""


_SECRETS: Final = frozenset(
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
_SECRET_ENDS: Final = (".pem", ".key", ".ppk", ".kdbx", ".tfstate", ".tfvars")
_EXAMPLES: Final = ("example", "sample", "template", "dist", "default", "defaults", "test")
"""How `.env.example` ends, which is there to be read."""


def _secret(name: str) -> bool:
    if name.startswith(".env."):
        return not name.endswith(_EXAMPLES)
    return name in _SECRETS or name.endswith(_SECRET_ENDS)


class Named(NamedTuple):
    """What a file is by its name: a reason to skip it, or a language (empty: unknown) and mode."""

    reason: str
    lang: str
    mode: Mode


def judge(path: str) -> Named:
    """Say what the name gives away, without a look into the file."""
    name = path.rsplit("/", 1)[-1].lower()
    if _secret(name):
        return Named("secret", "", "code")
    if name in _LOCKFILES:
        return Named("lockfile", "", "code")
    if name.endswith(_GENERATED_ENDS):
        return Named("generated", "", "code")
    if name.endswith(_MINIFIED_ENDS):
        return Named("minified", "", "code")
    dot = name.rfind(".")
    if dot > 0 and name[dot + 1 :] in _BINARY:
        return Named("binary", "", "code")
    lang = by_path(name)
    return Named("", lang, routed(path, lang))


def routed(path: str, lang: str) -> Mode:
    """The mode that a file is read in: its language's, unless it lies among documents."""
    if lang in _EITHER and not _DOCUMENT_FOLDERS.isdisjoint(path.lower().split("/")[:-1]):
        return "prose"
    return mode_of(lang or UNKNOWN)
