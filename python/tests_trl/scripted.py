"""A tokenizer and a model made from scratch, and a policy that follows a script: for the tests and what they start."""

import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import add_response_schema

import provegym
from provegym import trace as traces

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"]
TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"


@cache
def make_tokenizer(tools: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 1,000 tokens with Qwen3's special tokens and chat template; it shows the tools only if asked to."""
    corpus = [json.dumps(provegym.pack(p)) for p in ("tooluse", "echo")] + [TEMPLATE.read_text()]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1000, special_tokens=SPECIAL, initial_alphabet=alphabet))
    made = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = TEMPLATE.read_text()
    add_response_schema(made)
    if not tools:  # twenty tools are 3,000 tokens, which a test need not read again and again
        made.chat_template = "{%- set tools = none %}" + TEMPLATE.with_name("qwen3_training.jinja").read_text()
    return made


def make_model() -> Qwen3ForCausalLM:
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=16384,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def call(name: str, /, **arguments: Any) -> str:
    """A tool call as the model would write it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def oracle(task: str, folder: Path) -> list[str]:
    """The oracle's calls of a task, as the model would write them."""
    provegym.rollout("oracle", [task], trace=(store := provegym.Trace(folder, pack=task.partition("@")[0])))
    store.close()
    episode = traces.query(folder, "episodes")[-1]["id"]
    steps = [json.loads(s["text"]) for s in traces.query(folder, "steps", episode=episode)]
    return [call(s["tool"], **s["args"]) for s in steps]


class Scripted:
    """Stands in for ``model.generate``: each rollout of a batch has a script of turns, then says "done"."""

    def __init__(self, tokenizer: Any, scripts: Callable[[], Sequence[Sequence[str]]]) -> None:
        self.tokenizer, self.scripts = tokenizer, scripts
        self.sampled: list[list[list[int]]] = []  # by batch and rollout, the ids of each turn
        self.contexts: list[list[list[int]]] = []  # what each rollout's last turn was generated from
        self._open: list[tuple[int, list[int]]] = []  # rollout, and the ids that its next context begins with

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> torch.Tensor:
        rows = [ids[mask.bool()].tolist() for ids, mask in zip(input_ids, attention_mask, strict=True)]
        free = list(self._open)
        which = []
        for row in rows:
            found = next((f for f in free if row[: len(f[1])] == f[1]), None)
            if found is None:
                break
            free.remove(found)
            which.append(found[0])
        if len(which) < len(rows):  # a new batch
            self._now = [list(s) for s in self.scripts()]
            assert len(self._now) == len(rows), f"the script has {len(self._now)} rollouts and the batch {len(rows)}"
            self.sampled.append([[] for _ in rows])
            self.contexts.append([[] for _ in rows])
            which = list(range(len(rows)))
        self._open = []
        replies = []
        for rollout, row in zip(which, rows, strict=True):
            turn = len(self.sampled[-1][rollout])
            text = self._now[rollout][turn] if turn < len(self._now[rollout]) else "done"
            ids = [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]
            self.sampled[-1][rollout].append(ids)
            self.contexts[-1][rollout] = row
            self._open.append((rollout, row + ids))
            replies.append(ids)
        width = max(map(len, replies))
        pad = self.tokenizer.pad_token_id
        out = torch.tensor([ids + [pad] * (width - len(ids)) for ids in replies], device=input_ids.device)
        return torch.cat([input_ids, out], dim=1)
