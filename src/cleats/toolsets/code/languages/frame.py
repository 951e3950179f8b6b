"""A declaration while it is being read, and the chunk it becomes."""

from cleats.toolsets.code.facts import Chunk, Step, Typed
from cleats.toolsets.code.languages.syntax import Syntax

LONGEST_NAME = 400
"""Characters of a dotted name that is taken apart; longer ones are not names but attacks."""

VISIBILITIES = frozenset({"public", "protected", "private", "internal", "package"})


class Frame:
    """One declaration. The dictionaries are sets that keep their order."""

    def __init__(self, kind: str, name: str, start: int, end: int, around: "Frame | None") -> None:
        self.kind = kind
        self.name = name
        self.start = start
        self.end = end
        self.around = around
        self.qualified = name
        if around is not None and around.around is not None:
            self.qualified = f"{around.qualified}.{name}"
        self.inner: list[tuple[int, int]] = []
        """Ranges of the chunks right inside."""
        self.section = ""
        """The visibility that a line of the body gave to all that follow it."""

        self.signature = ""
        self.params: list[str] = []
        self.types: dict[Typed, None] = {}
        self.return_type = ""
        self.decorators: list[str] = []
        self.bases: list[str] = []
        self.visibility = ""
        self.modifiers: dict[str, None] = {}
        self.is_async = False
        self.is_generator = False
        self.returns = False

        self.calls: dict[str, None] = {}
        self.uses: dict[str, None] = {}
        """Only what is neither read nor called: types, decorators, bases."""
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.mutates: dict[str, None] = {}
        self.aliases: dict[str, None] = {}
        self.throws: dict[str, None] = {}
        self.awaits: dict[str, None] = {}
        self.branches = 0
        self.blocks = 0
        self.loops = 0
        self.breaks = 0
        self.continues = 0
        self.doc = ""
        self.doc_range = (0, 0)
        self.comments: list[str] = []
        self.steps: list[Step] = []

    @property
    def top(self) -> bool:
        """Whether it is a declaration of the file itself."""
        return self.around is not None and self.around.around is None

    def chunk(self, syntax: Syntax) -> Chunk:
        """What is known of it, for good."""
        return Chunk(
            kind=self.kind,
            name=self.qualified,
            start=self.start,
            end=self.end,
            start_line=syntax.line(self.start),
            end_line=syntax.line(max(self.start, self.end - 1)),
            own=self._own(),
            signature=self.signature,
            params=self.params,
            types=list(self.types),
            return_type=self.return_type,
            decorators=self.decorators,
            bases=self.bases,
            visibility=self.visibility,
            modifiers=list(self.modifiers),
            is_async=self.is_async,
            is_generator=self.is_generator,
            returns=self.returns,
            calls=list(self.calls),
            uses=self._all_uses(),
            reads=list(self.reads),
            writes=list(self.writes),
            mutates=list(self.mutates),
            aliases=list(self.aliases),
            throws=list(self.throws),
            awaits=list(self.awaits),
            branches=self.branches,
            loops=self.loops,
            breaks=self.breaks,
            continues=self.continues,
            doc=self.doc,
            comments="\n".join(self.comments),
            steps=self.steps,
        )

    def is_blank(self, data: bytes) -> bool:
        """Whether nothing of its text is left when the chunks inside are cut out.

        A semicolon after a declaration says nothing.
        """
        spans = self._own() if self.inner else [(self.start, self.end)]
        return not any(data[start:end].strip(b" \t\r\n\f\v;") for start, end in spans)

    def _own(self) -> list[tuple[int, int]]:
        if not self.inner:
            return []
        own: list[tuple[int, int]] = []
        at = self.start
        # The right side of an assignment is read before the left one.
        for start, end in sorted(self.inner):
            if start > at:
                own.append((at, start))
            at = max(at, end)
        if self.end > at:
            own.append((at, self.end))
        return own

    def _all_uses(self) -> list[str]:
        """A dotted name is used as a whole, and so is each name in it."""
        uses = {**self.uses, **self.reads, **self.calls, **self.mutates}
        for name in list(uses):
            if not name.isidentifier() and len(name) < LONGEST_NAME:
                parts = name.replace("::", ".").replace("[]", "").replace("()", "").split(".")
                uses.update(dict.fromkeys(parts))
        uses.pop("", None)
        return list(uses)
