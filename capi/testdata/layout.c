/* Prints size and offsets of every struct of the header, for comparison with the mirror of library_test.go. */
#include <stddef.h>
#include <stdio.h>

#include "provegym.h"

#define S(type) printf("%s %zu\n", #type, sizeof(type))
#define M(type, member) printf("%s.%s %zu\n", #type, #member, offsetof(type, member))

int main(void) {
  S(pgym_error), M(pgym_error, size), M(pgym_error, code), M(pgym_error, text);
  S(pgym_bytes), M(pgym_bytes, data), M(pgym_bytes, len);
  S(pgym_text), M(pgym_text, data), M(pgym_text, off);
  S(pgym_obs), M(pgym_obs, slots), M(pgym_obs, goal), M(pgym_obs, last), M(pgym_obs, budget), M(pgym_obs, tools),
      M(pgym_obs, phase), M(pgym_obs, mask), M(pgym_obs, text);
  S(pgym_io), M(pgym_io, size), M(pgym_io, num_envs), M(pgym_io, action), M(pgym_io, action_text), M(pgym_io, action_off),
      M(pgym_io, obs), M(pgym_io, final_obs), M(pgym_io, reward), M(pgym_io, terminated), M(pgym_io, truncated),
      M(pgym_io, outcome), M(pgym_io, limit), M(pgym_io, components), M(pgym_io, calls), M(pgym_io, began), M(pgym_io, task);
  return 0;
}
