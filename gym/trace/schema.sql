-- Schema 4 of a trace. A file of schema 1 gets what follows the line "Since schema 2" when it is opened for recording, one of schema 2
-- or 3 what follows "Since schema 4". Since schema 3 steps of packs that are not deterministic have texts (gym.AppendStep).
-- Times are microseconds since 1970 and belong to no hash.

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

-- Since schema 2
-- The tokens of an episode that a language model played. detail is NULL or one S2 block of, little-endian:
--   uint32  CRC-32C of all that follows
--   uint32  P, tokens of the prompt
--   uint32  C, tokens of the completion
--   uint32  L, log-probabilities: 0, or as many as were sampled
--   uint32  x P  ids of the prompt
--   uint32  x C  ids of the completion
--   byte    x ceil(C / 8)  mask: bit i % 8 of byte i / 8 is 1 if the model sampled token i, 0 if the environment showed it
--   float32 x L  natural log-probabilities of the sampled tokens, in order
CREATE TABLE tokens (
  episode    INTEGER PRIMARY KEY REFERENCES episode(id),
  checkpoint TEXT NOT NULL,                   -- that sampled them
  prompt     INTEGER NOT NULL,                -- tokens of the prompt
  sampled    INTEGER NOT NULL,                -- of the completion, sampled by the model
  shown      INTEGER NOT NULL,                -- of the completion, shown by the environment
  detail     BLOB
);

-- Since schema 4
-- The reward of an episode taken apart, where no replay could rebuild it: packs that are not deterministic alone.
CREATE TABLE explanation (
  episode INTEGER PRIMARY KEY REFERENCES episode(id),
  text    TEXT NOT NULL                       -- JSON object: gym.Explanation
);
