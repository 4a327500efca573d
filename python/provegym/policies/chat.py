"""Plays with a language model: the tool loop of a trainer, over a model behind an endpoint or in this process.

    from provegym.policies import chat

    model = chat.Endpoint("http://localhost:8000/v1", "my-model")
    results = chat.play(model, provegym.sample("tooluse", 100))

    causes = chat.probe(model, provegym.Breaker("tooluse", split=split, key=1), split=split)["causes"]
    verdicts = chat.look(model, trained, plan, "final", key=1, split=split, trace=trace)

One turn: the model gets the conversation and answers with calls; each is one step of the environment, in order, and costs what
a step costs; their results go back as tool messages. What is malformed goes to the environment as it is, and the agent sees the
typed error. An answer without a call ends the model's turn for good, as it does in a trainer: nothing was committed.

How an episode ends that the environment did not end itself:

    ended        outcome              what happened
    "words"      truncated (tokens)   the model answered without a call
    "tokens"     truncated (tokens)   a reply was cut off, or the budget or the model's context was used up
    "turns"      truncated (calls)    max_turns replies
    "failure"    invalid              the endpoint failed after its retries: infrastructure, never a zero
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provegym import prove, tasks
from provegym import trace as traces
from provegym.breaker import Breaker
from provegym.env import Env
from provegym.errors import BadInputError, EndpointError
from provegym.policies._conversation import Call, ChatPolicy, Conversation, Failure, Reply, key_of
from provegym.policies._endpoint import Endpoint
from provegym.policies._local import Local, Tokens
from provegym.split import Split
from provegym.trace import Trace

__all__ = ["Call", "ChatPolicy", "Conversation", "Endpoint", "Failure", "Local", "Reply", "failure", "look", "play", "probe"]

SplitLike = Split | Mapping[str, Any] | str | Path
Labels = Mapping[str, Any]
Result = dict[str, Any]
Row = Mapping[str, Any]


def play(
    policy: ChatPolicy,
    tasks: Sequence[str],
    *,
    mode: str = "free",
    split: SplitLike | None = None,
    trace: Trace | str | Path | None = None,
    labels: Labels | Sequence[Labels] | None = None,
    noise: int | Sequence[int] = 0,
    system: str | None = None,
    max_turns: int | None = None,
    max_tokens: int | None = None,
    batch: int = 16,
    give_up: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Result]:
    """Plays every task once, many at a time.

    Args:
        policy: Who plays.
        tasks: Task ids of one pack.
        mode: As for ``provegym.Env``.
        split: As for ``provegym.Env``.
        trace: As for ``provegym.Env``.
        labels: What each episode is for, or one for all.
        noise: What names each episode's random numbers: one number for each task, or one for all, with which a task that is
            there k times gets k different streams. Equal numbers play alike, whatever else is played beside them.
        system: A system prompt; none if None. The tools' schemas are the back end's to show.
        max_turns: Replies in an episode; no limit but the task's calls if None.
        max_tokens: Tokens after the first prompt, the model's own and those of results, as a trainer's completion length.
        batch: Episodes under way at a time. The model is asked for all of them together.
        give_up: Stop when so many episodes in a row were lost to failures; never if None.
        progress: Told the number of episodes done, now and then.

    Returns:
        For each task what ``provegym.rollout`` gives (task, outcome, limit, success, components, calls, digest, why), and:
        episode (its id in the trace; None without one), ended (see above; empty if the environment ended it), turns, and
        tokens: prompt (the first), sampled (by the model), shown (results and what is between), and whether they are
        estimated. Invalid episodes have no verdict.

    Raises:
        UnknownNameError: If a task does not exist; nothing is played then.
        HeldOutError: If the split does not admit one in this mode; nothing is played then.
        BadInputError: If an argument is malformed, or the endpoint refuses its first request.
        EndpointError: If ``give_up`` episodes in a row were lost.
    """
    ids = list(tasks)
    if batch < 1:
        raise BadInputError(f"batch is a whole number from 1, not {batch!r}")
    if not ids:
        return []
    each = list(labels) if isinstance(labels, Sequence) else [labels] * len(ids)
    keys = _keys(ids, noise)
    if len(each) != len(ids) or len(keys) != len(ids):
        raise BadInputError(f"there are {len(ids)} tasks, {len(each)} labels and {len(keys)} keys of noise")
    pack = ids[0].partition("@")[0]
    if trace is not None and not isinstance(trace, Trace):
        trace = Trace.shared(trace, pack)
    envs = [Env(pack=pack, view="text", split=split, mode=mode, trace=trace) for _ in range(min(batch, len(ids)))]
    results: list[Result] = [{}] * len(ids)
    try:
        envs[0]._batch.queue(ids, None, clear=True)  # refuses a bad task before any is played; the first reset clears it
        waiting, free, live = deque(range(len(ids))), list(envs), list[_Episode]()
        done = lost = 0
        while waiting or live:
            while waiting and free:
                i = waiting.popleft()
                live.append(_Episode(free.pop(), i, ids[i], each[i], keys[i], system, max_turns, max_tokens))
            asked = [e for e in live if not e.result]
            for episode, answer in zip(asked, policy.complete([e.chat for e in asked]), strict=True):
                episode.take(answer)
            for episode in [e for e in live if e.result]:
                live.remove(episode)
                free.append(episode.env)
                results[episode.index] = episode.result
                _record(trace, policy.name, episode)
                done += 1
                lost = lost + 1 if episode.result["ended"] == "failure" else 0
                if give_up is not None and lost >= give_up:
                    raise EndpointError(f"the last {lost} episodes were lost: {episode.result['why']}; mend it and play again")
            if progress and len(live) < len(envs):
                progress(done)
    finally:
        for env in envs:
            env.close()
    return results


def _keys(ids: Sequence[str], noise: int | Sequence[int]) -> list[int]:
    if not isinstance(noise, int):
        return list(noise)
    seen: Counter[str] = Counter()
    keys = []
    for task in ids:
        keys.append(key_of(noise, task, seen[task]))
        seen[task] += 1
    return keys


class _Episode:
    """One episode under way. ``result`` is empty until it has ended."""

    def __init__(
        self,
        env: Env,
        index: int,
        task: str,
        labels: Labels | None,
        key: int,
        system: str | None,
        max_turns: int | None,
        max_tokens: int | None,
    ) -> None:
        """Begins it."""
        self.env, self.index, self.max_turns = env, index, max_turns
        self.result: Result = {}
        options: dict[str, Any] = {"task": task} if labels is None else {"task": task, "labels": labels}
        instruction, info = env.reset(options=options)
        first = [] if system is None else [{"role": "system", "content": system}]
        self.chat = Conversation([*first, {"role": "user", "content": instruction}], [], key, max_tokens)
        if not info["limits"]:  # the task could not be built: its first step ends it as invalid
            self._step("")
        else:
            self.chat.tools = env.tools

    def take(self, answer: Reply | Failure) -> None:
        """Goes on with an answer of the policy."""
        chat = self.chat
        if isinstance(answer, Failure):
            if answer.limit:
                self._stop("tokens", answer.limit)
            else:
                self._stop("failure", why=answer.why)
            return
        chat.add(answer)
        if answer.cut or (chat.budget is not None and chat.spent > chat.budget):
            self._stop("tokens", "tokens")
            return
        if not answer.calls:
            self._stop("words", "tokens")
            return
        for call in answer.calls:
            result = self._step(call.action)
            if self.result:
                return
            chat.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name or "unknown", "content": result})
        if self.max_turns is not None and chat.turns >= self.max_turns:
            self._stop("turns", "calls")

    def _step(self, action: str) -> str:
        result, _, terminated, truncated, _ = self.env.step(action)
        if terminated or truncated:
            self._end("")
        return str(result)

    def _stop(self, ended: str, limit: str | None = None, why: str = "") -> None:
        if limit:
            self.env.stop("truncated", limit=limit)
        else:
            self.env.stop("invalid", why=why)
        self._end(ended)

    def _end(self, ended: str) -> None:
        chat, info = self.chat, self.env._batch.info(0)
        told = ("task", "outcome", "limit", "success", "components", "calls", "digest", "why", "episode")
        self.result = {
            **{name: info[name] for name in told},
            "ended": ended,
            "turns": chat.turns,
            "tokens": {
                "prompt": chat.prompt,
                "sampled": chat.sampled,
                "shown": chat.spent - chat.sampled,
                "estimated": chat.estimated,
            },
        }


def _record(trace: Trace | None, checkpoint: str, episode: _Episode) -> None:
    """Keeps an episode's tokens in the trace: the counts, and the ids where they are known. Estimates are not kept."""
    chat = episode.chat
    if trace is None or not chat.turns or chat.estimated:
        return
    row: dict[str, Any] = {"episode": episode.result["episode"], "checkpoint": checkpoint}
    row |= {k: episode.result["tokens"][k] for k in ("prompt", "sampled", "shown")}
    if isinstance(chat.state, Tokens):
        ids, first = chat.state.ids, chat.state.prompt
        n = row["sampled"] + row["shown"]  # results that no reply followed are not of the completion
        row |= {"prompt_ids": ids[:first], "completion_ids": ids[first : first + n], "mask": chat.state.mask[:n]}
    trace.tokens([row])


