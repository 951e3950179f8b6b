"""Values within one function, on hand-made steps."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.analysis.facts import CallArgument, Chunk, DataFlowStep, Invocation
from cleats.toolsets.code.analysis.risk import function_flows, summary
from cleats.toolsets.code.analysis.risk.function_flows import summarize_chunk
from cleats.toolsets.code.analysis.risk.linking import FunctionSolver
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary
from tests.support.risk_steps import (
    RISK_RULES,
    assess_risk,
    list_flows,
    make_argument,
    make_function,
    make_invocation,
    make_step,
    summarize_function,
)

SOURCE_CALL = make_invocation("request.args.get", make_argument(text="x"))


def make_sink_step(line: int, *names: str, block: int = 0) -> DataFlowStep:
    return make_step(line, calls=[make_invocation("os.system", make_argument(*names))], block=block)


def test_a_source_that_reaches_a_sink_is_a_flow_with_both_lines() -> None:
    result = assess_risk(
        make_function(make_step(1, "x", calls=[SOURCE_CALL]), make_step(2, "y", ["x"]), make_sink_step(3, "y"))
    )

    assert result.sources == ["request.args"]
    assert result.sinks == ["os.system"]
    assert result.severity == "high"
    assert result.tags == ["http-input", "command-exec"]
    assert result.categories == ["input", "command"]
    (flow,) = result.flows
    assert (str(flow), flow.source_line, flow.sink_line) == ("request.args->os.system", 1, 3)
    assert flow.confidence == round(0.9 * 0.9 + 0.1, 2)


def test_a_sink_alone_has_its_severity_and_no_flow() -> None:
    result = assess_risk(make_function(make_step(1, calls=[make_invocation("eval", make_argument(text="1"))])))

    assert (result.sinks, result.severity, result.flows) == (["eval"], "high", [])


def test_a_source_alone_is_of_low_severity() -> None:
    result = assess_risk(make_function(make_step(1, "x", ["os.environ[]"])))

    assert (result.sources, result.severity) == (["os.environ"], "low")


def test_what_every_program_does_is_no_sink_unless_something_reaches_it() -> None:
    quiet = summarize_function(
        make_function(make_step(1, calls=[make_invocation("requests.get", make_argument(text="http://x"))]))
    )
    loud = assess_risk(
        make_function(
            make_step(1, "x", calls=[SOURCE_CALL]), make_step(2, calls=[make_invocation("open", make_argument("x"))])
        )
    )

    assert quiet.sinks == []
    assert loud.sinks == ["file.open"]


def test_a_function_with_nothing_of_interest_passes_nothing_on() -> None:
    result = summarize_function(make_function(make_step(1, "return", text="1"), params=["a"]))

    assert result == FunctionSummary(params=1)
    assert summarize_chunk(make_function(), "python", RISK_RULES) is None


def test_a_clean_value_replaces_an_untrusted_one() -> None:
    chunk = make_function(make_step(1, "x", calls=[SOURCE_CALL]), make_step(2, "x", text="ls"), make_sink_step(3, "x"))

    assert list_flows(chunk) == []


def test_a_clean_value_in_a_branch_leaves_the_other_branch_alone() -> None:
    chunk = make_function(
        make_step(1, "x", calls=[SOURCE_CALL], block=1), make_step(2, "x", text="ls", block=2), make_sink_step(3, "x")
    )

    assert list_flows(chunk) == ["request.args->os.system"]


@pytest.mark.parametrize(
    ("target", "read"),
    [("x[]", "x"), ("x.y", "x"), ("x.y", "x.y"), ("x.y", "x.y.z"), ("x", "x[]"), ("x", "x.y")],
)
def test_a_part_and_the_whole_share_a_value(target: str, read: str) -> None:
    chunk = make_function(
        make_step(1, "x", text="{}"), make_step(2, target, calls=[SOURCE_CALL]), make_sink_step(3, read)
    )

    assert list_flows(chunk) == ["request.args->os.system"]


def test_another_field_of_the_same_object_is_clean() -> None:
    chunk = make_function(
        make_step(1, "x.a", calls=[SOURCE_CALL]), make_step(2, "x.b", text="1"), make_sink_step(3, "x.b")
    )

    assert list_flows(chunk) == []


def test_an_object_that_is_replaced_has_its_fields_replaced() -> None:
    chunk = make_function(
        make_step(1, "x.a.b", calls=[SOURCE_CALL]),
        make_step(2, "x", text="{}"),
        make_sink_step(3, "x.a.b"),
        make_sink_step(4, "x"),
    )

    assert list_flows(chunk) == []


def test_a_method_of_an_untrusted_value_gives_an_untrusted_value() -> None:
    chunk = make_function(
        make_step(1, "x", calls=[SOURCE_CALL]),
        make_step(2, "y", calls=[make_invocation("x.anything")]),
        make_sink_step(3, "y"),
    )

    assert list_flows(chunk) == ["request.args->os.system"]


def test_a_chain_of_calls_carries_the_value_to_its_end() -> None:
    chain = [
        make_invocation("request.get_json"),
        make_invocation("request.get_json().pop"),
        make_invocation("shlex.quote", make_argument()),
    ]
    through = DataFlowStep(1, ["x"], [], chain[:2], [0, 1])
    cleaned = DataFlowStep(
        1,
        ["x"],
        [],
        [SOURCE_CALL, make_invocation("shlex.quote", make_argument(calls=[0])), make_invocation("shlex.quote().strip")],
        [1, 2],
    )

    assert list_flows(make_function(through, make_sink_step(2, "x"))) == ["request.body->os.system"]
    assert list_flows(make_function(cleaned, make_sink_step(2, "x"))) == []


def test_what_a_chain_goes_through_is_not_what_it_gives() -> None:
    chain = [make_invocation("name", make_argument("params[]")), make_invocation("name().shellescape")]
    cleaned = DataFlowStep(1, ["x"], [], chain, [0, 1])

    assert (
        list_flows(make_function(cleaned, make_step(2, calls=[make_invocation("system", make_argument("x"))])), "ruby")
        == []
    )


def test_a_chain_may_start_at_a_new_object() -> None:
    chain = [make_invocation("new Job", make_argument("System.in")), make_invocation("Job().text")]
    creation = DataFlowStep(1, ["x"], [], chain, [1])

    assert list_flows(
        make_function(creation, make_step(2, calls=[make_invocation("rt.exec", make_argument("x"))])), "java"
    ) == ["stdin->Runtime.exec"]


def test_a_loop_finds_what_its_last_turn_left_and_not_what_comes_after() -> None:
    def make_loop(inside: DataFlowStep, after: DataFlowStep) -> Chunk:
        return make_function(make_step(1, "x", text=""), make_sink_step(2, "x", block=1), inside, after, loops=1)

    tainting, cleared = make_step(3, "x", calls=[make_invocation("input")], block=1), make_step(4, "x", text="")
    assert list_flows(make_loop(tainting, cleared)) == ["stdin->os.system"]
    assert (
        list_flows(make_loop(make_step(3, "x", text="", block=1), make_step(4, "x", calls=[make_invocation("input")])))
        == []
    )


def test_a_sanitizer_cleans_for_its_own_categories_only() -> None:
    chunk = make_function(
        make_step(1, "x", calls=[SOURCE_CALL]),
        make_step(2, "y", calls=[make_invocation("shlex.quote", make_argument("x"))]),
        make_sink_step(3, "y"),
        make_step(4, calls=[make_invocation("eval", make_argument("y"))]),
    )

    assert list_flows(chunk) == ["request.args->eval"]
    assert assess_risk(chunk).sanitizers == ["shlex.quote"]


def test_a_call_that_measures_gives_a_clean_value() -> None:
    chunk = make_function(
        make_step(1, "x", calls=[SOURCE_CALL]),
        make_step(2, "y", calls=[make_invocation("int", make_argument("x"))]),
        make_sink_step(3, "y"),
    )

    assert list_flows(chunk) == []


def test_only_the_dangerous_arguments_count() -> None:
    query = make_argument("q", text="SELECT 1 WHERE a = ?")
    for arguments, expected in [
        ([query, make_argument("x")], []),
        ([make_argument("x", text="SELECT"), make_argument("q")], ["request.args->sql.query"]),
    ]:
        run = make_step(2, calls=[make_invocation("cursor.execute", *arguments)])
        assert list_flows(make_function(make_step(1, "x", calls=[SOURCE_CALL]), run)) == expected


def test_what_looks_like_sql_makes_a_sink_of_a_common_name() -> None:
    def make_chunk(text: str) -> Chunk:
        build = make_step(2, "q", ["x"], text=text)
        return make_function(
            make_step(1, "x", calls=[SOURCE_CALL]),
            build,
            make_step(3, calls=[make_invocation("thing.execute", make_argument("q"))]),
        )

    assert list_flows(make_chunk("SELECT * FROM t WHERE a = ")) == ["request.args->sql.query"]
    assert list_flows(make_chunk("selection of tasks: ")) == []


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        ((), ["request.args->yaml.load"]),
        ((make_argument("yaml.Loader", keyword="Loader"),), ["request.args->yaml.load"]),
        ((make_argument("yaml.SafeLoader", keyword="Loader"),), []),
        ((make_argument("SafeLoader"),), []),
    ],
)
def test_an_argument_can_make_a_sink_harmless(loader: tuple[CallArgument, ...], expected: list[str]) -> None:
    chunk = make_function(
        make_step(1, "x", calls=[SOURCE_CALL]),
        make_step(2, calls=[make_invocation("yaml.load", make_argument("x"), *loader)]),
    )

    assert list_flows(chunk) == expected


def test_a_mode_decides_whether_a_file_is_written() -> None:
    for mode, expected in [("w", "file.write"), ("rb", "file.open"), ("a+", "file.write")]:
        chunk = make_function(
            make_step(1, "x", calls=[SOURCE_CALL]),
            make_step(2, calls=[make_invocation("open", make_argument("x"), make_argument(text=mode))]),
        )
        assert assess_risk(chunk).sinks == [expected]


def test_an_imported_name_counts_only_where_it_is_imported() -> None:
    chunk = make_function(make_step(1, calls=[make_invocation("run", make_argument("cmd"))]))

    assert assess_risk(chunk, imports=["subprocess"]).sinks == ["subprocess.run"]
    assert assess_risk(chunk, imports=["other"]).sinks == []


def test_a_variable_that_hides_a_source_is_not_the_source() -> None:
    hidden = make_function(
        make_step(1, "argv", text="x"), make_step(2, calls=[make_invocation("system", make_argument("argv"))])
    )
    plain = make_function(
        make_step(2, calls=[make_invocation("system", make_argument("argv"))]), params=["argc", "argv"]
    )

    assert list_flows(hidden, "c") == []
    assert list_flows(plain, "c") == ["argv->system"]


def test_a_call_can_put_a_value_into_its_arguments() -> None:
    read = make_step(
        1, calls=[make_invocation("fgets", make_argument("buffer"), make_argument("n"), make_argument("stdin"))]
    )
    copied = make_step(
        2,
        calls=[
            make_invocation(
                "snprintf", make_argument("line"), make_argument("m"), make_argument(text="%s"), make_argument("buffer")
            )
        ],
    )
    run = make_step(3, calls=[make_invocation("system", make_argument("line"))])

    assert list_flows(make_function(read, copied, run), "c") == ["stdin->system"]
    assert list_flows(make_function(read, run), "c") == []


def test_an_assignment_can_be_a_sink() -> None:
    chunk = make_function(make_step(1, "el.innerHTML", ["location.hash"]))

    assert list_flows(chunk, "javascript") == ["location->innerHTML"]


def test_a_receiver_can_be_what_does_harm() -> None:
    path = make_step(2, "p", calls=[make_invocation("Path", make_argument("x"))])
    write = make_step(3, calls=[make_invocation("p.write_text", make_argument(text="data"))])

    assert list_flows(make_function(make_step(1, "x", calls=[SOURCE_CALL]), path, write)) == [
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
    def make_chunk(name: str) -> Chunk:
        run = make_step(2, calls=[make_invocation("Runtime.getRuntime().exec", make_argument(name))])
        return make_function(run, params=["name", "number", "model"], signature=signature)

    assert list_flows(make_chunk("name"), "java") == ["@RequestParam->Runtime.exec"]
    assert list_flows(make_chunk("number"), "java") == []


def test_a_decorated_function_has_untrusted_parameters() -> None:
    body = [make_step(2, calls=[make_invocation("os.system", make_argument("name"))])]
    signature = "def f(name: str, db: Session = Depends(get_db)) -> None"
    bare = make_function(*body, params=["name", "db"], signature=signature)
    decorated = make_function(*body, params=["name", "db"], signature=signature, decorators=['app.get("/x")'])

    assert list_flows(bare) == []
    assert list_flows(decorated) == ["route parameter->os.system"]
    assert len(summarize_function(decorated).sources) == 1


def test_what_a_function_does_with_parameters_is_kept_for_its_callers() -> None:
    result = summarize_function(
        make_function(
            make_step(1, "y", calls=[make_invocation("helper", make_argument("b"))]),
            make_step(2, "return", ["a", "y"]),
            params=["self", "a", "b"],
        )
    )

    assert result.returns == [1, 3]
    (call_node,) = result.calls
    assert (call_node.callee, call_node.count, call_node.inputs[0].nodes) == ("helper", 1, [2])


def test_a_summary_survives_being_packed() -> None:
    result = summarize_function(
        make_function(make_step(1, "x", calls=[SOURCE_CALL]), make_sink_step(2, "x"), make_step(3, "return", ["x"]))
    )

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=FunctionSummary) == result


def test_a_function_beyond_the_limits_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MAX_GRAPH_NODES", 3)
    chained_steps = [make_step(n, f"x{n}", calls=[make_invocation(f"f{n}", make_argument("p"))]) for n in range(1, 9)]

    result = summarize_function(make_function(*chained_steps, make_sink_step(9, "x8"), params=["p"]))

    assert result.capped
    assert result.sinks[0].nodes == [0]


def test_steps_beyond_the_limit_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_flows, "MAX_FUNCTION_STEPS", 1)

    result = assess_risk(make_function(make_step(1, "x", calls=[SOURCE_CALL]), make_sink_step(2, "x")))

    assert result.capped
    assert result.flows == []


NAME_STRATEGY = st.sampled_from(["a", "b", "c.d", "e[]", "request.args", "os.environ[]", "self.x"])
CALLEE_STRATEGY = st.sampled_from(["f", "x.g", "os.system", "eval", "int", "shlex.quote", "a.append", "f().g"])
CALLS_STRATEGY = st.lists(
    st.builds(
        Invocation,
        CALLEE_STRATEGY,
        st.lists(st.builds(CallArgument, st.lists(NAME_STRATEGY, max_size=2), st.just([])), max_size=3),
        st.integers(1, 50),
    ),
    max_size=3,
)


@st.composite
def draw_step(draw: st.DrawFn) -> DataFlowStep:
    calls = draw(CALLS_STRATEGY)
    return DataFlowStep(
        draw(st.integers(1, 50)),
        draw(st.lists(st.sampled_from(["a", "b", "c.d", "e[]", "return"]), max_size=2)),
        draw(st.lists(NAME_STRATEGY, max_size=2)),
        calls,
        draw(st.lists(st.sampled_from(range(len(calls))), max_size=2)) if calls else [],
        draw(st.sampled_from(["", "SELECT 1"])),
        draw(st.integers(0, 2)),
    )


@given(st.lists(draw_step(), max_size=12), st.integers(0, 1))
def test_whatever_the_steps_every_number_names_a_node(steps: list[DataFlowStep], loops: int) -> None:
    result = summarize_chunk(make_function(*steps, params=["a", "b"], loops=loops), "python", RISK_RULES)

    if result is not None:
        count = result.params + len(result.sources) + len(result.calls)
        nodes = [n for sink in result.sinks for n in sink.nodes] + result.returns
        nodes += [n for one in result.calls for call_input in one.inputs for n in call_input.nodes]
        assert all(0 <= node < count for node in nodes)
        assert FunctionSolver(result, "a.py", {}).solve().flows == FunctionSolver(result, "a.py", {}).solve().flows
