"""A small shop as an index, built by hand: it has every fact that a filter can ask for."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cleats.toolsets.code.analysis.facts import Chunk, FileFacts, Mode, TypeFact
from cleats.toolsets.code.analysis.risk.summary import Risk, RiskFlow
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import ChunkRow, FileRow, Relations
from cleats.toolsets.code.index.digest import digest_file
from cleats.toolsets.code.index.file_reader import make_headline
from cleats.toolsets.code.index.full_text import write_fts_index
from cleats.toolsets.code.index.shard_writer import write_shards
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation

encode_msgpack = msgspec.msgpack.encode


@dataclass
class ShopFile:
    """A file of the shop: its text and its facts."""

    path: str
    text: str
    lang: str = "python"
    mode: Mode = "code"
    imports: list[str] = field(default_factory=list)
    author: str | None = None
    modified: int | None = None
    churn: int | None = None
    chunks: list[Chunk] = field(default_factory=list)
    late_facts: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def add_chunk(self, kind: str, name: str, text: str, **facts: Any) -> "ShopFile":
        """Add a chunk that covers this text of the file, with its facts."""
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

    def add_late_facts(self, name: str, **values: Any) -> "ShopFile":
        """Add the facts of a chunk that git, risk or lint produce."""
        self.late_facts[name] = {key: encode_msgpack(value) for key, value in values.items()}
        return self


def add_to_catalogue(catalogue: IndexCatalogue, file: ShopFile) -> None:
    """Add a file to a catalogue as a build would."""
    data = file.text.encode()
    file.chunks.sort(key=lambda chunk: (chunk.start, -chunk.end))
    facts = FileFacts(file.lang, file.mode, data.count(b"\n") + 1, file.chunks, file.imports)
    attributes, vectors = digest_file(file.path, facts, data)
    rows = [
        ChunkRow(
            *(
                file_chunk.mode,
                file_chunk.kind,
                file_chunk.name,
                file_chunk.start,
                file_chunk.end,
                file_chunk.start_line,
                file_chunk.end_line,
            ),
            headline=make_headline(file_chunk, data),
            facts=encode_msgpack(file_chunk),
            summary=None,
        )
        for file_chunk in file.chunks
    ]
    catalogue.add_file(
        FileRow(
            *(file.path, len(data), 1, hashlib.blake2b(data, digest_size=16).digest()),
            *(file.lang, file.mode, facts.lines, ""),
            encode_msgpack(Relations(file.imports)),
            zlib.compress(data, 1),
            vectors,
            attributes,
            rows,
        )
    )
    _write_late_facts(catalogue, file)


def _write_late_facts(catalogue: IndexCatalogue, file: ShopFile) -> None:
    execute = catalogue.connection.execute
    execute(
        "UPDATE files SET last_author = ?, last_modified = ?, churn = ? WHERE path = ?",
        (file.author, file.modified, file.churn, file.path),
    )
    for name, values in file.late_facts.items():
        for column, value in values.items():
            execute(
                f"UPDATE chunks SET {column} = ? WHERE name = ? AND file = (SELECT id FROM files WHERE path = ?)",
                (value, name, file.path),
            )


def build_generation(
    folder: Path,
    files: list[ShopFile],
    meta: Mapping[str, Any] | None = None,
    *,
    previous: Any = None,
    parts: bool = True,
) -> Path:
    """Build a generation with these files and every backend, or its catalogue alone."""
    folder.mkdir(parents=True)
    with IndexCatalogue.create(folder / "catalogue.db") as catalogue:
        for file in files:
            add_to_catalogue(catalogue, file)
        catalogue.set_meta({"branch": "main", "commit": "c0ffee", "fingerprint": "x", **(meta or {})})
        catalogue.commit()
    if not parts:
        return folder
    write_shards(folder, previous, lambda *_: None)
    write_fts_index(folder)
    return folder


def search_names(engine: SearchEngine, query: str, **arguments: Any) -> list[str]:
    """Return the names of the hits of all modes, best first."""
    answer = render_answer(engine, search_generation(engine, parse_request({"query": query, **arguments})))
    modes = ("code", "prose", "extractedProse", "records")
    return [hit["name"] for mode in modes for hit in answer[mode]]


CART_SOURCE = '''\
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

STORE_SOURCE = """\
// Where things are kept.
export class HTTPStore {
  private cache: Map<string, Item> = new Map();

  // Load an item that the customer asked for, or fail with a parse error.
  load(key: string): Item {
    return parseItem(this.cache.get(key));
  }
}
"""

GUIDE_TEXT = """\
# Buying

