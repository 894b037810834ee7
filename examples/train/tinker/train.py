"""Trains with tinker-cookbook 0.6.1 over the farm of SWEFARM_GATEWAY_URL. usage: python train.py TRAIN VERIFIED HOST"""

import asyncio
import sys

import chz
from swefarm import Farm
from swefarm.trainers import tinker
from swefarm.trainers.batch import rows_in
from tinker_cookbook.rl import train
from tinker_cookbook.rl.types import RLDatasetBuilder

MODEL = "Qwen/Qwen3-8B"
SETTINGS = {"agent": {"action": "tool", "step_limit": 100, "time_limit": 3600}}
GROUPS, SAMPLES, BATCHES = 32, 16, 200
MAX_PROMPT, MAX_RESPONSE = 8192, 32_768


@chz.chz
class Instances(RLDatasetBuilder):
    train: str
    verified: str

    async def __call__(self):
        """Returns the datasets of training and evaluation. With a fixed key, a resumed trainer gets the samples of its step again."""
        rows, verified = ([*rows_in(path).values()] for path in (self.train, self.verified))
        whole = tinker.FarmDataset(verified, n=1, groups_per_batch=len(verified), batches=1)
        return tinker.FarmDataset(rows, n=SAMPLES, groups_per_batch=GROUPS, batches=BATCHES, key="train"), whole


def config_of(strategy, paths):
    """Returns the cookbook's configuration. Without async_config every batch is on-policy."""
    return train.Config(
        model_name=MODEL,
        recipe_name="swefarm",
        dataset_builder=Instances(train=paths[0], verified=paths[1]),
        rollout_error_tolerance=strategy,
        learning_rate=4e-5,
        lora_rank=32,
        max_tokens=MAX_RESPONSE,  # of one answer; the strategy limits the whole rollout
        temperature=1.0,
        loss_fn="importance_sampling",
        remove_constant_reward_groups=True,
        eval_every=20,
        save_every=20,
        log_path="swefarm-tinker",
    )


def strategy_of(run, tokenizer, host):
    return tinker.FarmStrategy(run, tokenizer, host=host, max_prompt=MAX_PROMPT, max_response=MAX_RESPONSE)


def main():
    from transformers import AutoTokenizer

    *paths, host = sys.argv[1:]
    run = Farm().run("swefarm-tinker", settings=SETTINGS)
    asyncio.run(train.main(config_of(strategy_of(run, AutoTokenizer.from_pretrained(MODEL), host), paths)))


if __name__ == "__main__":
    main()
