-- Schema 1. Opening compares every statement below with what the file holds (comments and white space aside), so a
-- change is a new migration, never an edit.

CREATE TABLE device_class(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE CHECK(length(key) = 32),
  text TEXT NOT NULL,
  name TEXT NOT NULL,
  arch TEXT NOT NULL
) STRICT;

CREATE TABLE env(
  id INTEGER PRIMARY KEY,
  driver TEXT NOT NULL,
  compiler TEXT NOT NULL,
  tool TEXT NOT NULL,
  UNIQUE(driver, compiler, tool)
) STRICT;

CREATE TABLE policy(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE problem(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE CHECK(length(key) = 32),
  text TEXT NOT NULL
) STRICT;

CREATE TABLE candidate(
  id INTEGER PRIMARY KEY,
  template TEXT NOT NULL,
  version INTEGER NOT NULL CHECK(version >= 0),
  config TEXT NOT NULL,
  UNIQUE(template, version, config)
) STRICT;

CREATE TABLE trial(
  id INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES device_class(id),
  env INTEGER NOT NULL REFERENCES env(id),
  policy INTEGER NOT NULL REFERENCES policy(id),
  problem INTEGER NOT NULL REFERENCES problem(id),
  candidate INTEGER NOT NULL REFERENCES candidate(id),
  bucket INTEGER NOT NULL CHECK(bucket BETWEEN 1 AND 4294967295),
  mode TEXT NOT NULL CHECK(mode IN ('replay', 'eager')),
  source_hash BLOB NOT NULL CHECK(length(source_hash) = 32),
  build_key BLOB NOT NULL CHECK(length(build_key) = 32),
  status INTEGER NOT NULL,                      -- rssm_status; 0: measured
  reason TEXT NOT NULL,
  tainted INTEGER NOT NULL CHECK(tainted IN (0, 1)),
  median_ns REAL NOT NULL,
  mad_ns REAL NOT NULL,
  min_ns REAL NOT NULL,
  n_samples INTEGER NOT NULL CHECK(n_samples >= 0),
  bytes_per_step REAL NOT NULL,
  max_error REAL NOT NULL,
  registers INTEGER NOT NULL,
  shared_bytes INTEGER NOT NULL,
  spill_bytes INTEGER NOT NULL,
  created INTEGER NOT NULL,                     -- Unix seconds
  CHECK(status <> 0 OR (median_ns > 0 AND min_ns > 0 AND mad_ns >= 0 AND n_samples > 0)),
  CHECK(status = 0 OR length(reason) > 0)
) STRICT;

CREATE INDEX trial_problem ON trial(problem, device, bucket, mode, candidate);

-- Zstandard-compressed kernels. Not append-only: a damaged one is replaced.
CREATE TABLE binary(
  id INTEGER PRIMARY KEY,
  build_key BLOB NOT NULL UNIQUE CHECK(length(build_key) = 32),
  kind TEXT NOT NULL CHECK(kind IN ('host', 'cubin')),
  arch TEXT NOT NULL,
  layout_hash BLOB NOT NULL CHECK(length(layout_hash) = 32),
  sha BLOB NOT NULL CHECK(length(sha) = 32),    -- SHA-256 of the uncompressed bytes
  raw_len INTEGER NOT NULL CHECK(raw_len BETWEEN 1 AND 67108864),
  data BLOB NOT NULL
) STRICT;

-- What was found damaged here, until it is replaced.
CREATE TABLE quarantine(
  kind TEXT NOT NULL CHECK(kind IN ('binary')),
  key BLOB NOT NULL CHECK(length(key) = 32),
  reason TEXT NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY(kind, key)
) STRICT, WITHOUT ROWID;

-- The best per device, problem, policy, bucket and mode: rules W1 and W2 of db/winners.h. For people; the library
-- reads the same rows but first leaves out those that its templates cannot serve.
CREATE VIEW winner AS
WITH newest(id) AS (
  SELECT max(id) FROM trial WHERE tainted = 0
  GROUP BY device, problem, policy, bucket, mode, candidate, build_key
), measured AS (
  SELECT t.id, t.device, t.problem, t.policy, t.bucket, t.mode, t.median_ns, t.mad_ns, c.template, c.config, c.version,
    first_value(t.median_ns + t.mad_ns) OVER (
      PARTITION BY t.device, t.problem, t.policy, t.bucket, t.mode ORDER BY t.median_ns, t.mad_ns, t.id) AS reach_ns
  FROM newest JOIN trial t USING(id) JOIN candidate c ON c.id = t.candidate
  WHERE t.status = 0
), ranked AS (
  SELECT *, row_number() OVER (
      PARTITION BY device, problem, policy, bucket, mode ORDER BY template, config, version, id DESC) AS place
  FROM measured
  WHERE median_ns - mad_ns <= reach_ns
)
SELECT r.id AS trial, p.text AS problem, d.name AS device, r.bucket, r.mode, r.template, r.config, r.version,
  r.median_ns, r.mad_ns, o.text AS policy, hex(d.key) AS device_key, hex(p.key) AS problem_key
FROM ranked r JOIN problem p ON p.id = r.problem JOIN device_class d ON d.id = r.device JOIN policy o ON o.id = r.policy
WHERE r.place = 1;

CREATE TRIGGER device_class_is_kept BEFORE DELETE ON device_class
BEGIN SELECT raise(ABORT, 'device_class is append-only'); END;
CREATE TRIGGER device_class_is_fixed BEFORE UPDATE ON device_class
BEGIN SELECT raise(ABORT, 'device_class is append-only'); END;
CREATE TRIGGER env_is_kept BEFORE DELETE ON env
BEGIN SELECT raise(ABORT, 'env is append-only'); END;
CREATE TRIGGER env_is_fixed BEFORE UPDATE ON env
BEGIN SELECT raise(ABORT, 'env is append-only'); END;
CREATE TRIGGER policy_is_kept BEFORE DELETE ON policy
BEGIN SELECT raise(ABORT, 'policy is append-only'); END;
CREATE TRIGGER policy_is_fixed BEFORE UPDATE ON policy
BEGIN SELECT raise(ABORT, 'policy is append-only'); END;
CREATE TRIGGER problem_is_kept BEFORE DELETE ON problem
BEGIN SELECT raise(ABORT, 'problem is append-only'); END;
CREATE TRIGGER problem_is_fixed BEFORE UPDATE ON problem
BEGIN SELECT raise(ABORT, 'problem is append-only'); END;
CREATE TRIGGER candidate_is_kept BEFORE DELETE ON candidate
BEGIN SELECT raise(ABORT, 'candidate is append-only'); END;
CREATE TRIGGER candidate_is_fixed BEFORE UPDATE ON candidate
BEGIN SELECT raise(ABORT, 'candidate is append-only'); END;
CREATE TRIGGER trial_is_kept BEFORE DELETE ON trial
BEGIN SELECT raise(ABORT, 'trial is append-only'); END;
CREATE TRIGGER trial_is_fixed BEFORE UPDATE ON trial
BEGIN SELECT raise(ABORT, 'trial is append-only'); END;
-- REPLACE deletes without asking the triggers above.
CREATE TRIGGER trial_is_not_replaced BEFORE INSERT ON trial WHEN EXISTS(SELECT 1 FROM trial WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'trial is append-only'); END;
