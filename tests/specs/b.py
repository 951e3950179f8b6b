"""Spec b: the tooling and API contract."""

ARGUMENTS = (  # noqa: SIM905 - sixty quotes would hide the names
    "query repoPath mode backend output ann top context type author import calls uses signature "
    "param decorator inferredType returnType throws reads writes mutates alias awaits risk riskTag "
    "riskSource riskSink riskCategory riskFlow branchesMin loopsMin breaksMin continuesMin "
    "churnMin chunkAuthor modifiedAfter modifiedSince visibility extends lint async generator "
    "returns branch lang case caseFile caseTokens path file ext meta metaJson"
).split()
"""The rows of §9.1."""

UPKEEP = [
    *("config_status", "report_artifacts", "cache_gc", "clean_artifacts"),
    *("build_sqlite_index", "compact_sqlite_index", "bootstrap"),
]
"""The tools of §6.5.2 that look after indexes."""

DOWNLOADS = ("download_models", "download_dictionaries", "download_extensions", "verify_extensions")
"""Tools of §6.5.2 that fetch parts, and the one that tries them."""

SENTENCES = {
    # b: versions (§3)
    "b:versions:tooling-semver": "§3.2 toolingVersion is SemVer.",
    "b:versions:schema-semver": "§3.2 schemaVersion is SemVer.",
    "b:versions:one-source": "§3.4 One constant each, used everywhere.",
    "b:semver:major-names": "§3.3 A changed tool name is MAJOR.",
    "b:semver:major-input": "§3.3 A removed, renamed or retyped field, or a default, is MAJOR.",
    "b:semver:major-envelope": "§3.3 A changed envelope field or meaning is MAJOR.",
    "b:semver:minor-additions": "§3.3 Optional additions are MINOR.",
    "b:semver:patch-editorial": "§3.3 Editorial changes are PATCH.",
    # b: envelope (§4), codes (§5)
    "b:envelope:success": "§4.2 A success is ok, result, _meta.",
    "b:envelope:error": "§4.2 An error is ok, error{code, message, details?}, _meta.",
    "b:envelope:reserved-keys": "§4.3 Nothing is merged into the top level.",
    "b:envelope:error-details": "§4.3 Additional data of a failure is inside error.details.",
    "b:envelope:meta-required": "§4.4 _meta has schemaVersion, toolingVersion and ts in UTC.",
    "b:envelope:meta-optional": "§4.4 _meta has requestId, repo, durationMs, structured warnings.",
    "b:errors:one-source": "§5.1 String codes come from one table.",
    "b:errors:runtime-codes": "§5.1 TOOL_TIMEOUT, QUEUE_OVERLOADED, UNKNOWN_TOOL are listed.",
    "b:errors:protocol-has-code": "§5.2 A protocol error has its string code in data.code.",
    "b:errors:tool-has-envelope": "§5.2 A tool error is isError with an envelope ok:false.",
    # b: MCP (§6)
    "b:mcp:json-rpc": "§6.1 The server speaks MCP over JSON-RPC 2.0.",
    "b:mcp:protocol-pin": "§6.1 Another version is answered with 2025-11-25.",
    "b:mcp:sdk": "§6.2.1 The official SDK, pinned, is a runtime dependency.",
    "b:mcp:no-own-framing": "§6.2.1 The server uses the SDK's entry points and has no framing of its own.",
    "b:mcp:one-line": "§6.2 A message is one line of JSON, ended by one LF.",
    "b:mcp:stdout-frames-only": "§6.2 stdout carries protocol messages only.",
    "b:mcp:logs-on-stderr": "§6.2 Logs go to stderr.",
    "b:legacy:opt-in": "§6.3 The legacy transport is behind an explicit flag.",
    "b:legacy:cancel": "§6.9 Legacy mode may support $/cancelRequest.",
    "b:mcp:no-fallback": "§6.3 There is no automatic fallback to the legacy transport.",
    "b:mcp:capability-block": "§6.4 capabilities.experimental.pairofcleats has both versions.",
    "b:mcp:capabilities-probed": "§6.4 Its capabilities come from one table.",
    "b:tools:one-registry": "§6.5.1 Definitions come from a single place.",
    "b:tools:list-is-whole": "§6.5.1 tools/list returns every definition.",
    "b:tools:removed-or-renamed-is-major": "§6.5.2 A removed or renamed tool is MAJOR.",
    **{f"b:tools:required:{name}": f"§6.5.2 There is `{name}`." for name in UPKEEP},
    **{f"b:tools:required:{name}": f"§6.5.2 There is `{name}`." for name in DOWNLOADS},
    "b:tools:required:index_status": "§6.5.2 There is `index_status`.",
    "b:tools:required:build_index": "§6.5.2 There is `build_index`.",
    "b:tools:required:search": "§6.5.2 There is `search`.",
    "b:tools:required:triage_ingest": "§6.5.2 There is `triage_ingest`.",
    "b:tools:required:triage_decision": "§6.5.2 There is `triage_decision`.",
    "b:tools:required:triage_context_pack": "§6.5.2 There is `triage_context_pack`.",
    "b:arguments:validated": "§6.6 Arguments are validated against the input schema.",
    "b:arguments:error": "§6.6 Failures are -32602, INVALID_REQUEST, details of violations.",
    "b:output:success": "§6.7 isError false and one text item with the envelope.",
    "b:output:structured": "§6.7 structuredContent is the same envelope.",
    "b:output:failure": "§6.7 isError true with an envelope ok:false.",
    "b:output:compact": "§6.7 The envelope is not pretty-printed.",
    "b:progress:only-with-token": "§6.8 Progress only for a request with a progressToken.",
    "b:progress:params": "§6.8 progressToken, rising progress, optional total and message.",
    "b:progress:mapping": "§6.8 Phase and message become one message string.",
    "b:progress:no-extra-fields": "§6.8 No other fields are sent.",
    "b:cancel:supported": "§6.9 notifications/cancelled aborts the execution.",
    "b:cancel:quiet": "§6.9 No progress and no answer for a cancelled request.",
    "b:overload:error": "§6.10.1 -32001; data has QUEUE_OVERLOADED, message, queue {max, size}.",
    "b:timeout:tool-error": "§6.10.2 Aborted; a tool error TOOL_TIMEOUT with timeoutMs.",
    # b: search (§9)
    "b:search:flags": "§9 Every argument of search maps to one flag of the command line.",
    "b:search:nothing-ignored": "§9 A field is mapped or reserved and refused.",
    **{f"b:search:{name}": f"§9.1 `{name}` does what its row says." for name in ARGUMENTS},
    # b: HTTP (§7)
    "b:http:envelope": "§7.1 Every JSON response is an envelope.",
    "b:http:error-envelope": "§7.1 Every error response is an envelope with ok:false and error.",
    "b:http:json-bodies": "§7.1 A POST body is JSON with its content type; 415 otherwise.",
    "b:http:health": "§7.2.1 GET /health answers uptimeMs.",
    "b:http:status": "§7.2.2 GET /status answers repo and status.",
    "b:http:status-stream": "§7.2.3 GET /status/stream: start, result or error, done; envelopes.",
    "b:http:search": "§7.2.4 POST /search answers repo and search.",
    "b:http:search-stream": "§7.2.5 POST /search/stream: start, progress, result, error, done.",
    "b:http:done-is-no-error": "§7.2.3 done is not an error carrier.",
    "b:http:400-json": "§7.3 Invalid JSON is 400 INVALID_REQUEST.",
    "b:http:400-schema": "§7.3 A schema violation is 400 INVALID_REQUEST.",
    "b:http:403-repo": "§7.3 A forbidden repository is 403 FORBIDDEN.",
    "b:http:413": "§7.3 A body too large is 413 INVALID_REQUEST.",
    "b:http:415": "§7.3 An unsupported media type is 415 INVALID_REQUEST.",
    "b:http:409-index": "§7.3 A missing index is 409 NO_INDEX.",
    "b:http:500": "§7.3 An unhandled exception is 500 INTERNAL.",
    # b: parity (§8)
    "b:parity:outputs": "§8 MCP outputs match HTTP outputs, modulo ts and durationMs.",
    # b: artifacts (§10)
    "b:artifacts:snapshot": "§10 A generated snapshot of the tool schemas is committed.",
    "b:artifacts:input-validation": "§10 The inputs of every tool are validated against its schema.",
    "b:artifacts:conformance-tests": "§10 Conformance tests of MCP and of the HTTP API are in the repository.",
}

DIVERGENCES = {
    "b:mcp:no-own-framing": (
        "Messages, versions and result shapes are the SDK's, and every line is what its stdio transport reads and "
        "writes; the byte streams below are ours, because that transport drops malformed lines and loses answers at "
        "the end of input. docs/design.md, MCP on the official SDK."
    ),
    "b:http:envelope": (
        "/openapi.json has no envelope: an OpenAPI document has its own top level, and inside an envelope no program "
        "could read it. docs/http.md, Answers."
    ),
}
"""Sentences that hold in another way than they say, with the reason and the page that explains it."""
