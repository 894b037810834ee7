"""
Tests swefarm.trainers.areal with AReaL's own grouping workflow, its executor's check of trajectories, and its actor's advantages. Stand-ins
replace packages that AReaL imports and these parts never call. The test runs on CPU without an engine.
"""

from __future__ import annotations

import asyncio
import types
from typing import Any

import bench

bench.stand_in("flask", "lark", "numba", "swanlab", "tensorboardX", "trackio", "uvloop", "wandb")
import torch  # noqa: E402
from areal.api.cli_args import GenerationHyperparameters, GRPOConfig, parse_cli_args, to_structured_cfg  # noqa: E402
from areal.infra.remote_inf_engine import GroupedRolloutWorkflow  # noqa: E402
from areal.infra.workflow_executor import check_trajectory_format  # noqa: E402
from areal.trainer.ppo.actor import PPOActor  # noqa: E402
from areal.utils import stats_tracker  # noqa: E402
from areal.utils.data import concat_padded_tensors  # noqa: E402
from bench import contract, drives  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from swefarm.trainers import areal as ours  # noqa: E402

LOGGER = types.SimpleNamespace(warning=lambda text: None)


def actor() -> Any:
    """Returns AReaL's actor without an engine. The actor has only the attributes that the advantages need."""
    made = object.__new__(PPOActor)
    made.config = types.SimpleNamespace(overlong_reward_penalty=False, use_decoupled_loss=False, recompute_logprob=False)
    made.reward_bias, made.reward_scaling, made.reward_clip, made.reward_norm, made.adv_norm = 0.0, 1.0, 20.0, None, None
    made.kl_ctl, made.kl_estimator = 0.0, lambda one, other: one - other
    made.mask_no_eos_with_zero, made.discount, made.gae_lambda = False, 1.0, 1.0
    return made


def drive(farm: Any, name: str) -> list[contract.Trained]:
    gconfig = GenerationHyperparameters(n_samples=1, max_new_tokens=farm.max_response, temperature=1.0)
    limits = {"max_prompt": farm.max_prompt, "max_response": farm.max_response}
    workflow = ours.FarmWorkflow(gconfig, n=contract.N, model=farm.model, run=drives.run_at(farm, name), **limits)
    engine = types.SimpleNamespace(addresses=[farm.address], get_version=lambda: farm.version)
    grouped = GroupedRolloutWorkflow(workflow, 1, LOGGER)

    async def batch() -> list[Any]:
        rows = [{"instance": row, "query_id": str(at)} for at, row in enumerate(farm.rows)]
        return list(await asyncio.gather(*(grouped.arun_episode(engine, row) for row in rows)))

    groups = [group for group in asyncio.run(batch()) if group is not None]
    for group in groups:
        if not check_trajectory_format(group):
            raise SystemExit(f"broken: {farm.fault}: AReaL rejects the trajectory")
    if not groups:
        return []
    versions = [group["versions"].clone() for group in groups]
    data = actor()._compute_advantages(concat_padded_tensors(groups))
    trained, width = [], data["input_ids"].shape[1]
    versions = torch.cat([torch.nn.functional.pad(one, (0, width - one.shape[1]), value=-1) for one in versions])
    for at in range(data["input_ids"].shape[0]):
        mask = data["loss_mask"][at].int().roll(1)
        (value,) = data["advantages"][at][data["loss_mask"][at].bool()].unique().tolist()
        sampled = versions[at][mask.bool()]
        log_probs = data["logprobs"][at].roll(1).tolist()
        known = (int(sampled.min()), int(sampled.max()))
        trained.append(contract.Trained(data["input_ids"][at].tolist(), mask.tolist(), log_probs, value, known))
    logged = stats_tracker.get("rollout").export()
    if "rollout/reward" not in "".join(logged) and "reward" not in logged:
        raise SystemExit(f"broken: AReaL's statistics have {sorted(logged)}")
    return trained


bench.run("AReaL: workflow of a group, advantages of its actor", drive, resumes=False)

file, _ = parse_cli_args(["--config", str(bench.RECIPES / "areal" / "grpo.yaml")])
config = OmegaConf.to_object(to_structured_cfg(file, GRPOConfig))
given = bench.recipe_module("areal/train.py").arguments(config, "train.jsonl", "training", 16)
sizes = {"groups": config.train_dataset.batch_size, "samples": given["n"]}
bench.recipe("AReaL", {**sizes, "prompt": given["max_prompt"], "response": given["max_response"]})
ours.FarmWorkflow(**{**given, "rows": None})
if (config.gconfig.n_samples, config.actor.reward_norm) != (1, None):
    raise SystemExit("broken: AReaL's recipe normalises advantages again")
