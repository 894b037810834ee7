"""
swefarm.trainers.verl inside verl's V1 trainer: its own worker puts what the loop returns into a queue, of which the put alone is a
stand-in, and its estimators read it. The older trainer, tools and rewards: testkit/clients/verl. CPU, no Ray process.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import types
from typing import Any
from unittest import mock

import bench
import numpy as np
import torch
import verl.trainer.ppo.v1.agent_loop_tq as queue
from bench import contract, drives
from verl.trainer.ppo.core_algos import get_adv_estimator_fn

importlib.import_module("swefarm.trainers.verl.advantage")
loop = importlib.import_module("swefarm.trainers.verl.loop")
worker = queue.AgentLoopWorkerTQ.__ray_metadata__.modified_class


async def nothing(*_: Any, **__: Any) -> None:
    pass


parts = {"_compute_score": nothing, "_compute_teacher_logprobs": nothing, "_compute_multi_modal_inputs": lambda output, ids: {}}
owner = types.SimpleNamespace(**parts, _compute_position_ids=lambda ids, mask, more: torch.arange(ids.shape[1])[None])


def put(farm: Any, answers: list[Any]) -> list[Any]:
    """Returns the rows that verl's worker puts into its queue: key, fields, tags."""
    rows: list[Any] = []

    async def store(keys: Any, fields: Any, tags: Any, partition_id: str) -> None:
        rows.extend((key, fields[at], tags[at]) for at, key in enumerate(keys))

    async def all_of_them() -> None:
        for at, answer in enumerate(answers):
            uid = farm.rows[at // contract.N]["instance_id"]
            await worker._agent_loop_postprocess(owner, answer, False, uid=uid, session_id=at % contract.N, global_steps=farm.step)

    with mock.patch.object(queue, "tq", types.SimpleNamespace(async_kv_batch_put=store)):
        asyncio.run(all_of_them())
    return rows


def drive(farm: Any, name: str) -> list[contract.Trained]:
    rows = put(farm, drives.play_verl(loop.SwefarmLoop, farm, True))
    if not rows:
        return []
    for _, _, tags in rows:
        np.array([tags["min_global_steps"], tags["max_global_steps"]], dtype=int)
    width = max(fields["responses"].shape[-1] for _, fields, _ in rows)
    masks, rewards = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
    for at, (_, fields, _) in enumerate(rows):
        masks[at, : fields["response_mask"].shape[-1]] = fields["response_mask"]
        rewards[at, : fields["rm_scores"].shape[-1]] = fields["rm_scores"]
    groups = np.array([key.rsplit("_", 2)[0] for key, _, _ in rows], dtype=object)
    values = get_adv_estimator_fn("grpo_judged")(token_level_rewards=rewards, response_mask=masks, index=groups)[0]
    return [
        contract.Trained(
            fields["responses"].tolist(),
            fields["response_mask"].tolist(),
            fields["rollout_log_probs"].tolist(),
            float(value[mask.bool()][0]) if mask.any() else 0.0,
            (tags["min_global_steps"], tags["max_global_steps"]),
        )
        for (_, fields, tags), value, mask in zip(rows, values, masks)
    ]


bench.run("verl V1: rows of its queue, grpo_judged", drive, resumes=False)
if "verl.trainer.main_ppo" in sys.modules:
    raise SystemExit("broken: the adapter loads no trainer")
