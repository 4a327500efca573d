/* provegym.h: the C interface of ProveGym. This file is the contract; it is written by hand and nothing generates it.
 *
 * Status.    Every function returns int32_t: PGYM_OK or a negative PGYM_E_*. On an error *err, if not NULL, holds the code
 *            and a text that says what, why and what to do. Nothing prints, exits, or lets a panic or a signal across.
 * Ownership. The caller owns every buffer that it passes. What the library returns in a pgym_bytes is freed with pgym_free.
 * Handles.   uint64_t with a generation: using a closed one is PGYM_E_HANDLE, never a crash. 0 is no handle.
 * Threads.   One thread a handle at a time, any thread; a second one gets PGYM_E_BUSY. Different handles are independent.
 * Fork.      The library does not survive fork(2). In a child of a process that had loaded it, every call returns
 *            PGYM_E_FORKED. Start workers by spawn, or load the library in the child.
 * Signals.   No handler is installed for SIGINT. Long work is cut into requests of a bounded time, so that the host can look
 *            at its signals between them.
 */
#ifndef PROVEGYM_H
#define PROVEGYM_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define PGYM_ABI_VERSION 1

/* status */
#define PGYM_OK 0
#define PGYM_E_INPUT (-1)    /* bad input: malformed, out of range, wrong type */
#define PGYM_E_UNKNOWN (-2)  /* unknown pack, family, dial, level, preset, agent, method */
#define PGYM_E_HELDOUT (-3)  /* the split does not admit this condition in this mode */
#define PGYM_E_STATE (-4)    /* not now: no reset yet, episode over, nothing sent, buffers not bound */
#define PGYM_E_HANDLE (-5)   /* no such handle, or closed */
#define PGYM_E_BUSY (-6)     /* another thread is inside this handle */
#define PGYM_E_FORKED (-7)   /* the process forked after the library was loaded */
#define PGYM_E_SNAPSHOT (-8) /* the snapshot does not fit: other pack, view, or digest */
#define PGYM_E_IO (-9)       /* the trace store or a file: see the text */
#define PGYM_E_PACK (-10)    /* a pack broke its own declaration */
#define PGYM_E_PANIC (-11)   /* a bug in the library; the text has the place */
#define PGYM_E_HOST (-12)    /* this machine lacks what is needed, or its sandbox failed; the text has the step and the remedy */

/* outcome of an episode: 1 sets terminated, 2 to 4 set truncated; only 1 has a reward */
#define PGYM_RUNNING 0
#define PGYM_SCORED 1
#define PGYM_TRUNCATED 2
#define PGYM_INVALID 3
#define PGYM_CHECK_ERROR 4

/* limit that truncated it */
#define PGYM_LIMIT_NONE 0
#define PGYM_LIMIT_CALLS 1
#define PGYM_LIMIT_WALL 2
#define PGYM_LIMIT_BYTES 3
#define PGYM_LIMIT_TOKENS 4

/* bits of components */
#define PGYM_GOALS 1
#define PGYM_PATH 2
#define PGYM_COLLATERAL 4
#define PGYM_COMMIT 8

/* shape of the structured view */
#define PGYM_SLOTS 64
#define PGYM_SLOT_LEN 16
#define PGYM_ACTIONS 65
#define PGYM_TOOLS 64
#define PGYM_TOOL_LEN 6
#define PGYM_GOAL_LEN 24
#define PGYM_LAST_LEN 12
#define PGYM_BUDGET_LEN 4
#define PGYM_PHASE_LEN 10

/* input strings; a typedef because cgo drops const */
typedef const char *pgym_cstr;

typedef struct {
  uint32_t size; /* caller: sizeof(pgym_error) */
  int32_t code;  /* as returned */
  char text[512]; /* UTF-8, ends with 0, cut at a character */
} pgym_error;

/* bytes that the library allocated; free with pgym_free. A zero byte that len does not count follows them. */
typedef struct {
  char *data;
  uint64_t len;
} pgym_bytes;

/* n strings in one block: string i is data[off[i] .. off[i+1]). Written by the library, valid until the next reset, step,
 * send, recv or close of the vector. */
typedef struct {
  const char *data;
  const uint32_t *off; /* (n + 1,) */
} pgym_text;

/* observations of n environments; a NULL member is not written. Structured members are ignored by the text view and text
 * by the structured view. The library rewrites only what changed: the caller must not write into them. */
typedef struct {
  float *slots;   /* (n, PGYM_SLOTS, PGYM_SLOT_LEN) */
  float *goal;    /* (n, PGYM_GOAL_LEN) */
  float *last;    /* (n, PGYM_LAST_LEN) */
  float *budget;  /* (n, PGYM_BUDGET_LEN) */
  float *tools;   /* (n, PGYM_TOOLS, PGYM_TOOL_LEN) */
  int32_t *phase; /* (n, PGYM_PHASE_LEN) */
  uint8_t *mask;  /* (n, PGYM_ACTIONS) */
  pgym_text *text;
} pgym_obs;

