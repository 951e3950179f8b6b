"""Spec e: launch runs."""

SENTENCES = {
    # Of conventions
    "e:answer:ok": "Every response includes ok: true|false.",
    "e:answer:run-id": "On success, responses include run_id when the tool is run-scoped.",
    "e:answer:error": "On failure, responses include error with the standard shape.",
    "e:telemetry:call": "Every tool call emits telemetry.",
    "e:telemetry:work-items": "Worker execution emits WORK_ITEM_STARTED/FINISHED/FAILED.",
    # Of the standard error shape and its codes
    "e:error:shape": "An error is ok false, an optional run_id, code, message, retryable, details.",
    "e:code:invalid-input": "INVALID_INPUT: request missing or invalid fields.",
    "e:code:schema": "SCHEMA_VALIDATION_FAILED: a config or an artifact fails its schema.",
    "e:code:run-not-found": "RUN_NOT_FOUND: unknown run_id.",
    "e:code:illegal-state": "ILLEGAL_STATE: called in a state where the tool cannot run.",
    "e:code:toolchain": "TOOLCHAIN_MISSING: a required validator is not available.",
    "e:code:gate-failed": "GATE_FAILED is told by the report, on the success path.",
    "e:code:fix-exhausted": "FIX_EXHAUSTED: max_fix_attempts reached.",
    "e:code:allowed-paths": "ALLOWED_PATHS_VIOLATION: attempted writes outside allowed_paths.",
    "e:allowed-paths:guard": "No spelling of a path leads outside allowed_paths.",
    "e:code:commit-service": "COMMIT_SERVICE_ERROR: the commit service rejected or failed.",
    "e:code:cancelled": "CANCELLED: the run was cancelled.",
    "e:code:internal": "INTERNAL includes details.cause_class.",
    # Of shared types
    "e:status:shape": "RunStatus: run_id, state, section_states, open_issues, artifacts.",
    "e:artifact:shape": "ArtifactResponse: name, content_type, sha256, content.",
    "e:artifact:base64": "For non-text artifacts content is base64 and content_type reflects it.",
    # Of launch_start_run
    "e:start": "launch_start_run starts a run from a run_config: run_id, state CREATED.",
    "e:start:config": "run_config is validated against run_config.schema.json.",
    "e:start:idempotent": "The same key and an identical run_config hash give the same run_id.",
    # Of launch_start_run_from_product_url
    "e:url:start": "A product URL alone starts a run; derived_config tells what was derived.",
    "e:url:alias": "launch_start_run_from_url is a deprecated alias.",
    "e:url:pattern:products": "https://products.aspose.org/{product}/{locale}/{platform}/ is supported.",
    "e:url:pattern:docs": "https://docs.aspose.org/{product}/{locale}/{platform}/{page?}/ is supported.",
    "e:url:pattern:kb": "https://kb.aspose.org/{product}/{locale}/{platform}/{article?}/ is supported.",
    "e:url:pattern:blog": "https://blog.aspose.org/{locale?}/{product}/{platform}/{post?}/ is supported.",
    "e:url:pattern:reference": "https://reference.aspose.org/{product}/{locale}/{platform}/ is supported.",
    "e:url:invalid": "INVALID_URL: it cannot be parsed or matches no pattern.",
    "e:url:unsupported": "UNSUPPORTED_SITE: the host is not a recognised site.",
    "e:url:idempotent": "The same key and the same derived config give the same run_id.",
    # Of launch_start_run_from_github_repo_url
    "e:repo:start": "A repository URL alone starts a run when inference is unambiguous.",
    "e:repo:deterministic": "Discovery is deterministic.",
    "e:repo:signals": "Name, README, configuration and package files give each a confidence.",
    "e:repo:ambiguous": "Ambiguous: INVALID_INPUT with missing_fields and suggested_values.",
    "e:repo:no-run": "Ambiguous: no run is created.",
    "e:repo:defaults": "Defaults: locales [en], layout_mode auto, allow_inference false.",
    "e:repo:pinned": "github_ref is pinned to the resolved HEAD.",
    "e:repo:start-run": "The success path calls launch_start_run internally.",
    "e:repo:threshold": "Both family and platform must exceed 80% confidence.",
    "e:repo:invalid-url": "INVALID_URL: not a valid GitHub repository URL.",
    "e:repo:not-found": "REPO_NOT_FOUND: it does not exist or is not accessible.",
    "e:repo:idempotent": "The same key and the same derived config give the same run_id.",
    # Of reading
    "e:get-status": "launch_get_status answers with a RunStatus.",
    "e:get-artifact": "launch_get_artifact answers with an ArtifactResponse.",
    "e:list": "launch_list_runs: run_id, product_slug, state, started_at, finished_at.",
    "e:list:filter": "It filters by product_slug and by state.",
    # Of launch_validate
    "e:validate": "launch_validate runs the validator for the current worktree state.",
    "e:validate:state": "The state must be at least LINKING.",
    "e:validate:worktree": "The site worktree must exist.",
    "e:validate:ok": "ok tells that the tool ran; the verdict is validation_report.ok.",
    # Of launch_fix_next
    "e:fix": "launch_fix_next selects an issue deterministically, fixes it and re-validates.",
    "e:fix:answer": "fixed_issue_id, applied_patch_ids, remaining_blockers, validation_report.",
    "e:fix:state": "The state must be VALIDATING.",
    "e:fix:report": "The last validation_report must exist and have ok=false.",
    "e:fix:stop": "At max_fix_attempts: ok=false with FIX_EXHAUSTED.",
    # Of launch_resume, launch_cancel
    "e:resume": "launch_resume goes on from the snapshot to the next stable boundary.",
    "e:cancel": "launch_cancel cancels: cancelled true, state CANCELLED.",
    # Of launch_open_pr
    "e:pr": "launch_open_pr answers with pr_url, branch and commit_sha.",
    "e:pr:state": "The state must be READY_FOR_PR.",
    "e:pr:report": "The last validation_report must have ok=true.",
    # Of acceptance
    "e:accept:schemas": "A client can implement the calls without reverse engineering.",
    "e:accept:retryable": "Codes are consistent, retryable is meaningful, states are enforced.",
    "e:accept:trace": "All tools can be traced end to end by run_id and trace and span ids.",
}
