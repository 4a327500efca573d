"""What the trainer knows and its environments need: tokenizer, limits, step and rank, and the ids that it trains on."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from provegym.adapters.trl._environment import Environment, EnvironmentFactory
from provegym.errors import BadInputError
from provegym.policies._local import plain, special_tokens

__all__ = ["Tokens", "attach"]

QUESTION = {"role": "user", "content": ""}  # before a turn whose tokens are counted


class Tokens:
    """The trainer's tokenizer and limits, and the ids of the batch under way."""

    def __init__(self, trainer: Any) -> None:
        self.tokenizer = getattr(trainer, "_tokenizer", None) or trainer.processing_class
        self._template = {"chat_template": trainer.chat_template, **trainer.chat_template_kwargs}
        self._completion = int(trainer.max_completion_length)
        config = trainer.model.config
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self._model = int(getattr(config, "max_position_embeddings", sys.maxsize))
        self._special = special_tokens(self.tokenizer)
        self._question = self._render([QUESTION], [])
        self._empty: dict[str, int] = {}
        self.batch: tuple[Any, ...] | None = None

    def plain(self, result: str) -> str:
        """Returns the JSON text with nothing in it that reads as a special token."""
        return plain(result, self._special)

    def turn(self, name: str, arguments: Mapping[str, Any], result: str) -> int:
        """How many tokens a call and its result are, as the template renders them; the model may have written more.

        Only ever counted: what is trained on are the ids that TRL has.
        """
        function = {"type": "function", "function": {"name": name, "arguments": dict(arguments)}}
        answer = {"role": "assistant", "content": "", "tool_calls": [function]}
        shown = {"role": "tool", "name": name, "content": result}
        return self._render([QUESTION, answer, shown], []) - self._question

    def room(self, prompt: Any, text: str, tools: list[Callable[..., str]]) -> tuple[int, int]:
        """Returns the tokens that an episode's completion may have, and those that the model takes in all."""
        messages = [dict(m) for m in prompt or [{"role": "user", "content": ""}]]
        key = json.dumps(messages)
        if key not in self._empty:
            self._empty[key] = self._render(messages, tools)
        messages[-1]["content"] += text
        # A byte is a token at most, so that most prompts need no rendering.
        length = self._empty[key] + len(text.encode())
        if length + self._completion >= self._model:
            length = self._render(messages, tools)
        return min(self._completion, self._model - length - 1), self._model

    def _render(self, messages: list[dict[str, Any]], tools: list[Callable[..., str]]) -> int:
        ids = self.tokenizer.apply_chat_template(
            messages, tools=tools or None, add_generation_prompt=True, tokenize=True, return_dict=False, **self._template
        )
        return len(ids)

    def record(self, factory: EnvironmentFactory, environments: Sequence[Environment]) -> None:
        """Gives the trace the tokens of the batch that TRL has just generated."""
        batch, self.batch = self.batch, None
        if batch is None or factory.trace is None:
            return
        prompts, completions, masks, logprobs = batch
        rows = []
        for i, env in enumerate(environments):
            if env._env is None or env._failed or (episode := env._env.episode_id) is None:
                continue
            mask = masks[i] if masks else [1] * len(completions[i])
            row = {
                "episode": episode,
                "checkpoint": f"step-{factory.step}",
                "prompt": len(prompts[i]),
                "sampled": sum(mask),
                "shown": len(mask) - sum(mask),
                "prompt_ids": list(map(int, prompts[i])),
                "completion_ids": list(map(int, completions[i])),
                "mask": list(map(int, mask)),
            }
            if logprobs is not None:
                own = [x for x, m in zip(logprobs[i], mask, strict=True) if m]
                row["logprobs"] = [float("nan") if x is None else float(x) for x in own]
            rows.append(row)
        factory.trace.tokens(rows)


def attach(trainer: Any) -> EnvironmentFactory:
    """Connects the trainer with its environments, and returns their factory; the callbacks do it by themselves.

    From then on results that do not fit into the completion end the episode by the limit "tokens" before TRL would drop them, a
    prompt that does not fit into the model makes it invalid, and the trace has the ids and masks that TRL trains on.

    Raises:
        BadInputError: If the trainer has no environment factory of ProveGym.
    """
    factories = [
        f for f in (getattr(trainer, "environment_factories", None) or {}).values() if isinstance(f, EnvironmentFactory)
    ]
    tree = getattr(getattr(trainer, "rollout_func", None), "factory", None)
    factories += [tree] if isinstance(tree, EnvironmentFactory) else []
    if len(factories) != 1:
        raise BadInputError(
            f"the trainer has {len(factories)} environment factories of ProveGym, it must have one: "
            "GRPOTrainer(environment_factory=environment_factory(…))"
        )
    factory = factories[0]
    if factory.tokens is None:
        factory.rank = trainer.accelerator.process_index
        factory.tokens = tokens = Tokens(trainer)
        generate = getattr(trainer, "_generate", None)
        if generate is None:
            warnings.warn("this TRL shows no token ids: the trace goes without them", RuntimeWarning, stacklevel=2)
            return factory

        def observed(*args: Any, **kwargs: Any) -> Any:
            made = generate(*args, **kwargs)
            tokens.batch = _ids_of(made)
            return made

        trainer._generate = observed
    return factory


def _ids_of(made: Any) -> tuple[Any, ...] | None:
    """Prompt ids, completion ids, masks and log-probabilities of TRL's rollouts, or None if it gives something else."""
    try:
        prompts, completions, masks, _, logprobs = made[:5]
        if all(len(c) == len(m) for c, m in zip(completions, masks, strict=True)) and len(prompts) == len(completions):
            return prompts, completions, masks, logprobs
    except (TypeError, ValueError):
        pass
    return None
