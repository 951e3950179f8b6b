"""Values that are checked before use, and values that serve as keys of a lookup."""

from pathlib import Path

import pytest

from cleats.toolsets.code.analysis.languages.engine import parse_declarations
from cleats.toolsets.code.analysis.risk.function_flows import summarize_chunk
from cleats.toolsets.code.analysis.risk.linking import LinkableFunction, link_functions
from cleats.toolsets.code.analysis.risk.rules import load_rules
from tests.support.risk import link_risks, list_flows

PYTHON_PRELUDE = "from flask import request\nimport os\n@app.route('/')\ndef view():\n"
COMMAND_FLOW = {"request.args->os.system"}


def find_python_flows(*lines: str) -> set[str]:
    return list_flows({"a.py": PYTHON_PRELUDE + "".join(f"    {line}\n" for line in lines)}, "python")


def find_javascript_flows(*lines: str) -> set[str]:
    body = "\n".join(lines)
    return list_flows({"a.js": f"app.get('/', (req, res) => {{\n{body}\n}});"}, "javascript")


@pytest.mark.parametrize(
    "check",
    [
        "if x not in ALLOWED: abort(400)",
        "if not x in ALLOWED: return ''",
        "assert x in ('a', 'b')",
        "x = x if x in ALLOWED else 'a'",
        "if ok and x not in ALLOWED: raise ValueError(x)",
        "if x not in allowed(): abort(400)",
        "if not x.isalnum(): abort(400)",
        "if not re.fullmatch('[a-z]+', x): abort(400)",
    ],
)
def test_what_is_one_of_those_allowed_does_no_harm(check: str) -> None:
    assert find_python_flows("x = request.args['x']", "os.system(x)") == COMMAND_FLOW
    assert find_python_flows("x = request.args['x']", check, "os.system(x)") == set()


@pytest.mark.parametrize(
    "check",
    [
        "if ';' in x: abort(400)",
        "if x == 'a': log(x)",
        "if 'x' not in request.args: abort(400)",
        "if y not in ALLOWED: abort(400)",
        "if x not in request.args: abort(400)",
        "if x not in request.args['y']: abort(400)",
        "if x.startswith('ls'): pass",
        "if x.startswith(PREFIX): pass",
        "for x in [x]: pass",
    ],
)
def test_what_is_asked_about_something_else_or_among_what_a_stranger_sent_is_no_check(
    check: str,
) -> None:
    assert find_python_flows("x = request.args['x']", check, "os.system(x)") == COMMAND_FLOW


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("if (!(x in COMMANDS)) return res.end();", set()),
        ("x = x in COMMANDS ? x : 'ls';", set()),
        ("if (!('x' in req.query)) return res.end();", {"req.query->exec"}),
        ("if (!(x in req.body)) return res.end();", {"req.query->exec"}),
        ("if (x instanceof Domain) return res.end();", {"req.query->exec"}),
    ],
)
def test_javascript_asks_by_in_what_a_table_allows(check: str, expected: set[str]) -> None:
    result = find_javascript_flows("let x = req.query.x;", check, "require('child_process').exec(x);")

    assert result == expected


def test_a_check_is_forgotten_when_the_name_gets_another_value() -> None:
    lines = ("x = request.args['x']", "if x not in ALLOWED: abort()", "x = request.args['y']")

    assert find_python_flows(*lines, "os.system(x)") == COMMAND_FLOW


def test_an_element_that_is_asked_about_is_not_every_element() -> None:
    check = "if request.args['a'] not in ALLOWED: abort()"

    assert find_python_flows(check, "os.system(request.args['b'])") == COMMAND_FLOW


def test_a_member_that_is_asked_about_is_that_member_alone() -> None:
    check = "if (!ALLOWED.includes(req.query.sort)) return res.end();"
    query = "db.query('SELECT * FROM t ORDER BY ' + {});".format

    assert find_javascript_flows(check, query("req.query.sort")) == set()
    assert find_javascript_flows(check, query("req.query.other")) == {"req.query->sql.query"}


