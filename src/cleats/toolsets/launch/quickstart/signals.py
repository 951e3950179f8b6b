"""Signals about the product of a repository: its name, manifests, README and files.

Pure: file names and the texts of a few files in, signals out. The weights follow the design: a name
that follows the convention is enough by itself, a README never is.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath
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
        place = {"field": self.field, "value": self.value, "source": self.source}
        return place | {"weight": round(self.weight, _CONFIDENCE_DIGITS), "seen": self.observed_text}


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
    doubts: frozenset[str] = frozenset()
    """The strongest other values, if the best one would be certain without them or they are too likely."""

    @property
    def suggested_values(self) -> list[str]:
        """The values to choose from: the likely ones, and those that caused the doubt."""
        return [
            value
            for value, confidence in self.candidates
            if confidence >= MIN_SUGGESTED_CONFIDENCE or value in self.doubts
        ]


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
        confidence = max(0.0, round(combined - rival / 2, _CONFIDENCE_DIGITS))
        ranked.append((value, confidence, round(rival, _CONFIDENCE_DIGITS)))
    ranked.sort(key=lambda item: (-item[1], item[0]))
    value, confidence, rival = ranked[0] if ranked else ("", 0.0, 0.0)
    is_certain = confidence > MIN_CONFIDENCE and rival < MAX_RIVAL_CONFIDENCE
    is_contested = not is_certain and (rival >= MAX_RIVAL_CONFIDENCE or combined_weights.get(value, 0) > MIN_CONFIDENCE)
    doubts = {
        other
        for other, weight in combined_weights.items()
        if is_contested and other != value and round(weight, _CONFIDENCE_DIGITS) == rival
    }
    candidates = tuple(item[:2] for item in ranked)
    return Guess(field, value if is_certain else "", confidence, rival, candidates, frozenset(doubts))


FAMILY_FIELD: Final = "family"
PLATFORM_FIELD: Final = "target_platform"
GUESSED_FIELDS: Final = (FAMILY_FIELD, PLATFORM_FIELD)

NAME_WEIGHT, OWNER_WEIGHT, PACKAGE_WEIGHT, TITLE_WEIGHT, BODY_WEIGHT, CONFIG_WEIGHT = 0.95, 0.45, 0.80, 0.60, 0.30, 0.90
MANIFEST_WEIGHT, LANGUAGE_WEIGHT, INSTALL_WEIGHT = 0.75, 0.40, 0.35

CONFIG_FILE_NAMES: Final = ("launch.toml", ".launch.toml", "run_config.yaml", "run_config.yml")
"""Files in which a repository may declare its own product."""

README_NAME_PATTERN: Final = re.compile(r"readme(\.(md|markdown|rst|txt))?", re.IGNORECASE)

_TABLES: Final = tomllib.loads(Path(__file__).with_name("signals.toml").read_text(encoding="utf-8"))
_PLATFORMS: Final[Mapping[str, Mapping[str, Any]]] = _TABLES["platforms"]
_PLATFORM_BY_MANIFEST: Final = {name: key for key, row in _PLATFORMS.items() for name in row.get("manifests", ())}
_PLATFORM_BY_SUFFIX: Final = {suffix: key for key, row in _PLATFORMS.items() for suffix in row["suffixes"]}


def select_signal_files(names: Sequence[str]) -> list[str]:
    """Return the top-level files whose text can hold signals."""
    return [
        name
        for name in names
        if "/" not in name
        and (README_NAME_PATTERN.fullmatch(name) or name in CONFIG_FILE_NAMES or _find_manifest_platform(name))
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
    name_match = urls.match_name(profile.repositories.names, repository.name, profile)
    for field, value in ((FAMILY_FIELD, name_match.family), (PLATFORM_FIELD, name_match.platform)):
        if value:
            yield Signal(field, value, "repository name", NAME_WEIGHT, repository.name)
    if owner_family := urls.match_name(profile.repositories.owners, repository.owner, profile).family:
        yield Signal(FAMILY_FIELD, owner_family, "owner", OWNER_WEIGHT, repository.owner)


def _read_manifest_signals(names: Sequence[str], texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    top = {name for name in names if "/" not in name}
    seen_platforms: set[str] = set()
    for name in sorted(top):
        platform = _find_manifest_platform(name)
        if not platform or (platform == "cpp" and not any(_find_file_platform(file) == "cpp" for file in names)):
            continue
        if platform == "javascript" and "tsconfig.json" in top:
            platform = "typescript"
        if platform not in seen_platforms:  # two manifests of one platform are one observation
            seen_platforms.add(platform)
            yield Signal(PLATFORM_FIELD, platform, "manifest", MANIFEST_WEIGHT, name)
    families: dict[str, str] = {}
    for name in sorted(texts):
        for package in _find_package_names(name, texts[name]):
            bare_name = re.split(r"[/:]", package.removeprefix("@"))[-1]  # without its scope or group
            if family := urls.match_name(profile.repositories.packages, bare_name, profile).family:
                families.setdefault(family, package)
    for family, package in sorted(families.items()):
        yield Signal(FAMILY_FIELD, family, "package name", PACKAGE_WEIGHT, package)


def _read_language_signals(names: Sequence[str]) -> Iterator[Signal]:
    counts = Counter(
        platform for name in names if (platform := _find_file_platform(name)) and not _find_manifest_platform(name)
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
    platforms = {key for key, row in _PLATFORMS.items() if "install" in row and re.search(row["install"], text)}
    for_platform = re.search(r"\bfor\s+(\S+)", title, re.IGNORECASE)
    if for_platform and (named := profile.find_platform(for_platform[1].rstrip(",:;"))):
        platforms.add(named.name)
    for platform in sorted(platforms):
        yield Signal(PLATFORM_FIELD, platform, "README", INSTALL_WEIGHT, "")


def _read_open_family_signals(texts: Mapping[str, str], profile: Profile, seen_families: set[str]) -> Iterator[Signal]:
    """Yield title signals where any name can be a family: only for families seen elsewhere."""
    title = _find_title(_find_readme_text(texts))
    words = {word.casefold() for word in re.findall(r"[A-Za-z0-9._-]+", title)}
    for family in sorted(seen_families) if profile.families.open else ():
        if family.casefold() in words:
            yield Signal(FAMILY_FIELD, family, "README title", TITLE_WEIGHT, title[:100])


def _read_config_signals(texts: Mapping[str, str], profile: Profile) -> Iterator[Signal]:
    for name in CONFIG_FILE_NAMES:
        document = safe_parsing.parse_table(name, texts.get(name, ""))
        family = profile.find_family(str(document.get("family") or document.get("product_slug") or ""))
        platform = profile.find_platform(str(document.get("target_platform") or document.get("platform") or ""))
        for field, found in ((FAMILY_FIELD, family), (PLATFORM_FIELD, platform)):
            if found is not None:
                yield Signal(field, found.name, "configuration", CONFIG_WEIGHT, name)


def _find_package_names(name: str, text: str) -> Iterator[str]:
    if name in ("pyproject.toml", "Cargo.toml"):
        document = safe_parsing.parse_table(name, text)
        tables = [safe_parsing.as_mapping(document.get(table)) for table in ("project", "package")]
        yield from (table["name"] for table in tables if isinstance(table.get("name"), str))
    elif name in ("package.json", "composer.json"):
        if isinstance(value := safe_parsing.parse_table(name, text).get("name"), str):
            yield value
    elif _find_manifest_platform(name):
        pattern = _TABLES["package_names"].get(PurePosixPath(name).suffix or name, r"name\s*=\s*['\"]([^'\"]+)")
        yield from re.findall(pattern, text, re.MULTILINE)


def _find_readme_text(texts: Mapping[str, str]) -> str:
    return next((texts[name] for name in sorted(texts) if README_NAME_PATTERN.fullmatch(name)), "")


def _find_title(text: str) -> str:
    """Return the first heading of a README: `# Title`, or an underlined line."""
    match = re.search(r"^#\s+(.+)$|^(\S.*)\n(?:=|-){3,}\s*$", text, re.MULTILINE)
    return (match[1] or match[2]).strip() if match else ""


def _find_manifest_platform(name: str) -> str:
    return _PLATFORM_BY_MANIFEST.get(name) or _PLATFORM_BY_MANIFEST.get(f"*{PurePosixPath(name).suffix}", "")


def _find_file_platform(name: str) -> str:
    return _PLATFORM_BY_SUFFIX.get(PurePosixPath(name).suffix, "")
