"""Trains with AReaL over the farm of SWEFARM_GATEWAY_URL. usage: python train.py --config grpo.yaml [KEY=VALUE...]"""

import sys

from areal import PPOTrainer
from areal.api.cli_args import GRPOConfig, load_expr_config
from datasets import Dataset
from swefarm.trainers.batch import rows_in

WORKFLOW = "swefarm.trainers.areal.FarmWorkflow"
SETTINGS = {"agent": {"action": "tool", "step_limit": 100, "time_limit": 3600}}


def instances(path):
    """Returns AReaL's dataset, whose rows name the instances of a file of the farm's rows."""
    return Dataset.from_list([{"instance_id": name} for name in rows_in(path)])


def arguments(config, rows, kind, n):
    """Returns the arguments of FarmWorkflow."""
    limits = {"max_prompt": 8192, "max_response": config.gconfig.max_new_tokens}
    run = {"run": f"{config.experiment_name}-{config.trial_name}-{kind}", "kind": kind, "settings": SETTINGS}
    return {"gconfig": config.gconfig, "n": n, "model": config.actor.path, "rows": rows, **limits, **run}


def main():
    config, _ = load_expr_config(sys.argv[1:], GRPOConfig)
    train, verified = config.train_dataset.path, config.valid_dataset.path
    with PPOTrainer(config, train_dataset=instances(train), valid_dataset=instances(verified)) as trainer:
        trainer.train(
            workflow=WORKFLOW,
            workflow_kwargs=arguments(config, train, "training", 16),
            eval_workflow=WORKFLOW,
            eval_workflow_kwargs=arguments(config, verified, "validation", 1),
        )


if __name__ == "__main__":
    main()
