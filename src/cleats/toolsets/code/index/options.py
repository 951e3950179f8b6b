"""The options of a build."""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from msgspec import Struct, structs

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.discovery.content import DiscoveryLimits

if TYPE_CHECKING:
    from cleats.settings import Settings

ModeChoice: TypeAlias = Literal["all", "code", "prose", "extracted-prose", "records"]

INDEX_MODES: tuple[Mode, ...] = get_args(Mode)

RISK_RULES_FOLDER: Final = Path(".cleats", "risk")
"""The folder in a repository with its risk rules."""

RECORDS_FOLDER: Final = "records"
"""The folder of the records: in the data folder, or in the cache when a database stores them."""


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Everything a builder needs to know besides the repository."""

    modes: tuple[Mode, ...] = INDEX_MODES
    """The requested modes. Other modes that the index has are kept and updated."""
    incremental: bool = True
    sqlite: bool | None = None
    """None: as the index has it, and without for the first one."""
    vectors: bool | None = None
    """None: as the index has it, and with for the first one."""
    artifacts: str = ""
    """A folder with an exported generation to start from."""
    workers: int = 0
    """Processes that read files; 0 for one per core."""
    git: bool = True
    lint: bool = True
    repository_code: bool = False
    """True if linters and plugins that are part of the repository may run."""
    limits: DiscoveryLimits = DiscoveryLimits()
    risk_rules: tuple[str, ...] = ()
    records: str = ""
    """The folder with the records of every repository, or their copies, if there is one."""

    @property
    def rule_files(self) -> tuple[Path, ...]:
        return tuple(map(Path, self.risk_rules))

    def for_repository(self, root: Path) -> "BuildOptions":
        """Return the options for one repository, including the risk rules in it."""
        repository_rules = sorted(str(path) for path in (root / RISK_RULES_FOLDER).glob("*.toml"))
        return structs.replace(self, risk_rules=tuple(dict.fromkeys((*self.risk_rules, *repository_rules))))


class BuildRequest(Struct, frozen=True):
    """The order for a builder's process: the repository, the cache folder, and the options."""

    root: str
    cache_dir: str
    options: BuildOptions
    in_background: bool = False
    """True if the build must leave the processor to everything else."""


def expand_mode(choice: ModeChoice) -> tuple[Mode, ...]:
    """Return the modes that a caller means. Prose includes the prose in code."""
    if choice == "all":
        return INDEX_MODES
    return ("prose", "extracted-prose") if choice == "prose" else (choice,)


def options_from_settings(settings: "Settings") -> BuildOptions:
    """Return the options that the settings define."""
    return BuildOptions(
        workers=settings.code.index_workers,
        git=settings.code.index_git == "on",
        lint=settings.code.index_lint != "off",
        repository_code=settings.code.index_lint == "repository",
        limits=DiscoveryLimits(
            max_file_bytes=settings.code.index_max_file_bytes,
            max_lines=settings.code.index_max_lines,
            max_line_bytes=settings.code.index_max_line_bytes,
            max_files=settings.code.index_max_files,
        ),
        risk_rules=tuple(map(str, settings.code.risk_rules)),
        records=str((settings.cache_dir if settings.database_url else settings.data_dir) / RECORDS_FOLDER),
    )
