"""TypeScript, with and without JSX: JavaScript's table with types."""

from msgspec.structs import replace

from cleats.toolsets.code.languages.javascript import (
    ASSIGNS,
    CARRIERS,
    DECLARES,
    JAVASCRIPT,
    MODIFIERS,
)
from cleats.toolsets.code.languages.table import Assign, Carrier, Declares, Parameter

_HERITAGE = frozenset(
    {"class_heritage", "extends_clause", "implements_clause", "extends_type_clause"}
)

TYPESCRIPT = replace(
    JAVASCRIPT,
    id="typescript",
    grammar="tree_sitter_typescript",
    maker="language_typescript",
    declares={
        **DECLARES,
        "class_declaration": Declares("class", bases=_HERITAGE),
        "class": Declares("class", bases=_HERITAGE),
        "abstract_class_declaration": Declares("class", bases=_HERITAGE),
        "interface_declaration": Declares("interface", bases=_HERITAGE),
        "enum_declaration": Declares("enum"),
        "type_alias_declaration": Declares("type", body=("value",)),
        "internal_module": Declares("namespace"),
        "module": Declares("namespace"),
        "function_signature": Declares("function"),
        "abstract_method_signature": Declares("method"),
    },
    carriers={
        **{kind: row for kind, row in CARRIERS.items() if kind != "field_definition"},
        "public_field_definition": Carrier("name", "value", kind="method"),
    },
    wraps=JAVASCRIPT.wraps | {"ambient_declaration"},
    parameters={
        "required_parameter": Parameter(name=("pattern",)),
        "optional_parameter": Parameter(name=("pattern",)),
    },
    modifiers={
        **MODIFIERS,
        "accessibility_modifier": "",
        "override_modifier": "override",
        "abstract": "abstract",
        "readonly": "readonly",
        "declare": "declare",
    },
    not_bases=frozenset({"type_arguments"}),
    type_names=frozenset({"type_identifier", "nested_type_identifier"}),
    transparent=JAVASCRIPT.transparent
    | {"as_expression", "non_null_expression", "satisfies_expression"},
    assigns={
        **{kind: row for kind, row in ASSIGNS.items() if kind != "field_definition"},
        "public_field_definition": Assign(left="name", right="value", typed_field=True),
    },
    types=frozenset(
        {
            "type_annotation",
            "type_arguments",
            "type_parameters",
            "predefined_type",
            "union_type",
            "intersection_type",
            "generic_type",
            "array_type",
            "object_type",
            "literal_type",
            "function_type",
            "lookup_type",
            "tuple_type",
            "conditional_type",
            "index_type_query",
            "type_query",
            "type_predicate_annotation",
            "asserts_annotation",
            "interface_body",
        }
    ),
    ignored=JAVASCRIPT.ignored | {"accessibility_modifier", "override_modifier"},
)

TSX = replace(TYPESCRIPT, id="tsx", maker="language_tsx")
