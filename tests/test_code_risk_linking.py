"""Flows from one function to another: which function a call means, and where a flow belongs."""

import random
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, count

import pytest

from cleats.toolsets.code.risk import linking, solving
from cleats.toolsets.code.risk.linking import Linkable, link, relink
from cleats.toolsets.code.risk.links import Links
from cleats.toolsets.code.risk.resolution import Directory, Function, parameter
from cleats.toolsets.code.risk.summary import Call, Input, Risk, Sink, Source, Summary
from tests.risk_world import flows, functions, risks

VIEW = (
    "from flask import request\nfrom tools import run\n\ndef view():\n    run(request.args['x'])\n"
)
RUN = "import os\n\ndef run(command):\n    os.system(command)\n"


def found(
    caller: Function, callee: str, *others: Function, count: int = 1
) -> tuple[str, str] | None:
    functions = [caller, *others]
    number = Directory(functions).find(0, callee, count)
    return None if number is None else (functions[number].path, functions[number].name)


def one(path: str, name: str, *imports: str, lang: str = "python", params: str = "a") -> Function:
    return Function(path, name, lang, imports, params.split())


def test_a_flow_belongs_to_the_function_where_the_value_enters_the_call() -> None:
    concluded = risks({"views.py": VIEW, "tools.py": RUN}, "python")

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

    concluded = risks({"a.py": text}, "python")

    (flow,) = concluded["a.py:main"].flows
    assert (flow.via, flow.source_line, flow.sink_line) == (["wanted", "act"], 6, 8)
    assert [risk.flows for key, risk in concluded.items() if key != "a.py:main"] == [[], []]


def test_a_sanitizer_between_two_functions_cleans() -> None:
    safe = VIEW.replace("run(request.args['x'])", "run(shlex.quote(request.args['x']))")
    quoted = RUN.replace("os.system(command)", "os.system(shlex.quote(command))")

    assert flows({"views.py": safe, "tools.py": RUN}, "python") == set()
    assert flows({"views.py": VIEW, "tools.py": quoted}, "python") == set()


def test_a_chain_of_calls_is_followed_and_named() -> None:
    steps = [f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(4)]
    text = "import os\ndef start():\n    f0(input())\n" + "".join(steps)

    concluded = risks({"a.py": text + "def f4(x):\n    os.system(x)\n"}, "python")

    (flow,) = concluded["a.py:start"].flows
    assert flow.via == ["f0", "f1", "f2", "f3", "f4"]


def test_a_chain_beyond_the_limit_is_not_believed_and_said() -> None:
    steps = [f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(9)]
    text = "import os\ndef start():\n    f0(input())\n" + "".join(steps)

    concluded = risks({"a.py": text + "def f9(x):\n    os.system(x)\n"}, "python")

    assert all(not risk.flows for risk in concluded.values())
    assert concluded["a.py:start"].sources == ["stdin"]


def test_recursion_ends() -> None:
    text = (
        "import os\n"
        "def even(x):\n    odd(x)\n    return odd(x)\n"
        "def odd(x):\n    os.system(x)\n    return even(x)\n"
        "def main():\n    even(input())\n"
    )

    concluded = risks({"a.py": text}, "python")

    assert [flow.via for flow in concluded["a.py:main"].flows] == [["even", "odd"]]


def test_arguments_go_to_the_parameters_they_are_meant_for() -> None:
    text = "import os\ndef run(quiet, command):\n    os.system(command)\ndef main():\n    {}\n"

    assert flows({"a.py": text.format("run(input(), 'ls')")}, "python") == set()
    assert flows({"a.py": text.format("run(1, input())")}, "python") == {"stdin->os.system"}
    assert flows({"a.py": text.format("run(command=input(), quiet=1)")}, "python") == {
        "stdin->os.system"
    }
    assert flows({"a.py": text.format("run(quiet=input(), command='ls')")}, "python") == set()


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
def test_an_argument_becomes_a_parameter(
    params: list[str], position: int, keyword: str, expected: int | None
) -> None:
    assert parameter(params, position, keyword) == expected


