"""A transformers model as policy: a tiny random one, and a byte-level tokenizer made here. Nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import add_response_schema, parse_response

import provegym
from provegym import trace as traces
from provegym.errors import BadInputError
from provegym.policies import chat
from provegym.policies._local import Local

torch.set_num_threads(1)  # the models are tiny: threads would only wait for each other

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"]
TEMPLATES = Path(trl.__file__).parent / "chat_templates"


def make_tokenizer(template: str = "qwen3") -> Any:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    text = [json.dumps(provegym.pack("tooluse")["tools"]), '{"name": "get_order", "arguments": {"order": "o-0123456789"}}'] * 4
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(text, trainers.BpeTrainer(vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    return tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def make_model(tokenizer: Any, **more: Any) -> Any:
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=8192,
        initializer_range=0.5,  # so that what it samples depends on what it read
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **more,
    )
    return Qwen3ForCausalLM(config).float()


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return make_model(tokenizer)


class Scripted:
    """A model whose next token a script decides: (conversation so far as text) -> the reply's text. Else as a model is used."""

    def __init__(self, model: Any, tokenizer: Any, script: Callable[[str], str]) -> None:
        self.tokenizer, self.script, self.seen, self._model = tokenizer, script, list[list[int]](), model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate(self, input_ids: Any, attention_mask: Any, generation_config: Any, **_: Any) -> Any:
        rows = []
        for ids, mask in zip(input_ids.tolist(), attention_mask.tolist(), strict=True):
            self.seen.append([t for t, m in zip(ids, mask, strict=True) if m])
            reply = self.script(self.tokenizer.decode(self.seen[-1]))
            new = self.tokenizer(reply, add_special_tokens=False)["input_ids"][: generation_config.max_new_tokens]
            rows.append(ids + new)
        width = max(map(len, rows))
        return torch.tensor([r + [generation_config.pad_token_id] * (width - len(r)) for r in rows])


def conversations(n: int, key: int = 0) -> list[chat.Conversation]:
    tools = provegym.pack("tooluse")["tools"][:2]
    text = ["Find it.", "Please send " + "very " * 40 + "much.", "žluť 🌲"]
    return [chat.Conversation([{"role": "user", "content": text[i % 3] + str(i)}], tools, key + i) for i in range(n)]


def texts(policy: Any, n: int, order: list[int]) -> list[Any]:
    made = conversations(n)
    answers = policy.complete([made[i] for i in order])
    by = dict(zip(order, answers, strict=True))
    return [(by[i].content, by[i].calls, made[i].state.ids) for i in range(n) if i in by]


# ---------------------------------------------------------------------- sampling


def test_an_episode_does_not_depend_on_its_batch(model: Any, tokenizer: Any) -> None:
    def policy(size: int, **how: Any) -> Local:
        return Local(model, tokenizer, batch_size=size, max_new_tokens=24, **how)

    alone = texts(policy(1), 6, list(range(6)))
    assert texts(policy(6), 6, [5, 3, 1, 0, 2, 4]) == alone
    assert texts(policy(4), 6, list(range(6))) == alone
    assert texts(policy(6), 6, [0, 1]) == alone[:2]
    assert len({str(a[0]) for a in alone}) == 6
    assert texts(policy(6, seed=1), 6, list(range(6))) != alone
    greedy = texts(policy(1, temperature=0.0), 6, list(range(6)))
    assert texts(policy(6, temperature=0.0, seed=5), 6, list(range(6))) == greedy != alone


def test_what_is_sampled_follows_the_models_probabilities(model: Any, tokenizer: Any) -> None:
    policy = Local(model, tokenizer, batch_size=100, max_new_tokens=1, temperature=0.7)
    c = chat.Conversation([{"role": "user", "content": "Find it."}], [], 0)
    ids = torch.tensor([policy.render(c.messages, None)])
    with torch.inference_mode():
        p = torch.softmax(model(ids).logits[0, -1].double() / 0.7, -1)
    n = 4000
    same = [chat.Conversation(c.messages, [], key) for key in range(n)]
    policy.complete(same)
    seen = torch.bincount(torch.tensor([s.state.ids[-1] for s in same]), minlength=len(p)).double() / n
    # Each count is binomial: five standard errors, for the two dozen tokens that matter, of one fixed sample.
    for t in p.topk(24).indices.tolist():
        assert abs(seen[t] - p[t]) < 5 * (p[t] * (1 - p[t]) / n) ** 0.5, (t, seen[t], p[t])
    assert seen[p < 1e-9].sum() == 0