def test_a_check_of_one_handler_is_none_of_the_next() -> None:
    handler = "app.get('/', (req, res) => {{ {}eval(req.query.x); }});\n".format
    checked, unchecked = handler("if (!ALLOWED.has(req.query.x)) return; "), handler("")

    assert list_flows({"a.js": checked}, "javascript") == set()
    assert list_flows({"a.js": checked + unchecked}, "javascript") == {"req.query->eval"}


def test_a_member_of_another_object_was_not_asked_about() -> None:
    check = "if (!ALLOWED.includes(req.query.sort)) return res.end();"
    other = "req.query.x = req.body.x; req = next;"

    assert find_javascript_flows(check, "eval(req.query.sort);") == set()
    assert find_javascript_flows(check, other, "eval(req.query.sort);") == {"req.query->eval"}


def test_a_check_may_be_good_for_some_sinks_only() -> None:
    lines = ("p = os.path.realpath(request.args['x'])", "if not p.startswith(ROOT): abort()")

    assert find_python_flows(*lines, "open(p)") == set()
    assert find_python_flows(*lines, "os.system(p)") == COMMAND_FLOW


def test_a_prefix_that_is_literal_text_says_little() -> None:
    lines = ("p = request.args['x']", "if not p.startswith('http'): abort()", "open(p)")

    assert find_python_flows(*lines) == {"request.args->file.open"}


@pytest.mark.parametrize("part", ["hostname", "netloc"])
def test_who_asks_about_the_host_of_an_address_asks_about_the_address(part: str) -> None:
    lines = ("import requests", "from urllib.parse import urlparse", "x = request.args['x']")
    check = f"if urlparse(x).{part} not in HOSTS: abort()"

    assert find_python_flows(*lines, check, "requests.get(x)") == set()
    assert find_python_flows(*lines, check.replace(part, "query"), "requests.get(x)") == {"request.args->http.request"}
    assert find_python_flows(*lines, check, "os.system(x)") == COMMAND_FLOW


def test_a_key_finds_something_and_does_not_become_it() -> None:
    assert find_python_flows("os.system(TABLE.get(request.args['x']))") == set()
    assert find_python_flows("os.system(TABLE[request.args['x']])") == set()
    assert find_python_flows("os.system(TABLE.get('x', request.args['x']))") == COMMAND_FLOW
    assert find_python_flows("table = {'a': request.args['x']}", "os.system(table.get('a'))") == COMMAND_FLOW


def test_a_path_that_is_looked_up_by_name_is_still_a_path() -> None:
    source = (
        "class A {{ @GetMapping byte[] f(@RequestParam String x) throws Exception {{"
        " return Files.readAllBytes({}); }} }}"
    ).format

    assert list_flows({"A.java": source("Paths.get(x)")}, "java") == {"@RequestParam->File"}
    assert list_flows({"A.java": source("TABLE.get(x)")}, "java") == set()


def test_an_object_without_a_name_has_what_is_in_it() -> None:
    read = "(ROOT / request.args['x']).read_text()"

    assert find_python_flows(f"return {read}") == {"request.args->file.open"}
    assert find_python_flows(f"return json.loads({read})") == {"request.args->file.open"}
    assert find_python_flows("return (ROOT / request.args['x']).resolve().read_text()") == {"request.args->file.open"}
    assert find_python_flows("return (ROOT / 'a').read_text()") == set()
    assert find_python_flows("return show(request.args['x'], (ROOT / 'a').read_text())") == set()


def test_the_last_part_of_a_path_is_no_path() -> None:
    assert find_python_flows("return (ROOT / Path(request.args['x']).name).read_text()") == set()
    assert find_python_flows("return (ROOT / Path(request.args['x']).parent).read_text()") == {
        "request.args->file.open"
    }


