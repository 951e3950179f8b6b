"""Archives that must be refused: every known trick, in every format, made from a seed.

They are put together byte by byte: the libraries would not write most of them.
"""

import bz2
import gzip
import lzma
import random
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

UNSAFE, TOO_LARGE = "ARCHIVE_UNSAFE", "ARCHIVE_TOO_LARGE"

WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": lambda data: gzip.compress(data, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
}

NAMES = {
    "parent": b"../evil",
    "deep parent": b"a/b/../../../evil",
    "hidden parent": b"a/./../../evil",
    "absolute": b"/tmp/evil",
    "doubly absolute": b"//server/share/evil",
    "drive": b"C:/evil",
    "drive without a slash": b"c:evil",
    "stream": b"file.txt:evil",
    "backslashes": b"..\\..\\evil",
    "one backslash": b"a\\b",
    "device of Windows": b"a/NUL.txt",
    "console": b"con",
    "dot at the end": b"evil.",
    "space at the end": b"a /evil",
    "empty part": b"a//evil",
    "line break": b"a\nb",
    "escape sequence": b"\x1b[2Jevil",
    "delete": b"a\x7fb",
    "Latin-1": b"caf\xe9",
    "overlong UTF-8": b"..\xc0\xafevil",
    "surrogate": b"\xed\xa0\x80evil",
    "too deep": b"/".join([b"d"] * 40),
    "long part": b"x" * 201,
    "parent alone": b"..",
    "wildcard": b"evil?",
    "nothing": b"",
    "only a dot": b".",
}


class Hostile(NamedTuple):
    """One archive and the answer that it deserves."""

    label: str
    data: bytes
    code: str = UNSAFE


@dataclass
class ZipEntry:
    """One entry of a zip, with all that can be a lie in it."""

    name: bytes
    content: bytes = b"evil"
    method: int = 0
    flags: int = 0
    mode: int = stat.S_IFREG | 0o644
    size: int | None = None
    packed: bytes | None = None
    crc: int | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    extra: bytes = b""
    offset: int | None = None
    reach: int = 0
    """Bytes that it claims beyond its own."""

    def parts(self, at: int) -> tuple[bytes, bytes]:
        """The local header with the content, and the line of the directory."""
        packed = self.packed
        if packed is None:
            packed = deflate(self.content) if self.method == 8 else self.content
        size = len(self.content) if self.size is None else self.size
        local_size = size if self.local_size is None else self.local_size
        crc = zlib.crc32(self.content) if self.crc is None else self.crc
        name = self.name if self.local_name is None else self.local_name
        head = (20, self.flags, self.method, 0, 0x21, crc, len(packed) + self.reach)
        local = struct.pack("<4s5H3L2H", b"PK\3\4", *head, local_size, len(name), len(self.extra))
        central = struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            0x031E,
            *head,
            size,
            len(self.name),
            len(self.extra),
            0,
            0,
            0,
            self.mode << 16,
            at if self.offset is None else self.offset,
        )
        return local + name + self.extra + packed, central + self.name + self.extra


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def zipped(
    *entries: ZipEntry, count: int | None = None, moved: int = 0, tail: bytes = b"", disk: int = 0
) -> bytes:
    body = directory = b""
    for entry in entries:
        local, central = entry.parts(len(body))
        body += local
        directory += central
    number = len(entries) if count is None else count
    end = (disk, 0, number, number, len(directory), len(body) + moved, 0)
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *end) + tail


def tar_entry(
    name: bytes,
    content: bytes = b"evil",
    kind: bytes = b"0",
    *,
    link: bytes = b"",
    size: int | None = None,
) -> bytes:
    """One entry; a name that is too long for its header comes before it, as GNU tar does."""
    before = b""
    if len(name) > 100:
        before, name = tar_entry(b"././@LongLink", name + b"\0", b"L"), name[:100]
    length = len(content) if size is None else size
    fields = [name.ljust(100, b"\0"), b"0000644\0", b"0000000\0" * 2, b"%011o\0" % length]
    fields += [b"00000000000\0", b" " * 8, kind, link.ljust(100, b"\0"), b"ustar  \0"]
    block = b"".join(fields).ljust(512, b"\0")
    block = block[:148] + b"%06o\0 " % sum(block) + block[156:]
    return before + block + content + b"\0" * (-len(content) % 512)


def tarred(*entries: bytes) -> bytes:
    return b"".join(entries) + b"\0" * 1024


