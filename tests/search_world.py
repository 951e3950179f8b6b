"""A small shop as an index, made by hand: every fact that a filter can ask for is in one place."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cleats.toolsets.code.facts import Chunk, FileFacts, Mode, Typed
from cleats.toolsets.code.indexing.headlines import headline
from cleats.toolsets.code.risk.summary import Flow, Risk
from cleats.toolsets.code.search.digest import digest
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.fts import write_fts
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.parts import write_parts
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.rows import ChunkRow, FileRow, Relations

pack = msgspec.msgpack.encode


@dataclass
class File:
    """A file of the world: its text, and what is known of it."""

    path: str
    text: str
    lang: str = "python"
    mode: Mode = "code"
    imports: list[str] = field(default_factory=list)
    author: str | None = None
    modified: int | None = None
    churn: int | None = None
    chunks: list[Chunk] = field(default_factory=list)
    late: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def piece(self, kind: str, name: str, text: str, **facts: Any) -> "File":
        """A chunk with this text of the file, and what is known of it."""
        start = self.text.index(text)
        first = self.text.count("\n", 0, start) + 1
        facts.setdefault("mode", self.mode)
        self.chunks.append(
            Chunk(
                kind,
                name,
                len(self.text[:start].encode()),
                len(self.text[: start + len(text)].encode()),
                first,
                first + text.count("\n"),
                **facts,
            )
        )
        return self

    def later(self, name: str, **values: Any) -> "File":
        """What git, risk or lint say of a chunk."""
        self.late[name] = {key: pack(value) for key, value in values.items()}
        return self


def write(catalogue: Catalogue, file: File) -> None:
    """Put a file into a catalogue as a build would."""
    data = file.text.encode()
    file.chunks.sort(key=lambda chunk: (chunk.start, -chunk.end))
    facts = FileFacts(file.lang, file.mode, data.count(b"\n") + 1, file.chunks, file.imports)
    made = digest(file.path, facts, data)
    rows = [
        ChunkRow(
            *(c.mode, c.kind, c.name, c.start, c.end, c.start_line, c.end_line),
            headline=headline(c, data),
            facts=pack(c),
            summary=None,
        )
        for c in file.chunks
    ]
    catalogue.put(
        FileRow(
            *(file.path, len(data), 1, hashlib.blake2b(data, digest_size=16).digest()),
            *(file.lang, file.mode, facts.lines, ""),
            pack(Relations(file.imports)),
            zlib.compress(data, 1),
            made.vectors,
            made.attributes,
            rows,
        )
    )
    _add_late(catalogue, file)


def _add_late(catalogue: Catalogue, file: File) -> None:
    run = catalogue.connection.execute
    run(
        "UPDATE files SET last_author = ?, last_modified = ?, churn = ? WHERE path = ?",
        (file.author, file.modified, file.churn, file.path),
    )
    for name, values in file.late.items():
        for column, value in values.items():
            run(
                f"UPDATE chunks SET {column} = ? WHERE name = ?"
                " AND file = (SELECT id FROM files WHERE path = ?)",
                (value, name, file.path),
            )


def build(
    folder: Path,
    files: list[File],
    meta: Mapping[str, Any] | None = None,
    *,
    previous: Any = None,
    parts: bool = True,
) -> Path:
    """A generation with these files, every backend included; or its catalogue alone."""
    folder.mkdir(parents=True)
    with Catalogue.create(folder / "catalogue.db") as catalogue:
        for file in files:
            write(catalogue, file)
        catalogue.set_meta(
            {"branch": "main", "commit": "c0ffee", "fingerprint": "x", **(meta or {})}
        )
        catalogue.commit()
    if not parts:
        return folder
    write_parts(folder / "catalogue.db", folder, previous, lambda *_: None)
    write_fts(folder)
    return folder


def names(engine: Engine, query: str, **arguments: Any) -> list[str]:
    """The names of the hits of all modes, best first."""
    answer = payload(engine, engine.search(read({"query": query, **arguments})))
    modes = ("code", "prose", "extractedProse", "records")
    return [hit["name"] for mode in modes for hit in answer[mode]]


CART = '''\
"""A cart."""
import decimal
from werkzeug.datastructures import MultiDict


class Cart(Base, Priced):
    """Holds what a customer wants to buy."""

    def add(self, item: Item, count: int = 1) -> None:
        for _ in range(count):
            if item.price > 0 and not self.closed:
                self.items.append(item)
                continue
            break
        total = self.total
        self.items[0] = total

    @property
    def total(self) -> Decimal:
        return sum_prices(self.items)


async def fetch_prices(session, url):
    answer = await session.get(url)
    if not answer.ok:
        raise PriceError("no price")
    yield answer


def runCommand(request):
    command = request.args.get("command")
    shell = command
    os.system(shell)
'''

STORE = """\
// Where things are kept.
export class HTTPStore {
  private cache: Map<string, Item> = new Map();

