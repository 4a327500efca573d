"""Hugging Face TRL: ProveGym tasks as the environments of ``GRPOTrainer``.

    factory = environment_factory("tooluse", split=split, trace="runs/a")
    trainer = GRPOTrainer(model, args=config, train_dataset=dataset(64), environment_factory=factory, reward_funcs=success)
    trainer.add_callback(CurriculumCallback(trainer))
    trainer.train()

A row of the dataset is a slot. What a slot's task is gets decided when TRL resets its environment: by the curriculum, as a pure
function of the curriculum's version and the slot, so that the members of a group, on whatever rank, start identically; the
version is raised after an update, by the results of all ranks. Without a curriculum each slot has one task for good.

Several ranks record into one file each, ``trace.db`` and ``trace-rank1.db`` …, since a store has one writing process.
"""

from __future__ import annotations

from provegym.adapters.trl._callbacks import BreakCallback, CurriculumCallback, StatusCallback, last_checkpoint
from provegym.adapters.trl._connect import attach
from provegym.adapters.trl._environment import EnvironmentFactory, environment_factory
from provegym.adapters.trl._prove import ProveCallback
from provegym.adapters.trl._reward import dataset, success
from provegym.adapters.trl._tree import TreeRollouts

__all__ = [
    "environment_factory",
    "EnvironmentFactory",
    "dataset",
    "success",
    "CurriculumCallback",
    "BreakCallback",
    "ProveCallback",
    "StatusCallback",
    "TreeRollouts",
    "attach",
    "last_checkpoint",
]
