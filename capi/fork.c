/* The exports of include/provegym.h. Each refuses in a child of fork(2), where the Go runtime has lost its threads and would
 * hang at its next collection, and otherwise passes on to Go. */
#include "provegym.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

static volatile int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static int32_t refuse(pgym_error *err) {
  if (err && err->size >= sizeof *err) {
    err->code = PGYM_E_FORKED;
    snprintf(err->text, sizeof err->text,
             "this process was forked after the library was loaded, and the library does not survive that; start workers by "
             "spawn or forkserver, or load the library in the child");
  }
  return PGYM_E_FORKED;
}

#define PASS(call) return __builtin_expect(forked, 0) ? refuse(err) : (call)

int32_t pgym_abi_version(void) { return PGYM_ABI_VERSION; }

void pgym_free(pgym_bytes *bytes) {
  if (bytes) {
    free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
  }
}

int32_t pgym_build_info(pgym_bytes *out, pgym_error *err) { PASS(pgymi_build_info(out, err)); }

int32_t pgym_vec_make(pgym_cstr json, uint64_t len, uint64_t *vec, pgym_error *err) {
  PASS(pgymi_vec_make(json, len, vec, err));
}

int32_t pgym_vec_bind(uint64_t vec, const pgym_io *io, pgym_error *err) { PASS(pgymi_vec_bind(vec, (pgym_io *)io, err)); }

int32_t pgym_vec_reset(uint64_t vec, const uint64_t *seeds, const uint8_t *has_seed, const uint8_t *mask, pgym_error *err) {
  PASS(pgymi_vec_reset(vec, (uint64_t *)seeds, (uint8_t *)has_seed, (uint8_t *)mask, err));
}

int32_t pgym_vec_queue(uint64_t vec, pgym_cstr json, uint64_t len, pgym_error *err) {
  PASS(pgymi_vec_queue(vec, json, len, err));
}

int32_t pgym_vec_send(uint64_t vec, const uint32_t *ids, uint32_t n_ids, pgym_error *err) {
  PASS(pgymi_vec_send(vec, (uint32_t *)ids, n_ids, err));
}

int32_t pgym_vec_recv(uint64_t vec, uint32_t *ids, uint32_t *n_ids, uint32_t min_ready, uint32_t timeout_ms, pgym_error *err) {
  PASS(pgymi_vec_recv(vec, ids, n_ids, min_ready, timeout_ms, err));
}

int32_t pgym_vec_step(uint64_t vec, pgym_error *err) { PASS(pgymi_vec_step(vec, err)); }

int32_t pgym_vec_snapshot(uint64_t vec, uint32_t env, pgym_bytes *out, pgym_error *err) {
  PASS(pgymi_vec_snapshot(vec, env, out, err));
}

int32_t pgym_vec_restore(uint64_t vec, uint32_t env, pgym_cstr data, uint64_t len, pgym_error *err) {
  PASS(pgymi_vec_restore(vec, env, data, len, err));
}

int32_t pgym_vec_fork(uint64_t vec, uint32_t src, const uint32_t *dst, uint32_t n, pgym_error *err) {
  PASS(pgymi_vec_fork(vec, src, (uint32_t *)dst, n, err));
}

int32_t pgym_vec_close(uint64_t vec, pgym_error *err) { PASS(pgymi_vec_close(vec, err)); }

int32_t pgym_request(uint64_t handle, pgym_cstr method, pgym_cstr json, uint64_t len, pgym_bytes *out, pgym_error *err) {
  PASS(pgymi_request(handle, method, json, len, out, err));
}

#ifndef PGYM_HEADER_SHA256
#define PGYM_HEADER_SHA256 unknown
#endif
#define SPELL(x) #x
#define VALUE(x) SPELL(x)
const char *pgymi_header_sha256 = VALUE(PGYM_HEADER_SHA256);