def test_replies_end_at_the_end_of_turn_and_at_the_limit(tokenizer: Any) -> None:
    model = make_model(tokenizer)
    with torch.no_grad():
        model.lm_head.weight *= 0.01  # nearly uniform, but for an end, of about one in twenty
    ends = torch.zeros(len(tokenizer))
    ends[tokenizer.eos_token_id] = 3.4
    model.lm_head.register_forward_hook(lambda _module, _given, logits: logits + ends)
    model.train()
    policy = Local(model, tokenizer, batch_size=7, max_new_tokens=60)
    made = conversations(24)
    answers = policy.complete(made)
    assert model.training  # as it was
    ended = [c for c, a in zip(made, answers, strict=True) if not a.cut]
    assert len(ended) > 5 and len({a.completion_tokens for a in answers}) > 5
    for c, a in zip(made, answers, strict=True):
        new = c.state.ids[c.state.prompt :]
        assert len(new) == len(c.state.mask) == a.completion_tokens and a.prompt_tokens == c.state.prompt
        assert tokenizer.eos_token_id not in new[:-1] and (new[-1] == tokenizer.eos_token_id) != a.cut
        assert not a.cut or len(new) == 60


def test_its_own_configuration_does_not_change_the_choice(model: Any, tokenizer: Any) -> None:
    plain = texts(Local(model, tokenizer, max_new_tokens=16), 3, [0, 1, 2])
    saved = model.generation_config
    try:
        from transformers import GenerationConfig

        model.generation_config = GenerationConfig(
            do_sample=True, temperature=0.1, top_k=1, top_p=0.1, repetition_penalty=3.0, no_repeat_ngram_size=1, num_beams=3
        )
        assert texts(Local(model, tokenizer, max_new_tokens=16), 3, [0, 1, 2]) == plain
    finally:
        model.generation_config = saved


def test_memory_that_does_not_suffice_halves_the_batch(model: Any, tokenizer: Any) -> None:
    sizes: list[int] = []

    class Small(Scripted):
        def generate(self, input_ids: Any, **how: Any) -> Any:
            sizes.append(len(input_ids))
            if len(input_ids) > self.most:
                raise torch.OutOfMemoryError("no")
            return self._model.generate(input_ids=input_ids, **how)

        most = 2

    small: Any = Small(model, tokenizer, str)
    made = conversations(6)
    answers = Local(small, tokenizer, batch_size=6, max_new_tokens=8).complete(made)
    assert sizes == [6, 3, 1, 1, 1, 1, 1, 1] and all(isinstance(a, chat.Reply) for a in answers)
    small.most = 0
    answers = Local(small, tokenizer, batch_size=6, max_new_tokens=8).complete(conversations(2))
    assert all(isinstance(a, chat.Failure) and not a.limit and "memory" in a.why for a in answers)


# ---------------------------------------------------------------------- the tool loop


def plans(tasks: list[str], path: Path) -> dict[str, list[dict[str, Any]]]:
    with provegym.Trace(path / "oracle.db", pack="tooluse") as trace:
        provegym.rollout("oracle", tasks, trace=trace)
    out = {}
    for row in traces.query(path / "oracle.db", "episodes"):
        steps = traces.query(path / "oracle.db", "steps", episode=row["id"])
        out[provegym.task(row["task"])["instruction"]] = [json.loads(s["text"]) for s in steps]
    return out


def written(call: dict[str, Any]) -> str:
    return "<tool_call>\n" + json.dumps({"name": call["tool"], "arguments": call.get("args", {})}) + "\n</tool_call>"


