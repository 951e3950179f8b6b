"""What is called exactly what was asked for: the same points as the engine of one machine gives."""

from typing import Any, Final

from cleats.toolsets.code.opensearch.fields import LONGEST_VALUE, NAME_ENDS, tails
from cleats.toolsets.code.opensearch.queries import Query
from cleats.toolsets.code.search.standing import TESTS
from cleats.toolsets.code.search.symbols import FILE, LAST, QUALIFIED, SAME_CASE

_TESTS: Final[Query] = {"term": {"tests": {"value": True}}}


def called(name: str, *, cased: bool, tests_lower: bool) -> Query | None:
    """What has this name or is in the file of this name, the most exact first; None for nothing."""
    if not name or "\0" in name or len(name) > LONGEST_VALUE:
        return None
    low = name.lower()
    listed = [("name.whole", name, QUALIFIED + SAME_CASE), ("name.part", name, LAST + SAME_CASE)]
    if not cased:
        listed += [("name.whole_lower", low, QUALIFIED), ("name.part_lower", low, LAST)]
        if "." in name:
            listed.append(("ends", low.removeprefix("./"), FILE))
    queries = [
        query
        for field, value, points in listed
        for query in _scored({"term": {field: {"value": value}}}, points, tests_lower=tests_lower)
    ]
    return {"dis_max": {"queries": queries}}


def _scored(term: Query, points: float, *, tests_lower: bool) -> list[Query]:
    if not tests_lower:
        return [{"constant_score": {"filter": term, "boost": points}}]
    other = {"bool": {"filter": [term], "must_not": [_TESTS]}}
    return [
        {"constant_score": {"filter": other, "boost": points}},
        {"constant_score": {"filter": term, "boost": points * TESTS}},
    ]


def points(hit: dict[str, Any], name: str, *, cased: bool) -> float:
    """What a chunk gets for its name, or for that of its file; 0 for nothing."""
    own, low = str(hit["name"]), name.lower()
    if low in tails(own.lower(), NAME_ENDS):
        same = own.endswith(name)
        if same or not cased:
            whole = len(own) == len(name)
            return (QUALIFIED if whole else LAST) + SAME_CASE * same
    in_file = not cased and "." in name
    if in_file and low.removeprefix("./") in tails(str(hit["path"]).lower(), "/"):
        return FILE
    return 0.0
