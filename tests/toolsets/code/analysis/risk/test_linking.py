"""Flows between functions: the function that a call refers to, and the owner of a flow."""

import random
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, count

import pytest

from cleats.toolsets.code.analysis.risk import linking
from cleats.toolsets.code.analysis.risk.call_graph import CallGraph
from cleats.toolsets.code.analysis.risk.call_resolution import Function, FunctionDirectory, find_parameter
from cleats.toolsets.code.analysis.risk.linking import LinkableFunction, link_functions, update_links
from cleats.toolsets.code.analysis.risk.summary import CallInput, CallNode, FunctionSummary, Risk, RiskSink, RiskSource
from tests.support.risk import extract_functions, link_risks, list_flows

VIEW_SOURCE = "from flask import request\nfrom tools import run\n\ndef view():\n    run(request.args['x'])\n"
RUN_SOURCE = "import os\n\ndef run(command):\n    os.system(command)\n"


def find_callee(caller: Function, callee: str, *other_functions: Function, count: int = 1) -> tuple[str, str] | None:
    functions = [caller, *other_functions]
    number = FunctionDirectory(dict(enumerate(functions))).find(0, callee, count)
    return None if number is None else (functions[number].path, functions[number].name)


def make_function(path: str, name: str, *imports: str, lang: str = "python", params: str = "a") -> Function:
    return Function(path, name, lang, imports, params.split())


def test_a_flow_belongs_to_the_function_where_the_value_enters_the_call() -> None:
    concluded = link_risks({"views.py": VIEW_SOURCE, "tools.py": RUN_SOURCE}, "python")

    assert not any(risk.capped for risk in concluded.values())
    (flow,) = concluded["views.py:view"].flows
    assert str(flow) == "request.args->os.system"
    assert (flow.via, flow.sink_path, flow.sink_line) == (["run"], "tools.py", 4)
    assert (flow.source_path, flow.source_line) == ("", 5)
    assert flow.confidence == round((0.9 * 0.9 + 0.1) * 0.9, 2)
    assert concluded["views.py:view"].sinks == ["os.system"]
    assert concluded["views.py:view"].severity == "high"
    assert concluded["tools.py:run"].flows == []
    assert concluded["tools.py:run"].sinks == ["os.system"]


def test_a_flow_between_two_helpers_belongs_to_the_function_that_calls_both() -> None:
    text = (
        "import os\nfrom flask import request\n"
        "def main():\n    act(wanted())\n"
        "def wanted():\n    return request.args['x']\n"
        "def act(command):\n    os.system(command)\n"
    )

    concluded = link_risks({"a.py": text}, "python")

    (flow,) = concluded["a.py:main"].flows
    assert (flow.via, flow.source_line, flow.sink_line) == (["wanted", "act"], 6, 8)
    assert [risk.flows for key, risk in concluded.items() if key != "a.py:main"] == [[], []]


def test_a_sanitizer_between_two_functions_cleans() -> None:
    safe = VIEW_SOURCE.replace("run(request.args['x'])", "run(shlex.quote(request.args['x']))")
    quoted = RUN_SOURCE.replace("os.system(command)", "os.system(shlex.quote(command))")

    assert list_flows({"views.py": safe, "tools.py": RUN_SOURCE}, "python") == set()
    assert list_flows({"views.py": VIEW_SOURCE, "tools.py": quoted}, "python") == set()


def test_a_chain_of_calls_is_followed_and_named() -> None:
    steps = [f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(4)]
    text = "import os\ndef start():\n    f0(input())\n" + "".join(steps)

    concluded = link_risks({"a.py": text + "def f4(x):\n    os.system(x)\n"}, "python")

    (flow,) = concluded["a.py:start"].flows
    assert flow.via == ["f0", "f1", "f2", "f3", "f4"]


