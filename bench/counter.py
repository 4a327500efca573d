"""The counter world of bench/counter as a Gymnasium environment in Python: same observations, budget and rewards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

TARGET = 40
BUDGET = 15
MOST = 9
TOOLS = 3
FINISH = 2

SLOTS, SLOT_LEN, GOAL_LEN, LAST_LEN, BUDGET_LEN, TOOL_ROWS, TOOL_LEN, PHASE_LEN, ACTIONS = 64, 16, 24, 12, 4, 64, 6, 10, 65

_TOOL_ROWS = np.zeros((TOOL_ROWS, TOOL_LEN), np.float32)
_TOOL_ROWS[:TOOLS] = [[1, 1, 0, 1, 0, 1], [1, 1, 0, 1, 0, 1], [1, 0, 1, 0, 0, 1]]
_FLOAT = {
    "budget": (BUDGET_LEN,),
    "goal": (GOAL_LEN,),
    "last": (LAST_LEN,),
    "slots": (SLOTS, SLOT_LEN),
    "tools": (TOOL_ROWS, TOOL_LEN),
}


class CounterEnv(gym.Env[dict[str, Any], int]):
    """One number, brought to a target by adding and taking. Observations are the environment's own arrays."""

    def __init__(self) -> None:
        spaces: dict[str, gym.Space[Any]] = {k: gym.spaces.Box(-np.inf, np.inf, s, np.float32) for k, s in _FLOAT.items()}
        low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        spaces["phase"] = gym.spaces.Box(low, high, (PHASE_LEN,), np.int32)
        self.observation_space = gym.spaces.Dict(spaces)
        self.action_space = gym.spaces.Discrete(ACTIONS)
        self.obs = {k: np.zeros(s, np.float32) for k, s in _FLOAT.items()}
        self.obs["phase"] = np.zeros(PHASE_LEN, np.int32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.number = self.calls = 0
        self.tool: int | None = None
        obs = self.obs
        obs["goal"][0] = TARGET
        obs["last"][:] = 0
        obs["phase"][:] = 0
        obs["tools"][:] = _TOOL_ROWS
        obs["budget"][:] = (BUDGET, 0, BUDGET, 0)
        return obs, {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        reward, finished, tool = 0.0, False, self.tool
        if not 1 <= action <= (TOOLS if tool is None else MOST):
            self._end_call(0, refused=True)
        elif tool is None and action - 1 != FINISH:
            self.tool = int(action) - 1
            self.obs["phase"][:4] = (action, 1, 0, 3)
        elif tool is None:
            self._end_call(FINISH)
            finished, reward = True, float(self.number == TARGET)
        else:
            self.number += int(action) if tool == 0 else -int(action)
            self._end_call(tool)
        return self.obs, reward, finished, not finished and self.calls >= BUDGET, {}

    def _end_call(self, tool: int, refused: bool = False) -> None:
        self.calls += 1
        self.tool = None
        shown = not refused and tool != FINISH
        self.obs["last"][:5] = (2, 5, tool + 1, 0, 0) if refused else (1, 0, tool + 1, shown, self.number if shown else 0)
        self.obs["budget"][:] = (BUDGET - self.calls, self.calls, BUDGET, self.calls)
        if not refused:
            self.obs["tools"][tool, 4] += 1
        self.obs["phase"][:] = 0
