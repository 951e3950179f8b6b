"""Comparing contracts: every rule, both policies, and no safe verdict that a value contradicts."""

from typing import Any

from hypothesis import strategies as st

Json = Any

# Random schemas over a small world, so that random values often fit them.

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 4), st.sampled_from(["", "a", "ab", "abc", "b"])
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


REFERENCES = st.sampled_from(["#/$defs/one", "#/$defs/two", "#"]).map(lambda ref: {"$ref": ref})
"""Only ever below a property or an item: a schema that is nothing but itself has no meaning."""


def keywords(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def schemas(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    lists = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.booleans(),
        REFERENCES.map(lambda ref: {"properties": {"a": ref}}),
        REFERENCES.map(lambda ref: {"items": ref}),
        keywords(
            type=st.sampled_from(["integer", "string", "object", "array", "number", "null"]),
            enum=st.lists(SCALARS, min_size=1, max_size=3),
            minimum=st.integers(-1, 3),
            maximum=st.integers(0, 4),
            minLength=st.integers(0, 2),
            maxLength=st.integers(0, 3),
            pattern=st.sampled_from(["^a", "b$", "^a?b*$"]),
        ),
        keywords(
            type=st.just("object"),
            properties=st.dictionaries(NAMES, inner, max_size=3),
            required=st.lists(NAMES, unique=True, max_size=2),
            additionalProperties=inner,
            minProperties=st.integers(0, 2),
            patternProperties=st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=1),
            dependentRequired=st.just({"a": ["b"]}),
            unevaluatedProperties=inner,
            propertyNames=inner,
        ),
        keywords(
            items=inner,
            prefixItems=lists,
            minItems=st.integers(0, 2),
            maxItems=st.integers(0, 3),
            uniqueItems=st.booleans(),
            contains=inner,
        ),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.sampled_from(["anyOf", "allOf", "oneOf"]).flatmap(
            lambda keyword: lists.map(lambda parts: {keyword: parts})
        ),
        inner.map(lambda part: {"not": part}),
    )


SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    keywords(type=st.sampled_from(["integer", "string", "object"])), schemas, max_leaves=6
)
DOCUMENTS = st.builds(
    lambda top, one, two: {**top, "$defs": {"one": one, "two": two}},
    SCHEMAS.filter(lambda s: isinstance(s, dict)),
    SCHEMAS,
    SCHEMAS,
)


def spots(schema: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to every schema inside a schema."""
    found = [path]
    if isinstance(schema, dict):
        for keyword in ("properties", "patternProperties", "$defs"):
            for name, part in schema.get(keyword, {}).items():
                found += spots(part, (*path, keyword, name))
        for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
            for place, part in enumerate(schema.get(keyword, [])):
                found += spots(part, (*path, keyword, place))
        for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
            if keyword in schema:
                found += spots(schema[keyword], (*path, keyword))
    return found


def put(schema: Json, path: tuple[str | int, ...], part: Json) -> Json:
    if not path:
        return part
    copy = dict(schema) if isinstance(schema, dict) else list(schema)
    copy[path[0]] = put(copy[path[0]], path[1:], part)
    return copy


def at(schema: Json, path: tuple[str | int, ...]) -> Json:
    for part in path:
        schema = schema[part]
    return schema


@st.composite
def edits(draw: st.DrawFn) -> tuple[Json, Json]:
    """A schema and what one or two edits made of it."""
    old = new = draw(DOCUMENTS)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(spots(new)))
        before = at(new, path)
        after = draw(SCHEMAS)
        if isinstance(before, dict) and isinstance(after, dict):
            gone = draw(st.sampled_from([None, *sorted(before)]))
            kept = {keyword: value for keyword, value in before.items() if keyword != gone}
            after = {**kept, **draw(st.sampled_from([{}, after]))}
        if path or isinstance(after, dict):
            new = put(new, path, after)
    return old, {"$defs": old["$defs"], **new}