  // Load an item that the customer asked for, or fail with a parse error.
  load(key: string): Item {
    return parseItem(this.cache.get(key));
  }
}
"""

GUIDE = """\
# Buying

Put things into the cart, then pay. The cart never forgets.

# Parsing errors

A parse error says where it is.
"""

FINDING = """\
CVE-2026-0001 in libshop
"""

DAY = 86_400
SPRING, SUMMER = 1_774_000_000, 1_782_000_000
"""Two days of 2026: 20 March, and 21 June."""


def shop() -> list[File]:
    """The whole world."""
    return [_cart(), _store(), _guide(), _finding()]


def _cart() -> File:
    file = File(
        "src/shop/cart.py",
        CART,
        imports=["decimal", "werkzeug.datastructures"],
        author="Ann Example",
        modified=SPRING,
        churn=3,
    )
    head, body = CART.split("class Cart", 1)
    file.piece("module", "cart", head.rstrip())
    whole = "class Cart" + body.split("\n\n\nasync", 1)[0]
    file.piece(
        "class",
        "Cart",
        whole,
        bases=["Base", "Priced"],
        doc="Holds what a customer wants to buy.",
        visibility="public",
        own=[(CART.index("class Cart"), CART.index("    def add"))],
    )
    file.piece(
        "method",
        "Cart.add",
        whole[whole.index("    def add") : whole.index("    @property")].strip(),
        signature="def add(self, item: Item, count: int = 1) -> None",
        params=["self", "item", "count"],
        types=[Typed("param", "item", "Item", "annotation")],
        return_type="None",
        visibility="public",
        calls=["range", "self.items.append"],
        uses=["item", "self.items", "self.closed"],
        reads=["item.price", "self.closed"],
        writes=["total"],
        mutates=["self.items", "self.items[]"],
        aliases=["total=self.total"],
        branches=2,
        loops=1,
        breaks=1,
        continues=1,
    )
    file.piece(
        "property",
        "Cart.total",
        whole[whole.index("@property") :].strip(),
        signature="def total(self) -> Decimal",
        params=["self"],
        decorators=["property"],
        return_type="Decimal",
        returns=True,
        visibility="public",
        calls=["sum_prices"],
        uses=["self.items"],
    )
    rest = CART.split("async def", 1)[1]
    file.piece(
        "function",
        "fetch_prices",
        "async def" + rest.split("\n\n\ndef", 1)[0],
        signature="async def fetch_prices(session, url)",
        params=["session", "url"],
        is_async=True,
        is_generator=True,
        calls=["session.get", "PriceError"],
        awaits=["session.get"],
        throws=["PriceError"],
        branches=1,
    )
    file.piece(
        "function",
        "runCommand",
        CART[CART.index("def runCommand") :].rstrip(),
        signature="def runCommand(request)",
        params=["request"],
        modifiers=["export"],
        calls=["request.args.get", "os.system"],
        aliases=["shell=command"],
        uses=["request", "os"],
    )
    risk = Risk(
        sources=["flask.request.args"],
        sinks=["os.system"],
        tags=["command-exec"],
        categories=["input", "command"],
        severity="high",
        flows=[Flow("flask.request.args", "os.system", "command", "high", 0.9, 28, 30)],
    )
    file.later(
        "runCommand", risk=risk, authors=["Bob Builder"], lint=[[30, 30, "S605", "!", "ruff"]]
    )
    return file


def _store() -> File:
    file = File(
        "web/src/store.ts",
        STORE,
        lang="typescript",
        imports=["./items", "@shop/core/prices"],
        author="Bob Builder",
        modified=SUMMER,
        churn=40,
    )
    start = STORE.index("export class")
    method = STORE[STORE.index("  load(") : STORE.rindex("}\n}") + 1]
    file.piece(
        "class", "HTTPStore", STORE[start:].rstrip(), visibility="public", own=[(start, start + 80)]
    )
    file.piece(
        "method",
        "HTTPStore.load",
        method,
        signature="load(key: string): Item",
        params=["key"],
        types=[Typed("param", "key", "string", "annotation")],
        return_type="Item",
        returns=True,
        calls=["parseItem", "this.cache.get"],
        visibility="private",
        modifiers=["static"],
    )
    remark = STORE[STORE.index("// Load") : STORE.index("  load(")].rstrip()
    file.piece("comment", "HTTPStore.load", remark, mode="extracted-prose")
    return file


def _guide() -> File:
    file = File("docs/guide.md", GUIDE, lang="markdown", mode="prose")
    first, second = GUIDE.index("# Buying"), GUIDE.index("# Parsing")
    file.piece("section", "Buying", GUIDE[first:second].rstrip())
    file.piece("section", "Parsing errors", GUIDE[second:].rstrip())
    return file


def _finding() -> File:
    file = File("records/finding.json", FINDING, lang="json", mode="records")
    fields = {"vuln.cve": "CVE-2026-0001", "severity": "High", "tags.0": "net", "tags.1": "auth"}
    file.piece("record", "CVE-2026-0001", FINDING.rstrip(), fields=fields)
    return file
