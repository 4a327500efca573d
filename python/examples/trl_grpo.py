"""Train a language model with TRL on ProveGym tasks: the shortest complete program.

    .venv-trl/bin/python python/examples/trl_grpo.py Qwen/Qwen3-0.6B

The model may be a local folder. Its chat template must know tools, as those of Qwen, Llama 3.1 and LFM2 do.
"""

import sys

from trl import GRPOConfig, GRPOTrainer

import provegym
from provegym.adapters.trl import CurriculumCallback, StatusCallback, dataset, environment_factory, success


def main(model: str, *options: str) -> None:
    # What training may see: all families but one, with the tools that the tasks need and no others, by their own names.
    dials = {"extra_tools": ["0"], "opacity": ["0"]}
    split = provegym.Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}, "train_dials": dials})
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(
            "grpo-run",
            num_generations=8,  # the members of a group get the same task
            max_completion_length=4096,  # all turns and results of an episode together
            max_steps=int(options[0]) if options else 200,
            shuffle_dataset=False,  # slots have no order, and a resumed run then draws as an uninterrupted one
            logging_steps=1,
            report_to="none",
        ),
        train_dataset=dataset(64),  # slots: the task of each is decided when TRL resets it
        environment_factory=environment_factory("tooluse", split=split, trace="grpo-run"),
        reward_funcs=success,
    )
    trainer.add_callback(CurriculumCallback(trainer))  # draws tasks from where the model fails
    trainer.add_callback(StatusCallback(trainer))  # pass rate by family, dead groups, hollow passes
    trainer.train()


if __name__ == "__main__":
    main(*sys.argv[1:])
