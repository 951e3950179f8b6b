"""What a server does with an index that several machines have: it builds it, or only asks it."""

from abc import abstractmethod
from pathlib import Path

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.repository import Repository


class Role:
    """The index of one repository, built here or elsewhere."""

    publishes: bool
    """Whether it is built here, for others as well."""
    root: Path
    """The repository that it is the index of, on this machine."""

    @property
    @abstractmethod
    def asked(self) -> str:
        """What a server does with it that does not build it."""

    def concerns(self, repository: Repository) -> bool:
        """Whether it is the index of this repository."""
        return repository.root == self.root

    def reads(self, repository: Repository) -> bool:
        """Whether it is, and is made elsewhere."""
        return self.concerns(repository) and not self.publishes

    def refuse_build(self, repository: Repository) -> None:
        """Refuse to build what is made elsewhere.

        Raises:
            ToolError: FORBIDDEN.
        """
        if self.reads(repository):
            raise ToolError(
                ErrorCode.FORBIDDEN,
                f"This server {self.asked}; it is built elsewhere.",
                hint="Run `cleats worker` where the repository is, or set CLEATS_INDEX_SHARE to "
                "publish on the machine that builds.",
            )
