"""Values within one function, on steps made by hand."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.facts import Argument, Chunk, Invocation, Step
from cleats.toolsets.code.risk import graph, local
from cleats.toolsets.code.risk.local import assess
from cleats.toolsets.code.risk.solving import solve
from cleats.toolsets.code.risk.summary import Summary
from tests.risk_steps import RULES, arg, call, flows, function, risk, step, summary

SOURCE = call("request.args.get", arg(text="x"))


def sunk(line: int, *names: str, block: int = 0) -> Step:
    return step(line, calls=[call("os.system", arg(*names))], block=block)


def test_a_source_that_reaches_a_sink_is_a_flow_with_both_lines() -> None:
    found = risk(function(step(1, "x", calls=[SOURCE]), step(2, "y", ["x"]), sunk(3, "y")))

    assert found.sources == ["request.args"]
    assert found.sinks == ["os.system"]
    assert found.severity == "high"
    assert found.tags == ["http-input", "command-exec"]
    assert found.categories == ["input", "command"]
    (flow,) = found.flows
    assert (str(flow), flow.source_line, flow.sink_line) == ("request.args->os.system", 1, 3)
    assert flow.confidence == round(0.9 * 0.9 + 0.1, 2)


def test_a_sink_alone_has_its_severity_and_no_flow() -> None:
    found = risk(function(step(1, calls=[call("eval", arg(text="1"))])))

    assert (found.sinks, found.severity, found.flows) == (["eval"], "high", [])


def test_a_source_alone_is_of_low_severity() -> None:
    found = risk(function(step(1, "x", ["os.environ[]"])))

    assert (found.sources, found.severity) == (["os.environ"], "low")


def test_what_every_program_does_is_no_sink_unless_something_reaches_it() -> None:
    quiet = summary(function(step(1, calls=[call("requests.get", arg(text="http://x"))])))
    loud = risk(function(step(1, "x", calls=[SOURCE]), step(2, calls=[call("open", arg("x"))])))

    assert quiet.sinks == []
    assert loud.sinks == ["file.open"]


def test_a_function_with_nothing_of_interest_passes_nothing_on() -> None:
    found = summary(function(step(1, "return", text="1"), params=["a"]))

    assert found == Summary(params=1)
    assert assess(function(), "python", RULES) is None


def test_a_clean_value_replaces_an_untrusted_one() -> None:
    chunk = function(step(1, "x", calls=[SOURCE]), step(2, "x", text="ls"), sunk(3, "x"))

    assert flows(chunk) == []


def test_a_clean_value_in_a_branch_leaves_the_other_branch_alone() -> None:
    chunk = function(
        step(1, "x", calls=[SOURCE], block=1), step(2, "x", text="ls", block=2), sunk(3, "x")
    )

    assert flows(chunk) == ["request.args->os.system"]


@pytest.mark.parametrize(
    ("target", "read"),
    [("x[]", "x"), ("x.y", "x"), ("x.y", "x.y"), ("x.y", "x.y.z"), ("x", "x[]"), ("x", "x.y")],
)
def test_a_part_and_the_whole_share_a_value(target: str, read: str) -> None:
    chunk = function(step(1, "x", text="{}"), step(2, target, calls=[SOURCE]), sunk(3, read))

    assert flows(chunk) == ["request.args->os.system"]


def test_another_field_of_the_same_object_is_clean() -> None:
    chunk = function(step(1, "x.a", calls=[SOURCE]), step(2, "x.b", text="1"), sunk(3, "x.b"))

    assert flows(chunk) == []


def test_an_object_that_is_replaced_has_its_fields_replaced() -> None:
    chunk = function(
        step(1, "x.a.b", calls=[SOURCE]), step(2, "x", text="{}"), sunk(3, "x.a.b"), sunk(4, "x")
    )

    assert flows(chunk) == []


def test_a_method_of_an_untrusted_value_gives_an_untrusted_value() -> None:
    chunk = function(
        step(1, "x", calls=[SOURCE]), step(2, "y", calls=[call("x.anything")]), sunk(3, "y")
    )

    assert flows(chunk) == ["request.args->os.system"]


def test_a_chain_of_calls_carries_the_value_to_its_end() -> None:
    chain = [call("request.get_json"), call("request.get_json().pop"), call("shlex.quote", arg())]
    through = Step(1, ["x"], [], chain[:2], [0, 1])
    cleaned = Step(
        1,
        ["x"],
        [],
        [SOURCE, call("shlex.quote", arg(calls=[0])), call("shlex.quote().strip")],
        [1, 2],
    )

    assert flows(function(through, sunk(2, "x"))) == ["request.body->os.system"]
    assert flows(function(cleaned, sunk(2, "x"))) == []


def test_what_a_chain_goes_through_is_not_what_it_gives() -> None:
    chain = [call("name", arg("params[]")), call("name().shellescape")]
    cleaned = Step(1, ["x"], [], chain, [0, 1])

    assert flows(function(cleaned, step(2, calls=[call("system", arg("x"))])), "ruby") == []


def test_a_chain_may_start_at_a_new_object() -> None:
    chain = [call("new Job", arg("System.in")), call("Job().text")]
    made = Step(1, ["x"], [], chain, [1])

    assert flows(function(made, step(2, calls=[call("rt.exec", arg("x"))])), "java") == [
        "stdin->Runtime.exec"
    ]


def test_a_loop_finds_what_its_last_turn_left_and_not_what_comes_after() -> None:
    def looped(inside: Step, after: Step) -> Chunk:
        return function(step(1, "x", text=""), sunk(2, "x", block=1), inside, after, loops=1)

    given, cleared = step(3, "x", calls=[call("input")], block=1), step(4, "x", text="")
    assert flows(looped(given, cleared)) == ["stdin->os.system"]
    assert flows(looped(step(3, "x", text="", block=1), step(4, "x", calls=[call("input")]))) == []


def test_a_sanitizer_cleans_for_its_own_categories_only() -> None:
    chunk = function(
        step(1, "x", calls=[SOURCE]),
        step(2, "y", calls=[call("shlex.quote", arg("x"))]),
        sunk(3, "y"),
        step(4, calls=[call("eval", arg("y"))]),
    )

    assert flows(chunk) == ["request.args->eval"]
    assert risk(chunk).sanitizers == ["shlex.quote"]


def test_a_call_that_measures_gives_a_clean_value() -> None:
    chunk = function(
        step(1, "x", calls=[SOURCE]), step(2, "y", calls=[call("int", arg("x"))]), sunk(3, "y")
    )

    assert flows(chunk) == []


def test_only_the_dangerous_arguments_count() -> None:
    query = arg("q", text="SELECT 1 WHERE a = ?")
    for arguments, expected in [
        ([query, arg("x")], []),
        ([arg("x", text="SELECT"), arg("q")], ["request.args->sql.query"]),
    ]:
        run = step(2, calls=[call("cursor.execute", *arguments)])
        assert flows(function(step(1, "x", calls=[SOURCE]), run)) == expected


def test_what_looks_like_sql_makes_a_sink_of_a_common_name() -> None:
    def chunk(text: str) -> Chunk:
        build = step(2, "q", ["x"], text=text)
        return function(
            step(1, "x", calls=[SOURCE]), build, step(3, calls=[call("thing.execute", arg("q"))])
        )

    assert flows(chunk("SELECT * FROM t WHERE a = ")) == ["request.args->sql.query"]
    assert flows(chunk("selection of tasks: ")) == []


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        ((), ["request.args->yaml.load"]),
        ((arg("yaml.Loader", keyword="Loader"),), ["request.args->yaml.load"]),
        ((arg("yaml.SafeLoader", keyword="Loader"),), []),
        ((arg("SafeLoader"),), []),
    ],
)
def test_an_argument_can_make_a_sink_harmless(
    loader: tuple[Argument, ...], expected: list[str]
) -> None:
    chunk = function(
        step(1, "x", calls=[SOURCE]), step(2, calls=[call("yaml.load", arg("x"), *loader)])
    )

    assert flows(chunk) == expected


def test_a_mode_decides_whether_a_file_is_written() -> None:
    for mode, expected in [("w", "file.write"), ("rb", "file.open"), ("a+", "file.write")]:
        chunk = function(
            step(1, "x", calls=[SOURCE]), step(2, calls=[call("open", arg("x"), arg(text=mode))])
        )
        assert risk(chunk).sinks == [expected]


def test_an_imported_name_counts_only_where_it_is_imported() -> None:
    chunk = function(step(1, calls=[call("run", arg("cmd"))]))

    assert risk(chunk, imports=["subprocess"]).sinks == ["subprocess.run"]
    assert risk(chunk, imports=["other"]).sinks == []


def test_a_variable_that_hides_a_source_is_not_the_source() -> None:
    hidden = function(step(1, "argv", text="x"), step(2, calls=[call("system", arg("argv"))]))
    plain = function(step(2, calls=[call("system", arg("argv"))]), params=["argc", "argv"])

    assert flows(hidden, "c") == []
    assert flows(plain, "c") == ["argv->system"]


def test_a_call_can_put_a_value_into_its_arguments() -> None:
    read = step(1, calls=[call("fgets", arg("buffer"), arg("n"), arg("stdin"))])
    copied = step(2, calls=[call("snprintf", arg("line"), arg("m"), arg(text="%s"), arg("buffer"))])
    run = step(3, calls=[call("system", arg("line"))])

    assert flows(function(read, copied, run), "c") == ["stdin->system"]
    assert flows(function(read, run), "c") == []


def test_an_assignment_can_be_a_sink() -> None:
    chunk = function(step(1, "el.innerHTML", ["location.hash"]))

    assert flows(chunk, "javascript") == ["location->innerHTML"]


def test_a_receiver_can_be_what_does_harm() -> None:
    path = step(2, "p", calls=[call("Path", arg("x"))])
    write = step(3, calls=[call("p.write_text", arg(text="data"))])

    assert flows(function(step(1, "x", calls=[SOURCE]), path, write)) == [
        "request.args->file.write"
    ]


@pytest.mark.parametrize(
    "signature",
    [
        'String f(@RequestParam("number") String name, int number, Model model)',
        '@GetMapping("/number") String f(@RequestParam(value = "a, b") String name, int number)',
        "f(@RequestParam() name: Map<String, Int>, number: (Int) -> Int, model: Model)",
    ],
)
def test_an_annotated_parameter_is_a_source_and_its_neighbour_is_not(signature: str) -> None:
    def chunk(name: str) -> Chunk:
        run = step(2, calls=[call("Runtime.getRuntime().exec", arg(name))])
        return function(run, params=["name", "number", "model"], signature=signature)

    assert flows(chunk("name"), "java") == ["@RequestParam->Runtime.exec"]
    assert flows(chunk("number"), "java") == []


def test_a_decorated_function_has_untrusted_parameters() -> None:
    body = [step(2, calls=[call("os.system", arg("name"))])]
    signature = "def f(name: str, db: Session = Depends(get_db)) -> None"
    bare = function(*body, params=["name", "db"], signature=signature)
    decorated = function(
        *body, params=["name", "db"], signature=signature, decorators=['app.get("/x")']
    )

    assert flows(bare) == []
    assert flows(decorated) == ["route parameter->os.system"]
    assert len(summary(decorated).sources) == 1


def test_what_a_function_does_with_parameters_is_kept_for_its_callers() -> None:
    found = summary(
        function(
            step(1, "y", calls=[call("helper", arg("b"))]),
            step(2, "return", ["a", "y"]),
            params=["self", "a", "b"],
        )
    )

    assert found.returns == [1, 3]
    (one,) = found.calls
    assert (one.callee, one.count, one.inputs[0].nodes) == ("helper", 1, [2])


def test_a_summary_survives_being_packed() -> None:
    found = summary(function(step(1, "x", calls=[SOURCE]), sunk(2, "x"), step(3, "return", ["x"])))

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Summary) == found


def test_a_function_beyond_the_limits_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MOST_NODES", 3)
    many = [step(n, f"x{n}", calls=[call(f"f{n}", arg("p"))]) for n in range(1, 9)]

    found = summary(function(*many, sunk(9, "x8"), params=["p"]))

    assert found.capped
    assert found.sinks[0].nodes == [0]


def test_steps_beyond_the_limit_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MOST_STEPS", 1)

    found = risk(function(step(1, "x", calls=[SOURCE]), sunk(2, "x")))

    assert found.capped
    assert found.flows == []


NAMES = st.sampled_from(["a", "b", "c.d", "e[]", "request.args", "os.environ[]", "self.x"])
CALLEES = st.sampled_from(
    ["f", "x.g", "os.system", "eval", "int", "shlex.quote", "a.append", "f().g"]
)
CALLS = st.lists(
    st.builds(
        Invocation,
        CALLEES,
        st.lists(st.builds(Argument, st.lists(NAMES, max_size=2), st.just([])), max_size=3),
        st.integers(1, 50),
    ),
    max_size=3,
)


@st.composite
def any_step(draw: st.DrawFn) -> Step:
    calls = draw(CALLS)
    return Step(
        draw(st.integers(1, 50)),
        draw(st.lists(st.sampled_from(["a", "b", "c.d", "e[]", "return"]), max_size=2)),
        draw(st.lists(NAMES, max_size=2)),
        calls,
        draw(st.lists(st.sampled_from(range(len(calls))), max_size=2)) if calls else [],
        draw(st.sampled_from(["", "SELECT 1"])),
        draw(st.integers(0, 2)),
    )


@given(st.lists(any_step(), max_size=12), st.integers(0, 1))
def test_whatever_the_steps_every_number_names_a_node(steps: list[Step], loops: int) -> None:
    found = assess(function(*steps, params=["a", "b"], loops=loops), "python", RULES)

    if found is not None:
        count = found.params + len(found.sources) + len(found.calls)
        nodes = [n for sink in found.sinks for n in sink.nodes] + found.returns
        nodes += [n for one in found.calls for each in one.inputs for n in each.nodes]
        assert all(0 <= node < count for node in nodes)
        assert solve(found, "a.py", {}).flows == solve(found, "a.py", {}).flows
