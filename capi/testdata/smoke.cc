// The header from C++: structs, constants, and one call.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "provegym.h"

int main() {
  pgym_error err{};
  err.size = sizeof err;
  const char json[] = R"({"pack":"echo","num_envs":3,"view":"structured"})";
  std::uint64_t vec = 0;
  if (pgym_vec_make(json, sizeof json - 1, &vec, &err) != PGYM_OK) {
    std::fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  std::vector<std::int32_t> action(3, 1);
  std::vector<std::uint8_t> mask(3 * PGYM_ACTIONS), flags(6);
  std::vector<double> reward(3);
  pgym_io io{};
  io.size = sizeof io;
  io.num_envs = 3;
  io.action = action.data();
  io.obs.mask = mask.data();
  io.reward = reward.data();
  io.terminated = flags.data();
  io.truncated = flags.data() + 3;
  if (pgym_vec_bind(vec, &io, &err) || pgym_vec_reset(vec, nullptr, nullptr, nullptr, &err) || pgym_vec_step(vec, &err) ||
      pgym_vec_close(vec, &err)) {
    std::fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  int legal = 0;
  for (auto m : mask) legal += m;
  return legal > 0 ? 0 : 1;
}
