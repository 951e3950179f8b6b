"""What a repository is built with: manifests are counted, the primary ones for most."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.roots import kind_of
from cleats.toolsets.launch.source.tree import Tree

PRIMARY: Final = 3
SECONDARY: Final = 1
CERTAIN: Final = 2
"""Below this score a platform is only a guess."""

_SIGNS: Final[tuple[tuple[str, str, int, str], ...]] = (
    ("python", r"pyproject\.toml|setup\.py|setup\.cfg", PRIMARY, "pip"),
    ("python", r"requirements[^/]*\.txt|tox\.ini|Pipfile|poetry\.lock|uv\.lock", SECONDARY, ""),
    ("node", r"package\.json", PRIMARY, "npm"),
    ("node", r"tsconfig\.json|package-lock\.json|yarn\.lock|pnpm-lock\.yaml", SECONDARY, ""),
    ("dotnet", r"[^/]+\.(csproj|fsproj|vbproj)", PRIMARY, "dotnet"),
    ("dotnet", r"[^/]+\.slnx?|Directory\.Build\.props|nuget\.config|[^/]+\.nuspec", SECONDARY, ""),
    ("java", r"pom\.xml", PRIMARY, "maven"),
    ("java", r"build\.gradle(\.kts)?", PRIMARY, "gradle"),
    ("java", r"settings\.gradle(\.kts)?|gradlew|mvnw", SECONDARY, ""),
    ("go", r"go\.mod", PRIMARY, "go"),
    ("go", r"go\.sum", SECONDARY, ""),
    ("rust", r"Cargo\.toml", PRIMARY, "cargo"),
    ("rust", r"Cargo\.lock", SECONDARY, ""),
    ("php", r"composer\.json", PRIMARY, "composer"),
    ("php", r"composer\.lock|phpunit\.xml(\.dist)?", SECONDARY, ""),
    ("ruby", r"[^/]+\.gemspec", PRIMARY, "bundler"),
    ("ruby", r"Gemfile|Rakefile", SECONDARY, ""),
    ("swift", r"Package\.swift", PRIMARY, "swiftpm"),
    ("swift", r"[^/]+\.podspec", SECONDARY, ""),
    ("cpp", r"CMakeLists\.txt|meson\.build", PRIMARY, "cmake"),
    ("cpp", r"conanfile\.(txt|py)|vcpkg\.json|configure\.ac|Makefile\.am", SECONDARY, ""),
)
"""Family, file name, weight, build system. In the order that settles a tie."""

_ORDER: Final = tuple(dict.fromkeys(sign[0] for sign in _SIGNS))

_TESTS: Final = {
    "python": "python -m pytest",
    "node": "npm test",
    "dotnet": "dotnet test",
    "maven": "mvn test",
    "gradle": "gradle test",
    "go": "go test ./...",
    "rust": "cargo test",
    "php": "composer test",
    "ruby": "bundle exec rake test",
    "swift": "swift test",
    "cpp": "ctest",
}


@dataclass(frozen=True, slots=True)
class Platform:
    """`family` is one of the families, `multi` or `unknown`."""

    family: str
    scores: dict[str, int]
    build_systems: tuple[str, ...]
    manifests: tuple[str, ...]
    archetype: str

    @property
    def test_command(self) -> str:
        """How its tests are usually run; "" when there is no usual way."""
        if self.family == "java":
            return _TESTS["maven" if "maven" in self.build_systems else "gradle"]
        return _TESTS.get(self.family, "")


def detect(tree: Tree) -> Platform:
    """Score the manifests at the top; deeper ones count only when the top has none."""
    usable = [path for path in tree.paths if kind_of(path) not in ("test", "example", "doc")]
    top = [path for path in usable if "/" not in path]
    scored = _score(top)
    if max(scored[0].values(), default=0) < PRIMARY:
        scored = _score(sorted(usable, key=lambda path: (path.count("/"), path)))
    scores, systems, manifests = scored
    best = sorted(scores, key=lambda family: (-scores[family], _ORDER.index(family)))
    family = best[0] if best and scores[best[0]] >= CERTAIN else "unknown"
    rivals = [each for each in best if scores[each] >= PRIMARY]
    if len(rivals) > 1 and scores[rivals[0]] == scores[rivals[1]]:
        family = "multi"
    return Platform(
        family, scores, tuple(sorted(systems)), tuple(manifests), _archetype(tree, family)
    )


def _score(paths: list[str]) -> tuple[dict[str, int], set[str], list[str]]:
    scores: dict[str, int] = {}
    systems: set[str] = set()
    manifests: list[str] = []
    seen: set[str] = set()
    for path in paths:
        name = PurePosixPath(path).name
        for family, pattern, weight, system in _SIGNS:
            if not re.fullmatch(pattern, name):
                continue
            if weight == PRIMARY:
                manifests.append(path)
            if (once := f"{family}:{pattern}") not in seen:
                seen.add(once)
                scores[family] = scores.get(family, 0) + weight
                systems.update({system} - {""})
    return scores, systems, sorted(manifests)


def _archetype(tree: Tree, family: str) -> str:
    if family == "python":
        layout = "src" if any(path.startswith("src/") for path in tree.paths) else "flat"
        files = ("pyproject.toml", "setup.cfg", "setup.py")
        manifest = next((name for name in files if name in tree.known), "")
        return f"python_{layout}_{manifest.replace('.', '_').removesuffix('_toml')}".rstrip("_")
    if family == "node":
        language = "typescript" if "tsconfig.json" in tree.known else "javascript"
        return f"node_{language}"
    if family == "java":
        return "java_maven" if "pom.xml" in tree.known else "java_gradle"
    return f"{family}_standard" if family in _ORDER else family