def pax(**fields: bytes) -> bytes:
    """A header that describes the entry after it."""
    lines = b""
    for key, value in fields.items():
        name = key.replace("_", ".").encode()
        rest = b" " + name + b"=" + value + b"\n"
        length = len(rest) + 2
        length += len(str(length)) - 2
        lines += b"%d" % length + rest
    return tar_entry(b"pax", lines, b"x")


def _tricks(seed: random.Random) -> Iterator[tuple[str, bytes, str]]:
    """Tars that are refused, before they are wrapped."""
    good = tar_entry(b"good.txt", bytes(seed.randbytes(700)))
    for label, name in NAMES.items():
        yield f"name: {label}", tarred(good, tar_entry(name)), UNSAFE
    links = {b"1": "hard link", b"2": "symbolic link"}
    for kind, label in links.items():
        for to in (b"/etc/passwd", b"../evil", b"good.txt"):
            yield (
                f"{label} to {to.decode()}",
                tarred(good, tar_entry(b"l", b"", kind, link=to)),
                UNSAFE,
            )
    others = {b"3": "character device", b"4": "block device", b"6": "pipe", b"S": "holes"}
    others |= {b"M": "part", b"V": "label", b"Z": "unknown", b"K": "long link", b"D": "dump"}
    for kind, label in others.items():
        yield label, tarred(good, tar_entry(b"odd", b"", kind)), UNSAFE
    written = tar_entry(b"link", b"", b"2", link=b"/tmp") + tar_entry(b"link/evil")
    yield "write through a link", tarred(written), UNSAFE
    yield "duplicate", tarred(tar_entry(b"a"), tar_entry(b"a")), UNSAFE
    yield "same but for case", tarred(tar_entry(b"Read"), tar_entry(b"rEAD")), UNSAFE
    yield "folders the same but for case", tarred(tar_entry(b"A/x"), tar_entry(b"a/y")), UNSAFE
    accents = (tar_entry("é".encode()), tar_entry("é".encode()))
    yield "same but for accents", tarred(*accents), UNSAFE
    yield "file and folder", tarred(tar_entry(b"a"), tar_entry(b"a/b")), UNSAFE
    yield "name behind a NUL", tarred(tar_entry(b"good\0/../../evil")), UNSAFE
    yield "two long names", tarred(long(b"a\0"), long(b"b\0"), good), UNSAFE
    yield "long name at the end", tarred(good, long(b"a\0")), UNSAFE
    yield "long name without end", tarred(long(b"abc"), good), UNSAFE
    yield "long name in two", tarred(long(b"good\0/../evil\0"), good), UNSAFE
    yield "padding behind a name", tarred(long(b"a\0")[:-1] + b"x", good), UNSAFE
    yield "padding behind a file", tarred(tar_entry(b"a")[:-1] + b"x", good), UNSAFE
    yield "one name for all", tarred(_summed(pax(path=b"a"), b"g"), good), UNSAFE
    yield "pax path", tarred(pax(path=b"../evil"), tar_entry(b"good")), UNSAFE
    yield "pax size", tarred(pax(size=b"1"), tar_entry(b"good")), UNSAFE
    yield "pax link", tarred(pax(linkpath=b"/etc"), tar_entry(b"good")), UNSAFE
    yield "pax sparse", tarred(pax(GNU_sparse_realsize=b"99999999999"), tar_entry(b"g")), UNSAFE
    yield "pax nonsense", tarred(tar_entry(b"p", b"99999 path=x\n", b"x"), good), UNSAFE
    yield "pax without end", tarred(tar_entry(b"p", b"path", b"x"), good), UNSAFE
    yield "long name, too long", tarred(tar_entry(b"L", b"x" * 99_999, b"L"), good), UNSAFE
    yield "size of base 256", tarred(_with_size(b"\x80" + b"\xff" * 11)), UNSAFE
    yield "size below zero", tarred(_with_size(b"-0000000001\0")), UNSAFE
    yield "wrong sum", tarred(good)[:2] + b"X" + tarred(good)[3:], UNSAFE
    yield "size beyond the end", tarred(tar_entry(b"a", b"evil", size=40 << 20)), UNSAFE
    yield "no end", good, UNSAFE
    yield "cut", tarred(good)[: seed.randrange(600, 1100)], UNSAFE
    yield "second archive behind the end", tarred(good) + tarred(tar_entry(b"../x")), UNSAFE
    yield "folder with a content", tarred(tar_entry(b"d/", b"evil", b"5")), UNSAFE
    yield "says it is large", tarred(tar_entry(b"a", b"", size=51 << 20)), TOO_LARGE
    yield "too many", tarred(*(tar_entry(b"%d" % n, b"") for n in range(2049))), TOO_LARGE


