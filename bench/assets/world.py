"""Nine schemas that refer to each other, and valid assets of any size."""

import json
from pathlib import Path
from typing import Any

SCHEMA_BASE_URL = "https://cleats.example/bench/"
SCHEMA_DIALECT_URL = "https://json-schema.org/draft/2020-12/schema"
ROOT_SCHEMA = "synesthetic-asset"

_UNIT_SCHEMA = {"type": "number", "minimum": 0, "maximum": 1}
_NAME_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 80}


def _build_object_schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _build_array_schema(schema: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"{schema}.schema.json"}}


ASSET_SCHEMAS: dict[str, dict[str, Any]] = {
    "tone": _build_object_schema(
        ["name", "wave", "frequency"],
        name=_NAME_SCHEMA,
        wave={"enum": ["sine", "square", "triangle", "sawtooth"]},
        frequency={"type": "number", "exclusiveMinimum": 0, "maximum": 20000},
        partials={"type": "array", "items": _UNIT_SCHEMA},
    ),
    "shader": _build_object_schema(
        ["name", "source"],
        name=_NAME_SCHEMA,
        source={"type": "string"},
        uniforms={
            "type": "array",
            "items": _build_object_schema(
                ["name", "kind"],
                name={"type": "string", "pattern": "^u_[a-z]+$"},
                kind={"enum": ["float", "vec2", "vec3"]},
                value={"anyOf": [{"type": "number"}, {"type": "array", "items": _UNIT_SCHEMA}]},
            ),
        },
    ),
    "haptic": _build_object_schema(["device"], device=_NAME_SCHEMA, intensity=_UNIT_SCHEMA),
    "control": _build_object_schema(
        ["name", "target", "range"],
        name=_NAME_SCHEMA,
        target={"type": "string", "pattern": "^(/[^/]+)+$"},
        range={"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        smooth={"type": "boolean"},
    ),
    "control-bundle": _build_object_schema(["controls"], controls=_build_array_schema("control")),
    "modulation": _build_object_schema(
        ["target", "wave", "rate"],
        target={"type": "string"},
        wave={"enum": ["sine", "square"]},
        rate={"type": "number", "minimum": 0},
    ),
    "rule": _build_object_schema(["when", "then"], when={"type": "string"}, then={"type": "string"}),
    "rule-bundle": _build_object_schema(["rules"], rules=_build_array_schema("rule")),
    ROOT_SCHEMA: _build_object_schema(
        ["name", "tone"],
        name=_NAME_SCHEMA,
        tone={"$ref": "tone.schema.json"},
        shader={"$ref": "shader.schema.json"},
        haptic={"$ref": "haptic.schema.json"},
        controls={"$ref": "control-bundle.schema.json"},
        rules={"$ref": "rule-bundle.schema.json"},
        modulations=_build_array_schema("modulation"),
    ),
}


def write_schemas(folder: Path) -> None:
    for name, schema in ASSET_SCHEMAS.items():
        head = {"$schema": SCHEMA_DIALECT_URL, "$id": f"{SCHEMA_BASE_URL}{name}.schema.json", "version": "1.0.0"}
        (folder / f"{name}.schema.json").write_text(json.dumps({**head, **schema}))


def build_asset(size: int) -> dict[str, Any]:
    """Build a valid asset of about this many bytes of compact JSON."""
    document: dict[str, Any] = {
        "name": "bench",
        "tone": {"name": "lead", "wave": "sine", "frequency": 440.0, "partials": [1, 0.5, 0.25]},
        "shader": {"name": "field", "source": "void main() {}", "uniforms": []},
        "haptic": {"device": "pad", "intensity": 0.5},
        "controls": {"controls": []},
        "rules": {"rules": []},
        "modulations": [],
    }
    number = 0
    length = len(json.dumps(document, separators=(",", ":")))
    while length < size:
        number += 1
        parts = (
            (document["shader"]["uniforms"], {"name": "u_speed", "kind": "vec2", "value": [0.25, 0.5]}),
            (
                document["controls"]["controls"],
                {
                    "name": f"c{number}",
                    "target": f"/tone/{number}",
                    "range": [0, 1],
                    "smooth": True,
                },
            ),
            (document["rules"]["rules"], {"when": f"touch {number}", "then": "brighten"}),
            (document["modulations"], {"target": f"/m/{number}", "wave": "sine", "rate": 0.5}),
        )
        for parent, part in parts:
            parent.append(part)
            length += len(json.dumps(part, separators=(",", ":"))) + 1
    return document


def edit_asset(document: dict[str, Any]) -> dict[str, Any]:
    """Return the asset after a small edit."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    copy["tone"]["frequency"] = 220.0
    copy["haptic"]["intensity"] = 0.75
    copy["rules"]["rules"][:1] = []
    return copy