def test_the_same_file_comes_first() -> None:
    near, far = one("a.py", "run"), one("b.py", "run")

    assert found(one("a.py", "main", "b"), "run", near, far) == ("a.py", "run")


def test_what_is_imported_comes_next() -> None:
    wanted, other = one("pkg/b.py", "run"), one("pkg/c.py", "run")

    for imports in ("pkg.b", "pkg.b.run", ".b"):
        caller = one("pkg/a.py", "main", imports)
        assert found(caller, "run", wanted, other) == ("pkg/b.py", "run")


def test_what_a_package_hands_on_is_found_in_it() -> None:
    wanted, other = one("pkg/impl.py", "run"), one("other/impl.py", "run")

    assert found(one("main.py", "main", "pkg"), "run", wanted, other) == ("pkg/impl.py", "run")


def test_relative_imports_of_javascript_are_followed() -> None:
    wanted = one("src/lib/store.ts", "save", lang="typescript")
    other = one("src/other.js", "save", lang="javascript")
    index = one("src/db/index.js", "save", lang="javascript")

    caller = one("src/app/main.js", "main", "../lib/store", lang="javascript")
    assert found(caller, "save", wanted, other) == ("src/lib/store.ts", "save")
    caller = one("src/app/main.js", "main", "../db", lang="javascript")
    assert found(caller, "save", other, index) == ("src/db/index.js", "save")


def test_a_short_name_stands_for_a_module_that_is_imported() -> None:
    wanted = one("src/services/user.service.js", "findUser", lang="javascript")
    other = one("src/services/order.service.js", "findUser", lang="javascript")
    caller = one("src/app/main.js", "main", "../services/user.service", lang="javascript")

    for name in ("user", "userService", "userSvc", "svc"):
        expected = ("src/services/user.service.js", "findUser")
        assert found(caller, f"{name}.findUser", wanted, other) == expected, name
    for name in ("orders", "this.user", "client"):
        assert found(caller, f"{name}.findUser", wanted, other) is None, name
    stranger = one("src/app/main.js", "main", "../services/order", lang="javascript")
    assert found(stranger, "user.findUser", wanted) is None


def test_a_plain_name_that_is_not_imported_is_not_ours() -> None:
    assert found(one("a.py", "main", "subprocess"), "run", one("b.py", "run")) is None


def test_two_that_fit_equally_are_none() -> None:
    pair = one("b.go", "run", lang="go"), one("b.go", "run", lang="go")

    assert found(one("a.go", "main", lang="go"), "run", *pair) is None


def test_a_package_of_go_is_a_folder() -> None:
    near = one("store/save.go", "Save", lang="go")
    far = one("cache/save.go", "Save", lang="go")

    assert found(one("store/main.go", "Run", lang="go"), "Save", near, far) == (
        "store/save.go",
        "Save",
    )
    caller = one("main.go", "main", "example.org/app/cache", lang="go")
    assert found(caller, "cache.Save", near, far) == ("cache/save.go", "Save")


def test_a_method_of_the_same_class_comes_before_others() -> None:
    own, other = one("a.py", "A.save", params="self x"), one("a.py", "B.save", params="self x")

    assert found(one("a.py", "A.run"), "self.save", own, other) == ("a.py", "A.save")


def test_an_inherited_method_is_found_when_there_is_only_one() -> None:
    assert found(one("a.py", "A.run"), "self.save_all", one("b.py", "Base.save_all")) == (
        "b.py",
        "Base.save_all",
    )


def test_an_object_named_after_its_class_says_whose_method_it_is() -> None:
    store, cache = one("s.java", "UserStore.save"), one("c.java", "Cache.save")

    assert found(one("a.java", "A.run"), "this.userStore.save", store, cache) == (
        "s.java",
        "UserStore.save",
    )


def test_an_unknown_object_is_recognised_by_a_name_that_says_something() -> None:
    caller = one("a.py", "main")

    assert found(caller, "x.save_order", one("b.py", "B.save_order")) == ("b.py", "B.save_order")
    assert found(caller, "x.run", one("b.py", "B.run")) is None
    assert found(caller, "x.save_order", one("b.py", "B.save_order"), count=3) is None
    assert found(caller, "x.save_order", one("b.py", "save_order")) is None


