"""A declaration while it is being read, and its conversion to a chunk."""

from cleats.toolsets.code.analysis.facts import Chunk, DataFlowStep, TypeFact
from cleats.toolsets.code.analysis.languages.syntax import SyntaxTree

MAX_NAME_CHARS = 400
"""Characters of a dotted name that is split into its parts; longer ones are attacks, not names."""

VISIBILITY_WORDS = frozenset({"public", "protected", "private", "internal", "package"})


class Frame:
    """One declaration that is being read. The dictionaries serve as ordered sets."""

    def __init__(self, kind: str, name: str, start: int, end: int, parent: "Frame | None") -> None:
        self.kind = kind
        self.name = name
        self.start = start
        self.end = end
        self.parent = parent
        self.qualified_name = name
        if parent is not None and parent.parent is not None:
            self.qualified_name = f"{parent.qualified_name}.{name}"
        self.nested_ranges: list[tuple[int, int]] = []
        """Byte ranges of the chunks directly inside this one."""
        self.section_visibility = ""
        """The visibility that a line in the body, such as `private:`, sets for everything after
        it."""

        self.signature = ""
        self.params: list[str] = []
        self.types: dict[TypeFact, None] = {}
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
        """Only names that are neither read nor called: types, decorators, bases."""
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
        self.steps: list[DataFlowStep] = []

    @property
    def is_top_level(self) -> bool:
        """True for a declaration at the top level of the file."""
        return self.parent is not None and self.parent.parent is None

    def to_chunk(self, syntax: SyntaxTree) -> Chunk:
        """Return the finished chunk."""
        return Chunk(
            kind=self.kind,
            name=self.qualified_name,
            start=self.start,
            end=self.end,
            start_line=syntax.line_number(self.start),
            end_line=syntax.line_number(max(self.start, self.end - 1)),
            own=self._own_ranges(),
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
            uses=self._collect_uses(),
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
        """Return whether the text is empty once the nested chunks are cut out.

        A semicolon after a declaration does not count as text.
        """
        spans = self._own_ranges() if self.nested_ranges else [(self.start, self.end)]
        return not any(data[start:end].strip(b" \t\r\n\f\v;") for start, end in spans)

    def _own_ranges(self) -> list[tuple[int, int]]:
        if not self.nested_ranges:
            return []
        own_ranges: list[tuple[int, int]] = []
        position = self.start
        # Not in order yet: the right side of an assignment is read before the left one.
        for start, end in sorted(self.nested_ranges):
            if start > position:
                own_ranges.append((position, start))
            position = max(position, end)
        if self.end > position:
            own_ranges.append((position, self.end))
        return own_ranges

    def _collect_uses(self) -> list[str]:
        """Return every used name: each dotted name, and each name in it."""
        uses = {**self.uses, **self.reads, **self.calls, **self.mutates}
        for name in list(uses):
            if not name.isidentifier() and len(name) < MAX_NAME_CHARS:
                parts = name.replace("::", ".").replace("[]", "").replace("()", "").split(".")
                uses.update(dict.fromkeys(parts))
        uses.pop("", None)
        return list(uses)