/* The buffers of a vector of n environments, bound once; the library keeps the pointers until the next bind or close.
 *
 *   action       |a0|a1|...|an-1|            structured view: one integer each
 *   action_text  |{"tool":...}|{"tool"...|    text view: one block,
 *   action_off   |0 |   17    | ... | len|    string i is [off[i], off[i+1])
 *   reward       |r0|r1|...|rn-1|            finite always; 0 unless outcome is PGYM_SCORED
 */
typedef struct {
  uint32_t size; /* caller: sizeof(pgym_io) */
  uint32_t num_envs;
  const int32_t *action;      /* (n,) structured */
  const char *action_text;    /* text; rebind when the block moves */
  const uint32_t *action_off; /* (n + 1,) text */
  pgym_obs obs;
  pgym_obs final_obs;   /* same_step: rows of episodes that just ended; may be all NULL */
  double *reward;       /* (n,) */
  uint8_t *terminated;  /* (n,) 0 or 1 */
  uint8_t *truncated;   /* (n,) 0 or 1 */
  uint8_t *outcome;     /* (n,) PGYM_RUNNING .. of the episode that the step belonged to */
  uint8_t *limit;       /* (n,) */
  uint8_t *components;  /* (n,) bits; 0 unless scored */
  int32_t *calls;       /* (n,) tool calls of that episode so far */
  uint8_t *began;       /* (n,) 1 if the row now shows a new episode */
  pgym_text *task;      /* task id of the episode that each row shows */
} pgym_io;

/* PGYM_ABI_VERSION of the library. Never fails, any thread. */
int32_t pgym_abi_version(void);

/* JSON: {"abi", "version", "sources": hash of the Go sources, "header": SHA-256 of this file as built, "go", "sqlite"}. */
int32_t pgym_build_info(pgym_bytes *out, pgym_error *err);

/* Frees what the library returned; {NULL, 0} is fine. Never fails. */
void pgym_free(pgym_bytes *bytes);

/* Makes a vector of environments from JSON:
 *   {"pack": "tooluse", "num_envs": 64, "view": "text" | "structured",
 *    "family": name | [names] | null (all that the mode allows), "dials": {name: value}, "preset": name | [names],
 *    "split": manifest, "mode": "free" | "train" | "eval" | "test",
 *    "trace": handle as string, "labels": {...}, "curriculum": handle as string, "group_size": 1,
 *    "autoreset": "next_step" | "same_step" | "disabled", "num_workers": 0 (by the machine)}
 * Unknown members are errors. A single environment is a vector of one. Errors: INPUT, UNKNOWN, HELDOUT, HANDLE. */
int32_t pgym_vec_make(pgym_cstr json, uint64_t len, uint64_t *vec, pgym_error *err);

/* Binds the buffers. Errors: INPUT (size, num_envs, a missing buffer that the view needs). */
int32_t pgym_vec_bind(uint64_t vec, const pgym_io *io, pgym_error *err);

/* Starts new episodes. seeds: (n,) or NULL to go on with each row's stream; has_seed: (n,) 0/1 or NULL for all (a row without
 * a seed goes on with its stream); mask: (n,) 0/1 or NULL for all rows. A seed sets the row's key and its episode counter to 0.
 * Errors: STATE (not bound), HELDOUT, PACK. */
int32_t pgym_vec_reset(uint64_t vec, const uint64_t *seeds, const uint8_t *has_seed, const uint8_t *mask, pgym_error *err);

/* Appends tasks to the queue that the next resets take from, in row order:
 *   {"tasks": [{"task": id, "labels": {...}}, ...], "clear": false}
 * Each is checked against mode and split here. Errors: INPUT, UNKNOWN, HELDOUT. */
int32_t pgym_vec_queue(uint64_t vec, pgym_cstr json, uint64_t len, pgym_error *err);

/* Starts stepping the n_ids rows in ids with the bound actions and returns at once. Errors: STATE, INPUT. */
int32_t pgym_vec_send(uint64_t vec, const uint32_t *ids, uint32_t n_ids, pgym_error *err);

/* Waits until at least min_ready of the rows sent are done, or timeout_ms have passed; writes their rows into the bound
 * buffers and their numbers to ids (capacity num_envs), in row order. Errors: STATE. */
int32_t pgym_vec_recv(uint64_t vec, uint32_t *ids, uint32_t *n_ids, uint32_t min_ready, uint32_t timeout_ms, pgym_error *err);

