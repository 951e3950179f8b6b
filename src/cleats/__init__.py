"""The tool server for coding agents."""

__version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Return the version on request: nothing is imported here, before the command can handle Ctrl-C."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cleats.contract.versions import TOOLING_VERSION  # noqa: PLC0415 - as above

    return TOOLING_VERSION
