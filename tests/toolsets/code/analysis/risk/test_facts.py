"""Data flow steps of real code: values that are taken apart, handed over and tested."""

from cleats.toolsets.code.analysis.facts import DataFlowStep, Invocation
from cleats.toolsets.code.analysis.languages.engine import parse_declarations
from tests.support.risk import list_flows


def extract_steps(lang: str, text: str) -> list[DataFlowStep]:
    parsed = parse_declarations(lang, "code", text.encode())
    assert not parsed.problem
    return [step for chunk in parsed.chunks for step in chunk.steps]


def list_assignments(text: str, lang: str = "javascript") -> list[tuple[list[str], list[str]]]:
    return [(step.targets, step.names) for step in extract_steps(lang, text) if step.targets]


def list_calls(lang: str, text: str) -> list[Invocation]:
    return [call for step in extract_steps(lang, text) for call in step.calls]


def test_every_name_of_a_pattern_has_its_own_part() -> None:
    text = "const { a, b: { c, 'd-e': f }, g = 1, h: [i], ...rest } = x.y;"

    assert list_assignments(text) == [
        (["a"], ["x.y.a"]),
        (["c"], ["x.y.b.c"]),
        (["f"], ["x.y.b[]"]),
        (["g"], ["x.y.g"]),
        (["i"], ["x.y.h[]"]),
        (["rest"], ["x.y"]),
    ]


def test_what_a_call_gives_is_taken_apart_as_one() -> None:
    assert list_assignments("const { a, b } = f(x);") == [(["a", "b"], [])]
    assert list_assignments("const { a, b } = x || y;") == [(["a", "b"], ["x", "y"])]


def test_a_function_is_given_what_the_method_is_called_on() -> None:
    for text in ("xs.map((x) => f(x));", "xs.map(x => f(x));", "xs.map(function (x) { f(x); });"):
        assert list_assignments(text) == [(["x"], ["xs.map().{}"])]
    assert list_assignments("xs.map((x: string, i = 0) => f(x));", "typescript") == [(["x", "i"], ["xs.map().{}"])]


def test_what_is_handed_over_in_parts_has_the_name_of_the_call() -> None:
    assert list_assignments("app.get('/', ({ query: { id } }, res) => f(id));") == [(["id"], ["app.get().{}.query.id"])]
    assert list_assignments("a.b(x(1), 2)?.c(({ d }) => f(d));") == [(["d"], ["a.b().c().{}.d"])]
    assert list_assignments("route({ handler: ({ body }) => f(body) });") == [(["body"], ["handler().{}.body"])]
    assert list_assignments("f(({ a }) => a);") == [(["a"], ["f().{}.a"])]
    assert list_assignments("(function () {})(({ a }) => a);") == [(["a"], ["{}.a"])]


def test_a_chain_too_long_to_look_at_is_nobody() -> None:
    text = f"a{'.b(1)' * 100}.c(({{ d }}) => f(d));"

    assert list_assignments(text) == [(["d"], ["{}.d"])]


def test_a_callback_of_a_server_leaves_the_request_as_it_was() -> None:
    text = (
        "app.use((req, res, next) => { req.filter = req.query.filter; next(); });\n"
        "app.get('/x', (req, res) => { db.query('SELECT * FROM t WHERE ' + req.filter); });\n"
    )

    assert list_flows({"a.js": text}, "javascript") == {"req.query->sql.query"}


def test_each_element_of_what_a_stranger_sent_was_sent_by_him() -> None:
    text = "app.post('/', (req) => {{ {}.forEach((x) => eval(x)); }});".format

    assert list_flows({"a.js": text("req.body.items")}, "javascript") == {"req.body->eval"}
    assert list_flows({"a.js": text("ITEMS")}, "javascript") == set()


def test_an_object_is_told_by_its_first_key() -> None:
    texts = [
        (argument.text, argument.names)
        for call in list_calls("javascript", "f({ $where: q }, { a: { $eq: b } }, {}, 'x' + { c: 1 });")
        for argument in call.arguments
    ]

    assert texts == [("{$where:", ["q"]), ("{a:{$eq:", ["b"]), ("{", []), ("x", [])]


def test_membership_is_asked_like_a_call() -> None:
    text = "def f(x):\n    if x.y not in ALLOWED or g(x) in h(x):\n        return x in xs\n"

    checked_names = [
        [argument.names for argument in call.arguments] for call in list_calls("python", text) if call.callee == "in"
    ]

    assert checked_names == [[["x.y"], ["ALLOWED"]], [["x"], ["xs"]]]
    assert [call.callee for call in list_calls("python", text) if call.callee != "in"] == ["g", "h"]


def test_what_is_not_membership_is_no_call() -> None:
    assert list_calls("python", "a = x is y\nb = x < y\nc = 'x' in y\nd = x in y in z\n") == []


def test_text_behind_another_value_says_so() -> None:
    texts = [
        (argument.names, argument.text)
        for call in list_calls("javascript", "f('a' + x, x + 'a', `${x}/a`, `a/${x}`, c ? 'a' : x);")
        for argument in call.arguments
    ]

    assert texts == [
        (["x"], "a"),
        (["x"], "…a"),
        (["x"], "…/a"),
        (["x"], "a/"),
        (["x"], "…a"),
    ]


def test_words_that_turn_something_off_are_text() -> None:
    (call,) = list_calls("python", "f(a=False, b=None, c=True)\n")

    assert [argument.text for argument in call.arguments] == ["False", "None", ""]


def test_a_method_of_a_written_expression_is_none_of_a_function() -> None:
    invocations = list_calls("javascript", "const m = /a(b)/.exec(x /* why */, 1)[1];\n/a/.test(y);")

    assert [(call.callee, [a.names for a in call.arguments]) for call in invocations] == [
        ("RegExp.exec", [["x"], []]),
        ("RegExp.test", [["y"]]),
    ]
