"""Documents that are a list of findings, however that is wrapped."""

from collections.abc import Iterator
from typing import Any, Final

from cleats.toolsets.code.triage.values import at

WRAPPERS: Final = ("alerts", "findings", "records", "items", "detail")


def listed(document: Any) -> Iterator[Any]:
    """The findings: a list, one under a usual name, the first list there is, or the whole."""
    if isinstance(document, list):
        yield from document
        return
    found = _wrapped(document)
    if isinstance(found, list):
        yield from found
    else:
        yield document if found is None else found


def _wrapped(document: Any) -> Any:
    if not isinstance(document, dict):
        return None
    for name in WRAPPERS:
        if isinstance(at(document, name), list | dict):
            return document[name]
    # A finding of its own has lists too, of references and the like.
    if any(isinstance(value, dict | str | int) for value in document.values()):
        return None
    return next((value for value in document.values() if isinstance(value, list)), None)
