/* The counter world of bench/counter as a plain C loop behind include/provegym.h, so that the same extension drives both: one
 * array of rows, written straight into the caller's buffers. It knows the structured view and next_step, and refuses the rest.
 * It keeps no log, no budget of time or bytes, no snapshot and no digest: it is the floor, not a gym. */
#include "provegym.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define TARGET 40
#define BUDGET 15
#define MOST 9
#define TOOLS 3
#define TOOL_FINISH 2
#define STATUS_OK 1
#define STATUS_REFUSED 2
#define ERROR_ILLEGAL 5
#define KIND_NUMBER 3

enum { LAST_STATUS, LAST_ERROR, LAST_TOOL, LAST_SHOWN, LAST_NUMBER };
enum { PHASE_TOOL, PHASE_PARAM, PHASE_COUNT, PHASE_KIND };
enum { OFFERED, WRITES, FINISH, PARAMS, USED, LEGAL };

typedef struct {
  int32_t number, calls, tool; /* tool: the one chosen, -1 when it is to be chosen */
  uint8_t over;
} row;

typedef struct {
  uint32_t n;
  pgym_io io;
  row rows[];
} vec;

static uint8_t choose_tool[PGYM_ACTIONS], choose_number[PGYM_ACTIONS];

static void begin(vec *v, uint32_t i) {
  row *r = &v->rows[i];
  *r = (row){.tool = -1};
  const pgym_obs *o = &v->io.obs;
  memset(o->slots + (size_t)i * PGYM_SLOTS * PGYM_SLOT_LEN, 0, sizeof(float) * PGYM_SLOTS * PGYM_SLOT_LEN);
  memset(o->goal + (size_t)i * PGYM_GOAL_LEN, 0, sizeof(float) * PGYM_GOAL_LEN);
  memset(o->last + (size_t)i * PGYM_LAST_LEN, 0, sizeof(float) * PGYM_LAST_LEN);
  memset(o->phase + (size_t)i * PGYM_PHASE_LEN, 0, sizeof(int32_t) * PGYM_PHASE_LEN);
  memcpy(o->mask + (size_t)i * PGYM_ACTIONS, choose_tool, PGYM_ACTIONS);
  o->goal[(size_t)i * PGYM_GOAL_LEN] = TARGET;
  float *budget = o->budget + (size_t)i * PGYM_BUDGET_LEN;
  budget[0] = BUDGET, budget[1] = 0, budget[2] = BUDGET, budget[3] = 0;
  float *tools = o->tools + (size_t)i * PGYM_TOOLS * PGYM_TOOL_LEN;
  memset(tools, 0, sizeof(float) * PGYM_TOOLS * PGYM_TOOL_LEN);
  for (int t = 0; t < TOOLS; t++) {
    float *f = tools + t * PGYM_TOOL_LEN;
    f[OFFERED] = f[LEGAL] = 1;
    f[t == TOOL_FINISH ? FINISH : WRITES] = 1;
    f[PARAMS] = t != TOOL_FINISH;
  }
}

/* end_call shows what the call of a tool came to, and goes back to choosing one. */
static void end_call(vec *v, uint32_t i, int tool, int status) {
  row *r = &v->rows[i];
  const pgym_obs *o = &v->io.obs;
  float *last = o->last + (size_t)i * PGYM_LAST_LEN;
  float *budget = o->budget + (size_t)i * PGYM_BUDGET_LEN;
  r->calls++;
  r->tool = -1;
  last[LAST_STATUS] = (float)status;
  last[LAST_ERROR] = status == STATUS_OK ? 0 : ERROR_ILLEGAL;
  last[LAST_TOOL] = (float)(tool + 1);
  int shown = status == STATUS_OK && tool != TOOL_FINISH;
  last[LAST_SHOWN] = (float)shown;
  last[LAST_NUMBER] = shown ? (float)r->number : 0;
  budget[0] = (float)(BUDGET - r->calls), budget[1] = budget[3] = (float)r->calls;
  if (status == STATUS_OK) o->tools[((size_t)i * PGYM_TOOLS + (size_t)tool) * PGYM_TOOL_LEN + USED]++;
  memset(o->phase + (size_t)i * PGYM_PHASE_LEN, 0, sizeof(int32_t) * PGYM_PHASE_LEN);
  memcpy(o->mask + (size_t)i * PGYM_ACTIONS, choose_tool, PGYM_ACTIONS);
}

