"""Archives that must be rejected: every known trick in every format, generated from a seed.

They are assembled byte by byte, because the libraries would refuse to write most of them.
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

UNSAFE_CODE, TOO_LARGE_CODE = "ARCHIVE_UNSAFE", "ARCHIVE_TOO_LARGE"

TAR_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": lambda data: gzip.compress(data, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
}

HOSTILE_NAMES = {
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


class HostileArchive(NamedTuple):
    """One archive and the error code that it must be rejected with."""

    label: str
    data: bytes
    code: str = UNSAFE_CODE


@dataclass
class ZipEntry:
    """One entry of a zip; every field in it can be false."""

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
    claimed_excess: int = 0
    """Bytes that the entry claims beyond its own data."""

    def encode(self, local_offset: int) -> tuple[bytes, bytes]:
        """Return the local header with the content, and the entry of the central directory."""
        packed = self.packed
        if packed is None:
            packed = deflate_bytes(self.content) if self.method == 8 else self.content
        size = len(self.content) if self.size is None else self.size
        local_size = size if self.local_size is None else self.local_size
        crc = zlib.crc32(self.content) if self.crc is None else self.crc
        name = self.name if self.local_name is None else self.local_name
        head = (20, self.flags, self.method, 0, 0x21, crc, len(packed) + self.claimed_excess)
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
            local_offset if self.offset is None else self.offset,
        )
        return local + name + self.extra + packed, central + self.name + self.extra


def deflate_bytes(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def build_zip(
    *entries: ZipEntry, count: int | None = None, directory_shift: int = 0, tail: bytes = b"", disk: int = 0
) -> bytes:
    body = directory = b""
    for entry in entries:
        local, central = entry.encode(len(body))
        body += local
        directory += central
    number = len(entries) if count is None else count
    end = (disk, 0, number, number, len(directory), len(body) + directory_shift, 0)
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *end) + tail


def build_tar_entry(
    name: bytes,
    content: bytes = b"evil",
    kind: bytes = b"0",
    *,
    link: bytes = b"",
    size: int | None = None,
) -> bytes:
    """Build one entry; a name too long for the header is written before it, as GNU tar does."""
    long_name_entry = b""
    if len(name) > 100:
        long_name_entry, name = build_tar_entry(b"././@LongLink", name + b"\0", b"L"), name[:100]
    length = len(content) if size is None else size
    fields = [name.ljust(100, b"\0"), b"0000644\0", b"0000000\0" * 2, b"%011o\0" % length]
    fields += [b"00000000000\0", b" " * 8, kind, link.ljust(100, b"\0"), b"ustar  \0"]
    block = b"".join(fields).ljust(512, b"\0")
    block = block[:148] + b"%06o\0 " % sum(block) + block[156:]
    return long_name_entry + block + content + b"\0" * (-len(content) % 512)


def build_tar(*entries: bytes) -> bytes:
    return b"".join(entries) + b"\0" * 1024


def build_pax_header(**fields: bytes) -> bytes:
    """Build a header that describes the entry after it."""
    lines = b""
    for key, value in fields.items():
        name = key.replace("_", ".").encode()
        rest = b" " + name + b"=" + value + b"\n"
        length = len(rest) + 2
        length += len(str(length)) - 2
        lines += b"%d" % length + rest
    return build_tar_entry(b"pax", lines, b"x")


def _generate_hostile_tars(seed: random.Random) -> Iterator[tuple[str, bytes, str]]:
    """Generate tars that must be rejected, before compression."""
    good_entry = build_tar_entry(b"good.txt", bytes(seed.randbytes(700)))
    for label, name in HOSTILE_NAMES.items():
        yield f"name: {label}", build_tar(good_entry, build_tar_entry(name)), UNSAFE_CODE
    links = {b"1": "hard link", b"2": "symbolic link"}
    for kind, label in links.items():
        for link_target in (b"/etc/passwd", b"../evil", b"good.txt"):
            yield (
                f"{label} to {link_target.decode()}",
                build_tar(good_entry, build_tar_entry(b"l", b"", kind, link=link_target)),
                UNSAFE_CODE,
            )
    odd_kinds = {b"3": "character device", b"4": "block device", b"6": "pipe", b"S": "holes"}
    odd_kinds |= {b"M": "part", b"V": "label", b"Z": "unknown", b"K": "long link", b"D": "dump"}
    for kind, label in odd_kinds.items():
        yield label, build_tar(good_entry, build_tar_entry(b"odd", b"", kind)), UNSAFE_CODE
    link_entries = build_tar_entry(b"link", b"", b"2", link=b"/tmp") + build_tar_entry(b"link/evil")
    yield "write through a link", build_tar(link_entries), UNSAFE_CODE
    yield "duplicate", build_tar(build_tar_entry(b"a"), build_tar_entry(b"a")), UNSAFE_CODE
    yield "same but for case", build_tar(build_tar_entry(b"Read"), build_tar_entry(b"rEAD")), UNSAFE_CODE
    yield "folders the same but for case", build_tar(build_tar_entry(b"A/x"), build_tar_entry(b"a/y")), UNSAFE_CODE
    accents = (build_tar_entry("é".encode()), build_tar_entry("é".encode()))
    yield "same but for accents", build_tar(*accents), UNSAFE_CODE
    yield "file and folder", build_tar(build_tar_entry(b"a"), build_tar_entry(b"a/b")), UNSAFE_CODE
    yield "name behind a NUL", build_tar(build_tar_entry(b"good\0/../../evil")), UNSAFE_CODE
    yield (
        "two long names",
        build_tar(build_long_name_entry(b"a\0"), build_long_name_entry(b"b\0"), good_entry),
        UNSAFE_CODE,
    )
    yield "long name at the end", build_tar(good_entry, build_long_name_entry(b"a\0")), UNSAFE_CODE
    yield "long name without end", build_tar(build_long_name_entry(b"abc"), good_entry), UNSAFE_CODE
    yield "long name in two", build_tar(build_long_name_entry(b"good\0/../evil\0"), good_entry), UNSAFE_CODE
    yield "padding behind a name", build_tar(build_long_name_entry(b"a\0")[:-1] + b"x", good_entry), UNSAFE_CODE
    yield "padding behind a file", build_tar(build_tar_entry(b"a")[:-1] + b"x", good_entry), UNSAFE_CODE
    yield "one name for all", build_tar(_replace_kind(build_pax_header(path=b"a"), b"g"), good_entry), UNSAFE_CODE
    yield "pax path", build_tar(build_pax_header(path=b"../evil"), build_tar_entry(b"good")), UNSAFE_CODE
    yield "pax size", build_tar(build_pax_header(size=b"1"), build_tar_entry(b"good")), UNSAFE_CODE
    yield "pax link", build_tar(build_pax_header(linkpath=b"/etc"), build_tar_entry(b"good")), UNSAFE_CODE
    yield (
        "pax sparse",
        build_tar(build_pax_header(GNU_sparse_realsize=b"99999999999"), build_tar_entry(b"g")),
        UNSAFE_CODE,
    )
    yield "pax nonsense", build_tar(build_tar_entry(b"p", b"99999 path=x\n", b"x"), good_entry), UNSAFE_CODE
    yield "pax without end", build_tar(build_tar_entry(b"p", b"path", b"x"), good_entry), UNSAFE_CODE
    yield "long name, too long", build_tar(build_tar_entry(b"L", b"x" * 99_999, b"L"), good_entry), UNSAFE_CODE
    yield "size of base 256", build_tar(_build_entry_with_size(b"\x80" + b"\xff" * 11)), UNSAFE_CODE
    yield "size below zero", build_tar(_build_entry_with_size(b"-0000000001\0")), UNSAFE_CODE
    yield "wrong sum", build_tar(good_entry)[:2] + b"X" + build_tar(good_entry)[3:], UNSAFE_CODE
    yield "size beyond the end", build_tar(build_tar_entry(b"a", b"evil", size=40 << 20)), UNSAFE_CODE
    yield "no end", good_entry, UNSAFE_CODE
    yield "cut", build_tar(good_entry)[: seed.randrange(600, 1100)], UNSAFE_CODE
    yield "second archive behind the end", build_tar(good_entry) + build_tar(build_tar_entry(b"../x")), UNSAFE_CODE
    yield "folder with a content", build_tar(build_tar_entry(b"d/", b"evil", b"5")), UNSAFE_CODE
    yield "says it is large", build_tar(build_tar_entry(b"a", b"", size=51 << 20)), TOO_LARGE_CODE
    yield "too many", build_tar(*(build_tar_entry(b"%d" % n, b"") for n in range(2049))), TOO_LARGE_CODE


def build_long_name_entry(content: bytes) -> bytes:
    """Build an entry with the name of the entry after it, as GNU tar writes it."""
    return build_tar_entry(b"././@LongLink", content, b"L")


def _build_entry_with_size(field: bytes) -> bytes:
    block = build_tar_entry(b"a")[:512]
    return _replace_kind(block[:124] + field + block[136:], b"0")


def _replace_kind(entry: bytes, kind: bytes) -> bytes:
    """Return an entry with another kind and the correct checksum."""
    block = entry[:148] + b" " * 8 + kind + entry[157:512]
    return block[:148] + b"%06o\0 " % sum(block) + block[156:] + entry[512:]


def _generate_tars(seed: random.Random) -> Iterator[HostileArchive]:
    for wrapping, wrap in TAR_COMPRESSORS.items():
        for label, data, code in _generate_hostile_tars(seed):
            yield HostileArchive(f"{wrapping}: {label}", wrap(data), code)
        if wrapping != "tar":
            complete = wrap(build_tar(build_tar_entry(b"a", seed.randbytes(5000))))
            cut = seed.randrange(30, len(complete) - 20)
            yield HostileArchive(f"{wrapping}: stream cut", complete[:cut])
            broken = bytearray(complete)
            broken[seed.randrange(60, len(complete) - 60)] ^= 0x55
            yield HostileArchive(f"{wrapping}: stream broken", bytes(broken))
            yield HostileArchive(f"{wrapping}: something behind the stream", complete + b"\0\0junk")
            yield HostileArchive(f"{wrapping}: junk far behind", complete + b"\0" * 300_000 + b"junk")
            zeros = build_tar(build_tar_entry(b"zeros", b"\0" * (45 << 20)))
            yield HostileArchive(f"{wrapping}: bomb", wrap(zeros), TOO_LARGE_CODE)
    large_dictionary = lzma.compress(
        build_tar(build_tar_entry(b"a")), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    )
    yield HostileArchive("tar.xz: memory", large_dictionary, TOO_LARGE_CODE)


def _generate_zips(seed: random.Random) -> Iterator[HostileArchive]:
    good_entry = ZipEntry(b"good.txt", seed.randbytes(300))
    for label, name in HOSTILE_NAMES.items():
        yield HostileArchive(f"zip: name: {label}", build_zip(good_entry, ZipEntry(name)))
    kinds = {"link": stat.S_IFLNK, "pipe": stat.S_IFIFO, "socket": stat.S_IFSOCK}
    kinds |= {"device": stat.S_IFCHR, "block device": stat.S_IFBLK}
    for label, kind in kinds.items():
        yield HostileArchive(f"zip: {label}", build_zip(good_entry, ZipEntry(b"l", b"/etc", mode=kind | 0o777)))
    for flag in (0x1, 0x40, 0x2000, 0x41):
        yield HostileArchive(f"zip: encrypted {flag:#x}", build_zip(ZipEntry(b"a", flags=flag)))
    for method in (1, 6, 9, 12, 14, 93, 95, 99):
        yield HostileArchive(f"zip: method {method}", build_zip(ZipEntry(b"a", method=method)))
    yield HostileArchive("zip: NUL in a name", build_zip(ZipEntry(b"good\0/../evil")))
    yield HostileArchive("zip: duplicate", build_zip(good_entry, good_entry))
    yield HostileArchive("zip: same but for case", build_zip(ZipEntry(b"Read"), ZipEntry(b"rEAD")))
    yield HostileArchive("zip: file and folder", build_zip(ZipEntry(b"a/b"), ZipEntry(b"a")))
    yield HostileArchive("zip: folder with a content", build_zip(ZipEntry(b"a/", mode=stat.S_IFDIR)))
    yield HostileArchive("zip: file that is a folder", build_zip(ZipEntry(b"a", mode=stat.S_IFDIR)))
    yield HostileArchive("zip: two names", build_zip(ZipEntry(b"good", local_name=b"evil")))
    unicode = struct.pack("<2HBL", 0x7075, 5 + 7, 1, 0) + b"../evil"
    yield HostileArchive("zip: name in an extra field", build_zip(ZipEntry(b"goodie", extra=unicode)))
    yield HostileArchive("zip: broken extra field", build_zip(ZipEntry(b"a", extra=b"\1\0\xff\0")))
    yield HostileArchive("zip: wrong crc", build_zip(ZipEntry(b"a", crc=7)))
    yield HostileArchive("zip: overlapping", build_zip(good_entry, ZipEntry(b"b", offset=0)))
    inner = ZipEntry(b"outer", build_zip(ZipEntry(b"x")))
    yield HostileArchive("zip: entry in an entry", build_zip(inner, ZipEntry(b"x", offset=35)))
    yield HostileArchive("zip: offset beyond", build_zip(ZipEntry(b"a", offset=1 << 30)))
    yield HostileArchive("zip: beyond its place", build_zip(ZipEntry(b"a", method=8, claimed_excess=9999)))
    comment = bytearray(build_zip(good_entry))
    comment[comment.rfind(b"PK\1\2") + 32] = 9
    yield HostileArchive("zip: comment beyond the directory", bytes(comment))
    yield HostileArchive("zip: no directory in its place", build_zip(good_entry).replace(b"PK\1\2", b"PK\1\3"))
    yield HostileArchive("zip: directory moved", build_zip(good_entry, directory_shift=3))
    yield HostileArchive("zip: fewer than it says", build_zip(good_entry, count=2))
    yield HostileArchive("zip: more than it says", build_zip(good_entry, ZipEntry(b"b"), count=1))
    yield HostileArchive("zip: several disks", build_zip(good_entry, disk=1))
    yield HostileArchive("zip: junk behind", build_zip(good_entry, tail=b"junk"))
    yield HostileArchive("zip: another zip behind", build_zip(good_entry) + build_zip(ZipEntry(b"evil")))
    yield HostileArchive("zip: stored with two sizes", build_zip(ZipEntry(b"a", size=3)))
    for claimed_size in (1, 4999, 5001, 40 << 20):
        lying_entry = ZipEntry(b"a", b"\0" * 5000, method=8, size=claimed_size)
        yield HostileArchive(f"zip: 5000 bytes that say {claimed_size}", build_zip(lying_entry))
    yield HostileArchive("zip: sizes differ", build_zip(ZipEntry(b"a", b"x" * 50, method=8, local_size=49)))
    packed = deflate_bytes(b"evil" * 99)
    for label, broken_packed in {
        "cut": packed[:-3],
        "longer": packed + b"x",
        "broken": b"\xff" + packed,
        "far longer": packed + b"x" * 300_000,
    }.items():
        entry = ZipEntry(b"a", b"evil" * 99, method=8, packed=broken_packed)
        yield HostileArchive(f"zip: content {label}", build_zip(entry))
    yield from _generate_large_zips(seed)
    complete = build_zip(good_entry, ZipEntry(b"b", seed.randbytes(900)))
    for cut in seed.sample(range(4, len(complete) - 1), 6):
        yield HostileArchive(f"zip: cut at {cut}", complete[:cut])
    for position in seed.sample(range(400, 1200), 4):  # in a content, which has a sum
        broken = bytearray(complete)
        broken[position] ^= 0xFF
        yield HostileArchive(f"zip: broken at {position}", bytes(broken))


def _build_zip64_record(entries: int, end: int, length: int = 44) -> bytes:
    """Build the end record of a zip64 archive whose directory has one entry of 47 bytes."""
    record = struct.pack("<4sQ2H2L", b"PK\6\6", length, 45, 45, 0, 0)
    return record + struct.pack("<4Q", entries, entries, 47, end - 47)


def _generate_large_zips(seed: random.Random) -> Iterator[HostileArchive]:
    without_size = build_zip(ZipEntry(b"a", size=0xFFFFFFFF))
    yield HostileArchive("zip: large size is missing", without_size)
    for claimed_size, code in ((1 << 62, TOO_LARGE_CODE), (3, UNSAFE_CODE), (1 << 40, TOO_LARGE_CODE)):
        extra = struct.pack("<2HQ", 1, 8, claimed_size)
        entry = ZipEntry(b"a", b"\0" * 99, method=8, size=0xFFFFFFFF, extra=extra)
        yield HostileArchive(f"zip: large size of {claimed_size}", build_zip(entry), code)
    good_zip = build_zip(ZipEntry(b"a", seed.randbytes(50)))
    end, directory_end = good_zip[-22:], len(good_zip) - 22
    overflowed_end = end[:8] + b"\xff" * 12 + end[20:]
    for label, record, record_offset, end_record in (
        ("count", _build_zip64_record(9, directory_end), directory_end, overflowed_end),
        ("place", _build_zip64_record(1, directory_end + 7), directory_end, overflowed_end),
        ("many", _build_zip64_record(1 << 60, directory_end), directory_end, overflowed_end),
        ("locator", _build_zip64_record(1, directory_end), directory_end - 5, overflowed_end),
        ("length", _build_zip64_record(1, directory_end, length=99), directory_end, overflowed_end),
        ("difference", _build_zip64_record(1, directory_end), directory_end, end[:8] + b"\2\0\2\0" + end[12:]),
    ):
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, record_offset, 1)
        code = TOO_LARGE_CODE if label == "many" else UNSAFE_CODE
        yield HostileArchive(f"zip: large directory, {label}", good_zip[:-22] + record + locator + end_record, code)
    many = [ZipEntry(b"%d" % number, b"") for number in range(2049)]
    yield HostileArchive("zip: too many", build_zip(*many), TOO_LARGE_CODE)
    yield HostileArchive("zip: says it is large", build_zip(ZipEntry(b"a", method=8, size=51 << 20)), TOO_LARGE_CODE)
    bomb = ZipEntry(b"zeros", b"\0" * (45 << 20), method=8)
    yield HostileArchive("zip: bomb", build_zip(bomb), TOO_LARGE_CODE)
    names = [ZipEntry(b"%d" % n, b"", method=8, size=50 << 20) for n in range(5)]
    yield HostileArchive("zip: says that all is large", build_zip(*names), UNSAFE_CODE)


def generate_hostile_archives() -> list[HostileArchive]:
    """Generate all archives, the same in every run."""
    seed = random.Random(20_26)
    return [*_generate_zips(seed), *_generate_tars(seed)]
