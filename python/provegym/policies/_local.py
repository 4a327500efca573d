"""A transformers model in this process, batched, its token ids kept from turn to turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provegym.errors import BadInputError
from provegym.policies._conversation import Call, Conversation, Failure, Reply, uniform

__all__ = ["Local", "Tokens", "plain", "special_tokens"]


def special_tokens(tokenizer: Any) -> list[str]:
    """Returns the texts that a tokenizer takes for one of its added tokens, wherever they stand; longest first.

    Those that are not marked special are among them: they too are matched in plain text.
    """
    return sorted({*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}, key=len, reverse=True)


def plain(result: str, special: Sequence[str]) -> str:
    """Returns a JSON text in which nothing reads as a special token, which the model would take for the end of a turn.

    Their first character is written as an escape: the JSON means the same.
    """
    for token in special:
        if token in result:
            result = result.replace(token, f"\\u{ord(token[0]):04x}{token[1:]}")
    return result


@dataclass
class Tokens:
    """The token ids of one episode, only ever appended to.

    Attributes:
        ids: Prompt, replies and results, in order.
        prompt: How many of them are the first prompt.
        mask: For each id after the prompt, 1 if the model sampled it and 0 if not.
    """

    ids: list[int]
    prompt: int
    mask: list[int] = field(default_factory=list)

    def extend(self, ids: list[int], sampled: bool) -> None:
        """Appends ids."""
        self.ids += ids
        self.mask += [int(sampled)] * len(ids)


class Local:
    """A transformers model with tools, in this process. Needs the packages torch and transformers; uses trl where it is there.

    The same tool loop as TRL's: the first prompt is rendered by the chat template, each reply's sampled ids and then the ids of
    the rendered results are appended, and nothing is tokenised twice. Calls are read by the tokenizer's response template. As
    there, a reply whose calls cannot be read is an answer in words.

    Sampling: token i of a reply is the first whose cumulative probability exceeds a number that seed, episode, turn and i alone
    decide. So an episode does not depend on what else is in the batch, as far as the logits do not. They do in their last bits:
    padding and batch size choose other kernels and other orders of summation. A token changes when its number falls between the
    two versions of a boundary, or greedily when the best two tie to that precision: a chance of about the difference of the
    probabilities, some 1e-6 a token in float32 and up to some 1e-2 in bfloat16. Where that matters, use float32 and
    ``batch_size=1``, on one kind of device.

    Args:
        model: A causal language model on its device; it is put into evaluation mode while it generates.
        tokenizer: Its tokenizer. If it has no response template, TRL's for its chat template is set.
        name: What the model is called; its configuration's name if None.
        batch_size: Conversations at a time. Halved where the memory does not suffice.
        max_new_tokens: Tokens of one reply.
        temperature: Of the softmax; 0 takes the likeliest token.
        seed: Names the random numbers, with each episode's key.
        context: Tokens that the model takes; its configuration's if None.
        chat_template: What renders; if None the tokenizer's, or, where that does not keep prefixes, TRL's training version.
        chat_template_kwargs: What it takes more, such as ``{"enable_thinking": False}``.
        tools: What the template is given instead of each episode's own tools: schemas, or functions as a trainer shows them.

    Raises:
        BadInputError: If an argument is malformed, or the tokenizer can neither render tools nor read calls.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        batch_size: int = 16,
        max_new_tokens: int = 512,
        temperature: float = 1.0,
        seed: int = 0,
        context: int | None = None,
        chat_template: str | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
    ) -> None:
        """Checks that the tokenizer can do what is needed."""
        if batch_size < 1 or max_new_tokens < 1 or not temperature >= 0:
            raise BadInputError("batch_size and max_new_tokens are whole numbers from 1, temperature a number from 0")
        self.model, self.tokenizer = model, tokenizer
        self.name = name or getattr(model.config, "_name_or_path", "") or type(model).__name__
        self.batch_size, self.max_new_tokens, self.temperature, self.seed = batch_size, max_new_tokens, temperature, seed
        self.context = context or getattr(model.config, "max_position_embeddings", None)
        self.chat_template = chat_template
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        self.tools = None if tools is None else list(tools)
        self._special = special_tokens(tokenizer)
        try:
            from trl import chat_template_utils as trl
        except ImportError:
            trl = None
        self._parse = getattr(trl, "parse_response", None) or _parse
        if getattr(tokenizer, "response_template", None) is None and getattr(tokenizer, "response_schema", None) is None:
            try:
                if trl is None:
                    raise ValueError("the package trl, which knows many, is not installed")
                trl.add_response_schema(tokenizer)
            except ValueError as err:
                raise BadInputError(f"the tokenizer has no response_template to read calls with: {err}") from err
        if trl is not None and chat_template is None and not trl.supports_tool_calling(tokenizer):
            raise BadInputError("the chat template does not show calls and results; give a chat_template that does")
        if chat_template is None and trl is not None and not trl.is_chat_template_prefix_preserving(tokenizer):
            try:
                self.chat_template = trl.get_training_chat_template(tokenizer)
            except ValueError as err:
                raise BadInputError(f"the chat template renders earlier messages anew: {err}") from err

    def render(self, messages: list[dict[str, Any]], tools: list[Any] | None, more: bool = True) -> list[int]:
        """Returns the token ids of messages, with the head of the next reply if ``more``."""
        ids: list[int] = self.tokenizer.apply_chat_template(
            messages,
            tools=tools,
            add_generation_prompt=more,
            tokenize=True,
            return_dict=False,
            chat_template=self.chat_template,
            **self.chat_template_kwargs,
        )
        return ids

    def suffix(self, results: list[dict[str, Any]]) -> list[int]:
        """Returns the ids that tool messages add after a reply, as TRL finds them: rendered after a stand-in, cut off it."""
        call = {"type": "function", "function": {"name": results[0]["name"], "arguments": {}}}
        head: list[dict[str, Any]] = [
            {"role": "user", "content": "dummy"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
        results = [{**r, "content": plain(r["content"], self._special)} for r in results]
        before, after = self.render(head, None, more=False), self.render(head + results, None)
        ends = [i for i, t in enumerate(before) if t == self.tokenizer.eos_token_id]
        if ends:  # some templates write a line break after the end of a turn; the model does not
            before = before[: ends[-1] + 1]
        if after[: len(before)] != before:
            raise BadInputError("the chat template renders earlier messages anew; give a chat_template that keeps prefixes")
        return after[len(before) :]

    def complete(self, conversations: list[Conversation]) -> list[Reply | Failure]:
        """Returns the next reply of each conversation."""
        answers: list[Reply | Failure | None] = [None] * len(conversations)
        todo: list[tuple[int, Conversation, int]] = []
        for i, c in enumerate(conversations):
            if c.state is None:
                ids = self.render(c.messages, self.tools or c.tools or None)
                c.state = Tokens(ids, len(ids))
            elif c.unseen():
                c.state.extend(self.suffix(c.unseen()), sampled=False)
            room, limit = self.max_new_tokens, ""
            if self.context is not None and self.context - len(c.state.ids) < 1:
                limit = f"the conversation outgrew the context of {self.context} tokens"
            if self.context is not None:
                room = min(room, self.context - len(c.state.ids))
            if c.budget is not None:
                room = min(room, c.budget - len(c.state.mask))
                if room < 1 and not limit:
                    limit = f"the budget of {c.budget} tokens is spent"
            if limit:
                answers[i] = Failure(limit, "tokens")
            else:
                todo.append((i, c, room))
        todo.sort(key=lambda x: len(x[1].state.ids))  # less padding
        size = self.batch_size
        while todo:
            part, rest = todo[:size], todo[size:]
            sampled = self._generate([c for _, c, _ in part], [room for _, _, room in part])
            if sampled is None and len(part) > 1:
                size = len(part) // 2
                continue
            for k, (i, c, room) in enumerate(part):
                answers[i] = self._reply(c, sampled[k], room) if sampled else Failure("the device has too little memory")
            todo = rest
        return [a for a in answers if a is not None]

    def _reply(self, c: Conversation, ids: list[int], room: int) -> Reply:
        prefix = list(c.state.ids)
        c.state.extend(ids, sampled=True)
        said = self._parse(self.tokenizer, ids, prefix=prefix, tools=self.tools or c.tools)
        calls = []
        for i, asked in enumerate(said.get("tool_calls") or ()):
            function = asked.get("function") or asked
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            calls.append(Call(f"call_{c.turns}_{i}", str(function.get("name") or ""), text))
        cut = len(ids) == room and ids[-1] not in self._ends()
        return Reply(str(said.get("content") or ""), tuple(calls), len(prefix), len(ids), cut)

    def _ends(self) -> list[int]:
        """Ids that end a reply."""
        own = getattr(self.model.generation_config, "eos_token_id", None)
        ends = [self.tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])]
        return list(dict.fromkeys(t for t in ends if t is not None))

    def _generate(self, conversations: list[Conversation], rooms: list[int]) -> list[list[int]] | None:
        """Samples one reply for each; None if the device's memory does not suffice for so many."""
        import torch
        from transformers import GenerationConfig

        ends = self._ends()
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else ends[0]
        prompts = [c.state.ids for c in conversations]
        width, device = max(map(len, prompts)), self.model.device
        ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
        keys = [(self.seed, "token", c.key, c.turns) for c in conversations]
        room = torch.tensor(rooms, device=device)
        temperature = self.temperature

        def choose(so_far: Any, logits: Any) -> Any:
            """Leaves one token possible, so that generate's argmax takes it: its own sampler draws for the batch as one."""
            if temperature == 0:
                return logits
            at = so_far.shape[1] - width
            below = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
            u = torch.tensor([[uniform(*k, at)] for k in keys], dtype=below.dtype, device=device) * below[:, -1:]
            token = torch.searchsorted(below, u, right=True).clamp(max=logits.shape[-1] - 1)
            return torch.full_like(logits, -torch.inf).scatter(1, token, 0.0)

        def full(so_far: Any, _logits: Any, **_: Any) -> Any:
            return so_far.shape[1] - width >= room

        # Everything that the model's own configuration could change about the choice is set here.
        config = GenerationConfig(
            max_new_tokens=max(rooms),
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            eos_token_id=ends,
            pad_token_id=pad,
            use_cache=True,
        )
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                out = self.model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    generation_config=config,
                    logits_processor=[choose],
                    stopping_criteria=[full],
                )
        except torch.OutOfMemoryError:
            out = None
        finally:
            self.model.train(training)
        if out is None:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return None
        return [_until(row[:n], ends) for row, n in zip(out[:, width:].tolist(), rooms, strict=True)]


def _until(ids: list[int], ends: list[int]) -> list[int]:
    """Returns ids up to the first end, which is kept."""
    for i, t in enumerate(ids):
        if t in ends:
            return ids[: i + 1]
    return ids


def _parse(tokenizer: Any, ids: list[int], prefix: list[int], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Reads a reply without TRL, as it does: what cannot be read is words."""
    try:
        said = tokenizer.parse_response(ids, prefix=prefix, tools=tools)
        if isinstance(said, dict):
            return said
    except (ValueError, TypeError):
        pass
    return {"content": tokenizer.decode(ids, skip_special_tokens=True)}