static void step_one(vec *v, uint32_t i) {
  row *r = &v->rows[i];
  pgym_io *io = &v->io;
  int32_t action = io->action[i];
  uint8_t outcome = PGYM_RUNNING, limit = PGYM_LIMIT_NONE, parts = 0, began = r->over;
  double reward = 0;
  if (r->over) {
    begin(v, i);
  } else if (action < 0 || action >= PGYM_ACTIONS || !(r->tool < 0 ? choose_tool : choose_number)[action]) {
    end_call(v, i, 0, STATUS_REFUSED);
  } else if (r->tool < 0 && action - 1 != TOOL_FINISH) {
    r->tool = action - 1;
    int32_t *phase = io->obs.phase + (size_t)i * PGYM_PHASE_LEN;
    phase[PHASE_TOOL] = action, phase[PHASE_PARAM] = 1, phase[PHASE_COUNT] = 0, phase[PHASE_KIND] = KIND_NUMBER;
    memcpy(io->obs.mask + (size_t)i * PGYM_ACTIONS, choose_number, PGYM_ACTIONS);
  } else if (r->tool < 0) {
    end_call(v, i, TOOL_FINISH, STATUS_OK);
    outcome = PGYM_SCORED;
    parts = PGYM_PATH | PGYM_COLLATERAL | PGYM_COMMIT;
    if (r->number == TARGET) parts |= PGYM_GOALS, reward = 1;
  } else {
    r->number += r->tool == 0 ? action : -action;
    end_call(v, i, r->tool, STATUS_OK);
  }
  if (outcome == PGYM_RUNNING && r->calls >= BUDGET) outcome = PGYM_TRUNCATED, limit = PGYM_LIMIT_CALLS;
  r->over = outcome != PGYM_RUNNING;
  io->reward[i] = reward;
  io->terminated[i] = outcome == PGYM_SCORED;
  io->truncated[i] = outcome == PGYM_TRUNCATED;
  io->outcome[i] = outcome;
  io->limit[i] = limit;
  io->components[i] = parts;
  io->calls[i] = r->calls;
  io->began[i] = began;
}

static int32_t no(pgym_error *err) {
  if (err && err->size >= sizeof *err) {
    err->code = PGYM_E_STATE;
    snprintf(err->text, sizeof err->text, "the plain C loop has no such function");
  }
  return PGYM_E_STATE;
}

API int32_t pgym_abi_version(void) { return PGYM_ABI_VERSION; }

API void pgym_free(pgym_bytes *bytes) { free(bytes->data); }

API int32_t pgym_vec_make(pgym_cstr json, uint64_t len, uint64_t *out, pgym_error *err) {
  (void)len;
  const char *at = strstr(json, "\"num_envs\":");
  uint32_t n = at ? (uint32_t)strtoul(at + strlen("\"num_envs\":"), NULL, 10) : 0;
  vec *v = n ? calloc(1, sizeof *v + n * sizeof *v->rows) : NULL;
  if (!v) return no(err);
  v->n = n;
  for (int a = 1; a <= TOOLS; a++) choose_tool[a] = 1;
  for (int a = 1; a <= MOST; a++) choose_number[a] = 1;
  *out = (uint64_t)(uintptr_t)v;
  return PGYM_OK;
}

API int32_t pgym_vec_bind(uint64_t h, const pgym_io *io, pgym_error *err) {
  (void)err;
  ((vec *)(uintptr_t)h)->io = *io;
  return PGYM_OK;
}

API int32_t pgym_vec_reset(uint64_t h, const uint64_t *seeds, const uint8_t *has, const uint8_t *mask, pgym_error *err) {
  (void)seeds, (void)has, (void)err;
  vec *v = (vec *)(uintptr_t)h;
  for (uint32_t i = 0; i < v->n; i++)
    if (!mask || mask[i]) begin(v, i);
  return PGYM_OK;
}

API int32_t pgym_vec_step(uint64_t h, pgym_error *err) {
  (void)err;
  vec *v = (vec *)(uintptr_t)h;
  for (uint32_t i = 0; i < v->n; i++) step_one(v, i);
  return PGYM_OK;
}

API int32_t pgym_vec_close(uint64_t h, pgym_error *err) {
  (void)err;
  free((vec *)(uintptr_t)h);
  return PGYM_OK;
}

API int32_t pgym_build_info(pgym_bytes *out, pgym_error *err) { return (void)out, no(err); }

API int32_t pgym_vec_queue(uint64_t vec, pgym_cstr json, uint64_t len, pgym_error *err) {
  return (void)vec, (void)json, (void)len, no(err);
}

API int32_t pgym_vec_send(uint64_t vec, const uint32_t *ids, uint32_t n, pgym_error *err) {
  return (void)vec, (void)ids, (void)n, no(err);
}

API int32_t pgym_vec_recv(uint64_t vec, uint32_t *ids, uint32_t *n, uint32_t least, uint32_t ms, pgym_error *err) {
  return (void)vec, (void)ids, (void)n, (void)least, (void)ms, no(err);
}

API int32_t pgym_vec_snapshot(uint64_t vec, uint32_t env, pgym_bytes *out, pgym_error *err) {
  return (void)vec, (void)env, (void)out, no(err);
}

API int32_t pgym_vec_restore(uint64_t vec, uint32_t env, pgym_cstr data, uint64_t len, pgym_error *err) {
  return (void)vec, (void)env, (void)data, (void)len, no(err);
}

API int32_t pgym_vec_fork(uint64_t vec, uint32_t src, const uint32_t *dst, uint32_t n, pgym_error *err) {
  return (void)vec, (void)src, (void)dst, (void)n, no(err);
}

API int32_t pgym_request(uint64_t h, pgym_cstr method, pgym_cstr json, uint64_t len, pgym_bytes *out, pgym_error *err) {
  return (void)h, (void)method, (void)json, (void)len, (void)out, no(err);
}
