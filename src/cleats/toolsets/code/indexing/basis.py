"""What a build can begin from: the last generation, or nothing when it does not fit."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.indexing.fingerprint import fingerprint
from cleats.toolsets.code.indexing.options import MODES, Options
from cleats.toolsets.code.store.catalogue import Catalogue, Known
from cleats.toolsets.code.store.generations import Lease, Shelf


class Form(Struct, frozen=True):
    """What an index has. One that has another form is built anew."""

    modes: tuple[Mode, ...]
    vectors: bool
    fingerprint: str

    @classmethod
    def wanted(cls, options: Options, before: Mapping[str, Any]) -> "Form":
        """The form after a build: what is asked for, and what the index has already.

        Who asks for no more than it has gets everything where that cannot be told: of an index
        that is damaged, or that another version wrote.
        """
        asked = {*options.modes, *before.get("modes", ())}
        modes = tuple(mode for mode in MODES if mode in asked) or MODES
        vectors = options.vectors
        if vectors is None:
            vectors = bool(before.get("vectors", True))
        return cls(modes, vectors, fingerprint(options, vectors=vectors))

    def fits(self, before: Mapping[str, Any]) -> bool:
        """Whether a generation with this said about it has the form."""
        return (
            before.get("fingerprint") == self.fingerprint
            and before.get("vectors") == self.vectors
            and before.get("modes") == list(self.modes)
        )


class Basis(Struct, frozen=True):
    """The last generation, as far as a build can use it."""

    form: Form
    sqlite: bool
    lease: Lease | None = None
    """None when all is to be read again."""
    meta: Mapping[str, Any] = {}
    """What is said about the last generation, whether it fits or not."""
    known: Mapping[str, Known] = {}

    @classmethod
    @contextmanager
    def of(cls, shelf: Shelf, options: Options) -> Iterator["Basis"]:
        """Hold the last generation for the length of a build."""
        lease = shelf.current()
        if lease is None:
            yield cls(Form.wanted(options, {}), bool(options.sqlite))
            return
        with lease, Catalogue.open(lease.catalogue) as catalogue:
            meta = catalogue.meta()
            form = Form.wanted(options, meta)
            sqlite = bool(meta.get("sqlite")) if options.sqlite is None else options.sqlite
            if (options.incremental or options.artifacts) and form.fits(meta):
                yield cls(form, sqlite, lease, meta, catalogue.known())
            else:
                yield cls(form, sqlite, None, meta)
