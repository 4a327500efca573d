"""A small policy over the structured view, in NumPy: an example learner, not a part of ProveGym.

It reads nothing but the arrays of an observation and its mask, so it runs on recorded arrays alone and chooses the same actions
there. The network scores each legal action:

    slot i      s_i = relu(W_s f_i)                      f_i: what the slot table says of value i, its owner and its choice
    state       x   = [goal, last result, tools, phase, mean_i s_i, max_i s_i]
                h   = relu(W_2 relu(W_1 x))
    logits      tool t: E_t h;  word or number k: V_k h + (B h) m_k;  slot i: (A h) s_i;  leave the argument: v h
                m_k: is k a word that the goal states, or one that the policy document gives for the order at hand

Gradients are written out by hand below `Policy.gradient`; the test compares them with finite differences.
"""

from __future__ import annotations

import os

# One thread: the same sums in the same order, whatever the number of cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Obs = dict[str, Array]

SLOTS, ACTIONS, TOOLS, PARAMS = 64, 65, 64, 6
TYPES, ROLES, ATTRS = 80, 8, 8
TYPE, ROLE, AGE, OWNER, NEWEST, TURN, MATCHES, MISMATCH, ATTR = range(9)
SLOT_HIDDEN, HIDDEN = 48, 128
STATED = slice(4, 14)  # where the goal of the pack `tooluse` states words (1 + index)
RECORD = slice(8, 13)  # those among them that records show too: item, site, status, tier, city
ORDER, POLICY = 24, 28  # types of that pack, 1 + index
STATUS, WAS = 0, 1  # attributes of an order

_eye_type = np.eye(TYPES, dtype=np.float32)
_eye_role = np.eye(ROLES, dtype=np.float32)


def slot_features(obs: Obs, row: Array, slot: Array) -> Array:
    """Describes slots that are in use.

    Args:
        obs: arrays as the structured view gives them, (n, ...).
        row: the row of each slot, (m,).
        slot: its number, (m,). Every slot in use must be among them: a slot is described by its owner's too.

    Returns:
        float32 (m, SLOT_FEATURES).
    """
    m = len(row)
    raw = obs["slots"][row, slot]
    own_attrs = raw[:, ATTR : ATTR + ATTRS]
    levels = [np.minimum(own_attrs, 12) / 6] + [(own_attrs == k).astype(np.float32) for k in (1, 2, 3, 4)]
    given = obs["phase"][row, 4 : 4 + PARAMS]
    facts = np.stack(
        [
            np.minimum(raw[:, AGE], 20) / 10,
            raw[:, AGE] == 0,
            raw[:, NEWEST],
            raw[:, TURN],
            np.minimum(raw[:, MATCHES], 4) / 2,
            raw[:, MISMATCH] > 0,
            (raw[:, MATCHES] > 0) & (raw[:, MISMATCH] == 0),
            (given == slot[:, None] + 1).any(1),
        ],
        axis=1,
        dtype=np.float32,
    )
    stated = obs["goal"][row, None, RECORD]
    says = ((own_attrs[:, :, None] == stated) & (stated > 0)).reshape(m, -1)
    about = np.concatenate([facts[:, 4:], own_attrs / 6, *levels[1:4]], axis=1)
    place = np.full(obs["slots"].shape[:2], -1)
    place[row, slot] = np.arange(m)
    owner = place[row, np.maximum(raw[:, OWNER].astype(np.int64) - 1, 0)]
    has_owner = ((raw[:, OWNER] > 0) & (owner >= 0)).astype(np.float32)[:, None]
    kind = _eye_type[np.minimum(raw[:, TYPE].astype(np.int64), TYPES - 1)]
    role = _eye_role[np.minimum(raw[:, ROLE].astype(np.int64), ROLES - 1)]
    return np.concatenate([kind, role, facts, *levels, says, has_owner, about[owner] * has_owner], axis=1, dtype=np.float32)


SAYS = ATTRS * (RECORD.stop - RECORD.start)
SLOT_FEATURES = TYPES + ROLES + 8 + 5 * ATTRS + SAYS + 1 + 4 + 4 * ATTRS


