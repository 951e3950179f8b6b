"""Tests of a value do not pass it on: comparisons, conditions, lengths, numbers."""

import pytest

from tests.support.risk import link_risks, list_flows

PYTHON_SOURCE = "from flask import request\nimport os\ndef f():\n    x = {}\n    os.system('ls %s' % x)\n"
JAVASCRIPT_SOURCE = "function f(req, res) {{ const x = {}; require('child_process').exec('ls ' + x); }}"
JAVA_SOURCE = (
    "class A {{ void f(HttpServletRequest request) throws Exception {{\n"
    'var x = {}; Runtime.getRuntime().exec("ls " + x); }} }}'
)
GO_SOURCE = (
    'package main\nimport ("fmt"; "net/http"; "os/exec")\n'
    "func f(w http.ResponseWriter, r *http.Request) {{\n"
    'x := {}\nexec.Command("sh", "-c", fmt.Sprint(x)).Run()\n}}\n'
)
PHP_SOURCE = "<?php $x = {}; shell_exec('ls ' . $x);"
CSHARP_SOURCE = 'class A {{ void F() {{ var x = {}; Process.Start("ls " + x); }} }}'
RUBY_SOURCE = 'def f\n  x = {}\n  system("ls #{{x}}")\nend\n'
KOTLIN_SOURCE = 'fun f(request: HttpServletRequest) {{\n  val x = {}\n  Runtime.getRuntime().exec("ls " + x)\n}}\n'
SWIFT_SOURCE = (
    'import Foundation\nfunc f() {{\n  let a = CommandLine.arguments[1]\n  let x = {}\n  system("ls \\(x)")\n}}\n'
)
SOURCE_BY_LANGUAGE = {
    "python": PYTHON_SOURCE,
    "javascript": JAVASCRIPT_SOURCE,
    "typescript": JAVASCRIPT_SOURCE,
    "java": JAVA_SOURCE,
    "go": GO_SOURCE,
    "php": PHP_SOURCE,
    "csharp": CSHARP_SOURCE,
    "ruby": RUBY_SOURCE,
    "kotlin": KOTLIN_SOURCE,
    "swift": SWIFT_SOURCE,
}
TESTED_VALUES = {
    "python": [
        '"a" if request.args["q"] else "b"',
        'request.args["q"] == "b"',
        'not request.args["q"]',
        'len(request.args["q"])',
    ],
    "javascript": [
        'req.query.a ? "1" : "2"',
        'req.query.a === "1"',
        "+req.query.a",
        "req.query.a | 0",
        "!!req.query.a",
        "typeof req.query.a",
        "req.query.a.length",
    ],
    "typescript": ['req.query.a === "b" ? "1" : "2"', "+req.query.a"],
    "java": [
        'request.getParameter("a") != null ? "1" : "2"',
        'switch (request.getParameter("a")) { case "a" -> "1"; default -> "2"; }',
        '"a".equals(request.getParameter("a"))',
        'request.getParameter("a").length()',
    ],
    "go": ['r.FormValue("a") == "b"', 'len(r.FormValue("a"))'],
    "php": [
        "$_GET['a'] ? '1' : '2'",
        "match ($_GET['a']) { 'a' => '1', default => '2' }",
        "(int) $_GET['a']",
        "$_GET['a'] === 'b'",
        "!$_GET['a']",
        "$_GET['a'] + 0",
    ],
    "csharp": [
        'Request.Query["a"] == "1" ? "1" : "2"',
        'Request.Query["a"] switch { "a" => "1", _ => "2" }',
    ],
    "ruby": [
        'params[:a] ? "1" : "2"',
        'case params[:a] when "a" then "1" else "2" end',
        'if params[:a] == 1 then "1" else "2" end',
        'params[:a] == "b"',
    ],
    "kotlin": [
        'when (request.getParameter("a")) {\n"a" -> "1"\nelse -> "2"\n}',
        'if (request.getParameter("a") == "1") "1" else "2"',
        'request.getParameter("a") in ALLOWED',
    ],
    "swift": ['a == "1" ? "1" : "2"', "a == b"],
}
PASSED_VALUES = {
    "python": ['request.args["q"] if ok else "b"', 'request.args["q"] or "b"'],
    "javascript": [
        "req.query.length",
        'ok ? req.query.a : "2"',
        'req.query.a || "2"',
        '"x" + req.query.a',
    ],
    "typescript": ['ok ? req.query.a : "2"'],
    "java": [
        'ok ? request.getParameter("a") : "2"',
        'switch (k) { case 1 -> request.getParameter("a"); default -> "2"; }',
    ],
    "go": ['"x" + r.FormValue("a")'],
    "php": [
        "$ok ? $_GET['a'] : '2'",
        "$_GET['a'] ?: '2'",
        "$_GET['a'] ?? '2'",
        "match ($k) { 'a' => $_GET['a'], default => '2' }",
        "(string) $_GET['a']",
    ],
    "csharp": ['ok ? Request.Query["a"] : "2"', 'k switch { 1 => Request.Query["a"], _ => "2" }'],
    "ruby": ['ok ? params[:a] : "2"', 'case k when "a" then params[:a] else "2" end'],
    "kotlin": ['if (ok) request.getParameter("a") else "2"', 'request.getParameter("a") ?: "2"'],
    "swift": ['ok ? a : "2"', 'a ?? "2"'],
}


