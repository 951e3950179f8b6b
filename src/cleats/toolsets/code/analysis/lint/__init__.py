"""Findings of linters for the files of a repository."""

from cleats.toolsets.code.analysis.lint.linters import Linters, LintFinding, compute_fingerprint, is_empty_fingerprint
from cleats.toolsets.code.analysis.lint.run import lint_files

__all__ = ["LintFinding", "Linters", "compute_fingerprint", "is_empty_fingerprint", "lint_files"]
