"""The minimal server: read a line, do the work, write a line. `loops.py KIND SCHEMAS`.

There is no dispatch, no limit, no log and no error: only the cost of the library itself is left.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

ROOT_SCHEMA = "synesthetic-asset"


def make_parsing_loop(_schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Decode JSON, do nothing, encode JSON."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode

    def answer(line: bytes) -> bytes:
        return encode(_build_answer(decode(line)["id"], ok=True))

    return answer


def make_bare_loop(schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Use msgspec and jsonschema-rs: the limit for anything written in Python."""
    import jsonschema_rs  # noqa: PLC0415 - each kind imports its own library only

    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    registry = jsonschema_rs.Registry((schema["$id"], schema) for schema in schemas.values())
    valid = jsonschema_rs.Draft202012Validator(schemas[ROOT_SCHEMA], registry=registry).is_valid

    def answer(line: bytes) -> bytes:
        request = decode(line)
        return encode(_build_answer(request["id"], ok=valid(request["params"]["asset"])))

    return answer


def make_package_loop(schemas: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Use the json module and the jsonschema package: the obvious first implementation."""
    import jsonschema  # noqa: PLC0415
    import referencing  # noqa: PLC0415

    resources = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas.values()]
    registry: Any = referencing.Registry().with_resources(resources)
    valid = jsonschema.Draft202012Validator(schemas[ROOT_SCHEMA], registry=registry).is_valid

    def answer(line: bytes) -> bytes:
        request = json.loads(line)
        ok = valid(request["params"]["asset"])
        return json.dumps(_build_answer(request["id"], ok=ok), separators=(",", ":")).encode()

    return answer


def _build_answer(request_id: object, *, ok: bool) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"ok": ok, "errors": []}}


def main() -> None:
    kind, folder = sys.argv[1:]
    files = sorted(Path(folder).glob("*.schema.json"))
    schemas = {f.name.removesuffix(".schema.json"): json.loads(f.read_text()) for f in files}
    kinds: dict[str, Callable[[dict[str, Any]], Callable[[bytes], bytes]]] = {
        "parse": make_parsing_loop,
        "bare": make_bare_loop,
        "package": make_package_loop,
    }
    answer = kinds[kind](schemas)
    read, out = sys.stdin.buffer.readline, sys.stdout.buffer
    while line := read():
        out.write(answer(line) + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
