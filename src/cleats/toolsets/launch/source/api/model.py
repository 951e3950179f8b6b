"""A public name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """A class or function that others may use. `doc` is the first sentence of what it says."""

    name: str
    """As a program would write it: `package.Thing`."""
    kind: str
    """`class` or `function`."""
    path: str
    line: int
    end: int
    signature: str = ""
    doc: str = ""
    doc_line: int = 0
    doc_end: int = 0
    maker: tuple[int, int] = (0, 0)
    """The lines of what makes an object of a class, which has its parameters."""
    deprecated: bool = False
    exported: bool = True
    """Named by the package itself as public, not only not hidden."""


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything public, the package's own names first."""

    symbols: tuple[Symbol, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    """Module and file."""

    @property
    def names(self) -> frozenset[str]:
        """The last part of every name."""
        return frozenset(symbol.name.rsplit(".", 1)[-1] for symbol in self.symbols)
