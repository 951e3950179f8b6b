"""Functions built from steps by hand, and the risks concluded about each of them alone."""

from collections.abc import Iterable, Sequence

from cleats.toolsets.code.analysis.facts import CallArgument, Chunk, DataFlowStep, Invocation
from cleats.toolsets.code.analysis.risk.function_flows import summarize_chunk
from cleats.toolsets.code.analysis.risk.linking import FunctionSolver, build_risk
from cleats.toolsets.code.analysis.risk.rules import load_rules
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary, Risk

RISK_RULES = load_rules()


def make_argument(*names: str, calls: Sequence[int] = (), text: str = "", keyword: str = "") -> CallArgument:
    return CallArgument(list(names), list(calls), text, keyword)


def make_invocation(callee: str, *arguments: CallArgument, line: int = 1) -> Invocation:
    return Invocation(callee, list(arguments), line)


def make_step(
    line: int,
    target: str = "",
    names: Iterable[str] = (),
    calls: Sequence[Invocation] = (),
    *,
    text: str = "",
    block: int = 0,
) -> DataFlowStep:
    """Make a statement whose value is its names and its last call."""
    calls = [Invocation(invocation.callee, invocation.arguments, line) for invocation in calls]
    value_calls = [len(calls) - 1] if calls else []
    return DataFlowStep(line, [target] if target else [], list(names), calls, value_calls, text, block)


def make_function(
    *steps: DataFlowStep,
    params: Sequence[str] = (),
    loops: int = 0,
    signature: str = "",
    decorators: Sequence[str] = (),
) -> Chunk:
    return Chunk(
        "function",
        "f",
        0,
        1,
        1,
        9,
        params=list(params),
        loops=loops,
        steps=list(steps),
        signature=signature,
        decorators=list(decorators),
    )


def summarize_function(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> FunctionSummary:
    chunk_summary = summarize_chunk(chunk, lang, RISK_RULES, imports)
    assert chunk_summary is not None
    return chunk_summary


def assess_risk(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> Risk:
    chunk_summary = summarize_function(chunk, lang, imports)
    return build_risk(chunk_summary, FunctionSolver(chunk_summary, "a.py", {}).solve()) or Risk()


def list_flows(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> list[str]:
    return [str(flow) for flow in assess_risk(chunk, lang, imports).flows]
