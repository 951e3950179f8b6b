"""The tool server for coding agents."""

from cleats.contract.versions import TOOLING_VERSION as __version__

__all__ = ["__version__"]
