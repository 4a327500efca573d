/* Plays random legal actions and prints one line an episode: task id, outcome, digest.
 *
 *   cc -std=c99 -Wall -Wextra -pedantic -I include capi/examples/random_agent.c -L build -lprovegym -Wl,-rpath,build \
 *      -o random_agent
 *   ./random_agent echo 7 5        pack, seed, episodes
 *
 * The rule, so that any language can reproduce the lines: one environment, structured view, autoreset disabled, reset with
 * the seed at first and without one later. state = seed, once, before the first episode. Every step takes x = splitmix64(&state)
 * and k = x % (number of ones in the mask); the action is the index of the k-th one, counted from 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provegym.h"

static pgym_error err;

static void must(int32_t status) {
  if (status != PGYM_OK) {
    fprintf(stderr, "random_agent: error %" PRId32 ": %s\n", status, err.text);
    exit(1);
  }
}

/* Steele, Lea and Flood 2014 */
static uint64_t splitmix64(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int32_t choose(const uint8_t *mask, uint64_t *state) {
  uint64_t n = 0;
  for (int i = 0; i < PGYM_ACTIONS; i++) n += mask[i];
  uint64_t k = splitmix64(state) % n; /* some tool is always legal */
  for (int32_t i = 0;; i++)
    if (mask[i] && k-- == 0) return i;
}

/* Prints the string member of a flat answer: enough JSON for an example. */
static void print_member(const pgym_bytes *answer, const char *name) {
  char key[32];
  snprintf(key, sizeof key, "\"%s\":\"", name);
  const char *at = strstr(answer->data, key);
  at = at ? at + strlen(key) : "\"";
  printf("%.*s", (int)strcspn(at, "\""), at);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: random_agent PACK SEED EPISODES\n");
    return 2;
  }
  uint64_t seed = strtoull(argv[2], NULL, 10), state = seed;
  err.size = sizeof err;
  if (pgym_abi_version() != PGYM_ABI_VERSION) {
    fprintf(stderr, "random_agent: the library has another ABI than its header\n");
    return 1;
  }

  char json[256];
  int len = snprintf(json, sizeof json, "{\"pack\":\"%s\",\"num_envs\":1,\"view\":\"structured\",\"autoreset\":\"disabled\"}", argv[1]);
  if (len < 0 || (size_t)len >= sizeof json) return 2;
  uint64_t vec;
  must(pgym_vec_make(json, (uint64_t)len, &vec, &err));

  int32_t action = 0;
  uint8_t mask[PGYM_ACTIONS], terminated = 0, truncated = 0, outcome = 0;
  double reward = 0;
  pgym_text task = {NULL, NULL};
  pgym_io io;
  memset(&io, 0, sizeof io);
  io.size = sizeof io;
  io.num_envs = 1;
  io.action = &action;
  io.obs.mask = mask;
  io.reward = &reward;
  io.terminated = &terminated;
  io.truncated = &truncated;
  io.outcome = &outcome;
  io.task = &task;
  must(pgym_vec_bind(vec, &io, &err));

  static const char *const outcomes[] = {"running", "scored", "truncated", "invalid", "check_error"};
  for (long n = strtol(argv[3], NULL, 10), i = 0; i < n; i++) {
    must(pgym_vec_reset(vec, i ? NULL : &seed, NULL, NULL, &err));
    do {
      action = choose(mask, &state);
      must(pgym_vec_step(vec, &err));
    } while (!terminated && !truncated);

    pgym_bytes info;
    must(pgym_request(vec, "vec.info", "{\"env\":0}", 9, &info, &err));
    printf("%.*s %s ", (int)(task.off[1] - task.off[0]), task.data + task.off[0], outcomes[outcome]);
    print_member(&info, "digest");
    printf("\n");
    pgym_free(&info);
  }
  must(pgym_vec_close(vec, &err));
  return 0;
}