def test_a_chain_beyond_the_limit_is_not_believed_and_said() -> None:
    steps = [f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(9)]
    text = "import os\ndef start():\n    f0(input())\n" + "".join(steps)

    concluded = link_risks({"a.py": text + "def f9(x):\n    os.system(x)\n"}, "python")

    assert all(not risk.flows for risk in concluded.values())
    assert concluded["a.py:start"].sources == ["stdin"]


def test_recursion_ends() -> None:
    text = (
        "import os\n"
        "def even(x):\n    odd(x)\n    return odd(x)\n"
        "def odd(x):\n    os.system(x)\n    return even(x)\n"
        "def main():\n    even(input())\n"
    )

    concluded = link_risks({"a.py": text}, "python")

    assert [flow.via for flow in concluded["a.py:main"].flows] == [["even", "odd"]]


def test_arguments_go_to_the_parameters_they_are_meant_for() -> None:
    text = "import os\ndef run(quiet, command):\n    os.system(command)\ndef main():\n    {}\n"

    assert list_flows({"a.py": text.format("run(input(), 'ls')")}, "python") == set()
    assert list_flows({"a.py": text.format("run(1, input())")}, "python") == {"stdin->os.system"}
    assert list_flows({"a.py": text.format("run(command=input(), quiet=1)")}, "python") == {"stdin->os.system"}
    assert list_flows({"a.py": text.format("run(quiet=input(), command='ls')")}, "python") == set()


@pytest.mark.parametrize(
    ("params", "position", "keyword", "expected"),
    [
        (["a", "b"], 1, "", 1),
        (["self", "a"], 0, "", 1),
        (["a"], 3, "", None),
        (["a", "*rest"], 3, "", 1),
        (["a", "...rest"], 3, "", 1),
        (["a", "b"], 0, "b", 1),
        (["a", "**more"], 0, "b", 1),
        (["a", "c"], 0, "b", None),
        (["props"], 0, "b", 0),
        (["self", "a"], -1, "", None),
    ],
)
def test_an_argument_becomes_a_parameter(params: list[str], position: int, keyword: str, expected: int | None) -> None:
    assert find_parameter(params, position, keyword) == expected


def test_the_same_file_comes_first() -> None:
    near, far = make_function("a.py", "run"), make_function("b.py", "run")

    assert find_callee(make_function("a.py", "main", "b"), "run", near, far) == ("a.py", "run")


def test_what_is_imported_comes_next() -> None:
    expected_function, other = make_function("pkg/b.py", "run"), make_function("pkg/c.py", "run")

    for imports in ("pkg.b", "pkg.b.run", ".b"):
        caller = make_function("pkg/a.py", "main", imports)
        assert find_callee(caller, "run", expected_function, other) == ("pkg/b.py", "run")


def test_what_a_package_hands_on_is_found_in_it() -> None:
    expected_function, other = make_function("pkg/impl.py", "run"), make_function("other/impl.py", "run")

    assert find_callee(make_function("main.py", "main", "pkg"), "run", expected_function, other) == (
        "pkg/impl.py",
        "run",
    )


def test_relative_imports_of_javascript_are_followed() -> None:
    expected_function = make_function("src/lib/store.ts", "save", lang="typescript")
    other = make_function("src/other.js", "save", lang="javascript")
    index = make_function("src/db/index.js", "save", lang="javascript")

    caller = make_function("src/app/main.js", "main", "../lib/store", lang="javascript")
    assert find_callee(caller, "save", expected_function, other) == ("src/lib/store.ts", "save")
    caller = make_function("src/app/main.js", "main", "../db", lang="javascript")
    assert find_callee(caller, "save", other, index) == ("src/db/index.js", "save")