def test_a_plain_call_is_to_the_class_only_where_the_language_says_so() -> None:
    for lang, expected in [("java", ("a", "A.save")), ("python", None)]:
        caller = one("a", "A.run", lang=lang)
        assert found(caller, "save", one("a", "A.save", lang=lang)) == expected


def test_a_nested_function_is_seen_from_the_one_around_it() -> None:
    assert found(one("a.py", "f"), "g", one("a.py", "f.g")) == ("a.py", "f.g")
    assert found(one("a.py", "f.h"), "g", one("a.py", "f.g"), one("a.py", "f")) == (
        "a.py",
        "f.g",
    )


def test_making_an_object_calls_its_constructor() -> None:
    made = one("b.py", "Job.__init__", params="self command")

    assert found(one("a.py", "main", "b"), "Job", made) == ("b.py", "Job.__init__")
    java = one("J.java", "Job.Job", lang="java")
    assert found(one("A.java", "A.main", lang="java"), "new Job", java) == ("J.java", "Job.Job")


def test_languages_are_kept_apart_but_families_are_not() -> None:
    caller = one("a.ts", "main", "./b", lang="typescript")

    assert found(caller, "run", one("b.py", "run")) is None
    assert found(caller, "run", one("b.js", "run", lang="javascript")) == ("b.js", "run")


def test_a_name_that_many_have_is_not_searched() -> None:
    many = [one(f"{n}.go", "run", lang="go") for n in range(40)]

    assert found(one("x/a.go", "main", lang="go"), "run", *many) is None
    assert found(one("3.go", "main", lang="go"), "run", *many) == ("3.go", "run")


def test_a_method_of_ones_own_is_looked_up_even_if_everybody_has_one_of_that_name() -> None:
    text = (
        "import os\nclass Jobs:\n"
        "    def run(self):\n        self.append(input())\n"
        "    def append(self, job):\n        os.system(job)\n"
    )

    assert flows({"a.py": text}, "python") == {"stdin->os.system"}


def test_what_is_not_known_is_taken_to_pass_values_on() -> None:
    text = "import os, lib\ndef main():\n    os.system(lib.change(input()))\n"

    assert flows({"a.py": text}, "python") == {"stdin->os.system"}


FILES: Mapping[str, str] = {
    "app/views.py": VIEW.replace("tools", "app.tools"),
    "app/tools.py": RUN + "\ndef other(x):\n    return run(x)\n",
    "app/more.py": "from app.tools import other\n\ndef more():\n    return other(input())\n",
    "b.py": "from app.more import more\n\ndef go():\n    eval(more())\n    eval(input())\n",
}


def by_name(known: list[Linkable], concluded: dict[int, Risk]) -> dict[str, Risk]:
    names = {each.key: f"{each.path}:{each.name}" for each in known}
    return {names[key]: risk for key, risk in concluded.items()}


def test_neither_order_nor_keys_change_the_answer() -> None:
    known = functions(FILES, "python")
    expected = by_name(known, link(known))
    assert sum(len(risk.flows) for risk in expected.values()) >= 3

    for seed in range(5):
        mixed = list(known)
        random.Random(seed).shuffle(mixed)
        mixed = [each._replace(key=1000 - n) for n, each in enumerate(mixed)]
        assert by_name(mixed, link(mixed)) == expected


def node(name: str, *, sources: int = 0, sinks: int = 0) -> Linkable:
    summary = Summary(
        sources=[Source(f"s{n}", "input", [], 0.5, n) for n in range(sources)],
        sinks=[
            Sink(f"k{n}", "sql", [], "high", 0.5, n, list(range(sources))) for n in range(sinks)
        ],
    )
    return Linkable(1, "a.py", name, "python", [], [], summary)


def test_flows_beyond_the_limit_are_cut_and_said() -> None:
    (risk,) = link([node("f", sources=20, sinks=20)]).values()

    assert len(risk.flows) == solving.MOST_FLOWS
    assert risk.capped
    assert risk.flows == sorted(risk.flows, key=lambda flow: (flow.source_line, flow.sink_line))


