-- Schema 1 of a trace. Times are microseconds since 1970 and belong to no hash.

CREATE TABLE run (
  id              INTEGER PRIMARY KEY,
  policy          TEXT NOT NULL,
  checkpoint_hash TEXT NOT NULL,
  pack_hash       TEXT NOT NULL,
  check_hash      TEXT NOT NULL,
  split_hash      TEXT NOT NULL,
  plan_hash       TEXT NOT NULL,
  config          TEXT NOT NULL,              -- JSON object
  started_us      INTEGER NOT NULL,
  ended_us        INTEGER,                    -- NULL while it runs, or if it was killed
  resumed         INTEGER NOT NULL DEFAULT 0, -- how often it was resumed
  host            TEXT NOT NULL,
  pid             INTEGER NOT NULL
);

-- The trainer's state is saved: what ended before is part of it. Resuming a run supersedes the rest.
CREATE TABLE mark (
  id        INTEGER PRIMARY KEY,
  run       INTEGER NOT NULL REFERENCES run(id),
  iteration INTEGER NOT NULL,
  at_us     INTEGER NOT NULL
);

CREATE TABLE episode (
  id          INTEGER PRIMARY KEY,
  run         INTEGER NOT NULL REFERENCES run(id),
  condition   TEXT NOT NULL,
  seed        TEXT NOT NULL,                  -- unsigned 64-bit, decimal
  task        TEXT GENERATED ALWAYS AS (condition || '#seed=' || seed) VIRTUAL,
  mode        INTEGER NOT NULL,               -- 0 free, 1 train, 2 eval, 3 test
  view        INTEGER NOT NULL,               -- 0 text, 1 structured
  purpose     TEXT NOT NULL,                  -- train, break, monitor, sealed, baseline
  arm         TEXT NOT NULL,
  look        TEXT NOT NULL,
  cluster     TEXT NOT NULL,
  sample      INTEGER NOT NULL,
  slot        INTEGER NOT NULL,
  grp         INTEGER NOT NULL,
  iteration   INTEGER NOT NULL,
  plan        TEXT,                           -- sealed rows only: the run's plan hash
  parent      INTEGER,                        -- episode it was forked from; may have no row (it was never handed over)
  parent_step INTEGER NOT NULL,               -- steps taken before the fork
  outcome     INTEGER NOT NULL,               -- 0 running or given up, 1 scored, 2 truncated, 3 invalid, 4 check_error
  limit_hit   INTEGER NOT NULL,               -- of outcome 2: 1 calls, 2 wall, 3 bytes, 4 tokens
  success     INTEGER NOT NULL,               -- goals and path and collateral and committed
  goals       INTEGER NOT NULL,
  path        INTEGER NOT NULL,
  collateral  INTEGER NOT NULL,
  committed   INTEGER NOT NULL,
  reward      REAL,                           -- NULL for outcomes 0, 3, 4
  steps       INTEGER NOT NULL,               -- those before the fork included; 0 for outcome 0
  calls       INTEGER NOT NULL,
  digest      BLOB,                           -- 16 bytes; NULL while running, or taken away by the wall limit
  why         TEXT NOT NULL,                  -- of outcomes 3 and 4
  started_us  INTEGER NOT NULL,
  ended_us    INTEGER,
  mark        INTEGER NOT NULL,               -- last mark of the run when it ended; 0 for none
  superseded  INTEGER NOT NULL DEFAULT 0      -- 1 if the run was resumed from before its end
);

-- A sealed slot is filled once.
CREATE UNIQUE INDEX sealed_slot ON episode(plan, look, condition, cluster, seed, sample, arm)
  WHERE purpose = 'sealed' AND superseded = 0;

-- id is episode << 20 | number. Number 0 holds the actions before a fork, CRCs zero; the episode's own steps begin at 1.
CREATE TABLE segment (
  id      INTEGER PRIMARY KEY,
  episode INTEGER GENERATED ALWAYS AS (id >> 20) VIRTUAL REFERENCES episode(id),
  steps   INTEGER NOT NULL,
  raw_len INTEGER NOT NULL,
  codec   INTEGER NOT NULL,                   -- 1 S2 block
  crc     INTEGER NOT NULL,                   -- CRC-32C of the raw bytes
  data    BLOB NOT NULL
);

CREATE TABLE audit (
  episode INTEGER NOT NULL REFERENCES episode(id),
  name    TEXT NOT NULL,
  why     TEXT NOT NULL,
  PRIMARY KEY (episode, name)
) WITHOUT ROWID;