@pytest.mark.parametrize("template", ["qwen3", "qwen2_5"])
def test_the_oracles_calls_pass_and_ids_are_only_appended(template: str, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(template)
    tasks = provegym.sample("tooluse", 6, seed=3)
    plan = plans(tasks, tmp_path)

    def script(text: str) -> str:
        calls = next(v for k, v in plan.items() if k in text)
        n = text.count("<|im_start|>assistant")
        if n == 1:  # two calls in one message
            return f"First.\n{written(calls[0])}\n{written(calls[1])}<|im_end|>"
        return f"{written(calls[n])}<|im_end|>"

    model = Scripted(make_model(tokenizer), tokenizer, script)
    policy = Local(model, tokenizer, batch_size=4, max_new_tokens=400, context=100_000)
    kept: list[chat.Conversation] = []

    class Spy:
        name = "m"

        def complete(self, made: list[chat.Conversation]) -> Any:
            kept.extend(c for c in made if not c.turns)
            return policy.complete(made)

    results = chat.play(Spy(), tasks, batch=3)
    assert all(r["success"] and r["turns"] == r["calls"] - 1 for r in results), results
    for c, r in zip(sorted(kept, key=lambda c: tasks_at(c, tasks)), results, strict=True):
        seen = [s for s in model.seen if s == c.state.ids[: len(s)]]  # every prompt is a prefix of the ids at the end
        assert len(seen) == r["turns"]
        sampled = [t for t, m in zip(c.state.ids[c.state.prompt :], c.state.mask, strict=True) if m]
        assert r["tokens"]["sampled"] == len(sampled) and r["tokens"]["prompt"] == c.state.prompt
        assert r["tokens"]["shown"] == len(c.state.mask) - len(sampled) > 0
        # Rendering it anew up to the last reply gives the same text: nothing was lost or doubled between the pieces.
        again = json.loads(json.dumps(c.messages[:-1]))
        for call in (x["function"] for m in again for x in m.get("tool_calls", ())):
            call["arguments"] = json.loads(call["arguments"])  # which the chat completions API has as text
        whole = policy.render(again, c.tools)
        thought = "<think>\n\n</think>\n\n"  # qwen3's template writes it before replies that have none
        assert tokenizer.decode(max(seen, key=len)) == tokenizer.decode(whole).replace(thought, "")


def tasks_at(c: chat.Conversation, tasks: list[str]) -> int:
    return next(i for i, t in enumerate(tasks) if provegym.task(t)["instruction"] == c.messages[0]["content"])


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        ('<tool_call>\n{"name": "get_order", "arguments": {"order": "o-1"}}\n</tool_call><|im_end|>', 1),
        ('<tool_call>\n{"name": "fly", "arguments": {"x": "\\u017elu\\u0165 🌲"}}\n</tool_call><|im_end|>', 1),
        ('<tool_call>\n{"name": "get_order", "arguments": ["o-1"]}\n</tool_call><|im_end|>', 1),
        ('<tool_call>\n{"name": "get_order", "argum</tool_call><|im_end|>', 0),
        ("All done.<|im_end|>", 0),
    ],
)
def test_calls_are_read_as_the_trainer_reads_them(model: Any, tokenizer: Any, reply: str, calls: int) -> None:
    scripted = Scripted(model, tokenizer, lambda text: reply if text.count("<|im_start|>assistant") == 1 else "ok<|im_end|>")
    (r,) = chat.play(Local(scripted, tokenizer, max_new_tokens=200), provegym.sample("tooluse", 1, seed=5))
    assert r["calls"] == calls and r["outcome"] == "truncated" and r["ended"] == "words"
    ids = tokenizer(reply, add_special_tokens=False)["input_ids"]
    read = parse_response(tokenizer, ids, prefix=scripted.seen[0], tools=provegym.pack("tooluse")["tools"])
    assert len(read.get("tool_calls") or []) == calls


def test_token_limits_truncate(model: Any, tokenizer: Any) -> None:
    call = written({"tool": "find_customer", "args": {"name": "x", "zip": "1"}}) + "<|im_end|>"
    tasks = provegym.sample("tooluse", 2, seed=5)
    size = len(tokenizer(call, add_special_tokens=False)["input_ids"])

    def play(script: Callable[[str], str], max_tokens: int | None = None, **how: Any) -> list[dict[str, Any]]:
        scripted = Scripted(model, tokenizer, script)
        return chat.play(Local(scripted, tokenizer, **how), tasks, max_tokens=max_tokens)

    for r in play(lambda text: call, max_tokens=size + 1):  # the result outgrows the budget
        assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("truncated", "tokens", "tokens", 1)
    for r in play(lambda text: call, max_new_tokens=size - 1):  # a reply that is cut off is not acted on
        assert (r["outcome"], r["limit"], r["ended"], r["calls"]) == ("truncated", "tokens", "tokens", 0)
        assert r["tokens"]["sampled"] == size - 1
    for r in play(lambda text: call, context=10):  # not even the prompt fits
        assert (r["outcome"], r["limit"], r["ended"], r["turns"]) == ("truncated", "tokens", "tokens", 0)
    prompt = max(r["tokens"]["prompt"] for r in play(lambda text: "ok<|im_end|>"))
    for r in play(lambda text: call, context=prompt + 3 * size):  # it outgrows the context later
        assert (r["outcome"], r["limit"], r["ended"]) == ("truncated", "tokens", "tokens")
        assert r["turns"] >= 1 and sum(r["tokens"][k] for k in ("prompt", "sampled")) <= prompt + 3 * size


def test_a_random_model_plays_to_an_end(model: Any, tokenizer: Any) -> None:
    tasks = provegym.sample("tooluse", 4, seed=1)
    policy = Local(model, tokenizer, max_new_tokens=16, batch_size=3)
    results = chat.play(policy, tasks, max_tokens=64)
    assert [(r["outcome"], r["success"]) for r in results] == [("truncated", False)] * 4
    assert results == chat.play(policy, tasks, max_tokens=64, batch=1)


# ---------------------------------------------------------------------- what it needs


def test_a_tokenizer_that_cannot_is_refused(model: Any) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    with pytest.raises(BadInputError, match="response_template"):
        Local(model, tokenizer)
    other = make_tokenizer()
    add_response_schema(other)
    other.chat_template = tokenizer.chat_template
    with pytest.raises(BadInputError, match="does not show calls and results"):
        Local(model, other)
    for bad in ({"batch_size": 0}, {"max_new_tokens": 0}, {"temperature": -1.0}, {"temperature": float("nan")}):
        with pytest.raises(BadInputError):
            Local(model, make_tokenizer(), **bad)