def test_a_short_name_stands_for_a_module_that_is_imported() -> None:
    service_function = make_function("src/services/user.service.js", "findUser", lang="javascript")
    other = make_function("src/services/order.service.js", "findUser", lang="javascript")
    caller = make_function("src/app/main.js", "main", "../services/user.service", lang="javascript")

    for name in ("user", "userService", "userSvc", "svc"):
        expected = ("src/services/user.service.js", "findUser")
        assert find_callee(caller, f"{name}.findUser", service_function, other) == expected, name
    for name in ("orders", "this.user", "client"):
        assert find_callee(caller, f"{name}.findUser", service_function, other) is None, name
    stranger = make_function("src/app/main.js", "main", "../services/order", lang="javascript")
    assert find_callee(stranger, "user.findUser", service_function) is None


def test_a_plain_name_that_is_not_imported_is_not_ours() -> None:
    assert find_callee(make_function("a.py", "main", "subprocess"), "run", make_function("b.py", "run")) is None


def test_two_that_fit_equally_are_none() -> None:
    pair = make_function("b.go", "run", lang="go"), make_function("b.go", "run", lang="go")

    assert find_callee(make_function("a.go", "main", lang="go"), "run", *pair) is None


def test_a_package_of_go_is_a_folder() -> None:
    near = make_function("store/save.go", "Save", lang="go")
    far = make_function("cache/save.go", "Save", lang="go")

    assert find_callee(make_function("store/main.go", "Run", lang="go"), "Save", near, far) == (
        "store/save.go",
        "Save",
    )
    caller = make_function("main.go", "main", "example.org/app/cache", lang="go")
    assert find_callee(caller, "cache.Save", near, far) == ("cache/save.go", "Save")


def test_a_method_of_the_same_class_comes_before_others() -> None:
    own_method, other = (
        make_function("a.py", "A.save", params="self x"),
        make_function("a.py", "B.save", params="self x"),
    )

    assert find_callee(make_function("a.py", "A.run"), "self.save", own_method, other) == ("a.py", "A.save")


def test_an_inherited_method_is_found_when_there_is_only_one() -> None:
    assert find_callee(make_function("a.py", "A.run"), "self.save_all", make_function("b.py", "Base.save_all")) == (
        "b.py",
        "Base.save_all",
    )


def test_an_object_named_after_its_class_says_whose_method_it_is() -> None:
    store, cache = make_function("s.java", "UserStore.save"), make_function("c.java", "Cache.save")

    assert find_callee(make_function("a.java", "A.run"), "this.userStore.save", store, cache) == (
        "s.java",
        "UserStore.save",
    )


def test_an_unknown_object_is_recognised_by_a_name_that_says_something() -> None:
    caller = make_function("a.py", "main")

    assert find_callee(caller, "x.save_order", make_function("b.py", "B.save_order")) == ("b.py", "B.save_order")
    assert find_callee(caller, "x.run", make_function("b.py", "B.run")) is None
    assert find_callee(caller, "x.save_order", make_function("b.py", "B.save_order"), count=3) is None
    assert find_callee(caller, "x.save_order", make_function("b.py", "save_order")) is None


def test_a_plain_call_is_to_the_class_only_where_the_language_says_so() -> None:
    for lang, expected in [("java", ("a", "A.save")), ("python", None)]:
        caller = make_function("a", "A.run", lang=lang)
        assert find_callee(caller, "save", make_function("a", "A.save", lang=lang)) == expected


def test_a_nested_function_is_seen_from_the_one_around_it() -> None:
    assert find_callee(make_function("a.py", "f"), "g", make_function("a.py", "f.g")) == ("a.py", "f.g")
    assert find_callee(make_function("a.py", "f.h"), "g", make_function("a.py", "f.g"), make_function("a.py", "f")) == (
        "a.py",
        "f.g",
    )


def test_making_an_object_calls_its_constructor() -> None:
    constructor = make_function("b.py", "Job.__init__", params="self command")

    assert find_callee(make_function("a.py", "main", "b"), "Job", constructor) == ("b.py", "Job.__init__")
    java = make_function("J.java", "Job.Job", lang="java")
    assert find_callee(make_function("A.java", "A.main", lang="java"), "new Job", java) == ("J.java", "Job.Job")