/* send and recv of all rows. Errors: STATE (not bound, no reset; disabled autoreset: a row that has ended), BUSY. */
int32_t pgym_vec_step(uint64_t vec, pgym_error *err);

/* Writes row env's whole episode as bytes that restore it here or in another process with the same pack, by replay. */
int32_t pgym_vec_snapshot(uint64_t vec, uint32_t env, pgym_bytes *out, pgym_error *err);

/* Makes row env continue from a snapshot. The gate of mode and split holds. Errors: SNAPSHOT, HELDOUT, INPUT. */
int32_t pgym_vec_restore(uint64_t vec, uint32_t env, pgym_cstr data, uint64_t len, pgym_error *err);

/* Copies row src's live episode, in memory, into the n rows dst. Errors: INPUT, STATE. */
int32_t pgym_vec_fork(uint64_t vec, uint32_t src, const uint32_t *dst, uint32_t n, pgym_error *err);

/* Closes the vector; a step under way is waited for, open episodes are recorded as far as they came. */
int32_t pgym_vec_close(uint64_t vec, pgym_error *err);

/* The one cold door: method on handle (0 for the library itself) with a JSON object, answered by a JSON object.
 * Seeds, keys and handles are decimal strings in JSON; everything of a run derives from one key, by purpose. Work that may
 * be long takes "budget_ms" (default 200) and answers {"done": false, ...} until it is finished: call again.
 *
 *  handle   method            asks                                            answers
 *  0        packs             {"pack"?}                                       {"packs": [{name, title, version, hash, check_hash, doc, views,
 *                                                                              families, dials, presets, tools, agents, audits, rates}]}
 *  0        task              {"task": id}                                    {"task", "condition", "pack", "family", "dials", "seed", "instruction", "limits",
 *                                                                              "tools"}
 *  0        sample            {"pack", "family", "dials", "preset", "split",  {"tasks": [id]}
 *                              "mode", "seed", "n"}
 *  0        split.freeze      {"split": draft}                                {"split": manifest with its hash}
 *  0        split.region      {"split", "condition": id}                      {"region": "train" | "eval" | "test", "why"}
 *  0        trace.open        {"path", "run": {...}, "durability", "resume"}  {"handle", "run"}
 *  trace    trace.flush       {}                                              {"episodes"}: all of them are on disk now
 *  trace    trace.mark        {"iteration"}                                   {}: the state of the trainer is saved; later rows of a killed
 *                                                                              run are superseded on resume
 *  trace    trace.tokens      {"rows": [{"episode": id, "checkpoint",         {}: tokens of episodes that a language model played, all rows or none;
 *                              "prompt", "sampled", "shown": counts,           a second row for an episode replaces the first. shown are those of
 *                              "prompt_ids"?, "completion_ids"?,               the completion that the environment showed. The arrays come together:
 *                              "mask"?: [0|1], "logprobs"?}]}                  mask is 1 where the model sampled, logprobs are of those tokens
 *  0        trace.query       {"path", "what": "runs"|"episodes"|"steps"      {"rows": [...]}; tokens with "detail": true have the arrays too
 *                              |"calls"|"explanation"|"slots"|"tokens",
 *                              run, episode, limit, after, detail...}
 *  0        trace.verify      {"path"}                                        {"ok", "episodes", "problems": [...]}
 *  0        trace.replay      {"path", "episode"?, "limit"?, "cursor"}        {"done", "replayed", "mismatches": [...], "cursor"}
 *  0        break.new         {"pack", "split", "key", "families", "dials",   {"handle"}
 *                              "budget", "tau", "checkpoint", "causes"} | {"state"}
 *  break    break.ask         {"n"}                                           {"probes": [{"id", "task", "labels"}], "done"}
 *  break    break.tell        {"results": [{"id", "failed", "lost", "mode"}]} {"done", "spent", "lost"}
 *  break    break.report      {"text"?: true for plain words too}             {"causes": [...], "groups": [...], ..., "text"?}
 *  break    break.state       {}                                              {"state"}
 *  0        curriculum.new    {"pack", "split", "key", "families", "dials",   {"handle"}
 *                              "mode": "failures"|"uniform"} | {"state"}
 *  curric.  curriculum.update {"causes": [...], "checkpoint"}                 {"items"}
 *  curric.  curriculum.ask    {"n", "group_size"}                             {"tasks": [{"id", "task", "labels", "group", "item"}]}
 *  curric.  curriculum.tell   {"results": [{"item", "passes", "episodes",     {}: one update; episodes are those with an outcome, lost those without.
 *                              "lost"}]}                                       Vectors tell by themselves.
 *  curric.  curriculum.at     {"slots": [slot as string]}                     {"version", "tasks": [{"task", "item", "labels"}]}: a pure function of
 *                                                                              state and slot, alike on every rank; changes nothing
 *  curric.  curriculum.advance {"results": [{"item", "passes", "episodes",    {"version"}: one update by item, of tasks that need not be out; every
 *                              "lost"}]}                                       change of what slots draw raises the version
 *  curric.  curriculum.report / curriculum.state {}                           {"items"} / {"state"}
 *  0        prove.table       {"plan": draft}                                 {"rows": MDE per condition, before freezing}
 *  0        prove.freeze      {"plan": draft, "key", "split"}                 {"plan": with its hash}; one that has its hash is verified
 *  0        prove.tasks       {"plan", "key", "look"}                         {"slots": [{"condition", "cluster", "task", "sample", "arms"}]}
 *  0        prove.look        {"plan", "key", "look", "records": [...] |      {"rows", "overall", "counts", "problems", ...}
 *                              "trace": path, "base", "checkpoint", "ledger"}
 *  0        prove.report      {"plan", "looks", "learning", ...}              {"report": JSON, "markdown", "html"}
 *  0        rollout           {"agent", "tasks": [{"task","labels"}], "view", "mode", "split", "trace", "variant"}
 *                                                                              {"results": [{task, outcome, limit, success, components, calls, digest, why}]}
 *  0        check.new         {"pack", "full", "seeds", "dial_seeds",         {"handle"}
 *                              "level_tasks", "families", "key"}
 *  check    check.step        {"budget_ms"}                                   {"done", "ok", "episodes", "total", "left_ns", "failed", "failures"}, and
 *                                                                              when done "rows", "references", "dials", "rates"
 *  vec      vec.info          {"env"}                                         {"task", "instruction", "limits", "tools", "labels", "episode": id in
 *                                                                              the trace or null, "outcome", "limit", "success", "components",
 *                                                                              "calls", "why", "digest": of the episode that the row shows}
 *  vec      vec.explain       {"env"}                                         {"explanation": {"required": [{"part", "text", "met"}], "unrequested":
 *                                                                              [text], "decisive": {"call", "kind", "why"} or null} or null}: of an
 *                                                                              episode that has ended; while it runs it is STATE
 *  vec      vec.stop          {"env", "outcome": "truncated"|"invalid",       {}: the row's running episode ended from outside, without reward; the
 *                              "limit"?: "tokens"|"calls"|"wall"|"bytes",      bound scalars of the row say so, its observation stays. A truncation
 *                              "why"?}                                         has a limit (tokens if left out), an invalid end a why. Then as after
 *                                                                              any end: disabled waits for a reset, next_step begins anew at
 *                                                                              the next step; same_step refuses it (STATE).
 *  0        sandbox.open      {"level"?, "require"?: ["memory=enforced"],     {"handle", "capabilities": {level, kernel, cgroups, proc,
 *                              "read_only_dirs"?, "cgroup_base"?,              guarantees: [{name, grade, how, remedy}], refused}}
 *                              "max_boxes"?, "python"?: {executable, imports}}
 *  sandbox  sandbox.box       {"wall_s", "cpu_s", "cpu_milli",                {"handle"}: a fresh box; a limit that is 0 or left out has its
 *                              "memory_bytes", "pids", "disk_bytes",           default (sandbox/spec.go)
 *                              "disk_files", "open_files", "output_bytes",
 *                              "output_max_bytes", "loopback"}
 *  sandbox  sandbox.pool      those and {"size"}                              {"handle"}
 *  pool     pool.get          {}                                              {"handle"}: a box that nobody has used
 *  box      box.start         {"argv": [...], "env"?: ["NAME=value"],         {}: runs on; data are base64 here and below
 *                              "dir"?, "stdin"?, "wall_s"?} | {"python": code}
 *  box      box.wait          {"budget_ms"}                                   {"done", "result": {reason, exit_code, signal, stdout, stderr, ...},
 *                                                                              "text", "infrastructure": true if the end is not the command's}
 *  box      box.kill          {}                                              {}: the command ends; wait tells
 *  box      box.arm           {}                                              {}: forks the warm interpreter ahead of time
 *  box      box.write         {"path", "data", "mode"?}                       {}
 *  box      box.read          {"path", "max_bytes"?: 16 MiB}                  {"data"}: of a regular file, no link followed
 *  box      box.list          {"path"?: /work, "max_entries"?}                {"entries": [{name, mode, size, link}]}
 *  box      box.mkdir         {"path"}                                        {}
 *  any      close             {}                                              {}
 * Errors: UNKNOWN (method), INPUT, HANDLE, and those of what it does. */
int32_t pgym_request(uint64_t handle, pgym_cstr method, pgym_cstr json, uint64_t len, pgym_bytes *out, pgym_error *err);

#ifdef __cplusplus
}
#endif
#endif /* PROVEGYM_H */
