"""The least a server can do: read a line, do the work, write a line. `loops.py KIND SCHEMAS`.

No dispatch, no limits, no logs, no errors: what is left is the price of the library itself.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

ROOT = "synesthetic-asset"


def parse(_schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """JSON in, nothing done, JSON out."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode

    def answer(line: bytes) -> bytes:
        return encode(_answer(decode(line)["id"], ok=True))

    return answer


def bare(schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """What msgspec and jsonschema-rs take: the limit for anything written in Python."""
    import jsonschema_rs  # noqa: PLC0415 - each kind imports its own library only

    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    registry = jsonschema_rs.Registry((each["$id"], each) for each in schemas.values())
    valid = jsonschema_rs.Draft202012Validator(schemas[ROOT], registry=registry).is_valid

    def answer(line: bytes) -> bytes:
        request = decode(line)
        return encode(_answer(request["id"], ok=valid(request["params"]["asset"])))

    return answer


def package(schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """The standard library's json and the jsonschema package: what one writes first."""
    import jsonschema  # noqa: PLC0415
    import referencing  # noqa: PLC0415

    resources = [(e["$id"], referencing.Resource.from_contents(e)) for e in schemas.values()]
    registry: Any = referencing.Registry().with_resources(resources)
    valid = jsonschema.Draft202012Validator(schemas[ROOT], registry=registry).is_valid

    def answer(line: bytes) -> bytes:
        request = json.loads(line)
        ok = valid(request["params"]["asset"])
        return json.dumps(_answer(request["id"], ok=ok), separators=(",", ":")).encode()

    return answer


def _answer(request_id: object, *, ok: bool) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"ok": ok, "errors": []}}


def main() -> None:
    kind, folder = sys.argv[1:]
    files = sorted(Path(folder).glob("*.schema.json"))
    schemas = {f.name.removesuffix(".schema.json"): json.loads(f.read_text()) for f in files}
    kinds: dict[str, Callable[[dict[str, Any]], Callable[[bytes], bytes]]] = {
        "parse": parse,
        "bare": bare,
        "package": package,
    }
    answer = kinds[kind](schemas)
    read, out = sys.stdin.buffer.readline, sys.stdout.buffer
    while line := read():
        out.write(answer(line) + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
