"""
Tests swefarm.trainers.tinker with tinker-cookbook's own group rollout, advantages and Datums. Stand-ins replace the sampling client, and
packages that the cookbook imports and these parts never call. The test runs on CPU and calls no service.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import types
import urllib.request
from pathlib import Path
from typing import Any

import bench

bench.stand_in("blobfile", "pyrage", "tml_renderers")
import tinker  # noqa: E402
from bench import contract, drives  # noqa: E402
from swefarm.trainers import tinker as ours  # noqa: E402
from tinker_cookbook.completers import TinkerTokenCompleter  # noqa: E402
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages  # noqa: E402
from tinker_cookbook.rl.rollouts import do_group_rollout_and_filter_constant_reward  # noqa: E402

CODE = types.SimpleNamespace(eos_token_id=2, decode=lambda ids, **_: "", encode=lambda text, **_: [])


class Client:
    """Stands in for tinker's SamplingClient, which calls a service."""

    asked: list[Any] = []

    def __init__(self, policy: Any = None) -> None:
        self.policy = policy

    async def sample(self, prompt: tinker.ModelInput, num_samples: int, sampling_params: tinker.SamplingParams) -> Any:
        self.asked.append((prompt.to_ints(), sampling_params))
        said = types.SimpleNamespace(tokens=[7, 8], logprobs=[-0.5, -1.0], stop_reason="stop")
        if self.policy is not None:
            answer = self.policy(prompt.to_ints())
            said = types.SimpleNamespace(tokens=answer["token_ids"], logprobs=answer["log_probs"], stop_reason=answer["finish_reason"])
        return types.SimpleNamespace(sequences=[said])


def drive(farm: Any, name: str) -> list[contract.Trained]:
    limits = {"max_prompt": farm.max_prompt, "max_response": farm.max_response}
    strategy = ours.FarmStrategy(drives.run_at(farm, name), farm.tokenizer, **limits)
    dataset = ours.FarmDataset(farm.rows, n=contract.N, groups_per_batch=len(farm.rows), batches=1, key=f"train-{farm.step}")
    client = Client(farm.sample)
    options = {"max_tokens": farm.max_response, "temperature": 1.0, "do_remove_constant_reward_groups": False, "enable_logging": False}

    async def batch() -> list[Any]:
        rollouts = (
            do_group_rollout_and_filter_constant_reward(client, builder, strategy=strategy, **options) for builder in dataset.get_batch(0)
        )
        return list(await asyncio.gather(*rollouts))

    groups = [group for group in asyncio.run(batch()) if group is not None]
    strategy.shim.close()
    for group in groups:
        if len(group.trajectories_G) + len(group.rollout_errors) != contract.N:
            raise SystemExit(f"broken: {farm.fault}: {group.rollout_errors}")
    data, _ = assemble_training_data(groups, compute_advantages(groups))
    trained = []
    for one in data:
        inputs = {key: value.to_torch().tolist() for key, value in one.loss_fn_inputs.items()}
        mask = [int(value) for value in inputs["mask"]]
        (value,) = {value for value, sampled in zip(inputs["advantages"], mask) if sampled}
        trained.append(contract.Trained(inputs["target_tokens"], mask, inputs["logprobs"], value))
    return trained


def check_endpoint(test: Any) -> None:
    """Checks that the sampling client of a group receives a request of the farm in tinker's own types."""
    with drives.ScriptedFarm("none") as farm:
        strategy = ours.FarmStrategy(drives.run_at(farm, "run-1"), CODE)
        strategy._policies["s"] = TinkerTokenCompleter(Client(), max_tokens=64)
        body = {"prompt": [1, 2], "temperature": 0.7, "top_k": -1, "stop": [], "max_tokens": 5}
        headers = {"content-type": "application/json", "x-session-id": "s"}
        with urllib.request.urlopen(urllib.request.Request(f"{strategy.shim.url}/completions", json.dumps(body).encode(), headers)) as reply:
            (choice,) = json.load(reply)["choices"]
        strategy.shim.close()
        test.assertEqual((choice["token_ids"], choice["logprobs"]["token_logprobs"]), ([7, 8], [-0.5, -1.0]))
        prompt, params = Client.asked[-1]
        test.assertEqual((prompt, params.temperature, params.max_tokens, params.stop), ([1, 2], 0.7, 5, None))


bench.run("tinker-cookbook: group rollout, advantages, Datums", drive, std=False)
bench.finish("tinker-cookbook: its sampling client behind an endpoint", check_endpoint)

recipe = bench.recipe_module("tinker/train.py")
with drives.ScriptedFarm("none") as farm, tempfile.TemporaryDirectory() as folder:
    rows = Path(folder, "rows.jsonl")
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in farm.rows))
    strategy = recipe.strategy_of(drives.run_at(farm, "run-1"), CODE, "127.0.0.1")
    config = recipe.config_of(strategy, [str(rows), str(rows)])
    training, verified = asyncio.run(config.dataset_builder())
    strategy.shim.close()
    batch = training.get_batch(0)
    if (config.effective_rollout_strategy(), len(verified.get_batch(0))) != (strategy, len(farm.rows)):
        raise SystemExit("broken: Tinker's recipe plays with another strategy")
    bench.recipe("Tinker", {"groups": len(batch), "samples": batch[0].n, "prompt": strategy.max_prompt, "response": strategy.max_response})