def probe(
    policy: ChatPolicy,
    breaker: Breaker,
    *,
    split: SplitLike,
    trace: Trace | str | Path | None = None,
    labels: Labels | None = None,
    seed: int = 0,
    at_once: int = 64,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Searches for where a policy fails: asks, plays and tells until the search is done.

    Args:
        policy: Who plays.
        breaker: The search; it is left open, so that its state can be kept.
        split: The split that it searches in.
        trace: As for ``provegym.Env``.
        labels: What the episodes are for, besides ``purpose`` "break".
        seed: Names the random numbers of the policy, with each probe's task and id.
        at_once: Probes to ask for at a time.
        progress: Told the number of probes done, now and then.
        **how: More arguments of ``play``: system, max_turns, max_tokens, batch, give_up.

    Returns:
        What ``Breaker.report`` gives.

    Raises:
        EndpointError: As ``play``.
    """
    done = 0
    while probes := breaker.ask(at_once):
        results = play(
            policy,
            [p.task for p in probes],
            mode="train",
            split=split,
            trace=trace,
            labels=[{**p.labels, **(labels or {}), "purpose": "break"} for p in probes],
            noise=[key_of(seed, "break", p.task, p.id) for p in probes],
            progress=_after(progress, done),
            **how,
        )
        done += len(probes)
        told = [
            {"id": p.id, "failed": not _lost(r) and not r["success"], "lost": _lost(r), "mode": failure(r)}
            for p, r in zip(probes, results, strict=True)
        ]
        if breaker.tell(told):
            break
    return breaker.report()


def look(
    base: ChatPolicy,
    checkpoint: ChatPolicy,
    plan: Mapping[str, Any],
    name: str,
    *,
    key: int,
    split: SplitLike,
    trace: Trace,
    labels: Labels | None = None,
    seed: int | None = None,
    ledger: Sequence[str] | None = None,
    give_up: int | None = 16,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Plays both arms of a look and has it judged. Sealed slots that the trace holds already are not played again.

    Args:
        base: The policy of the base arm; its ``name`` is told to Prove.
        checkpoint: The policy that is judged, likewise.
        plan: The frozen plan.
        name: The look, or "monitor".
        key: What the plan was frozen with.
        split: The split that holds the plan's conditions out.
        trace: A run that was opened with this plan's ``plan_hash``.
        labels: What the episodes are for, besides purpose, arm, look, cluster and sample.
        seed: Names the random numbers of the policies, apart for the two arms; the key if None.
        ledger: Ids of the tasks that training drew, so that a contamination shows.
        give_up: Stop when so many episodes in a row were lost, before an endpoint that is down uses up the sealed slots.
        progress: Told the number of episodes done, now and then.
        **how: More arguments of ``play``: system, max_turns, max_tokens, batch.

    Returns:
        What ``provegym.prove.look`` gives.

    Raises:
        BadInputError: If the trace is of another plan.
        EndpointError: As ``play``. Open the trace again with ``resume=``, so that what was under way does not count, and call
            this again: it goes on from there.
    """
    sealed = name != "monitor"
    mode, purpose = ("test", "sealed") if sealed else ("eval", "monitor")
    of = {r["id"]: r["plan_hash"] for r in traces.query(trace.path, "runs")}
    if of.get(trace.run) != plan["hash"]:
        raise BadInputError(f"the trace records for another plan: open it with run={{'plan_hash': {plan['hash']!r}, …}}")
    pack = tasks.pack(plan["pack"].partition("@")[0])
    trace.flush()
    filled = {_slot(r, r["arm"]): r for r in traces.query(trace.path, "slots", plan=plan["hash"], look=name) if sealed}
    records: list[dict[str, Any]] = []
    done = 0
    for arm, policy in (("base", base), ("checkpoint", checkpoint)):
        slots = [s for s in prove.tasks(plan, name, key=key) if _slot(s, arm) not in filled]
        what = {**(labels or {}), "purpose": purpose, "arm": arm, "look": name}
        results = play(
            policy,
            [s["task"] for s in slots],
            mode=mode,
            split=split,
            trace=trace,
            labels=[{**what, "cluster": s["cluster"], "sample": s["sample"]} for s in slots],
            noise=[key_of(key if seed is None else seed, purpose, s["task"], arm, s["sample"]) for s in slots],
            give_up=give_up,
            progress=_after(progress, done),
            **how,
        )
        done += len(slots)
        records += [_evidence(s, arm, mode, r, pack) for s, r in zip(slots, results, strict=True)]
    records += [_evidence(r, r["arm"], mode, r, pack) for r in filled.values()]
    trace.flush()
    return prove.look(plan, name, key=key, records=records, base=base.name, checkpoint=checkpoint.name, ledger=ledger)


def _slot(row: Row, arm: str) -> tuple[Any, ...]:
    return row["condition"], row["cluster"], str(row["seed"]), row["sample"], arm


def _evidence(slot: Row, arm: str, mode: str, result: Row, pack: Row) -> dict[str, Any]:
    """One episode as Prove takes it; ``result`` is of ``play`` or a row of the trace."""
    return {
        "condition": slot["condition"],
        "cluster": slot["cluster"],
        "seed": str(slot["seed"]),
        "sample": slot["sample"],
        "arm": arm,
        "mode": mode,
        "outcome": result["outcome"],
        "success": bool(result["success"]),
        "failure": "" if result["success"] else failure(result),
        "pack_hash": pack["hash"],
        "check_hash": pack["check_hash"],
    }


def _after(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    """Returns a progress that goes on from a number."""
    return progress and (lambda done: progress(before + done))


def failure(result: Row) -> str:
    """Returns a short name of how an episode without success went, the same for a result and a row of the trace."""
    if result["outcome"] == "scored":
        return "wrong finish"
    return f"out of {result['limit']}" if result["limit"] else str(result["outcome"])


def _lost(result: Result) -> bool:
    return result["outcome"] in ("invalid", "check_error")