Put things into the cart, then pay. The cart never forgets.

# Parsing errors

A parse error says where it is.
"""

FINDING_TEXT = """\
CVE-2026-0001 in libshop
"""

DAY_SECONDS = 86_400
SPRING_TIMESTAMP, SUMMER_TIMESTAMP = 1_774_000_000, 1_782_000_000
"""Timestamps of two days in 2026: 20 March and 21 June."""


def build_shop_files() -> list[ShopFile]:
    """Build all files of the shop."""
    return [_build_cart_file(), _build_store_file(), _build_guide_file(), _build_finding_file()]


def _build_cart_file() -> ShopFile:
    file = ShopFile(
        "src/shop/cart.py",
        CART_SOURCE,
        imports=["decimal", "werkzeug.datastructures"],
        author="Ann Example",
        modified=SPRING_TIMESTAMP,
        churn=3,
    )
    head, body = CART_SOURCE.split("class Cart", 1)
    file.add_chunk("module", "cart", head.rstrip())
    class_source = "class Cart" + body.split("\n\n\nasync", 1)[0]
    file.add_chunk(
        "class",
        "Cart",
        class_source,
        bases=["Base", "Priced"],
        doc="Holds what a customer wants to buy.",
        visibility="public",
        own=[(CART_SOURCE.index("class Cart"), CART_SOURCE.index("    def add"))],
    )
    file.add_chunk(
        "method",
        "Cart.add",
        class_source[class_source.index("    def add") : class_source.index("    @property")].strip(),
        signature="def add(self, item: Item, count: int = 1) -> None",
        params=["self", "item", "count"],
        types=[TypeFact("param", "item", "Item", "annotation")],
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
    file.add_chunk(
        "property",
        "Cart.total",
        class_source[class_source.index("@property") :].strip(),
        signature="def total(self) -> Decimal",
        params=["self"],
        decorators=["property"],
        return_type="Decimal",
        returns=True,
        visibility="public",
        calls=["sum_prices"],
        uses=["self.items"],
    )
    rest = CART_SOURCE.split("async def", 1)[1]
    file.add_chunk(
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
    file.add_chunk(
        "function",
        "runCommand",
        CART_SOURCE[CART_SOURCE.index("def runCommand") :].rstrip(),
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
        flows=[RiskFlow("flask.request.args", "os.system", "command", "high", 0.9, 28, 30)],
    )
    file.add_late_facts("runCommand", risk=risk, authors=["Bob Builder"], lint=[[30, 30, "S605", "!", "ruff"]])
    return file


def _build_store_file() -> ShopFile:
    file = ShopFile(
        "web/src/store.ts",
        STORE_SOURCE,
        lang="typescript",
        imports=["./items", "@shop/core/prices"],
        author="Bob Builder",
        modified=SUMMER_TIMESTAMP,
        churn=40,
    )
    start = STORE_SOURCE.index("export class")
    method = STORE_SOURCE[STORE_SOURCE.index("  load(") : STORE_SOURCE.rindex("}\n}") + 1]
    file.add_chunk("class", "HTTPStore", STORE_SOURCE[start:].rstrip(), visibility="public", own=[(start, start + 80)])
    file.add_chunk(
        "method",
        "HTTPStore.load",
        method,
        signature="load(key: string): Item",
        params=["key"],
        types=[TypeFact("param", "key", "string", "annotation")],
        return_type="Item",
        returns=True,
        calls=["parseItem", "this.cache.get"],
        visibility="private",
        modifiers=["static"],
    )
    remark = STORE_SOURCE[STORE_SOURCE.index("// Load") : STORE_SOURCE.index("  load(")].rstrip()
    file.add_chunk("comment", "HTTPStore.load", remark, mode="extracted-prose")
    return file


def _build_guide_file() -> ShopFile:
    file = ShopFile("docs/guide.md", GUIDE_TEXT, lang="markdown", mode="prose")
    first, second = GUIDE_TEXT.index("# Buying"), GUIDE_TEXT.index("# Parsing")
    file.add_chunk("section", "Buying", GUIDE_TEXT[first:second].rstrip())
    file.add_chunk("section", "Parsing errors", GUIDE_TEXT[second:].rstrip())
    return file


def _build_finding_file() -> ShopFile:
    file = ShopFile("records/finding.json", FINDING_TEXT, lang="json", mode="records")
    fields = {"vuln.cve": "CVE-2026-0001", "severity": "High", "tags.0": "net", "tags.1": "auth"}
    file.add_chunk("record", "CVE-2026-0001", FINDING_TEXT.rstrip(), fields=fields)
    return file