def long(content: bytes) -> bytes:
    """A name for the entry after it, as GNU tar writes them."""
    return tar_entry(b"././@LongLink", content, b"L")


def _with_size(field: bytes) -> bytes:
    block = tar_entry(b"a")[:512]
    return _summed(block[:124] + field + block[136:], b"0")


def _summed(entry: bytes, kind: bytes) -> bytes:
    """An entry of another kind, with the right sum."""
    block = entry[:148] + b" " * 8 + kind + entry[157:512]
    return block[:148] + b"%06o\0 " % sum(block) + block[156:] + entry[512:]


def _tars(seed: random.Random) -> Iterator[Hostile]:
    for wrapping, wrap in WRAPPINGS.items():
        for label, data, code in _tricks(seed):
            yield Hostile(f"{wrapping}: {label}", wrap(data), code)
        if wrapping != "tar":
            whole = wrap(tarred(tar_entry(b"a", seed.randbytes(5000))))
            cut = seed.randrange(30, len(whole) - 20)
            yield Hostile(f"{wrapping}: stream cut", whole[:cut])
            broken = bytearray(whole)
            broken[seed.randrange(60, len(whole) - 60)] ^= 0x55
            yield Hostile(f"{wrapping}: stream broken", bytes(broken))
            yield Hostile(f"{wrapping}: something behind the stream", whole + b"\0\0junk")
            yield Hostile(f"{wrapping}: junk far behind", whole + b"\0" * 300_000 + b"junk")
            zeros = tarred(tar_entry(b"zeros", b"\0" * (45 << 20)))
            yield Hostile(f"{wrapping}: bomb", wrap(zeros), TOO_LARGE)
    few = lzma.compress(
        tarred(tar_entry(b"a")), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    )
    yield Hostile("tar.xz: memory", few, TOO_LARGE)


def _zips(seed: random.Random) -> Iterator[Hostile]:
    good = ZipEntry(b"good.txt", seed.randbytes(300))
    for label, name in NAMES.items():
        yield Hostile(f"zip: name: {label}", zipped(good, ZipEntry(name)))
    kinds = {"link": stat.S_IFLNK, "pipe": stat.S_IFIFO, "socket": stat.S_IFSOCK}
    kinds |= {"device": stat.S_IFCHR, "block device": stat.S_IFBLK}
    for label, kind in kinds.items():
        yield Hostile(f"zip: {label}", zipped(good, ZipEntry(b"l", b"/etc", mode=kind | 0o777)))
    for flag in (0x1, 0x40, 0x2000, 0x41):
        yield Hostile(f"zip: encrypted {flag:#x}", zipped(ZipEntry(b"a", flags=flag)))
    for method in (1, 6, 9, 12, 14, 93, 95, 99):
        yield Hostile(f"zip: method {method}", zipped(ZipEntry(b"a", method=method)))
    yield Hostile("zip: NUL in a name", zipped(ZipEntry(b"good\0/../evil")))
    yield Hostile("zip: duplicate", zipped(good, good))
    yield Hostile("zip: same but for case", zipped(ZipEntry(b"Read"), ZipEntry(b"rEAD")))
    yield Hostile("zip: file and folder", zipped(ZipEntry(b"a/b"), ZipEntry(b"a")))
    yield Hostile("zip: folder with a content", zipped(ZipEntry(b"a/", mode=stat.S_IFDIR)))
    yield Hostile("zip: file that is a folder", zipped(ZipEntry(b"a", mode=stat.S_IFDIR)))
    yield Hostile("zip: two names", zipped(ZipEntry(b"good", local_name=b"evil")))
    unicode = struct.pack("<2HBL", 0x7075, 5 + 7, 1, 0) + b"../evil"
    yield Hostile("zip: name in an extra field", zipped(ZipEntry(b"goodie", extra=unicode)))
    yield Hostile("zip: broken extra field", zipped(ZipEntry(b"a", extra=b"\1\0\xff\0")))
    yield Hostile("zip: wrong crc", zipped(ZipEntry(b"a", crc=7)))
    yield Hostile("zip: overlapping", zipped(good, ZipEntry(b"b", offset=0)))
    inner = ZipEntry(b"outer", zipped(ZipEntry(b"x")))
    yield Hostile("zip: entry in an entry", zipped(inner, ZipEntry(b"x", offset=35)))
    yield Hostile("zip: offset beyond", zipped(ZipEntry(b"a", offset=1 << 30)))
    yield Hostile("zip: beyond its place", zipped(ZipEntry(b"a", method=8, reach=9999)))
    comment = bytearray(zipped(good))
    comment[comment.rfind(b"PK\1\2") + 32] = 9
    yield Hostile("zip: comment beyond the directory", bytes(comment))
    yield Hostile("zip: no directory in its place", zipped(good).replace(b"PK\1\2", b"PK\1\3"))
    yield Hostile("zip: directory moved", zipped(good, moved=3))
    yield Hostile("zip: fewer than it says", zipped(good, count=2))
    yield Hostile("zip: more than it says", zipped(good, ZipEntry(b"b"), count=1))
    yield Hostile("zip: several disks", zipped(good, disk=1))
    yield Hostile("zip: junk behind", zipped(good, tail=b"junk"))
    yield Hostile("zip: another zip behind", zipped(good) + zipped(ZipEntry(b"evil")))
    yield Hostile("zip: stored with two sizes", zipped(ZipEntry(b"a", size=3)))
    for said in (1, 4999, 5001, 40 << 20):
        lie = ZipEntry(b"a", b"\0" * 5000, method=8, size=said)
        yield Hostile(f"zip: 5000 bytes that say {said}", zipped(lie))
    yield Hostile("zip: sizes differ", zipped(ZipEntry(b"a", b"x" * 50, method=8, local_size=49)))
    packed = deflate(b"evil" * 99)
    for label, bad in {
        "cut": packed[:-3],
        "longer": packed + b"x",
        "broken": b"\xff" + packed,
        "far longer": packed + b"x" * 300_000,
    }.items():
        entry = ZipEntry(b"a", b"evil" * 99, method=8, packed=bad)
        yield Hostile(f"zip: content {label}", zipped(entry))
    yield from _large_zips(seed)
    whole = zipped(good, ZipEntry(b"b", seed.randbytes(900)))
    for cut in seed.sample(range(4, len(whole) - 1), 6):
        yield Hostile(f"zip: cut at {cut}", whole[:cut])
    for place in seed.sample(range(400, 1200), 4):  # in a content, which has a sum
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        yield Hostile(f"zip: broken at {place}", bytes(broken))


