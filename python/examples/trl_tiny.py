"""A small language model made from nothing, that has seen how the oracle works: the base checkpoint of the TRL demonstration.

    oracle episodes -> tokenizer -> transformer -> SFT by TRL on the episodes' text -> pass rate through the tool loop

No hub and no download: the tokenizer's vocabulary is counted in the transcripts, the weights start random. A stage's result is
kept in the folder, written by temporary name and rename, and not made again; so a killed run goes on where it was.

    python python/examples/trl_tiny.py --out tiny --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Lfm2Config,
    Lfm2ForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    TrainerCallback,
)
from trl import SFTConfig, SFTTrainer
from trl.chat_template_utils import get_training_chat_template

import provegym
from provegym import trace as traces

Message = dict[str, Any]
Transcript = list[Message]
Tool = Callable[..., str]

PACK = "tooluse"
FAMILIES = ("resolve-act", "branch", "refusal")
EASY = "L0"
EPISODES = 6400  # of the oracle, to learn from

# ------------------------------------------------------------------ transcripts


def key(seed: int, purpose: str) -> int:
    """Returns the seed of a named stream, so that no two purposes share random numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:7], "big")


def tasks(seed: int, purpose: str, n: int, families: Sequence[str] = FAMILIES, **where: Any) -> list[str]:
    """Draws n easy tasks, the families in turn."""
    each = [
        provegym.sample(PACK, -(-n // len(families)), seed=key(seed, f"{purpose}/{f}"), family=f, **({"preset": EASY} | where))
        for f in families
    ]
    return [t for row in zip(*each, strict=True) for t in row][:n]


def transcripts(task_ids: Sequence[str], agent: str = "oracle", **door: Any) -> list[Transcript]:
    """Plays an agent of the pack over tasks and returns the conversations that a language model would have had.

    The agent runs inside the library and is recorded; its calls are then replayed for the results' text.

    Args:
        task_ids: The tasks.
        agent: The agent's name.
        **door: ``split`` and ``mode`` of the episodes.
    """
    conversations = []
    with tempfile.TemporaryDirectory() as folder:
        with provegym.Trace(folder, pack=PACK) as store:
            provegym.rollout(agent, task_ids, trace=store, **door)
        played = {e["task"]: e["id"] for e in traces.query(folder, "episodes")}  # which ended in any order
        env = gym.make("provegym/ToolUse-v1", **door)
        for task in task_ids:
            instruction, _ = env.reset(options={"task": task})
            messages: Transcript = [{"role": "user", "content": instruction}]
            for step in traces.query(folder, "steps", episode=played[task]):
                call = json.loads(step["text"])
                messages += [assistant(call), tool(call["tool"], env.step(step["text"])[0])]
            conversations.append([*messages, {"role": "assistant", "content": ""}])  # nothing is left to say
        env.close()
    return conversations


def assistant(call: dict[str, Any]) -> Message:
    function = {"name": call["tool"], "arguments": call["args"]}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def tool(name: str, result: str) -> Message:
    return {"role": "tool", "name": name, "content": result}


# ------------------------------------------------------------------ tokenizer

USER, ASSISTANT, TOOL, CALL, END, PAD = "<|user|>", "<|assistant|>", "<|tool|>", "<|call|>", "<|end|>", "<|pad|>"

# It renders calls as `<|call|>get_order{"order":"o-57b895bed4"}` and leaves the tools' schemas out: SFT teaches this model its
# tools, and twenty schemas are ten times as long as an episode. All that the assistant writes, its <|end|> too, is between the
# generation markers: what is trained on.
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|assistant|>' -}}
{%- generation -%}
{{- message.content or '' -}}
{%- for call in message.tool_calls or [] -%}
{{- '<|call|>' + call.function.name + (call.function.arguments if call.function.arguments is string
    else call.function.arguments | tojson(separators=(',', ':'))) -}}
{%- endfor -%}
{{- '<|end|>' -}}
{%- endgeneration -%}
{%- elif message.role == 'tool' -%}
{{- '<|tool|>' + message.content -}}
{%- else -%}
{{- '<|user|>' + message.content -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""

# The way back, for Tokenizer.parse_response: generated text to a message with its calls.
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant", "content": ""},
    "start_anchor": ASSISTANT,
    "fields": {
        "tool_calls": {
            "open_pattern": r"<\|call\|>(?P<name>\w+)",
            "close_pattern": r"<\|end\|>|(?=<\|call\|>)",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"<\|end\|>", "content": "text"},
    },
}

HEX_PAIR = "|".join(rf"(?<=[a-z]-{'.' * n})[0-9a-f]{{2}}(?=[0-9a-f]{{{8 - n}}}(?![0-9a-z]))" for n in range(0, 10, 2))
EMAIL = r'(?<=")[a-z]+\.[a-z]+(?=[0-9]*@)'


def text_of(conversation: Transcript) -> str:
    """Returns all text of a conversation, calls as the template renders them."""
    parts = []
    for m in conversation:
        parts.append(m["content"])
        for call in m.get("tool_calls", ()):
            f = call["function"]
            parts.append(f["name"] + json.dumps(f["arguments"], separators=(",", ":"), ensure_ascii=False))
    return "\0".join(parts)


def tokenizer(corpus: Sequence[Transcript], common: int = 5) -> PreTrainedTokenizerFast:
    """Makes a tokenizer whose words are the transcripts' own, and whose fallback are bytes: any text comes back unchanged.

    Ids are random and have to be copied, so they are cut the same way everywhere: five pairs of hex digits. Numbers are cut in
    pairs of digits. A word that occurs as a value in the JSON (a status, an item, a code) is one token wherever it stands, and
    what stands between two such pieces, be it prose or JSON, is one token if it is common. An order then is some 80 tokens.

    Args:
        corpus: The transcripts.
        common: How often a piece occurs at least if it is to be a token.
    """
    texts = [text for c in corpus for text in text_of(c).split("\0")]
    values = Counter(v for t in texts for v in re.findall(r'"([a-z_]+)"(?!:)', t))
    words = "|".join(sorted((v for v, n in values.items() if n >= common), key=lambda v: (-len(v), v)))
    pieces = rf"{HEX_PAIR}|{EMAIL}|(?<![0-9a-z_])(?:{words})(?![0-9a-z_])|[0-9]{{1,2}}|[A-Z][a-z]+"
    cut = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    found = Counter(piece for t in texts for piece, _ in cut.pre_tokenize_str(t))
    vocabulary = [PAD, END, USER, ASSISTANT, TOOL, CALL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary += [f"{n:02x}" for n in range(256)]
    known = set(vocabulary)
    vocabulary += [p for p, n in sorted(found.items(), key=lambda x: (-x[1], x[0])) if n >= common and p not in known]
    # With ignore_merges a piece that is in the vocabulary is one token; there are no merges, so any other is its bytes.
    core = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(vocabulary)}, merges=[], ignore_merges=True))
    core.pre_tokenizer = cut
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT, TOOL, CALL],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
        response_template=RESPONSE_TEMPLATE,
    )