@pytest.mark.parametrize(
    ("lang", "value"), [(lang, value) for lang, values in TESTED_VALUES.items() for value in values]
)
def test_what_is_only_asked_of_a_value_is_not_the_value(lang: str, value: str) -> None:
    assert list_flows({"code": SOURCE_BY_LANGUAGE[lang].format(value)}, lang) == set()


@pytest.mark.parametrize(
    ("lang", "value"), [(lang, value) for lang, values in PASSED_VALUES.items() for value in values]
)
def test_one_of_several_values_is_the_value(lang: str, value: str) -> None:
    assert len(list_flows({"code": SOURCE_BY_LANGUAGE[lang].format(value)}, lang)) == 1


def test_an_object_that_is_sent_is_no_page() -> None:
    vulnerable = "app.get('/', (req, res) => { res.send('<b>' + req.query.name); });"
    safe = "app.get('/', (req, res) => { res.send({ name: req.query.name }); });"

    assert list_flows({"code": vulnerable}, "javascript") == {"req.query->res.send"}
    assert list_flows({"code": safe}, "javascript") == set()


def test_arguments_of_a_program_are_less_than_the_program() -> None:
    source = "const {{ spawn }} = require('child_process');\nfunction f(req) {{ spawn({}); }}\n".format
    severities = {
        argument: flow.severity
        for argument in ("req.body.name", "'ls', [req.body.name]")
        for risk in link_risks({"code": source(argument)}, "javascript").values()
        for flow in risk.flows
    }

    assert severities == {"req.body.name": "high", "'ls', [req.body.name]": "medium"}


def test_arguments_of_a_program_are_less_than_a_line_for_a_shell() -> None:
    source = (
        'package main\nimport ("net/http"; "os/exec")\n'
        "func f(w http.ResponseWriter, r *http.Request) {{ exec.Command({}).Run() }}\n"
    ).format
    severities = {
        argument: [(flow.sink, flow.severity) for risk in risk_by_function.values() for flow in risk.flows]
        for argument in ('r.FormValue("a")', '"sh", "-c", r.FormValue("a")', '"ls", r.FormValue("a")')
        for risk_by_function in [link_risks({"a.go": source(argument)}, "go")]
    }

    assert list(severities.values()) == [
        [("exec.Command", "high")],
        [("exec.Command", "high")],
        [("exec.Command.arguments", "medium")],
    ]


def test_only_what_is_written_to_a_client_is_a_page() -> None:
    source = (
        'package main\nimport ("fmt"; "io"; "os"{})\nfunc f(w {}) {{ fmt.Fprintf(w, "%s", os.Getenv("HOME")) }}\n'
    ).format

    assert list_flows({"a.go": source("", "io.Writer")}, "go") == set()
    assert list_flows({"a.go": source('; "net/http"', "http.ResponseWriter")}, "go") == {"os.Getenv->fmt.Fprintf"}
