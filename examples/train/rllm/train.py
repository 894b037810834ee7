"""Trains with rLLM over the farm of SWEFARM_GATEWAY_URL. Environment: TRAIN, VERIFIED: files of the farm's rows. usage: python train.py"""

import os

import hydra
from rllm.data import Dataset
from rllm.trainer.unified_trainer import AgentTrainer
from swefarm import Farm
from swefarm.trainers import rllm
from swefarm.trainers.batch import rows_in

SETTINGS = {"agent": {"action": "tool", "step_limit": 100, "time_limit": 3600}}


def instances(rows, split):
    """Returns rLLM's dataset, whose tasks name the instances of the farm's rows."""
    return Dataset([{"instance_id": row["instance_id"], "question": row["problem_statement"]} for row in rows], name="swefarm", split=split)


@hydra.main(config_path=".", config_name="grpo", version_base=None)
def main(config):
    train, verified = (rows_in(os.environ[name]).values() for name in ("TRAIN", "VERIFIED"))
    run = Farm().run("swefarm-rllm", model=config.actor_rollout_ref.model.path, settings=SETTINGS)
    limits = {"max_prompt": config.rllm.data.max_prompt_length, "max_response": config.rllm.data.max_response_length}
    AgentTrainer(
        backend="verl",
        agent_flow=rllm.FarmFlow(run, rows=[*train, *verified], **limits),
        evaluator=rllm.FarmEvaluator(),
        config=config,
        train_dataset=instances(train, "train"),
        val_dataset=instances(verified, "val"),
    ).train()


if __name__ == "__main__":
    main()