# ------------------------------------------------------------------ model


def model(
    tok: PreTrainedTokenizerFast,
    seed: int,
    width: int = 128,
    layers: str = "caca",
    ff: int = 256,
    heads: int = 2,
    taps: int = 3,
) -> Lfm2ForCausalLM:
    """Makes the transformer, of short convolutions and attention in turn, with random weights.

    Args:
        tok: Its tokenizer.
        seed: Of the weights.
        width: Of the residual stream.
        layers: A letter a layer: c for a short convolution, a for attention.
        ff: Width of the feed-forward part of each layer.
        heads: Attention heads. To tell 256 pairs of digits apart takes heads of 64 numbers or more.
        taps: Tokens that a convolution sees.
    """
    config = Lfm2Config(
        vocab_size=len(tok),
        hidden_size=width,
        intermediate_size=ff,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=len(layers),
        layer_types=[{"c": "conv", "a": "full_attention"}[x] for x in layers],
        conv_L_cache=taps,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        pad_token_id=tok.pad_token_id,
        eos_token_id=tok.eos_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(seed)
    net = Lfm2ForCausalLM(config)
    with torch.no_grad():
        start_as_copier(net)
    return net


def start_as_copier(net: Lfm2ForCausalLM, sharp: float = 2.0, loud: float = 3.0, scale: float = 0.3) -> None:
    """Draws the weights such that attention begins as induction heads: it finds what followed the last time, and says that.

    Most of the work in these tasks is copying ids, and with the usual start a model of this size needs far more text to find
    that out than minutes on a CPU allow. So a convolution begins by adding the tokens before, each through a random matrix of
    its own; attention compares a token with the token before of each earlier place (its keys' matrix is its queries' times
    that random matrix), and what it reads it writes back as it was (Olsson et al. 2022, "In-context Learning and Induction
    Heads"; the idea to start from such structure is Trockman and Kolter 2023, "Mimetic Initialization of Self-Attention
    Layers"). The matrices stay random in all else, and training changes every one.

    Args:
        net: The model.
        sharp: How much more than usual attention prefers the best match.
        loud: How much more than usual attention writes.
        scale: Standard deviation of the embeddings. Too small, and Adam's first steps, of the same size for all weights, wash
            the structure away.
    """
    width = net.config.hidden_size
    for name, p in net.named_parameters():
        if p.ndim == 2:
            adds = name.endswith(("out_proj.weight", "w2.weight"))  # to the residual stream
            torch.nn.init.normal_(p, std=scale if "embed" in name else scale * width**-0.5 if adds else width**-0.5)
    net.model.embedding_norm.weight.fill_(width**-0.5 / scale)
    net.model.embed_tokens.weight[:, 0] = 3 * scale  # the same for all tokens: what opens the gates
    before = torch.eye(width)  # what the last convolution adds for the token before
    for layer in net.model.layers:
        if layer.is_attention_layer:
            attention = layer.self_attn
            attention.q_layernorm.weight.fill_(sharp)
            attention.k_layernorm.weight.fill_(sharp)
            attention.q_proj.weight[:, 0] = 0
            attention.v_proj.weight[:, 0] = 0
            attention.k_proj.weight.copy_(attention.q_proj.weight @ before.T)
            attention.out_proj.weight.copy_(attention.v_proj.weight.T * loud * scale)
        else:
            conv = layer.conv
            gates, values = conv.in_proj.weight[: 2 * width], conv.in_proj.weight[2 * width :]
            gates *= 0.2
            gates[:, 0] = 1 / 3
            values[:, 0] = 0
            taps = conv.conv.weight  # (width, 1, taps); the last tap is the token itself
            delay = 1 + torch.arange(width) % (taps.shape[2] - 1)
            taps.zero_()
            taps[torch.arange(width), 0, taps.shape[2] - 1 - delay] = 1
            before = (conv.out_proj.weight * (delay == 1)) @ values
            before *= width**0.5 / before.norm()


# ------------------------------------------------------------------ supervised fine-tuning


def rows(tok: PreTrainedTokenizerFast, corpus: Iterable[Transcript], tools: Sequence[Tool] = ()) -> Dataset:
    """Returns the transcripts as token ids and labels: what the assistant says is learned, -100 stands for all else."""
    marked = get_training_chat_template(tok)  # TRL knows where the assistant speaks in the templates of many models
    made = []
    for conversation in corpus:
        e = tok.apply_chat_template(
            conversation, tools=list(tools) or None, chat_template=marked, return_dict=True, return_assistant_tokens_mask=True
        )
        labels = [i if said else -100 for i, said in zip(e["input_ids"], e["assistant_masks"], strict=True)]
        made.append({"input_ids": e["input_ids"], "labels": labels})
    return Dataset.from_list(made)


def sft(
    net: PreTrainedModel,
    tok: PreTrainedTokenizerFast,
    corpus: Sequence[Transcript],
    seed: int,
    batch: int = 8,
    rate: float = 2e-3,
    tools: Sequence[Tool] = (),
    callbacks: Sequence[TrainerCallback] = (),
) -> None:
    """Trains the model in place, once over the transcripts, with TRL's SFTTrainer: on the CPU in float32, or on a GPU."""
    gpu = torch.cuda.is_available()
    at_once = batch if gpu or not tools else 1  # conversations with schemas are long, and logits of large vocabularies wide
    with tempfile.TemporaryDirectory() as folder:
        args = SFTConfig(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=at_once,
            gradient_accumulation_steps=batch // at_once,
            learning_rate=rate,
            lr_scheduler_type="cosine",
            warmup_steps=20,
            adam_beta2=0.95,
            weight_decay=0.05,
            max_length=None,
            gradient_checkpointing=False,
            seed=seed,
            use_cpu=not gpu,
            bf16=gpu,
            dataloader_pin_memory=gpu,
            save_strategy="no",
            report_to="none",
            logging_steps=25,
            disable_tqdm=not sys.stderr.isatty(),
        )
        data = rows(tok, corpus, tools)
        SFTTrainer(model=net, args=args, train_dataset=data, processing_class=tok, callbacks=list(callbacks)).train()


# ------------------------------------------------------------------ the tool loop


def evaluate(
    net: Lfm2ForCausalLM,
    tok: PreTrainedTokenizerFast,
    task_ids: Sequence[str],
    seed: int,
    temperature: float = 1.0,
    batch: int = 64,
    longest: int = 64,
    **door: Any,
) -> list[tuple[bool, Transcript]]:
    """Plays one episode a task, in batches, as TRL does: generate, call, append the result's tokens, generate again.

    Args:
        net: The model.
        tok: Its tokenizer.
        task_ids: The tasks.
        seed: Of the sampling.
        temperature: Of the sampling.
        batch: Episodes at once.
        longest: Tokens that one turn may have; what is cut off there is no call.
        **door: ``split``, ``mode`` and ``trace`` of the episodes.

    Returns:
        For each task whether it was a success, and the conversation.
    """
    net.eval()
    torch.manual_seed(seed)
    done: list[tuple[bool, Transcript]] = []
    for at in range(0, len(task_ids), batch):
        episodes = [Episode(task, tok, door) for task in task_ids[at : at + batch]]
        while live := [e for e in episodes if e.live]:
            prompt = tok.pad({"input_ids": [e.ids for e in live]}, padding_side="left", return_tensors="pt")
            out = net.generate(**prompt, do_sample=True, temperature=temperature, top_k=0, max_new_tokens=longest)
            for episode, new in zip(live, out[:, prompt["input_ids"].shape[1] :].tolist(), strict=True):
                episode.turn(new)
        done += [(e.passed, e.messages) for e in episodes]
    return done


class Episode:
    """One conversation about one task."""

    def __init__(self, task: str, tok: PreTrainedTokenizerFast, door: dict[str, Any]) -> None:
        self.tok = tok
        self.env = gym.make("provegym/ToolUse-v1", **door)
        instruction, _ = self.env.reset(options={"task": task})
        self.messages: Transcript = [{"role": "user", "content": instruction}]
        self.ids: list[int] = tok.apply_chat_template(self.messages, add_generation_prompt=True, return_dict=False)
        self.live, self.passed = True, False

    def turn(self, new: list[int]) -> None:
        """Takes what the model said, does what it called, and notes the results."""
        tok = self.tok
        whole = tok.eos_token_id in new
        new = new[: new.index(tok.eos_token_id) + 1] if whole else new
        try:
            message = tok.parse_response(new, prefix=self.ids)
        except (TypeError, ValueError):  # not the JSON of a call
            message = {"role": "assistant", "content": tok.decode(new, skip_special_tokens=True)}
        self.messages.append(message)
        results = ""
        for call in message.get("tool_calls", []) if whole else []:
            function = call["function"]
            text, reward, terminated, truncated, _ = self.env.step(
                json.dumps({"tool": function["name"], "args": function["arguments"]})
            )
            self.messages.append(tool(function["name"], text))
            results += TOOL + text
            self.passed = reward == 1
            if terminated or truncated:
                results = ""
                break
        self.live = bool(results)
        if self.live:
            self.ids = self.ids + new + tok(results + ASSISTANT)["input_ids"]
        else:
            self.env.close()


# ------------------------------------------------------------------ all of it


def base(
    out: Path, seed: int, episodes: int = EPISODES, start: str | None = None, tools: Sequence[Tool] = (), **door: Any
) -> Path:
    """Makes the base checkpoint, or what a killed run has left to do of it, and returns its folder.

    Args:
        out: Where the stages' results are kept.
        seed: Of tasks, weights and order.
        episodes: Of the oracle, to learn from.
        start: Folder of a pretrained model to start from, with its own tokenizer and template; None makes a small one.
        tools: What that template is shown.
        **door: ``split`` and ``mode`` of the episodes.
    """
    out.mkdir(parents=True, exist_ok=True)
    text, folder = out / "transcripts.json", out / "base"
    if not text.exists():
        drawn = tasks(seed, "sft", episodes, **door)
        with replacing(text) as half:
            half.write_text(json.dumps(transcripts(drawn, **door)))
    if not folder.exists():
        corpus = json.loads(text.read_text())
        if start is None:
            tok = tokenizer(corpus)
            net, rate = model(tok, key(seed, "weights")), 2e-3
        else:
            (net, tok), rate = load(Path(start)), 1e-4
        print(f"{len(tok)} tokens, {net.num_parameters() / 1e6:.2f} million parameters, {len(corpus)} transcripts", flush=True)
        sft(net, tok, corpus, key(seed, "sft") % 2**31, rate=rate, tools=tools)
        with replacing(folder) as half:
            net.save_pretrained(half)
            tok.save_pretrained(half)
    return folder


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary path that becomes ``path`` when all is written."""
    half = path.with_name(path.name + ".half")
    shutil.rmtree(half, ignore_errors=True)
    yield half
    os.replace(half, path)


def load(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Reads a checkpoint, its weights as float32; no hub is asked."""
    net = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return net, AutoTokenizer.from_pretrained(folder, local_files_only=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the stages' results")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=EPISODES, help="oracle episodes to learn from")
    parser.add_argument("--check", type=int, default=90, help="fresh episodes to measure the pass rate on")
    args = parser.parse_args()
    began = time.monotonic()
    net, tok = load(base(args.out, args.seed, args.episodes))
    print(f"base checkpoint after {time.monotonic() - began:.0f} s", flush=True)
    for family in FAMILIES:
        drawn = tasks(args.seed, "check", args.check // len(FAMILIES), (family,))
        began = time.monotonic()
        passed = sum(success for success, _ in evaluate(net, tok, drawn, key(args.seed, "sampling")))
        print(f"{family}: {passed} of {len(drawn)} pass; {len(drawn) / (time.monotonic() - began):.1f} episodes/s", flush=True)


if __name__ == "__main__":
    main()
