"""A manifest: what a package says about itself, each thing with the line it stands on."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Said:
    """A value and where it is written."""

    value: str
    path: str
    line: int = 1
    end: int = 0
    """The last line; 0 when it is the same."""
    basis: str = "manifest"
    """What kind of source it is: a version is often only a constant in the code."""
    detail: str = ""
    """What belongs to it: what a command runs."""

    @property
    def last(self) -> int:
        return max(self.line, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One package. What a manifest leaves to its build tool is None: unknown, not empty."""

    ecosystem: str
    """`pip`, `npm`, `maven`, `nuget`, `cargo`, `go`, `composer`, `gem`, `swiftpm`, `source`."""
    path: str
    name: Said | None = None
    version: Said | None = None
    licence: Said | None = None
    """In the manifest's own words."""
    licence_file: str = ""
    description: Said | None = None
    requires: Said | None = None
    """The versions of the language or its runtime, as the manifest writes them."""
    dependencies: tuple[Said, ...] | None = ()
    optional: Mapping[str, tuple[Said, ...]] = field(default_factory=dict)
    dev: tuple[Said, ...] = ()
    commands: tuple[Said, ...] = ()
    classifiers: tuple[Said, ...] = ()
    keywords: tuple[str, ...] = ()
    imports: tuple[Said, ...] = ()
    """What a program imports, where the manifest says it."""
    entry_files: tuple[str, ...] = ()
    """The files that an import reads first."""
    private: bool = False
    """Never published, as it says itself."""
    installable: bool = False
    """Whether building from source also installs (CMake)."""