def test_languages_are_kept_apart_but_families_are_not() -> None:
    caller = make_function("a.ts", "main", "./b", lang="typescript")

    assert find_callee(caller, "run", make_function("b.py", "run")) is None
    assert find_callee(caller, "run", make_function("b.js", "run", lang="javascript")) == ("b.js", "run")


def test_a_name_that_many_have_is_not_searched() -> None:
    namesakes = [make_function(f"{n}.go", "run", lang="go") for n in range(40)]

    assert find_callee(make_function("x/a.go", "main", lang="go"), "run", *namesakes) is None
    assert find_callee(make_function("3.go", "main", lang="go"), "run", *namesakes) == ("3.go", "run")


def test_a_method_of_ones_own_is_looked_up_even_if_everybody_has_one_of_that_name() -> None:
    text = (
        "import os\nclass Jobs:\n"
        "    def run(self):\n        self.append(input())\n"
        "    def append(self, job):\n        os.system(job)\n"
    )

    assert list_flows({"a.py": text}, "python") == {"stdin->os.system"}


def test_what_is_not_known_is_taken_to_pass_values_on() -> None:
    text = "import os, lib\ndef main():\n    os.system(lib.change(input()))\n"

    assert list_flows({"a.py": text}, "python") == {"stdin->os.system"}


SOURCE_BY_PATH: Mapping[str, str] = {
    "app/views.py": VIEW_SOURCE.replace("tools", "app.tools"),
    "app/tools.py": RUN_SOURCE + "\ndef other(x):\n    return run(x)\n",
    "app/more.py": "from app.tools import other\n\ndef more():\n    return other(input())\n",
    "b.py": "from app.more import more\n\ndef go():\n    eval(more())\n    eval(input())\n",
}


def key_by_name(linkables: list[LinkableFunction], risk_by_key: dict[int, Risk]) -> dict[str, Risk]:
    names = {linkable.key: f"{linkable.path}:{linkable.name}" for linkable in linkables}
    return {names[key]: risk for key, risk in risk_by_key.items()}


def test_neither_order_nor_keys_change_the_answer() -> None:
    linkables = extract_functions(SOURCE_BY_PATH, "python")
    expected = key_by_name(linkables, link_functions(linkables))
    assert sum(len(risk.flows) for risk in expected.values()) >= 3

    for seed in range(5):
        mixed = list(linkables)
        random.Random(seed).shuffle(mixed)
        mixed = [linkable._replace(key=1000 - n) for n, linkable in enumerate(mixed)]
        assert key_by_name(mixed, link_functions(mixed)) == expected


def make_node(name: str, *, sources: int = 0, sinks: int = 0) -> LinkableFunction:
    summary = FunctionSummary(
        sources=[RiskSource(f"s{n}", "input", [], 0.5, n) for n in range(sources)],
        sinks=[RiskSink(f"k{n}", "sql", [], "high", 0.5, n, list(range(sources))) for n in range(sinks)],
    )
    return LinkableFunction(1, "a.py", name, "python", [], [], summary)


def test_flows_beyond_the_limit_are_cut_and_said() -> None:
    (risk,) = link_functions([make_node("f", sources=20, sinks=20)]).values()

    assert len(risk.flows) == linking.MAX_FUNCTION_FLOWS
    assert risk.capped
    assert risk.flows == sorted(risk.flows, key=lambda flow: (flow.source_line, flow.sink_line))


def test_rounds_beyond_the_limit_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "_MAX_ROUNDS", 1)

    concluded = link_risks({"views.py": VIEW_SOURCE, "tools.py": RUN_SOURCE}, "python")

    assert concluded["views.py:view"].capped


