"""The building blocks of tool schemas: exactly the keywords that the contract shows."""

from cleats.toolsets.code import schema_atoms as schemas


def test_an_object_requires_all_of_its_properties_in_their_order() -> None:
    schema = schemas.object_schema(
        "About it.", name=schemas.TEXT_SCHEMA, **schemas.repeat_schema(schemas.COUNT_SCHEMA, "files bytes")
    )

    assert schema == {
        "type": "object",
        "required": ["name", "files", "bytes"],
        "properties": {
            "name": {"type": "string"},
            "files": {"type": "integer", "minimum": 0},
            "bytes": {"type": "integer", "minimum": 0},
        },
        "description": "About it.",
    }
    assert "description" not in schemas.object_schema(name=schemas.TEXT_SCHEMA)
    assert schemas.nullable_object_schema("About it.")["type"] == ["object", "null"]


def test_a_description_does_not_change_the_atom_that_it_is_added_to() -> None:
    described = [schemas.text_schema("a"), schemas.nullable_text_schema("b"), schemas.flag_schema("c")]
    described += [schemas.count_schema("d"), schemas.array_schema(schemas.TEXT_SCHEMA, "e")]

    assert [schema["description"] for schema in described] == list("abcde")
    assert schemas.array_schema(schemas.TEXT_SCHEMA) == {"type": "array", "items": {"type": "string"}}
    for atom in (schemas.TEXT_SCHEMA, schemas.NULLABLE_TEXT_SCHEMA, schemas.FLAG_SCHEMA, schemas.COUNT_SCHEMA):
        assert "description" not in atom


def test_arguments_have_their_limits_and_defaults() -> None:
    assert schemas.text_argument("A.", default="x") == {
        "type": "string",
        "minLength": 1,
        "default": "x",
        "description": "A.",
    }
    assert schemas.choice_argument("A.", ["b", "a"])["enum"] == ["b", "a"]
    assert schemas.flag_argument("A.", default=True)["default"] is True
