"""
TRL's own GRPOTrainer learns to fix two bugs by the verdicts of a farm: the task, the model and the options are those of own/grpo.py.

    python train.py --dataset instances.jsonl --out curve.jsonl
"""

# ruff: noqa: E402
import json
import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "own"))

import torch
import trl.trainer.grpo_trainer as trl_trainer
from datasets import Dataset
from swefarm.trainers.trl import prompts, reward, rollout_func
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import grpo
import loop
import servers
import tiny


class Sync:
    """
    Replaces TRL's VLLMGeneration, whose weight transfer needs CUDA cards: copies the weights to the server of this process. With cards,
    remove this class, start `vllm serve` as TRL documents, and pass no address to rollout_func.
    """

    run = server = trainer = None

    def __init__(self, model, **_):
        self.model = model
        self.vllm_client = self

    def get_server_info(self):
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def sync_weights(self):
        version = str(self.trainer.state.global_step)
        with self.run.update(version):
            self.server.refit(self.model, version)


class Curve(TrainerCallback):
    """Writes a line a step, as own/grpo.py does."""

    def __init__(self, out):
        self.out = out

    def on_log(self, args, state, control, logs=None, **_):
        if not logs or "reward" not in logs:
            return
        ratios = [logs[f"sampling/importance_sampling_ratio/{end}"] for end in ("min", "max")]
        facts = {
            "step": (state.global_step - 1) // grpo.STEPS_A_BATCH,
            "reward": logs["rewards/reward/mean"],
            "judged": logs.get("farm/judged"),
            "ratio_distance": max(abs(ratio - 1) for ratio in ratios),
        }
        if not facts["ratio_distance"] <= loop.RATIO_TOLERANCE:
            raise loop.Broken("step {step}: an importance ratio is {ratio_distance:.6f} away from 1 after new weights".format(**facts))
        print(json.dumps(facts), file=self.out, flush=True)
        print("step {step:3d}  reward {reward:.2f}".format(**facts), flush=True)


def random_reward(seed):
    """Returns the reward function of --control: a random reward for each judged sample."""
    draw = random.Random(seed)

    def control(farm_reward, **_):
        return [None if value is None else draw.choice((0.0, 1.0)) for value in farm_reward]

    return control


def spoiled(play, options):
    """Returns the rollout function ``play`` with one wrong token id in the batch of --spoil."""

    def spoiled_play(prompts, trainer):
        batch = play(prompts, trainer)
        if options.spoil is not None and trainer.state.global_step == options.spoil * grpo.STEPS_A_BATCH:
            row = next(row for row, value in enumerate(batch["farm_reward"]) if value is not None)
            batch["completion_ids"][row][batch["env_mask"][row].index(1)] += 1
        return batch

    return spoiled_play


def main():
    options = loop.parser(__doc__, 1e-3).parse_args()
    torch.set_num_threads(1)
    rows = loop.rows_of(options)
    model, tokenizer = tiny.make(options.seed)
    tiny.learn_form(model, tokenizer, options.seed)
    server = servers.InProcess(model, tokenizer)
    trl_trainer.VLLMGeneration = Sync
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        gradient_checkpointing=False,
        remove_unused_columns=False,
        per_device_train_batch_size=options.group_size * len(rows),
        num_generations=options.group_size,
        reward_weights=[0.0, 1.0] if options.control else [1.0, 0.0],
        # The second iteration trains on the same rollouts, as STEPS_A_BATCH of own/grpo.py.
        num_iterations=grpo.STEPS_A_BATCH,
        max_steps=options.steps * grpo.STEPS_A_BATCH,
        max_completion_length=256,
        learning_rate=options.rate,
        lr_scheduler_type="linear",
        warmup_steps=grpo.WARM_UP * grpo.STEPS_A_BATCH,
        adam_beta2=0.95,
        beta=0.0,
        temperature=1.0,
        logging_steps=1,
        use_vllm=True,
        vllm_mode="server",
        # The ratio of a whole rollout of thousands of tokens would exceed any clip.
        vllm_importance_sampling_mode="token_truncate",
    )
    with (
        open(options.out, "w", encoding="utf8") as out,
        loop.farm_of(options) as farm,
        farm.run(options.name, model=loop.MODEL, policy_urls=[server.url], kind="training", settings=loop.SUBMITTED) as run,
    ):
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=[reward, random_reward(options.seed)],
            rollout_func=spoiled(rollout_func(run, rows=rows, policy_urls=[server.url], model=loop.MODEL), options),
            args=config,
            train_dataset=Dataset.from_list(prompts(rows)),
            processing_class=tokenizer,
            callbacks=[Curve(out)],
        )
        trainer.remove_callback(PrinterCallback)
        Sync.run, Sync.server, Sync.trainer = run, server, trainer
        run.policy(version="0")
        trainer.train()


if __name__ == "__main__":
    main()
