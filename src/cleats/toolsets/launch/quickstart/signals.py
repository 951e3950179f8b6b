"""What a repository says about its product: its name, its manifests, its README, its files.

Pure: a tree of names and the texts of a few files in, signals out. The weights are the proposal
of the design: a name that follows the convention is enough by itself, a README never is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.quickstart import repositories
from cleats.toolsets.launch.quickstart.confidence import Signal
from cleats.toolsets.launch.quickstart.repositories import Repository
from cleats.toolsets.launch.source import tables

FAMILY: Final = "family"
PLATFORM: Final = "target_platform"

NAME, OWNER, PACKAGE, TITLE, BODY, CONFIG = 0.95, 0.45, 0.80, 0.60, 0.30, 0.90
MANIFEST, LANGUAGE, INSTALL = 0.75, 0.40, 0.35

CONFIGS: Final = ("launch.toml", ".launch.toml", "run_config.yaml", "run_config.yml")
"""Files in which a repository may say itself what it is."""

README: Final = re.compile(r"readme(\.(md|markdown|rst|txt))?", re.IGNORECASE)

MANIFESTS: Final[Mapping[str, str]] = {
    "pyproject.toml": "python",
    "setup.py": "python",
    "setup.cfg": "python",
    "pom.xml": "java",
    "build.gradle": "java",
    "build.gradle.kts": "java",
    "*.csproj": "dotnet",
    "*.sln": "dotnet",
    "package.json": "javascript",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "CMakeLists.txt": "cpp",
    "composer.json": "php",
    "*.gemspec": "ruby",
    "Package.swift": "swift",
}

LANGUAGES: Final[Mapping[str, str]] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".tsx"), "typescript"),
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".hpp", ".hh"), "cpp"),
    ".java": "java",
    ".cs": "dotnet",
    ".go": "go",
    ".rb": "ruby",
    ".php": "php",
    ".kt": "kotlin",
    ".swift": "swift",
    ".rs": "rust",
}

INSTALLS: Final[Mapping[str, str]] = {
    r"\bpip3? install\b": "python",
    r"\b(?:npm (?:install|i)|yarn add|pnpm add)\b": "javascript",
    r"\b(?:dotnet add package|Install-Package|nuget install)\b": "dotnet",
    r"<artifactId>|\bimplementation\s*[('\"]": "java",
    r"\bgo (?:get|install) \S+\.\S+/": "go",
    r"\bcargo (?:add|install)\b": "rust",
    r"\bgem install\b": "ruby",
    r"\bcomposer require\b": "php",
    r"\.package\(url:": "swift",
    r"\b(?:vcpkg|conan) install\b": "cpp",
}


def wanted(names: Sequence[str]) -> list[str]:
    """The files of a tree whose text is worth reading: those at its top that can say something."""
    top = [name for name in names if "/" not in name]
    return [
        name
        for name in top
        if README.fullmatch(name) or name in CONFIGS or _manifest(name) is not None
    ]


def observed(
    repository: Repository, names: Sequence[str], texts: Mapping[str, str], profile: Profile
) -> list[Signal]:
    """Every signal of a repository, sorted."""
    found = [
        *_by_name(repository, profile),
        *_by_manifests(names, texts, profile),
        *_by_languages(names),
        *_by_readme(texts, profile),
        *_by_config(texts, profile),
    ]
    spoken = {each.value for each in found if each.field == FAMILY}
    found += _title_of_open_family(texts, profile, spoken)
    known = {each.name for each in profile.platforms}
    return sorted({each for each in found if each.field == FAMILY or each.value in known})


def _by_name(repository: Repository, profile: Profile) -> Iterator[Signal]:
    said = repositories.by_name(repository, profile)
    if said.family:
        yield Signal(FAMILY, said.family, "repository name", NAME, repository.name)
    if said.platform:
        yield Signal(PLATFORM, said.platform, "repository name", NAME, repository.name)
    if owner := repositories.by_owner(repository, profile):
        yield Signal(FAMILY, owner, "owner", OWNER, repository.owner)


def _by_manifests(
    names: Sequence[str], texts: Mapping[str, str], profile: Profile
) -> Iterator[Signal]:
    top = {name for name in names if "/" not in name}
    seen: set[str] = set()
    for name in sorted(top):
        platform = _manifest(name)
        if platform is None or (platform == "cpp" and not _has(names, LANGUAGES, "cpp")):
            continue
        if platform == "javascript" and "tsconfig.json" in top:
            platform = "typescript"
        if platform not in seen:  # two manifests of one platform are one observation
            seen.add(platform)
            yield Signal(PLATFORM, platform, "manifest", MANIFEST, name)
    families: dict[str, str] = {}
    for name in sorted(texts):
        for package in _packages(name, texts[name]):
            if family := repositories.by_package(package, profile):
                families.setdefault(family, package)
    for family, package in sorted(families.items()):
        yield Signal(FAMILY, family, "package name", PACKAGE, package)


def _by_languages(names: Sequence[str]) -> Iterator[Signal]:
    counts = Counter(
        LANGUAGES[suffix]
        for name in names
        if (suffix := PurePosixPath(name).suffix) in LANGUAGES and _manifest(name) is None
    )
    for platform, count in sorted(counts.items()):
        share = count / counts.total()
        yield Signal(PLATFORM, platform, "languages", LANGUAGE * share, f"{share:.0%} of files")


def _by_readme(texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    text = _readme(texts)
    title = _title(text)
    for family in sorted(set(repositories.mentions(title, profile))):
        yield Signal(FAMILY, family, "README title", TITLE, title[:100])
    counts = Counter(repositories.mentions(text, profile))
    for family, count in sorted(counts.items()):
        share = count / counts.total()
        yield Signal(FAMILY, family, "README text", BODY * share, f"named {count} times")
    for platform in sorted(
        {platform for form, platform in INSTALLS.items() if re.search(form, text)}
        | set(_titled_platforms(title, profile))
    ):
        yield Signal(PLATFORM, platform, "README", INSTALL, "")


def _titled_platforms(title: str, profile: Profile) -> Iterator[str]:
    """The platform of `Product for Platform`."""
    found = re.search(r"\bfor\s+(\S+)", title, re.IGNORECASE)
    platform = profile.platform(found[1].rstrip(",:;")) if found else None
    if platform is not None:
        yield platform.name


def _title_of_open_family(
    texts: Mapping[str, str], profile: Profile, spoken: set[str]
) -> Iterator[Signal]:
    """Where any name can be a family, a title only counts for one that was seen elsewhere."""
    title = _title(_readme(texts))
    words = {word.casefold() for word in re.findall(r"[A-Za-z0-9._-]+", title)}
    if profile.families.open:
        for family in sorted(spoken):
            if family.casefold() in words:
                yield Signal(FAMILY, family, "README title", TITLE, title[:100])


def _by_config(texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    for name in CONFIGS:
        said = _document(name, texts.get(name, ""))
        family = profile.family(str(said.get("family") or said.get("product_slug") or ""))
        platform = profile.platform(str(said.get("target_platform") or said.get("platform") or ""))
        if family is not None:
            yield Signal(FAMILY, family.name, "configuration", CONFIG, name)
        if platform is not None:
            yield Signal(PLATFORM, platform.name, "configuration", CONFIG, name)


def _packages(name: str, text: str) -> Iterator[str]:
    """The names that a manifest gives its package."""
    if name in ("pyproject.toml", "Cargo.toml"):
        said = _document(name, text)
        for table in ("project", "package"):
            if isinstance(found := said.get(table), dict) and isinstance(found.get("name"), str):
                yield found["name"]
    elif name in ("package.json", "composer.json"):
        if isinstance(found := _document(name, text).get("name"), str):
            yield found
    elif _manifest(name) is not None:
        form = _DECLARED.get(PurePosixPath(name).suffix or name, r"name\s*=\s*['\"]([^'\"]+)")
        yield from re.findall(form, text, re.MULTILINE)


_DECLARED: Final = {
    ".csproj": r"<(?:PackageId|AssemblyName)>([^<]+)<",
    ".xml": r"<artifactId>([^<]+)<",
    ".mod": r"^module\s+(\S+)",
    ".cfg": r"^name\s*=\s*(\S+)",
    ".gemspec": r"\.name\s*=\s*['\"]([^'\"]+)",
    ".swift": r"Package\(\s*name:\s*\"([^\"]+)",
    ".txt": r"project\(\s*([\w.-]+)",
}


def _document(name: str, text: str) -> Mapping[str, Any]:
    try:
        return tables.parse(name, text)
    except ValueError:
        return {}


def _readme(texts: Mapping[str, str]) -> str:
    return next((texts[name] for name in sorted(texts) if README.fullmatch(name)), "")


def _title(text: str) -> str:
    """The first heading of a README: `# Title`, or a line with a rule below it."""
    found = re.search(r"^#\s+(.+)$|^(\S.*)\n(?:=|-){3,}\s*$", text, re.MULTILINE)
    return (found[1] or found[2]).strip() if found else ""


def _manifest(name: str) -> str | None:
    suffix = PurePosixPath(name).suffix
    return MANIFESTS.get(name) or (MANIFESTS.get(f"*{suffix}") if suffix else None)


def _has(names: Sequence[str], table: Mapping[str, str], platform: str) -> bool:
    return any(table.get(PurePosixPath(name).suffix) == platform for name in names)
