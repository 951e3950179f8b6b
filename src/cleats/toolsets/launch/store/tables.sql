CREATE TABLE IF NOT EXISTS {prefix}runs (
  number {number_type},
  run_id TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  config_hash TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  product_slug TEXT NOT NULL,
  state TEXT NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  expires DOUBLE PRECISION NOT NULL,
  event_count BIGINT NOT NULL,
  last_hash TEXT NOT NULL,
  config TEXT NOT NULL,
  shown_config TEXT NOT NULL,
  snapshot TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {prefix}runs_by_product ON {prefix}runs (product_slug, number);
CREATE INDEX IF NOT EXISTS {prefix}runs_by_state ON {prefix}runs (state, number);
CREATE TABLE IF NOT EXISTS {prefix}steps (
  run_id TEXT NOT NULL,
  step TEXT NOT NULL,
  place BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  output TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
){options};
CREATE TABLE IF NOT EXISTS {prefix}events (
  run_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  event_id TEXT NOT NULL,
  ts TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  span_id TEXT NOT NULL,
  parent_span_id TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  event_hash TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
){options};
