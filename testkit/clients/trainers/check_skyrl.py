"""swefarm.trainers.skyrl inside SkyRL's own checks, batch tensors and registry of estimators. CPU, no Ray process, no engine."""

from __future__ import annotations

import asyncio
import types
from typing import Any

import bench
import numpy as np
from bench import contract, drives
from skyrl.backends.skyrl_train.utils.ppo_utils import compute_advantages_and_returns
from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
from skyrl.train.generators.base import GeneratorInterface
from skyrl.train.generators.utils import get_metrics_from_generator_output, prepare_generator_input
from skyrl.train.utils.trainer_utils import validate_generator_output, zero_variance_filter
from swefarm.trainers import skyrl as ours


class Client:
    """Stands in for SkyRL's client of its engines."""

    finished: list[str] = []

    def __init__(self, farm: Any) -> None:
        self.address, self.weight_version = farm.address, farm.version

    def get_endpoint_url(self) -> str:
        return f"http://{self.address}"

    async def finish_session(self, session_id: str) -> None:
        self.finished.append(session_id)


class Generator(ours.FarmGenerator, GeneratorInterface):
    """SkyRL calls `generate` alone; as a subclass, the adapter also passes a check of types."""


def drive(farm: Any, name: str) -> list[contract.Trained]:
    limits = {"max_prompt": farm.max_prompt, "max_response": farm.max_response}
    generator = Generator(drives.run_at(farm, name), Client(farm), farm.tokenizer, model=farm.model, rows=farm.rows, **limits)
    rows = [
        {"prompt": [{"role": "user", "content": "Fix it."}], "env_class": None, "env_extras": {"instance_id": row["instance_id"]}, "uid": str(number)}
        for number, row in enumerate(farm.rows)
    ]
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "max_tokens": farm.max_response, "logprobs": 0}
    batch, uids = prepare_generator_input(rows, contract.N, sampling, "swefarm", "train", farm.step)
    out = asyncio.run(generator.generate(batch))
    validate_generator_output(len(uids), out)
    judged = [reward != ours.NO_REWARD for reward in out["rewards"]]
    passed = get_metrics_from_generator_output(out, uids)["pass_at_n"]
    if passed != len({uid for uid, reward in zip(uids, out["rewards"]) if reward == 1.0}) / len(farm.rows):
        raise SystemExit(f"broken: {farm.fault}: pass@n {passed}: an unjudged sample passes nothing")
    zero_variance_filter(out["rewards"], uids, loss_masks=out["loss_masks"])
    last = [[0.0] * (len(ids) - 1) + [reward] for ids, reward in zip(out["response_ids"], out["rewards"])]
    tensors = convert_prompts_responses_to_batch_tensors(
        0, out["prompt_token_ids"], out["response_ids"], last, out["loss_masks"], out["rollout_logprobs"]
    )
    _, _, response_mask, rewards, loss_masks, log_probs = tensors[:6]
    advantages, _ = compute_advantages_and_returns(
        token_level_rewards=rewards,
        response_mask=response_mask,
        index=np.array(uids),
        adv_estimator="grpo_judged",
        config=types.SimpleNamespace(),
    )
    if bool((loss_masks.sum(-1)[[not one for one in judged]] != 0).any()):
        raise SystemExit("broken: an unjudged sample is in the loss")
    trained = []
    for at, ids in enumerate(out["response_ids"]):
        length = len(ids)
        value = float(advantages[at][response_mask[at].bool()][0])
        trained.append(contract.Trained(ids, loss_masks[at].tolist()[:length], log_probs[at].tolist()[:length], value))
    return trained


ours.register()
bench.run("SkyRL: generator output, tensors, grpo_judged", drive)
if len(Client.finished) < contract.N:
    raise SystemExit("broken: sessions of the router are released")

config = bench.recipe_module("skyrl/train.py").config_of(bench.RECIPES / "skyrl" / "grpo.yaml")
sizes = {"groups": config.trainer.train_batch_size, "samples": config.generator.n_samples_per_prompt}
lengths = {"prompt": config.trainer.max_prompt_length, "response": config.generator.sampling_params.max_generate_length}
bench.recipe("SkyRL", {**sizes, **lengths})
