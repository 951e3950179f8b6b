"""Types that the readers of scanner formats share: sources and drafts of findings without an id."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from cleats.toolsets.code.triage.records import TriageRecord
from cleats.toolsets.code.triage.values import get_nested

ItemReader: TypeAlias = Callable[[Any], Iterator[Any]]
"""A function from a document to its items, each with all that is needed to understand it."""


class FindingDraft(NamedTuple):
    """A finding, with the key by which its source identifies it; the key may be empty."""

    key: str
    record: TriageRecord


class FindingSource(NamedTuple):
    """A format of documents with findings."""

    description: str
    iter_items: ItemReader
    draft_finding: Callable[[Any], FindingDraft]


def join_key(*parts: str) -> str:
    """Join the parts of a key, or return an empty text if the first part is missing."""
    return ":".join(parts) if parts[0] else ""


WRAPPER_KEYS: Final = ("alerts", "findings", "records", "items", "detail")


def iter_findings(document: Any) -> Iterator[Any]:
    """Yield the findings: a list, the value of a usual key, the first list, or the document."""
    if isinstance(document, list):
        yield from document
        return
    wrapped = _unwrap_findings(document)
    if isinstance(wrapped, list):
        yield from wrapped
    else:
        yield document if wrapped is None else wrapped


def _unwrap_findings(document: Any) -> Any:
    if not isinstance(document, dict):
        return None
    for name in WRAPPER_KEYS:
        if isinstance(get_nested(document, name), list | dict):
            return document[name]
    # A single finding has lists too, such as references.
    if any(isinstance(value, dict | str | int) for value in document.values()):
        return None
    return next((value for value in document.values() if isinstance(value, list)), None)
