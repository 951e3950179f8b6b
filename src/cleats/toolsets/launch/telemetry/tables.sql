CREATE TABLE IF NOT EXISTS records (
  event_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  parent_run_id TEXT,
  job_type TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  status TEXT NOT NULL,
  start_time TEXT NOT NULL,
  body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_run ON records (run_id);
CREATE INDEX IF NOT EXISTS records_by_parent ON records (parent_run_id);
CREATE INDEX IF NOT EXISTS records_by_time ON records (start_time, event_id);
CREATE TABLE IF NOT EXISTS read (run_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collector TEXT NOT NULL,
  token TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS sender (one INTEGER PRIMARY KEY, owner TEXT, until REAL);
