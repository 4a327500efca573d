"""A GRPO run with a policy whose every move is decided by task and member; one rank of one or of several.

    grpo.py FOLDER STEPS [--resume]

After each step it prints a line of JSON: step, version of the curriculum, slots and tasks of this rank's rollouts.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from scripted import Scripted, make_model, make_tokenizer, oracle
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import provegym
from provegym.adapters.trl import CurriculumCallback, dataset, environment_factory, last_checkpoint, success

SPLIT = {
    "pack": "tooluse",
    "families": {"for-each": "test"},
    "train_dials": {
        "near_duplicates": ["0", "2"],
        "page_size": ["50"],
        "slack": ["3"],
        "fanout": ["1"],
        "depth": ["4"],
        "width": ["1"],
        **{k: ["0"] for k in ("extra_tools", "opacity", "constraints", "fault_rate", "events", "memory_gap", "amendments")},
    },
}
GROUP, ROWS, SLOTS = 4, 6, 9  # with two ranks a generation batch is three groups, one of them on both


def main(folder: Path, steps: int, resume: bool) -> None:
    families = ("resolve-act", "branch", "refusal")
    factory = environment_factory("tooluse", family=families, split=provegym.Split.freeze(SPLIT), trace=folder / "runs", key=5)
    trainer = GRPOTrainer(
        make_model(),
        args=GRPOConfig(
            str(folder / "out"),
            per_device_train_batch_size=ROWS if "WORLD_SIZE" in os.environ else 2 * GROUP,
            num_generations=GROUP,
            max_completion_length=6000,
            max_steps=steps,
            save_steps=1,
            shuffle_dataset=False,  # TRL forgets after a resume how it had shuffled later epochs
            use_cpu=True,
            bf16=False,
            report_to="none",
            logging_steps=1,
            disable_tqdm=True,
            chat_template_kwargs={"enable_thinking": False},
        ),
        train_dataset=dataset(SLOTS),
        processing_class=make_tokenizer(),
        environment_factory=factory,
        reward_funcs=success,
    )
    trainer.add_callback(CurriculumCallback(trainer))
    first = trainer.accelerator.process_index * ROWS

    def scripts() -> list[list[str]]:
        plans = []
        for i, e in enumerate(trainer.environments):
            passes = hashlib.sha256(f"{e._task} {first + i}".encode()).digest()[0] < 128
            plans.append(oracle(e._task, folder / f"oracle{factory.rank}") if passes else ["no"])
        say(generating=factory.step)
        return plans

    class Say(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            rollouts = [[e._slot, e._version, e._task] for e in trainer.environments]
            say(step=state.global_step, version=factory.version, rollouts=rollouts)

    trainer.add_callback(Say())
    trainer.model.generate = Scripted(make_tokenizer(), scripts)
    trainer.train(resume_from_checkpoint=last_checkpoint(folder / "out") if resume else None)
    factory.trace.flush()
    assert factory.curriculum is not None
    say(state=hashlib.sha256(json.dumps(factory.curriculum.state(), sort_keys=True).encode()).hexdigest())


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "--resume" in sys.argv)