def test_a_value_that_comes_back_in_a_loop_is_followed() -> None:
    summary = FunctionSummary(
        params=0,
        sources=[RiskSource("s", "input", [], 0.5, 1)],
        sinks=[RiskSink("k", "sql", [], "high", 0.5, 9, [3])],
        calls=[
            CallNode("a", 2, 1, [CallInput(0, [2])]),
            CallNode("b", 3, 1, [CallInput(0, [3, 0])]),
            CallNode("c", 4, 1, [CallInput(0, [1])]),
        ],
    )

    assert [str(flow) for flow in linking.FunctionSolver(summary, "a.py", {}).solve().flows] == ["s->k"]


# What is known between builds


def invent_functions(rng: random.Random, path: str, keys: Iterator[int]) -> list[LinkableFunction]:
    """Return a file of functions that take, pass, lose and misuse values."""
    names = ["take", "give", "run", "Store.save", "Store.__init__", "Store", "helper.inner", "main"]
    linkables = []
    for name in rng.sample(names, rng.randrange(1, 6)):
        calls = [
            CallNode(
                rng.choice(["take", "give", "run", "self.save", "Store", "store.save", "main"]),
                line=1,
                count=1,
                inputs=[CallInput(0, [rng.randrange(2)])],
            )
            for _ in range(rng.randrange(4))
        ]
        sources = [RiskSource("input", "in", [], 0.9, rng.randrange(9))] * rng.randrange(2)
        nodes = [rng.randrange(1 + len(sources) + len(calls))]
        sinks = [RiskSink("eval", "out", [], "high", 0.9, 1, nodes)] * (rng.random() < 0.4)
        summary = FunctionSummary(1, sources, sinks, [], calls, nodes, is_callable=name != "Store")
        imports = rng.sample(["a", "b", "c.d"], rng.randrange(3))
        linkables.append(LinkableFunction(next(keys), path, name, "python", imports, ["x"], summary))
    return linkables


def keep_summaries(summaries: Mapping[int, FunctionSummary | None], _: object) -> Mapping[int, FunctionSummary | None]:
    return summaries


@pytest.mark.parametrize("seed", range(40))
def test_what_follows_from_a_change_is_what_follows_from_everything(seed: int) -> None:
    rng = random.Random(seed)
    keys = count()
    files = {path: invent_functions(rng, path, keys) for path in ("a.py", "b.py", "c/d.py", "e.py")}
    links = CallGraph()
    concluded: dict[int, Risk | None] = {}
    touched = list(files)
    for _ in range(6):
        summaries = {one.key: one.summary for one in chain.from_iterable(files.values())}
        come = list(chain.from_iterable(files.get(path, ()) for path in touched))

        links = CallGraph.load(links.save()) or CallGraph()
        concluded |= update_links(links, touched, come, partial(keep_summaries, summaries))

        now = {key: risk for key, risk in concluded.items() if risk and key in summaries}
        assert now == link_functions(chain.from_iterable(files.values()))
        touched = rng.sample(["a.py", "b.py", "c/d.py", "e.py"], rng.randrange(1, 3))
        for path in touched:
            files.pop(path, None)
            if rng.random() < 0.8:
                files[path] = invent_functions(rng, path, keys)


def test_a_change_concerns_only_what_calls_lead_to_it_from() -> None:
    chain_of = "def {0}(x):\n    return {1}(x)\n"
    texts = {"a.py": chain_of.format("first", "second"), "b.py": chain_of.format("third", "fourth")}
    linkables = extract_functions(texts, "python")
    links = CallGraph()
    summaries = {one.key: one.summary for one in linkables}
    update_links(links, (), linkables, lambda _: summaries)

    changed = [one for one in linkables if one.path == "b.py"]
    risk_by_key = update_links(links, ["b.py"], changed, lambda _: summaries)

    assert set(risk_by_key) == {one.key for one in changed}


@pytest.mark.parametrize("saved", [b"", b"\x00", CallGraph().save()[:-1], b"\x92\x63\x80"])
def test_links_that_are_damaged_or_of_another_version_are_not_used(saved: bytes) -> None:
    assert CallGraph.load(saved) is None
