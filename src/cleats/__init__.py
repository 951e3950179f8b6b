"""The tool server for coding agents."""

from cleats.contract.versions import TOOLING_VERSION

__version__ = TOOLING_VERSION

__all__ = ["__version__"]