def rule(obs: Obs) -> tuple[Array, Array, Array]:
    """Looks up what the policy document says for the order at hand: the order met last, at the status that it was read at.

    A person does this with a finger on the page; without it the network would have to learn the table of a table look-up.

    Returns:
        status, remedy and code, (n,) each, 1 + index; 0 where nothing is known.
    """
    raw = obs["slots"]
    n = np.arange(len(raw))
    age = np.where((raw[..., TYPE] == ORDER) & (raw[..., ATTR + STATUS] > 0), raw[..., AGE], np.inf)
    order = raw[n, age.argmin(1)]
    known = np.isfinite(age.min(1))
    status = np.where(order[:, ATTR + WAS] > 0, order[:, ATTR + WAS], order[:, ATTR + STATUS]) * known
    status = status.astype(np.int64)
    paper = np.where(raw[..., TYPE] == POLICY, raw[..., AGE], np.inf)
    read = np.isfinite(paper.min(1)) & (status > 0) & (status < 5)
    table = raw[n, paper.argmin(1), ATTR:]
    column = np.clip(status - 1, 0, 3)
    return status, (table[n, column] * read).astype(np.int64), (table[n, 4 + column] * read).astype(np.int64)


def word_features(obs: Obs) -> Array:
    """Describes each action as a word: float32 (n, 65, WORD_FEATURES)."""
    k = np.arange(ACTIONS)
    stated = obs["goal"][:, STATED]
    _, remedy, code = rule(obs)
    out = np.zeros((len(stated), ACTIONS, WORD_FEATURES), np.float32)
    out[..., : stated.shape[1]] = stated[:, None, :] == k[None, :, None]
    out[..., -2] = remedy[:, None] == k
    out[..., -1] = code[:, None] == k
    out[:, 0] = 0
    return out


WORD_FEATURES = STATED.stop - STATED.start + 2


def state_features(obs: Obs) -> Array:
    """Describes everything but the slots: float32 (n, STATE_FEATURES)."""
    n = len(obs["phase"])
    phase = obs["phase"].astype(np.int64)
    tool = np.zeros((n, TOOLS + 1), np.float32)
    tool[np.arange(n), phase[:, 0]] = 1
    param = np.zeros((n, PARAMS + 1), np.float32)
    param[np.arange(n), phase[:, 1]] = 1
    words = np.zeros((n, PARAMS, 8), np.float32)
    given = np.clip(-phase[:, 4 : 4 + PARAMS], 0, 7)
    words[np.arange(n)[:, None], np.arange(PARAMS)[None, :], given] = 1
    last = obs["last"]
    last_tool = np.zeros((n, TOOLS + 1), np.float32)
    last_tool[np.arange(n), np.clip(last[:, 2].astype(np.int64), 0, TOOLS)] = 1
    status = np.zeros((n, 3), np.float32)
    status[np.arange(n), np.clip(last[:, 0].astype(np.int64), 0, 2)] = 1
    code = np.zeros((n, 16), np.float32)
    code[np.arange(n), np.clip(last[:, 1].astype(np.int64), 0, 15)] = 1
    glance = np.minimum(last[:, 3:], 12) / 6
    flags = [(last[:, 4:] == k).astype(np.float32) for k in (1, 2)]
    goal = obs["goal"]
    goals = [np.minimum(goal, 12) / 6] + [(goal == k).astype(np.float32) for k in (1, 2, 3, 4)]
    budget = obs["budget"]
    spent = np.stack([budget[:, 0] / np.maximum(budget[:, 2], 1), np.minimum(budget[:, 0], 10) / 10], axis=-1)
    looked_up = []
    for value, size in zip(rule(obs), (7, 6, 2), strict=True):  # of the code, only whether one is known
        one = np.zeros((n, size), np.float32)
        one[np.arange(n), np.minimum(value, size - 1)] = 1
        looked_up.append(one)
    uses = np.minimum(obs["tools"][:, :, 4], 3) / 2
    offered = obs["tools"][:, :, 0]
    return np.concatenate(
        [
            tool,
            param,
            words.reshape(n, -1),
            np.minimum(phase[:, 2:3], 4) / 2,
            last_tool,
            status,
            code,
            glance,
            *flags,
            *goals,
            spent,
            uses,
            offered,
            *looked_up,
        ],
        axis=-1,
        dtype=np.float32,
    )


STATE_FEATURES = (TOOLS + 1) + (PARAMS + 1) + PARAMS * 8 + 1 + (TOOLS + 1) + 3 + 16 + 9 + 16 + 24 * 5 + 2 + 2 * TOOLS + 15


