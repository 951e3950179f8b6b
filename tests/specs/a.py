"""Spec a: tool-schema stability, and how process trees end."""

SPEC_CODES = {
    *(
        "INVALID_REQUEST",
        "NOT_FOUND",
        "NO_INDEX",
        "CAPABILITY_MISSING",
        "QUEUE_OVERLOADED",
        "TOOL_TIMEOUT",
        "CANCELLED",
    ),
    *("INTERNAL", "UNAUTHORIZED", "FORBIDDEN", "DOWNLOAD_VERIFY_FAILED", "ARCHIVE_UNSAFE", "ARCHIVE_TOO_LARGE"),
    "UNKNOWN_TOOL",  # b §5.1
    # e
    *(
        "INVALID_INPUT",
        "SCHEMA_VALIDATION_FAILED",
        "INVALID_URL",
        "UNSUPPORTED_SITE",
        "REPO_NOT_FOUND",
        "RUN_NOT_FOUND",
    ),
    *("ILLEGAL_STATE", "TOOLCHAIN_MISSING", "GATE_FAILED", "FIX_EXHAUSTED", "ALLOWED_PATHS_VIOLATION"),
    "COMMIT_SERVICE_ERROR",
}
"""The error codes that a specification has: a §6 and those of b and e."""

SENTENCES = {
    # a, part 1: versions (§2)
    "a:definition:fields": "§2.1 A definition has name, description, inputSchema, schemaVersion.",
    "a:definition:tooling-version": "§2.1 A definition should have a toolingVersion.",
    "a:definition:monotonic": "§2.1 The schemaVersion of a tool is an integer that never falls.",
    "a:bump:required-argument": "§2.2 An added required argument needs a schemaVersion bump.",
    "a:bump:meaning": "§2.2 A changed meaning of an argument needs a bump.",
    "a:bump:default": "§2.2 A default that alters behaviour needs a bump.",
    "a:bump:result": "§2.2 A changed result structure needs a bump.",
    "a:bump:error-codes": "§2.2 Error codes added, removed or renamed need a bump.",
    "a:bump:cancel-timeout": "§2.2 Observably changed cancellation or timeout needs a bump.",
    "a:no-bump:docs": "§2.2 A clarified text needs no bump.",
    "a:no-bump:optional-argument": "§2.2 An optional argument that defaults cleanly needs no bump.",
    "a:no-bump:optional-result": "§2.2 An optional field absent by default needs no bump.",
    "a:definition:top-level": "§2.1 On the legacy wire both versions stand in the definition.",
    # a: names (§3)
    "a:names:rename-is-breaking": "§3.1 A rename is breaking and needs a bump.",
    "a:names:alias": "§3.1 An old name may remain available, deprecated.",
    "a:names:stable": "§3.2 Tool names stay unless explicitly bumped.",
    "a:tools:index_build": "§3.2 There is `index_build`.",
    "a:tools:index_status": "§3.2 There is `index_status`.",
    "a:tools:search": "§3.2 There is `search`.",
    "a:tools:show_file": "§3.2 There is `show_file`.",
    "a:tools:check_status": "§3.2 There is `check_status`.",
    "a:tools:workspace_status": "§3.2 There is `workspace_status`.",
    # a: arguments (§4)
    "a:arguments:unknown-refused": "§4.1 Unknown fields are rejected as INVALID_REQUEST.",
    "a:calls:deterministic": "§4.1 Equal calls have equal results.",
    "a:arguments:reserved-refused": "§4.1 A reserved field is rejected when it is set.",
    "a:arguments:none-ignored": "§4.2 No field is accepted and ignored.",
    # a: results (§5), errors (§6)
    "a:result:object": "§5.1 The result of a tool is a JSON object.",
    "a:result:valid-json": "§5.1 The text of the first content item is valid JSON.",
    "a:result:success-is-no-error": "§5.1 A success does not set isError.",
    "a:error:message-and-code": "§5.2 An error has a message and a code of the table.",
    "a:error:table": "§6 The error codes are the public table.",
    "a:result:wrapped": "§5.1 On the legacy wire a result is one text item, the tool's JSON.",
    "a:error:flat": "§5.2 On the legacy wire an error is isError and a flat object.",
    "a:error:optional-fields": "§5.2 It may have trimmed stderr and stdout, timeoutMs, a hint.",
    "a:error:few-codes": "§6 A code is not added lightly.",
    "a:error:unknown-name": "§6 An unknown tool name is INVALID_REQUEST.",
    # a: cancellation (§7)
    "a:cancel:one-answer": "§7.1 A cancelled request gets exactly one answer.",
    "a:cancel:answer": "§7.1 That answer is isError with code CANCELLED.",
    "a:cancel:stops-the-work": "§7.1 A cancel stops the work promptly.",
    "a:cancel:ids-as-strings": "§7.2 Ids are compared as strings.",
    "a:cancel:no-progress-after": "§7.3 No progress is sent after a cancel.",
    "a:cancel:never-success": "§7.3 A cancelled call is never answered with success.",
    # a: timeouts (§8)
    "a:timeout:aborts": "§8.1 A tool past its timeout is aborted.",
    "a:timeout:answer": "§8.1 It answers isError, TOOL_TIMEOUT, with timeoutMs.",
    "a:timeout:kills-subprocesses": "§8.2 Its subprocesses are ended, the whole tree.",
    # a: progress (§9)
    "a:progress:payload": "§9 notifications/progress with id, tool, message, stream, phase, ts.",
    "a:progress:throttled": "§9.1 At most four notifications a second for a call.",
    "a:progress:coalesced": "§9.1 Lines that arrive quickly become one message.",
    "a:progress:none-after-end": "§9.2 No progress after the answer.",
    # a: tests that must exist (§10)
    "a:tests:snapshot": "§10 Names, required fields and schemaVersion are snapshot-tested.",
    "a:tests:arguments": "§10 Each field of a tool affects what it does, or is refused.",
    "a:tests:cancellation": "§10 Tests cancel calls and see that their work stops.",
    "a:tests:timeout": "§10 Tests let calls time out and see that no process is orphaned.",
    # a, part 2: process trees
    "a:kill:all-descendants": "Part 2 §1 All descendants of a tool's subprocess are ended.",
    "a:kill:one-primitive": "Part 2 §2 Only the shared primitive ends processes.",
    "a:kill:posix-group": "Part 2 §3.1 The child leads a group of its own, which is signalled.",
    "a:kill:term-grace-kill": "Part 2 §3.2 SIGTERM, a bounded grace, then SIGKILL.",
    "a:kill:grace": "Part 2 §3.2, §6 The grace is 2 s, and a setting for every tool.",
    "a:kill:exit-race-ignored": "Part 2 §3.3 A process that exits in between is no error.",
    "a:kill:setsid-grandchild": "Part 2 §3.3 A descendant in another group is ended too.",
    "a:kill:windows-taskkill": "Part 2 §4.1 On Windows taskkill /T /F ends the tree.",
    "a:kill:windows-exited-ignored": "Part 2 §4.2 An already exited process is no error.",
    "a:kill:tree-test": "Part 2 §5 Aborting a parent with a child ends both quickly.",
    "a:kill:no-output-after-abort": "Part 2 §5 No output is emitted after an abort.",
    "a:kill:failure-logged": "Part 2 §6 A kill that fails is logged as an error.",
    "a:kill:server-sigkill": "Part 2 §1 Nothing outlives a server that is killed.",
}
