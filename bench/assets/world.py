"""Nine schemas that refer to each other, and assets of any size that fit them."""

import json
from pathlib import Path
from typing import Any

BASE = "https://cleats.example/bench/"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ROOT = "synesthetic-asset"

_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_NAME = {"type": "string", "minLength": 1, "maxLength": 80}


def _closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _many(schema: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"{schema}.schema.json"}}


SCHEMAS: dict[str, dict[str, Any]] = {
    "tone": _closed(
        ["name", "wave", "frequency"],
        name=_NAME,
        wave={"enum": ["sine", "square", "triangle", "sawtooth"]},
        frequency={"type": "number", "exclusiveMinimum": 0, "maximum": 20000},
        partials={"type": "array", "items": _UNIT},
    ),
    "shader": _closed(
        ["name", "source"],
        name=_NAME,
        source={"type": "string"},
        uniforms={
            "type": "array",
            "items": _closed(
                ["name", "kind"],
                name={"type": "string", "pattern": "^u_[a-z]+$"},
                kind={"enum": ["float", "vec2", "vec3"]},
                value={"anyOf": [{"type": "number"}, {"type": "array", "items": _UNIT}]},
            ),
        },
    ),
    "haptic": _closed(["device"], device=_NAME, intensity=_UNIT),
    "control": _closed(
        ["name", "target", "range"],
        name=_NAME,
        target={"type": "string", "pattern": "^(/[^/]+)+$"},
        range={"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        smooth={"type": "boolean"},
    ),
    "control-bundle": _closed(["controls"], controls=_many("control")),
    "modulation": _closed(
        ["target", "wave", "rate"],
        target={"type": "string"},
        wave={"enum": ["sine", "square"]},
        rate={"type": "number", "minimum": 0},
    ),
    "rule": _closed(["when", "then"], when={"type": "string"}, then={"type": "string"}),
    "rule-bundle": _closed(["rules"], rules=_many("rule")),
    ROOT: _closed(
        ["name", "tone"],
        name=_NAME,
        tone={"$ref": "tone.schema.json"},
        shader={"$ref": "shader.schema.json"},
        haptic={"$ref": "haptic.schema.json"},
        controls={"$ref": "control-bundle.schema.json"},
        rules={"$ref": "rule-bundle.schema.json"},
        modulations=_many("modulation"),
    ),
}


def write_schemas(folder: Path) -> None:
    for name, schema in SCHEMAS.items():
        head = {"$schema": DIALECT, "$id": f"{BASE}{name}.schema.json", "version": "1.0.0"}
        (folder / f"{name}.schema.json").write_text(json.dumps({**head, **schema}))


def asset(size: int) -> dict[str, Any]:
    """A valid asset of about so many bytes of compact JSON."""
    made: dict[str, Any] = {
        "name": "bench",
        "tone": {"name": "lead", "wave": "sine", "frequency": 440.0, "partials": [1, 0.5, 0.25]},
        "shader": {"name": "field", "source": "void main() {}", "uniforms": []},
        "haptic": {"device": "pad", "intensity": 0.5},
        "controls": {"controls": []},
        "rules": {"rules": []},
        "modulations": [],
    }
    number = 0
    length = len(json.dumps(made, separators=(",", ":")))
    while length < size:
        number += 1
        parts = (
            (made["shader"]["uniforms"], {"name": "u_speed", "kind": "vec2", "value": [0.25, 0.5]}),
            (
                made["controls"]["controls"],
                {
                    "name": f"c{number}",
                    "target": f"/tone/{number}",
                    "range": [0, 1],
                    "smooth": True,
                },
            ),
            (made["rules"]["rules"], {"when": f"touch {number}", "then": "brighten"}),
            (made["modulations"], {"target": f"/m/{number}", "wave": "sine", "rate": 0.5}),
        )
        for where, part in parts:
            where.append(part)
            length += len(json.dumps(part, separators=(",", ":"))) + 1
    return made


def changed(made: dict[str, Any]) -> dict[str, Any]:
    """The same asset after a small edit."""
    copy: dict[str, Any] = json.loads(json.dumps(made))
    copy["tone"]["frequency"] = 220.0
    copy["haptic"]["intensity"] = 0.75
    copy["rules"]["rules"][:1] = []
    return copy