def test_who_does_not_choose_where_an_address_begins_does_not_choose_its_host() -> None:
    fetch = ("import requests", "x = request.args['x']")
    request_flow = {"request.args->http.request"}

    for address in ("'https://a.org/' + x", "f'https://a.org/{x}'", "BASE + '/' + x"):
        assert find_python_flows(*fetch, f"requests.get({address})") == set(), address
        assert find_python_flows(*fetch, f"y = {address}", "requests.get(y)") == set(), address
        assert find_python_flows(*fetch, f"y = {address}", "z = y", "requests.get(z)") == set(), address
    for address in ("x + '/a'", "'https://' + x", "'https://' + x + '.a.org/'", "BASE", "y or x"):
        expected = set() if address == "BASE" else request_flow
        assert find_python_flows(*fetch, f"requests.get({address})") == expected, address
    assert find_python_flows(*fetch, "y = '/a/' + x", "y = x", "requests.get(y)") == request_flow
    assert find_python_flows(*fetch, "y = x", "if ok: y = BASE + x", "requests.get(y)") == request_flow


def test_what_a_value_begins_with_is_asked_where_it_is() -> None:
    text = "import requests\ndef f(request):\n    requests.get(request.args['a'] + '/' + BASE)\n"

    (flow,) = [flow for risk in link_risks({"a.py": text}, "python").values() for flow in risk.flows]

    assert (flow.source_line, flow.sink_line) == (3, 3)


def test_what_is_rendered_is_harmless_in_a_page_alone() -> None:
    assert find_python_flows("return make_response(jsonify(request.args['x']))") == set()
    assert find_python_flows("os.system(json.dumps(request.args['x']))") == COMMAND_FLOW


def test_a_more_special_rule_says_which_argument_is_asked_about() -> None:
    check = "if not re.fullmatch(x, y): abort()"

    assert find_python_flows("x = request.args['x']", check, "os.system(x)") == {
        *COMMAND_FLOW,
        "request.args->re.compile",
    }


OWN_RULES = """
languages = ["python"]

[[source]]
id = "own.ask"
name = "ask"
patterns = ["ask()"]
requires = [{ position = 0 }]

[[source]]
id = "own.parameter"
name = "handled"
parameters = ["*"]
beside = ["reply"]

[[sink]]
id = "own.harm"
name = "harm"
category = "harm"
patterns = ["harm"]
unless = ["shield"]

[[call]]
id = "own.check"
effect = "drops"
checks = [1]
cleans = ["harm"]
patterns = ["vet"]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    harm(ask('x'))\n", ["ask->harm"]),
        ("def f():\n    harm(ask())\n", []),
        ("import shield\ndef f():\n    harm(ask('x'))\n", []),
        ("def f(x, reply):\n    harm(x)\n", ["handled->harm"]),
        ("def f(x, answer):\n    harm(x)\n", []),
        ("def f():\n    x = ask('x')\n    vet(1, x)\n    harm(x)\n", []),
        ("def f():\n    x = ask('x')\n    vet(x, 1)\n    harm(x)\n", ["ask->harm"]),
        ("def f():\n    x = ask('x')\n    vet(1, x)\n    eval(x)\n", ["ask->eval"]),
    ],
)
def test_a_repository_may_say_the_same_of_its_own(text: str, expected: list[str], tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN_RULES, "utf-8")
    rules = load_rules([file])
    parsed = parse_declarations("python", "a.py", text.encode())

    linkable_functions = [
        LinkableFunction(key, "a.py", chunk.name, "python", parsed.imports, chunk.params, summary)
        for key, chunk in enumerate(parsed.chunks)
        for summary in [summarize_chunk(chunk, "python", rules, parsed.imports)]
    ]

    assert rules.problems == []
    assert [str(flow) for risk in link_functions(linkable_functions).values() for flow in risk.flows] == expected