def uniforms(keys: Array, step: Array) -> Array:
    """One uniform number a row, a pure function of (key, step): SplitMix64's finaliser on key + step * golden.

    The noise of an episode depends on its own key alone, never on the batch it runs in.
    """
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + (step.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    out: Array = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return out


class Policy:
    """Weights and the three things done with them: act, score, and take a gradient."""

    def __init__(self, seed: int, dtype: Any = np.float32) -> None:
        rng = np.random.Generator(np.random.PCG64(seed))
        x = STATE_FEATURES + 2 * SLOT_HIDDEN

        def layer(rows: int, cols: int, gain: float = 1.0) -> Array:
            w: Array = (rng.standard_normal((rows, cols)) * gain * np.sqrt(2 / rows)).astype(dtype)
            return w

        self.w: dict[str, Array] = {
            "slot": layer(SLOT_FEATURES, SLOT_HIDDEN),
            "slot_b": np.zeros(SLOT_HIDDEN, dtype),
            "one": layer(x, HIDDEN),
            "one_b": np.zeros(HIDDEN, dtype),
            "two": layer(HIDDEN, HIDDEN),
            "two_b": np.zeros(HIDDEN, dtype),
            "tool": layer(HIDDEN, ACTIONS, 0.1),
            "word": layer(HIDDEN, ACTIONS, 0.1),
            "pick": layer(HIDDEN, SLOT_HIDDEN, 0.1),
            "match": layer(HIDDEN, WORD_FEATURES, 0.1),
            "skip": layer(HIDDEN, 1, 0.1),
        }

    def astype(self, dtype: Any) -> Policy:
        """Returns the same policy in another precision."""
        other = Policy.__new__(Policy)
        other.w = {k: v.astype(dtype) for k, v in self.w.items()}
        return other

    def _forward(self, obs: Obs) -> tuple[Array, dict[str, Any]]:
        w, dtype = self.w, self.w["one"].dtype
        full = obs["slots"][:, :, TYPE] > 0
        n, used = len(full), max(1, int(np.flatnonzero(full.any(0)).max(initial=0)) + 1)
        row, slot = np.nonzero(full)
        f = slot_features(obs, row, slot).astype(dtype, copy=False)
        s = np.zeros((n, used, SLOT_HIDDEN), dtype)
        s[row, slot] = np.maximum(f @ w["slot"] + w["slot_b"], 0)
        count = np.maximum(full.sum(1), 1).astype(dtype)[:, None]
        top = s.argmax(1)
        pooled = np.concatenate([s.sum(1) / count, np.take_along_axis(s, top[:, None], 1)[:, 0]], axis=1)
        x = np.concatenate([state_features(obs).astype(dtype, copy=False), pooled], axis=1)
        h1 = np.maximum(x @ w["one"] + w["one_b"], 0)
        h2 = np.maximum(h1 @ w["two"] + w["two_b"], 0)
        q = h2 @ w["pick"]
        kind = obs["phase"][:, 3]
        m = word_features(obs).astype(dtype, copy=False)
        word = h2 @ w["word"] + np.einsum("nkf,nf->nk", m, h2 @ w["match"])
        logits = np.where((kind == 0)[:, None], h2 @ w["tool"], word)
        pick = np.zeros((n, ACTIONS), dtype)
        pick[:, 1 : used + 1] = np.einsum("nsk,nk->ns", s, q)
        logits = np.where((kind == 1)[:, None], pick, logits)
        logits[:, 0] = (h2 @ w["skip"])[:, 0]
        logits = np.where(obs["mask"] > 0, logits, -np.inf)
        cache = {"f": f, "s": s, "row": row, "slot": slot, "used": used, "count": count, "top": top, "x": x, "h1": h1, "h2": h2}
        return logits, {**cache, "q": q, "m": m, "kind": kind}

    def probabilities(self, obs: Obs) -> Array:
        """The chance of each action, (n, 65); 0 where the mask is 0."""
        logits, _ = self._forward(obs)
        return _softmax(logits)

    def act(self, obs: Obs, u: Array) -> tuple[Array, Array]:
        """Chooses by inverse transform of u in [0, 1). Rows with one legal action are not scored.

        Returns:
            actions int32 (n,), and the chance that each had, (n,).
        """
        mask = obs["mask"]
        actions = mask.argmax(1).astype(np.int32)
        chance = np.ones(len(mask))
        open_rows = np.flatnonzero(mask.sum(1) > 1)
        if len(open_rows):
            p = self.probabilities({k: v[open_rows] for k, v in obs.items()}).astype(np.float64)
            c = np.cumsum(p, axis=1)
            pick = (u[open_rows, None] * c[:, -1:] >= c).sum(1)
            actions[open_rows] = pick
            chance[open_rows] = p[np.arange(len(p)), pick]
        return actions, chance

    def gradient(
        self, obs: Obs, actions: Array, weight: Array, entropy: float = 0.0, old: Array | None = None, clip: float = 0.2
    ) -> tuple[dict[str, Array], float]:
        """The gradient of  -mean(weight * log p(action)) - entropy * mean(H)  in every weight.

        With `old`, the chances under the policy that acted, the first term is PPO's clipped surrogate
        (Schulman and others 2017): -mean(min(r A, clip(r, 1-c, 1+c) A)) with r = p / old and A = weight.

        Returns:
            gradients by name, and the mean entropy.
        """
        w = self.w
        logits, c = self._forward(obs)
        p = _softmax(logits)
        n = len(p)
        rows = np.arange(n)
        logp = np.log(np.maximum(p, 1e-30))
        h = -(p * logp).sum(1, keepdims=True)
        if old is not None:
            ratio = p[rows, actions] / np.maximum(old, 1e-12)
            live = ~(((weight > 0) & (ratio > 1 + clip)) | ((weight < 0) & (ratio < 1 - clip)))
            weight = weight * ratio * live
        d = p * weight[:, None]
        d[rows, actions] -= weight
        d += entropy * p * (logp + h)
        d = (d / n).astype(p.dtype)

        g: dict[str, Array] = {}
        kind = c["kind"]
        d_tool = np.where((kind == 0)[:, None], d, 0)
        d_word = np.where((kind >= 2)[:, None], d, 0)
        d_skip = d[:, :1].copy()
        d_tool[:, 0] = d_word[:, 0] = 0
        d_slot = np.where((kind == 1)[:, None], d, 0)[:, 1 : c["used"] + 1]
        g["tool"], g["word"], g["skip"] = c["h2"].T @ d_tool, c["h2"].T @ d_word, c["h2"].T @ d_skip
        d_q = np.einsum("ns,nsk->nk", d_slot, c["s"])
        d_s = d_slot[:, :, None] * c["q"][:, None, :]
        d_match = np.einsum("nk,nkf->nf", d_word, c["m"])
        g["pick"], g["match"] = c["h2"].T @ d_q, c["h2"].T @ d_match
        d_h2 = d_tool @ w["tool"].T + d_word @ w["word"].T + d_skip @ w["skip"].T + d_q @ w["pick"].T + d_match @ w["match"].T
        d_h2 *= c["h2"] > 0
        g["two"], g["two_b"] = c["h1"].T @ d_h2, d_h2.sum(0)
        d_h1 = (d_h2 @ w["two"].T) * (c["h1"] > 0)
        g["one"], g["one_b"] = c["x"].T @ d_h1, d_h1.sum(0)
        d_pool = d_h1 @ w["one"][STATE_FEATURES:].T
        d_s += (d_pool[:, :SLOT_HIDDEN] / c["count"])[:, None, :]
        d_s[rows[:, None], c["top"], np.arange(SLOT_HIDDEN)[None, :]] += d_pool[:, SLOT_HIDDEN:]
        flat = (d_s * (c["s"] > 0))[c["row"], c["slot"]]
        g["slot"], g["slot_b"] = c["f"].T @ flat, flat.sum(0)
        return g, float(h.mean())


def _softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(1, keepdims=True))
    p: Array = e / e.sum(1, keepdims=True)
    return p


class Adam:
    """Kingma and Ba 2015, with the gradient's norm clipped."""

    def __init__(self, policy: Policy, rate: float, max_norm: float = 1.0) -> None:
        self.policy, self.rate, self.max_norm, self.steps = policy, rate, max_norm, 0
        self.mean = {k: np.zeros_like(v) for k, v in policy.w.items()}
        self.square = {k: np.zeros_like(v) for k, v in policy.w.items()}

    def step(self, gradient: dict[str, Array]) -> None:
        """Moves the policy's weights one step against the gradient."""
        norm = float(np.sqrt(sum(float((g * g).sum()) for g in gradient.values())))
        scale = min(1.0, self.max_norm / (norm + 1e-12))
        self.steps += 1
        for k, g in gradient.items():
            g = g * scale
            self.mean[k] += 0.1 * (g - self.mean[k])
            self.square[k] += 0.001 * (g * g - self.square[k])
            m = self.mean[k] / (1 - 0.9**self.steps)
            v = self.square[k] / (1 - 0.999**self.steps)
            self.policy.w[k] -= (self.rate * m / (np.sqrt(v) + 1e-8)).astype(self.policy.w[k].dtype)
