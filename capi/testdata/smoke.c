/* One episode, every function of the header once, and a call after fork. Exits 0 if all is as the header says. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provegym.h"

#define CHECK(cond)                                                          \
  do {                                                                       \
    if (!(cond)) {                                                           \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #cond, err.text); \
      return 1;                                                              \
    }                                                                        \
  } while (0)

int main(void) {
  pgym_error err;
  memset(&err, 0, sizeof err);
  err.size = sizeof err;
  CHECK(pgym_abi_version() == PGYM_ABI_VERSION);

  pgym_bytes out = {NULL, 0};
  CHECK(pgym_build_info(&out, &err) == PGYM_OK && out.len == strlen(out.data));
  pgym_free(&out);
  CHECK(out.data == NULL);
  pgym_free(&out);
  pgym_free(NULL);

  const char *json = "{\"pack\":\"echo\",\"num_envs\":2,\"view\":\"text\",\"autoreset\":\"same_step\"}";
  uint64_t vec = 0;
  CHECK(pgym_vec_make(json, strlen(json), &vec, &err) == PGYM_OK && vec != 0);
  CHECK(pgym_vec_step(vec, &err) == PGYM_E_STATE);

  char block[256];
  uint32_t off[3] = {0, 0, 0};
  uint8_t terminated[2], truncated[2], outcome[2], limit[2], components[2], began[2];
  int32_t calls[2];
  double reward[2];
  pgym_text text, final, task;
  pgym_io io;
  memset(&io, 0, sizeof io);
  io.size = sizeof io;
  io.num_envs = 2;
  io.action_text = block;
  io.action_off = off;
  io.obs.text = &text;
  io.final_obs.text = &final;
  io.reward = reward;
  io.terminated = terminated;
  io.truncated = truncated;
  io.outcome = outcome;
  io.limit = limit;
  io.components = components;
  io.calls = calls;
  io.began = began;
  io.task = &task;
  CHECK(pgym_vec_bind(vec, &io, &err) == PGYM_OK);
  io.size--;
  CHECK(pgym_vec_bind(vec, &io, &err) == PGYM_E_INPUT);
  io.size++;

  const char *queue = "{\"tasks\":[{\"task\":\"echo@1/copy#seed=9\"}]}";
  uint64_t seeds[2] = {1, 2};
  CHECK(pgym_vec_queue(vec, queue, strlen(queue), &err) == PGYM_OK);
  CHECK(pgym_vec_bind(vec, &io, &err) == PGYM_OK);
  CHECK(pgym_vec_reset(vec, seeds, NULL, NULL, &err) == PGYM_OK);
  CHECK(task.off[1] == 18 && memcmp(task.data, "echo@1/copy#seed=9", 18) == 0);
  CHECK(began[0] == 1 && text.off[2] > text.off[1] && text.off[1] > 20);

  const char *call = "{\"tool\":\"finish\",\"args\":{\"outcome\":\"done\",\"code\":\"copied\"}}";
  memcpy(block, call, strlen(call));
  off[1] = (uint32_t)strlen(call); /* row 1 says nothing, which costs a call */
  off[2] = off[1];
  pgym_bytes snap = {NULL, 0};
  CHECK(pgym_vec_snapshot(vec, 0, &snap, &err) == PGYM_OK && snap.len > 0);
  CHECK(pgym_vec_step(vec, &err) == PGYM_OK);
  CHECK(outcome[0] == PGYM_SCORED && terminated[0] == 1 && truncated[0] == 0 && reward[0] == 0);
  CHECK(outcome[1] == PGYM_RUNNING && calls[1] == 1 && (components[0] & PGYM_GOALS) == 0);
  CHECK(began[0] == 1 && final.off[1] > 0 && final.off[2] == final.off[1]);
  CHECK(pgym_vec_restore(vec, 0, snap.data, snap.len, &err) == PGYM_OK);
  CHECK(task.off[1] == 18 && outcome[0] == PGYM_RUNNING);
  uint32_t one = 1, n = 0, ids[2];
  CHECK(pgym_vec_fork(vec, 0, &one, 1, &err) == PGYM_OK);
  CHECK(text.off[2] == 2 * text.off[1] && memcmp(text.data, text.data + text.off[1], text.off[1]) == 0);
  pgym_free(&snap);

  CHECK(pgym_vec_recv(vec, ids, &n, 1, 0, &err) == PGYM_E_STATE);
  CHECK(pgym_vec_send(vec, &one, 1, &err) == PGYM_OK);
  CHECK(pgym_vec_recv(vec, ids, &n, 1, 10000, &err) == PGYM_OK && n == 1 && ids[0] == 1);

  CHECK(pgym_request(vec, "vec.info", "{\"env\":1}", 9, &out, &err) == PGYM_OK);
  CHECK(strstr(out.data, "\"task\":\"echo@1/copy#seed=9\""));
  pgym_free(&out);

  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(pgym_vec_step(vec, &err) == PGYM_E_FORKED && strstr(err.text, "spawn") ? 0 : 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);

  CHECK(pgym_vec_close(vec, &err) == PGYM_OK);
  CHECK(pgym_vec_close(vec, &err) == PGYM_E_HANDLE && err.code == PGYM_E_HANDLE);
  CHECK(pgym_vec_step(vec, NULL) == PGYM_E_HANDLE);
  return 0;
}
