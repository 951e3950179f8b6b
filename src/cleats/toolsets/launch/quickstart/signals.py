"""Signals about the product of a repository: its name, manifests, README and files.

Pure: file names and the texts of a few files in, signals out. The weights follow the design: a name
that follows the convention is enough by itself, a README never is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.quickstart import urls
from cleats.toolsets.launch.quickstart.urls import HostedRepository
from cleats.toolsets.launch.source.checkout import safe_parsing

MIN_CONFIDENCE: Final = 0.80
"""A guess must be above this confidence."""

MAX_RIVAL_CONFIDENCE: Final = 0.50
"""The strongest other value must stay below this confidence."""

MIN_SUGGESTED_CONFIDENCE: Final = 0.20
"""Values below this confidence are not suggested."""

_CONFIDENCE_DIGITS: Final = 4
"""Digits kept after the decimal point. Weights have two; further digits are rounding noise."""


@dataclass(frozen=True, slots=True, order=True)
class Signal:
    """One observation: the field, the value, where it was observed, and its weight."""

    field: str
    value: str
    source: str
    weight: float
    observed_text: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "value": self.value,
            "source": self.source,
            "weight": round(self.weight, _CONFIDENCE_DIGITS),
            "seen": self.observed_text,
        }


@dataclass(frozen=True, slots=True)
class Guess:
    """The result of the signals for one field."""

    field: str
    value: str
    """Empty when the confidence is too low."""
    confidence: float
    rival: float
    candidates: tuple[tuple[str, float], ...]
    """Every observed value with its confidence, the highest first, ties by name."""

    @property
    def suggested_values(self) -> list[str]:
        return [value for value, confidence in self.candidates if confidence >= MIN_SUGGESTED_CONFIDENCE]


def guess_value(field: str, signals: Iterable[Signal]) -> Guess:
    """Return the guess for a field; the order of the signals does not matter."""
    weights: dict[str, list[float]] = {}
    for signal in signals:
        if signal.field == field:
            weights.setdefault(signal.value, []).append(signal.weight)
    combined_weights = {
        value: 1 - prod(1 - item for item in sorted(value_weights)) for value, value_weights in weights.items()
    }
    ranked = []
    for value, combined in combined_weights.items():
        rival = max((item for other, item in combined_weights.items() if other != value), default=0.0)
        ranked.append((value, max(0.0, round(combined - rival / 2, _CONFIDENCE_DIGITS)), rival))
    ranked.sort(key=lambda item: (-item[1], item[0]))
    candidates = tuple((value, confidence) for value, confidence, _ in ranked)
    if not ranked:
        return Guess(field, "", 0.0, 0.0, ())
    value, confidence, rival = ranked[0]
    is_certain = confidence > MIN_CONFIDENCE and round(rival, _CONFIDENCE_DIGITS) < MAX_RIVAL_CONFIDENCE
    return Guess(field, value if is_certain else "", confidence, round(rival, _CONFIDENCE_DIGITS), candidates)


FAMILY_FIELD: Final = "family"
PLATFORM_FIELD: Final = "target_platform"

NAME_WEIGHT, OWNER_WEIGHT, PACKAGE_WEIGHT, TITLE_WEIGHT, BODY_WEIGHT, CONFIG_WEIGHT = 0.95, 0.45, 0.80, 0.60, 0.30, 0.90
MANIFEST_WEIGHT, LANGUAGE_WEIGHT, INSTALL_WEIGHT = 0.75, 0.40, 0.35

CONFIG_FILE_NAMES: Final = ("launch.toml", ".launch.toml", "run_config.yaml", "run_config.yml")
"""Files in which a repository may declare its own product."""

README_NAME_PATTERN: Final = re.compile(r"readme(\.(md|markdown|rst|txt))?", re.IGNORECASE)

PLATFORM_BY_MANIFEST: Final[Mapping[str, str]] = {
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

PLATFORM_BY_SUFFIX: Final[Mapping[str, str]] = {
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

PLATFORM_BY_INSTALL_PATTERN: Final[Mapping[str, str]] = {
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


def select_signal_files(names: Sequence[str]) -> list[str]:
    """Return the top-level files whose text can hold signals."""
    top = [name for name in names if "/" not in name]
    return [
        name
        for name in top
        if README_NAME_PATTERN.fullmatch(name) or name in CONFIG_FILE_NAMES or _find_manifest_platform(name) is not None
    ]


def collect_signals(
    repository: HostedRepository, names: Sequence[str], texts: Mapping[str, str], profile: Profile
) -> list[Signal]:
    """Return every signal of a repository, sorted."""
    signals = [
        *_read_name_signals(repository, profile),
        *_read_manifest_signals(names, texts, profile),
        *_read_language_signals(names),
        *_read_readme_signals(texts, profile),
        *_read_config_signals(texts, profile),
    ]
    seen_families = {item.value for item in signals if item.field == FAMILY_FIELD}
    signals += _read_open_family_signals(texts, profile, seen_families)
    known_platforms = {item.name for item in profile.platforms}
    return sorted({item for item in signals if item.field == FAMILY_FIELD or item.value in known_platforms})


def _read_name_signals(repository: HostedRepository, profile: Profile) -> Iterator[Signal]:
    name_match = urls.match_repository_name(repository, profile)
    if name_match.family:
        yield Signal(FAMILY_FIELD, name_match.family, "repository name", NAME_WEIGHT, repository.name)
    if name_match.platform:
        yield Signal(PLATFORM_FIELD, name_match.platform, "repository name", NAME_WEIGHT, repository.name)
    if owner_family := urls.match_owner_family(repository, profile):
        yield Signal(FAMILY_FIELD, owner_family, "owner", OWNER_WEIGHT, repository.owner)


def _read_manifest_signals(names: Sequence[str], texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    top = {name for name in names if "/" not in name}
    seen_platforms: set[str] = set()
    for name in sorted(top):
        platform = _find_manifest_platform(name)
        if platform is None or (platform == "cpp" and not _has_platform_file(names, PLATFORM_BY_SUFFIX, "cpp")):
            continue
        if platform == "javascript" and "tsconfig.json" in top:
            platform = "typescript"
        if platform not in seen_platforms:  # two manifests of one platform are one observation
            seen_platforms.add(platform)
            yield Signal(PLATFORM_FIELD, platform, "manifest", MANIFEST_WEIGHT, name)
    families: dict[str, str] = {}
    for name in sorted(texts):
        for package in _find_package_names(name, texts[name]):
            if family := urls.match_package_family(package, profile):
                families.setdefault(family, package)
    for family, package in sorted(families.items()):
        yield Signal(FAMILY_FIELD, family, "package name", PACKAGE_WEIGHT, package)


def _read_language_signals(names: Sequence[str]) -> Iterator[Signal]:
    counts = Counter(
        PLATFORM_BY_SUFFIX[suffix]
        for name in names
        if (suffix := PurePosixPath(name).suffix) in PLATFORM_BY_SUFFIX and _find_manifest_platform(name) is None
    )
    for platform, count in sorted(counts.items()):
        share = count / counts.total()
        yield Signal(PLATFORM_FIELD, platform, "languages", LANGUAGE_WEIGHT * share, f"{share:.0%} of files")


def _read_readme_signals(texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    text = _find_readme_text(texts)
    title = _find_title(text)
    for family in sorted(set(urls.find_family_mentions(title, profile))):
        yield Signal(FAMILY_FIELD, family, "README title", TITLE_WEIGHT, title[:100])
    counts = Counter(urls.find_family_mentions(text, profile))
    for family, count in sorted(counts.items()):
        share = count / counts.total()
        yield Signal(FAMILY_FIELD, family, "README text", BODY_WEIGHT * share, f"named {count} times")
    for platform in sorted(
        {platform for pattern, platform in PLATFORM_BY_INSTALL_PATTERN.items() if re.search(pattern, text)}
        | set(_find_title_platform(title, profile))
    ):
        yield Signal(PLATFORM_FIELD, platform, "README", INSTALL_WEIGHT, "")


def _find_title_platform(title: str, profile: Profile) -> Iterator[str]:
    """Yield the platform of a title such as `Product for Platform`."""
    match = re.search(r"\bfor\s+(\S+)", title, re.IGNORECASE)
    platform = profile.find_platform(match[1].rstrip(",:;")) if match else None
    if platform is not None:
        yield platform.name


def _read_open_family_signals(texts: Mapping[str, str], profile: Profile, seen_families: set[str]) -> Iterator[Signal]:
    """Yield title signals where any name can be a family: only for families seen elsewhere."""
    title = _find_title(_find_readme_text(texts))
    words = {word.casefold() for word in re.findall(r"[A-Za-z0-9._-]+", title)}
    if profile.families.open:
        for family in sorted(seen_families):
            if family.casefold() in words:
                yield Signal(FAMILY_FIELD, family, "README title", TITLE_WEIGHT, title[:100])


def _read_config_signals(texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    for name in CONFIG_FILE_NAMES:
        document = _parse_document(name, texts.get(name, ""))
        family = profile.find_family(str(document.get("family") or document.get("product_slug") or ""))
        platform = profile.find_platform(str(document.get("target_platform") or document.get("platform") or ""))
        if family is not None:
            yield Signal(FAMILY_FIELD, family.name, "configuration", CONFIG_WEIGHT, name)
        if platform is not None:
            yield Signal(PLATFORM_FIELD, platform.name, "configuration", CONFIG_WEIGHT, name)


def _find_package_names(name: str, text: str) -> Iterator[str]:
    """Yield the package names that a manifest declares."""
    if name in ("pyproject.toml", "Cargo.toml"):
        document = _parse_document(name, text)
        for table in ("project", "package"):
            if isinstance(value := document.get(table), dict) and isinstance(value.get("name"), str):
                yield value["name"]
    elif name in ("package.json", "composer.json"):
        if isinstance(value := _parse_document(name, text).get("name"), str):
            yield value
    elif _find_manifest_platform(name) is not None:
        pattern = _PACKAGE_NAME_PATTERNS.get(PurePosixPath(name).suffix or name, r"name\s*=\s*['\"]([^'\"]+)")
        yield from re.findall(pattern, text, re.MULTILINE)


_PACKAGE_NAME_PATTERNS: Final = {
    ".csproj": r"<(?:PackageId|AssemblyName)>([^<]+)<",
    ".xml": r"<artifactId>([^<]+)<",
    ".mod": r"^module\s+(\S+)",
    ".cfg": r"^name\s*=\s*(\S+)",
    ".gemspec": r"\.name\s*=\s*['\"]([^'\"]+)",
    ".swift": r"Package\(\s*name:\s*\"([^\"]+)",
    ".txt": r"project\(\s*([\w.-]+)",
}


def _parse_document(name: str, text: str) -> Mapping[str, Any]:
    try:
        return safe_parsing.parse_document(name, text)
    except ValueError:
        return {}


def _find_readme_text(texts: Mapping[str, str]) -> str:
    return next((texts[name] for name in sorted(texts) if README_NAME_PATTERN.fullmatch(name)), "")


def _find_title(text: str) -> str:
    """Return the first heading of a README: `# Title`, or an underlined line."""
    match = re.search(r"^#\s+(.+)$|^(\S.*)\n(?:=|-){3,}\s*$", text, re.MULTILINE)
    return (match[1] or match[2]).strip() if match else ""


def _find_manifest_platform(name: str) -> str | None:
    suffix = PurePosixPath(name).suffix
    return PLATFORM_BY_MANIFEST.get(name) or (PLATFORM_BY_MANIFEST.get(f"*{suffix}") if suffix else None)


def _has_platform_file(names: Sequence[str], table: Mapping[str, str], platform: str) -> bool:
    return any(table.get(PurePosixPath(name).suffix) == platform for name in names)