def test_rounds_beyond_the_limit_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "_ROUNDS", 1)

    concluded = risks({"views.py": VIEW, "tools.py": RUN}, "python")

    assert concluded["views.py:view"].capped


def test_a_value_that_comes_back_in_a_loop_is_followed() -> None:
    summary = Summary(
        params=0,
        sources=[Source("s", "input", [], 0.5, 1)],
        sinks=[Sink("k", "sql", [], "high", 0.5, 9, [3])],
        calls=[
            Call("a", 2, 1, [Input(0, [2])]),
            Call("b", 3, 1, [Input(0, [3, 0])]),
            Call("c", 4, 1, [Input(0, [1])]),
        ],
    )

    assert [str(flow) for flow in solving.solve(summary, "a.py", {}).flows] == ["s->k"]


# What is known between builds


def invented(chance: random.Random, path: str, keys: Iterator[int]) -> list[Linkable]:
    """A file of functions that take, pass, lose and misuse values."""
    names = ["take", "give", "run", "Store.save", "Store.__init__", "Store", "helper.inner", "main"]
    made = []
    for name in chance.sample(names, chance.randrange(1, 6)):
        calls = [
            Call(
                chance.choice(["take", "give", "run", "self.save", "Store", "store.save", "main"]),
                line=1,
                count=1,
                inputs=[Input(0, [chance.randrange(2)])],
            )
            for _ in range(chance.randrange(4))
        ]
        sources = [Source("input", "in", [], 0.9, chance.randrange(9))] * chance.randrange(2)
        nodes = [chance.randrange(1 + len(sources) + len(calls))]
        sinks = [Sink("eval", "out", [], "high", 0.9, 1, nodes)] * (chance.random() < 0.4)
        summary = Summary(1, sources, sinks, [], calls, nodes, is_callable=name != "Store")
        imports = chance.sample(["a", "b", "c.d"], chance.randrange(3))
        made.append(Linkable(next(keys), path, name, "python", imports, ["x"], summary))
    return made


def given(summaries: Mapping[int, Summary | None], _: object) -> Mapping[int, Summary | None]:
    return summaries


@pytest.mark.parametrize("seed", range(40))
def test_what_follows_from_a_change_is_what_follows_from_everything(seed: int) -> None:
    chance = random.Random(seed)
    keys = count()
    files = {path: invented(chance, path, keys) for path in ("a.py", "b.py", "c/d.py", "e.py")}
    links = Links()
    concluded: dict[int, Risk | None] = {}
    touched = list(files)
    for _ in range(6):
        summaries = {one.key: one.summary for one in chain.from_iterable(files.values())}
        come = list(chain.from_iterable(files.get(path, ()) for path in touched))

        links = Links.load(links.save()) or Links()
        concluded |= relink(links, touched, come, partial(given, summaries))

        now = {key: risk for key, risk in concluded.items() if risk and key in summaries}
        assert now == link(chain.from_iterable(files.values()))
        touched = chance.sample(["a.py", "b.py", "c/d.py", "e.py"], chance.randrange(1, 3))
        for path in touched:
            files.pop(path, None)
            if chance.random() < 0.8:
                files[path] = invented(chance, path, keys)


def test_a_change_concerns_only_what_calls_lead_to_it_from() -> None:
    chain_of = "def {0}(x):\n    return {1}(x)\n"
    texts = {"a.py": chain_of.format("first", "second"), "b.py": chain_of.format("third", "fourth")}
    known = functions(texts, "python")
    links = Links()
    summaries = {one.key: one.summary for one in known}
    relink(links, (), known, lambda _: summaries)

    again = [one for one in known if one.path == "b.py"]
    found = relink(links, ["b.py"], again, lambda _: summaries)

    assert set(found) == {one.key for one in again}


@pytest.mark.parametrize("saved", [b"", b"\x00", Links().save()[:-1], b"\x92\x63\x80"])
def test_links_that_are_damaged_or_of_another_version_are_not_used(saved: bytes) -> None:
    assert Links.load(saved) is None
