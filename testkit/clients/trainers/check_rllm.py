"""
Tests swefarm.trainers.rllm with rLLM's own AgentFlowEngine, grouping, filter of groups and GRPO. rLLM is in no package index, so pass a
checkout of rllm-org/rllm. The gateway is a stand-in with the routes that AgentFlowEngine and the flow use. The test runs on CPU without an
inference engine.
usage: check_rllm.py CHECKOUT
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import bench
from bench import contract, drives

sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/rllm-model-gateway/src"]
from fakefarm import FakeFarm  # noqa: E402
from hydra import compose, initialize_config_dir  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from rllm.engine.agentflow_engine import AgentFlowEngine  # noqa: E402
from rllm.trainer.algorithms.advantage import collect_reward_and_advantage_from_trajectory_groups  # noqa: E402
from rllm.trainer.algorithms.config import AlgorithmConfig, CompactFilteringConfig, RejectionSamplingConfig, TransformConfig  # noqa: E402
from rllm.trainer.algorithms.rejection_sampling import RejectionSamplingMetrics, filter_groups  # noqa: E402
from rllm.trainer.algorithms.transform import transform_episodes_to_trajectory_groups  # noqa: E402
from rllm.trainer.verl.utils import sync_config  # noqa: E402
from swefarm.trainers import rllm as ours  # noqa: E402


class Gateway:
    """Stands in for rLLM's GatewayManager. It records no calls, because the farm sends requests directly to the workers."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get_session_url(self, uid: str, public: bool = False) -> str:
        return f"{self.url}/sessions/{uid}/v1"

    async def acreate_session(self, uid: str, **_: Any) -> None:
        pass

    async def aget_traces(self, uid: str) -> list[Any]:
        return []

    async def adelete_sessions(self, uids: list[str]) -> None:
        pass


def workers_at(address: str) -> Any:
    known = {"worker_id": "a", "url": f"http://{address}", "api_path": "/v1", "healthy": True}
    workers = [known, {**known, "url": "http://10.0.0.2:8000", "healthy": False}]
    return lambda method, path, body: (200, workers) if path == "/admin/workers" else (404, {})


def merged(steps: list[Any]) -> contract.Trained:
    """Joins steps into one sequence. Fails if a step does not continue the tokens of the previous steps."""
    tokens, mask, log_probs = [], [], []
    for step in steps:
        told = step.prompt_ids[len(tokens) :]
        if step.prompt_ids[: len(tokens)] != tokens:
            raise SystemExit("broken: a step does not continue the tokens before it")
        tokens += [*told, *step.response_ids]
        mask += [0] * len(told) + [1] * len(step.response_ids)
        log_probs += [0.0] * len(told) + step.logprobs
    return contract.Trained(tokens, mask, log_probs, steps[0].advantage, (steps[0].weight_version, steps[-1].weight_version))


def drive(farm: Any, name: str) -> list[contract.Trained]:
    flow = ours.FarmFlow(drives.run_at(farm, name), max_prompt=farm.max_prompt, max_response=farm.max_response)
    ids = {row["instance_id"]: uuid.uuid4().hex for row in farm.rows}
    tasks = [{"instance": row} for row in farm.rows for _ in range(contract.N)]
    with FakeFarm(workers_at(farm.address)) as gateway:
        sampling = {"temperature": 0.7, "top_k": -1}
        engine = AgentFlowEngine(flow, ours.FarmEvaluator(), Gateway(gateway.url), farm.model, n_parallel_tasks=16, train_sampling_params=sampling)
        episodes = asyncio.run(engine.execute_tasks(tasks, [ids[task["instance"]["instance_id"]] for task in tasks]))
        engine.shutdown()
    groups, _ = transform_episodes_to_trajectory_groups(episodes, TransformConfig(), CompactFilteringConfig())
    groups, _ = filter_groups(groups, RejectionSamplingConfig(), RejectionSamplingMetrics())
    collect_reward_and_advantage_from_trajectory_groups(groups, AlgorithmConfig(norm_adv_by_std_in_grpo=False))
    if sum(one.is_correct for one in episodes) != sum(one.reward == 1.0 for one in farm.rollouts.values()) / (len(farm.rollouts) // len(tasks)):
        raise SystemExit(f"broken: {farm.fault}: an unjudged episode is correct")
    for policy in farm.policies[-1:]:
        if (policy["urls"], policy["model"], policy["sampling"]["temperature"]) != ([f"http://{farm.address}/v1"], "m", 0.7):
            raise SystemExit(f"broken: {policy}")
    return [merged(trajectory.steps) for group in groups for trajectory in group.trajectories]


bench.run("rLLM: AgentFlowEngine, groups, GRPO", drive, resumes=False, std=False)

with initialize_config_dir(str(bench.RECIPES / "rllm"), version_base=None):
    config = compose("grpo")
base = OmegaConf.load(f"{sys.argv[1]}/rllm/trainer/config/rllm/base.yaml")
OmegaConf.set_struct(base, True)
OmegaConf.merge(base, OmegaConf.load(bench.RECIPES / "rllm" / "grpo.yaml").rllm)  # fails for a key that rLLM does not have
OmegaConf.set_struct(config, False)
sync_config(config)
sizes = {"groups": config.data.train_batch_size, "samples": config.actor_rollout_ref.rollout.n}
bench.recipe("rLLM", {**sizes, "prompt": config.data.max_prompt_length, "response": config.data.max_response_length})
recipe = bench.recipe_module("rllm/train.py")
if [task["instance_id"] for task in recipe.instances(drives.ROWS, "train")] != list(contract.INSTANCES):
    raise SystemExit("broken: rLLM's recipe names other instances")
