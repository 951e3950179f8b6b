"""What linters say about the files of a repository."""

from cleats.toolsets.code.lint.answers import Finding
from cleats.toolsets.code.lint.linters import Linters, fingerprint, none_asked
from cleats.toolsets.code.lint.run import lint

__all__ = ["Finding", "Linters", "fingerprint", "lint", "none_asked"]
