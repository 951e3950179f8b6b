"""What a build is asked to make."""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from msgspec import Struct, structs

from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.facts import Mode

if TYPE_CHECKING:
    from cleats.settings import Settings

Choice: TypeAlias = Literal["all", "code", "prose", "extracted-prose", "records"]

MODES: tuple[Mode, ...] = get_args(Mode)

RULES: Final = Path(".cleats", "risk")
"""Where a repository keeps rules of risk."""

RECORDS: Final = "records"
"""The folder of the records: among the data, or in the cache where a database has them."""


class Options(Struct, frozen=True, kw_only=True):
    """Everything a builder needs to know besides the repository."""

    modes: tuple[Mode, ...] = MODES
    """What is asked for. What the index has besides is kept, and kept up to date."""
    incremental: bool = True
    sqlite: bool | None = None
    """None: as the index has it, and without for the first one."""
    vectors: bool | None = None
    """None: as the index has it, and with for the first one."""
    artifacts: str = ""
    """A folder with an exported generation to begin from."""
    workers: int = 0
    """Processes that read files; 0 for one per core."""
    git: bool = True
    lint: bool = True
    repository_code: bool = False
    """Whether linters and plugins that lie in the repository may run."""
    limits: Limits = Limits()
    risk_rules: tuple[str, ...] = ()
    records: str = ""
    """The folder with the records of every repository, or their copies, if there is one."""

    @property
    def rule_files(self) -> tuple[Path, ...]:
        return tuple(map(Path, self.risk_rules))

    def at(self, root: Path) -> "Options":
        """As they are for one repository, which may bring rules of its own."""
        own = sorted(str(path) for path in (root / RULES).glob("*.toml"))
        return structs.replace(self, risk_rules=tuple(dict.fromkeys((*self.risk_rules, *own))))


def chosen(choice: Choice) -> tuple[Mode, ...]:
    """The modes that a caller means. Prose takes the prose in code along."""
    if choice == "all":
        return MODES
    return ("prose", "extracted-prose") if choice == "prose" else (choice,)


def configured(settings: "Settings") -> Options:
    """The options as the operator set them."""
    return Options(
        workers=settings.index_workers,
        git=settings.index_git == "on",
        lint=settings.index_lint != "off",
        repository_code=settings.index_lint == "repository",
        limits=Limits(
            max_file_bytes=settings.index_max_file_bytes,
            max_lines=settings.index_max_lines,
            max_line_bytes=settings.index_max_line_bytes,
            max_files=settings.index_max_files,
        ),
        risk_rules=tuple(map(str, settings.risk_rules)),
        records=str((settings.cache_dir if settings.database_url else settings.data_dir) / RECORDS),
    )
