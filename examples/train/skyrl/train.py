"""Trains with SkyRL over the farm of SWEFARM_GATEWAY_URL. usage: python train.py grpo.yaml"""

import sys

import ray
import yaml
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray
from swefarm import Farm
from swefarm.trainers import skyrl

SETTINGS = {"agent": {"action": "tool", "step_limit": 100, "time_limit": 3600}}


class FarmExp(BasePPOExp):
    def get_generator(self, cfg, tokenizer, client):
        limits = {"max_prompt": cfg.trainer.max_prompt_length, "max_response": cfg.generator.sampling_params.max_generate_length}
        run = Farm().run("swefarm-skyrl", model=cfg.trainer.policy.model.path, settings=SETTINGS)
        return skyrl.FarmGenerator(run, client, tokenizer, model=cfg.trainer.policy.model.path, **limits)


def config_of(path):
    """Returns SkyRL's configuration of a file. Raises ValueError and AssertionError. Requires the registered estimator."""
    with open(path, encoding="utf8") as file:
        config = SkyRLTrainConfig.from_cli_overrides(yaml.safe_load(file))
    validate_cfg(config)
    return config


@ray.remote(num_cpus=1)
def train(config):
    FarmExp(config).run()


if __name__ == "__main__":
    skyrl.register()  # SkyRL passes registered estimators on to the processes of Ray.
    config = config_of(sys.argv[1])
    initialize_ray(config)
    ray.get(train.remote(config))
