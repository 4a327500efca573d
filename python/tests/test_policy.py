"""The example learner: its hand-written gradient, its noise, and that it acts alike on recorded arrays."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import policy

SEED = 20261


def some_obs(n: int, rng: np.random.Generator) -> policy.Obs:
    slots = np.zeros((n, 64, 16), np.float32)
    used = 9
    slots[:, :used, policy.TYPE] = rng.integers(1, 12, (n, used))
    slots[:, :used, policy.ROLE] = rng.integers(0, 4, (n, used))
    slots[:, :used, policy.OWNER] = rng.integers(0, used + 1, (n, used))
    slots[:, :used, policy.AGE] = rng.integers(0, 9, (n, used))
    slots[:, :used, policy.ATTR :] = rng.integers(0, 5, (n, used, 8))
    phase = np.zeros((n, 10), np.int32)
    phase[:, 3] = np.arange(n) % 4
    phase[:, 0] = np.where(phase[:, 3] > 0, rng.integers(1, 20, n), 0)
    phase[:, 1] = np.where(phase[:, 3] > 0, rng.integers(1, 6, n), 0)
    phase[:, 4] = rng.integers(-5, used, n)
    mask = np.zeros((n, 65), np.uint8)
    mask[:, 1:8] = rng.integers(0, 2, (n, 7))
    mask[:, 2] = 1
    mask[phase[:, 3] > 0, 0] = 1
    return {
        "slots": slots,
        "phase": phase,
        "mask": mask,
        "goal": rng.integers(0, 5, (n, 24)).astype(np.float32),
        "last": rng.integers(0, 3, (n, 12)).astype(np.float32),
        "budget": rng.integers(1, 30, (n, 4)).astype(np.float32),
        "tools": rng.integers(0, 2, (n, 64, 6)).astype(np.float32),
    }


@pytest.mark.parametrize("old", [None, 0.3])
def test_gradient_equals_finite_differences(old):
    rng = np.random.default_rng(SEED)
    obs = some_obs(12, rng)
    net = policy.Policy(1, np.float64)
    actions = obs["mask"].argmax(1)
    weight = rng.standard_normal(12)
    chances = None if old is None else np.full(12, old)

    def loss() -> float:
        p = net.probabilities(obs)
        logp = np.log(np.maximum(p, 1e-30))
        h = -(p * logp).sum(1)
        own = p[np.arange(12), actions]
        if chances is None:
            first = weight * np.log(own)
        else:
            r = own / chances
            first = np.minimum(r * weight, np.clip(r, 0.8, 1.2) * weight)
        return float(-(first + 0.01 * h).mean())

    grad, _ = net.gradient(obs, actions, weight, 0.01, chances)
    assert set(grad) == set(net.w)
    for name, g in grad.items():
        flat = net.w[name].reshape(-1)
        big = np.argsort(-np.abs(g.reshape(-1)))[:4]
        for i in [*big, *rng.integers(0, len(flat), 3)]:
            keep = flat[i]
            flat[i] = keep + 1e-6
            up = loss()
            flat[i] = keep - 1e-6
            down = loss()
            flat[i] = keep
            assert g.reshape(-1)[i] == pytest.approx((up - down) / 2e-6, abs=2e-6), (name, i, f"seed {SEED}")


def test_actions_are_legal_and_do_not_depend_on_the_batch():
    rng = np.random.default_rng(SEED)
    obs = some_obs(40, rng)
    net = policy.Policy(2, np.float64)
    u = policy.uniforms(np.arange(40, dtype=np.uint64), np.full(40, 7))
    actions, chance = net.act(obs, u)
    assert (obs["mask"][np.arange(40), actions] == 1).all()
    assert (chance > 0).all()
    order = rng.permutation(40)[:13]
    again, _ = net.act({k: v[order] for k, v in obs.items()}, u[order])
    assert (again == actions[order]).all()


def test_uniforms_are_uniform_and_keyed():
    u = policy.uniforms(np.arange(100_000, dtype=np.uint64), np.zeros(100_000))
    assert abs(u.mean() - 0.5) < 0.005 and abs(u.var() - 1 / 12) < 0.002
    assert (
        policy.uniforms(np.array([5], np.uint64), np.array([1])) != policy.uniforms(np.array([5], np.uint64), np.array([2]))
    ).all()