def _record(entries: int, end: int, length: int = 44) -> bytes:
    """The end of a large zip, whose directory has one line of 47 bytes."""
    record = struct.pack("<4sQ2H2L", b"PK\6\6", length, 45, 45, 0, 0)
    return record + struct.pack("<4Q", entries, entries, 47, end - 47)


def _large_zips(seed: random.Random) -> Iterator[Hostile]:
    nothing = zipped(ZipEntry(b"a", size=0xFFFFFFFF))
    yield Hostile("zip: large size is missing", nothing)
    for said, code in ((1 << 62, TOO_LARGE), (3, UNSAFE), (1 << 40, TOO_LARGE)):
        extra = struct.pack("<2HQ", 1, 8, said)
        entry = ZipEntry(b"a", b"\0" * 99, method=8, size=0xFFFFFFFF, extra=extra)
        yield Hostile(f"zip: large size of {said}", zipped(entry), code)
    good = zipped(ZipEntry(b"a", seed.randbytes(50)))
    end, at = good[-22:], len(good) - 22
    small = end[:8] + b"\xff" * 12 + end[20:]
    for label, record, where, last in (
        ("count", _record(9, at), at, small),
        ("place", _record(1, at + 7), at, small),
        ("many", _record(1 << 60, at), at, small),
        ("locator", _record(1, at), at - 5, small),
        ("length", _record(1, at, length=99), at, small),
        ("difference", _record(1, at), at, end[:8] + b"\2\0\2\0" + end[12:]),
    ):
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, where, 1)
        code = TOO_LARGE if label == "many" else UNSAFE
        yield Hostile(f"zip: large directory, {label}", good[:-22] + record + locator + last, code)
    many = [ZipEntry(b"%d" % number, b"") for number in range(2049)]
    yield Hostile("zip: too many", zipped(*many), TOO_LARGE)
    yield Hostile(
        "zip: says it is large", zipped(ZipEntry(b"a", method=8, size=51 << 20)), TOO_LARGE
    )
    bomb = ZipEntry(b"zeros", b"\0" * (45 << 20), method=8)
    yield Hostile("zip: bomb", zipped(bomb), TOO_LARGE)
    names = [ZipEntry(b"%d" % n, b"", method=8, size=50 << 20) for n in range(5)]
    yield Hostile("zip: says that all is large", zipped(*names), UNSAFE)


def hostile() -> list[Hostile]:
    """All of them, the same every time."""
    seed = random.Random(20_26)
    return [*_zips(seed), *_tars(seed)]
