"""Gymnasium wrappers of the structured view."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from provegym.env import Env
from provegym.errors import BadInputError
from provegym.tasks import pack as pack_info

__all__ = ["FlatAction"]


class FlatAction(gym.Wrapper[Any, npt.NDArray[np.int64], Any, Any]):
    """The structured view with a whole call as one action, for learners that want ``MultiDiscrete``.

    The action is the sequence of choices that the phases would ask for, one after another: the tool, then each argument, the
    members of a list in a row with 0 after the last. What a call does not need is ignored. Both forms make the same calls, so
    they have the same log, digest and reward.

    The masks are unions: an entry is legal if some call has it there. ``MultiDiscrete`` cannot say that an argument fits one
    tool only, so a call made of legal entries may still be wrong; it then costs a call and changes nothing, as in the text
    view. The phases are exact, and faster (to make the masks takes milliseconds): prefer them where the learner can choose step
    by step.

    >>> import gymnasium as gym, provegym
    >>> env = FlatAction(gym.make("provegym/EchoStructured-v0"))
    >>> observation, info = env.reset(seed=1)
    >>> masks = env.action_masks()
    >>> masks.shape == (env.action_space.nvec.sum(),)
    True

    Args:
        env: An environment of the structured view.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Makes it, with an environment of its own to look ahead in."""
        super().__init__(env)
        inner = env.unwrapped
        if not isinstance(inner, Env) or inner._config.view != "structured":
            raise BadInputError(f"FlatAction wraps the structured view of a pack; {env} has no phases")
        self._inner = inner
        self._ahead = Env(**{**vars(inner._config), "trace": None})
        tools = pack_info(inner._config.pack)["tools"]
        self._length = 1 + max(sum(map(_choices, t["function"]["parameters"]["properties"].values())) for t in tools)
        self._actions = inner._batch.mask.shape[1]  # of one choice
        self.action_space = gym.spaces.MultiDiscrete([self._actions] * self._length)

    def step(self, action: npt.NDArray[np.int64]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Makes one call, or as much of it as is legal.

        Args:
            action: Whole numbers, (choices,).

        Returns:
            As ``Env.step`` after the last choice.
        """
        choices = np.asarray(action)
        if choices.shape != (self._length,) or not np.issubdtype(choices.dtype, np.integer):
            raise BadInputError(f"a flat action is {self._length} whole numbers, not {choices.dtype} of shape {choices.shape}")
        for choice in choices.tolist():
            legal = 0 <= choice < self._actions and bool(self._inner.action_masks()[choice])
            observation, reward, terminated, truncated, info = self.env.step(choice)
            if not legal or terminated or truncated or observation["phase"][0] == 0:
                break
        return observation, float(reward), terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Returns what may stand at each place of an action, (choices * 65,): True if some call has it there."""
        masks = np.zeros((self._length, self._actions), np.bool_)
        start = self._inner.snapshot()
        masks[0] = self._inner.action_masks()
        for tool in np.flatnonzero(masks[0]).tolist():
            self._look(masks, start, [tool])
        masks[~masks.any(axis=1), 0] = True  # places that no call reaches
        return masks.reshape(-1)

    def _look(self, masks: npt.NDArray[np.bool_], start: bytes, chosen: list[int]) -> None:
        """Adds what may follow these choices. A list is looked into both ways: ended here, and gone on with."""
        observation, _ = self._ahead.restore(start)
        for choice in chosen:
            observation, _, terminated, truncated, _ = self._ahead.step(choice)
            if terminated or truncated:
                return
        if observation["phase"][0] == 0:
            return  # the call is complete
        mask = self._ahead.action_masks()
        masks[len(chosen)] |= mask
        for choice in [c for c in (0, 1 + int(mask[1:].argmax())) if mask[c]]:
            self._look(masks, start, [*chosen, choice])

    def close(self) -> None:
        """Closes both environments."""
        self._ahead.close()
        super().close()


def _choices(schema: dict[str, Any]) -> int:
    return int(schema.get("maxItems", 1)) if schema["type"] == "array" else 1
