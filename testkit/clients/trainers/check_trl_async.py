"""
swefarm.trainers.trl inside TRL's own AsyncGRPOTrainer: a worker and a transfer under each fault. Stand-ins: the attention kernel, which TRL
gets from the hub, and the number of operations of a GPU. CPU.
"""

from __future__ import annotations

import asyncio
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

import bench
import torch
import trl.experimental.async_grpo.async_grpo_trainer as asynchronous
from bench import contract, drives
from datasets import Dataset
from scriptedfarm import ScriptedFarm
from swefarm.trainers import trl as ours
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, packing

FOLDER = tempfile.mkdtemp(prefix="swefarm-trl-")
_, TOKENIZER = bench.make_model(Path(FOLDER))


def attention(
    q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, max_q: int, max_k: int, softmax_scale: Any = None, causal: bool = True, **_: Any
) -> Any:
    """Segments of q against segments of k, causal from the end, as flash_attn_varlen_func."""
    out = []
    for at in range(len(cu_q) - 1):
        queries = q[cu_q[at] : cu_q[at + 1]]
        keys, values = (one[cu_k[at] : cu_k[at + 1]].repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
        scores = torch.einsum("qhd,khd->hqk", queries, keys) * (softmax_scale or q.shape[-1] ** -0.5)
        rows, columns = queries.shape[0], keys.shape[0]
        scores = scores.masked_fill(torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1), float("-inf"))
        out.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), values))
    return torch.cat(out)


asynchronous.get_peak_flops_per_device = lambda *_, **__: 1e12
packing._flash_attn = lambda: types.SimpleNamespace(flash_attn_varlen_func=attention)


class Transfer:
    """Stands in for TRL's transfer to GPUs."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def init_weight_transfer(self) -> None:
        self.did.append("init")

    def pause(self) -> None:
        self.did.append("pause")

    def send_weights(self, iterator: Any) -> None:
        self.did.append(f"send {sum(1 for _ in iterator) > 0}")

    def resume(self) -> None:
        self.did.append("resume")

    def destroy(self) -> None:
        self.did.append("destroy")


def worker_of(farm: Any, name: str) -> ours.FarmWorker:
    urls = [f"http://{farm.address}/v1"]
    run = drives.run_at(farm, name)
    limits = {"max_prompt": farm.max_prompt, "max_response": farm.max_response}
    return ours.FarmWorker(run, farm.rows, n=contract.N, model=lambda v: f"lora-v{v}", policy_urls=urls, in_flight=2, seed=0, **limits)


def drive(farm: Any, name: str) -> list[contract.Trained]:
    """Reads one group of each instance from the queue, as the trainer does."""
    worker = worker_of(farm, name)
    worker.update_model_version(farm.version)

    async def play() -> list[Any]:
        return list(await asyncio.gather(*(worker._group(number, row) for number, row in enumerate(farm.rows))))

    for group in asyncio.run(play()):
        worker._deliver(group)
    trained = []
    while not worker.rollout_buffer.empty():
        one = worker.rollout_buffer.get()
        sequence = (array.tolist() for array in (one.input_ids, one.completion_mask, one.old_log_probs))
        trained.append(contract.Trained(*sequence, one.advantage))
        if one.model_version != farm.version:
            raise SystemExit(f"broken: {farm.fault}: version {one.model_version}, expected the oldest")
    return trained


def check_training(test: unittest.TestCase) -> None:
    """Four steps, each after a transfer of weights, with rollouts that nobody judged among them."""
    with ScriptedFarm("a sample without reward") as farm:
        worker, transfer = worker_of(farm, "run-1"), Transfer()
        sizes = {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 1, "num_generations": contract.N, "max_steps": 4}
        sync = {"weight_sync_steps": 1, "max_staleness": 8, "token_budget": 512}
        quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
        plain = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "dtype": "float32", "learning_rate": 1e-3}
        trainer = AsyncGRPOTrainer(
            model=FOLDER,
            args=AsyncGRPOConfig(output_dir=FOLDER, **sizes, **sync, **quiet, **plain),
            train_dataset=Dataset.from_list(ours.prompts(drives.ROWS)),
            processing_class=TOKENIZER,
            rollout_worker=worker,
            weight_transfer=ours.FarmTransfer(transfer, worker),
        )
        trainer.train()
        test.assertEqual(transfer.did[:4], ["init", "pause", "send True", "resume"])
        test.assertEqual(transfer.did[-1], "destroy")
        changes = [body for method, path, body in farm.asked if method == "PUT" and path == "/v1/policies/run-1"]
        test.assertEqual([change["state"] for change in changes[:4]], ["updating", "serving", "updating", "serving"])
        test.assertEqual([(change["version"], change["model"]) for change in changes[1:4:2]], [("1", "lora-v1"), ("2", "lora-v2")])
        logged = [entry for entry in trainer.state.log_history if "loss" in entry]
        test.assertEqual(len(logged), 4)
        test.assertTrue(all(0.0 < entry["farm/judged"] < 1.0 for entry in logged if "farm/judged" in entry))
        test.assertTrue(any("farm/judged" in entry for entry in logged), logged[-1])
        worker.check_health(60)
        test.assertFalse(worker._thread.is_alive())


bench.run("AsyncGRPOTrainer: samples in its queue", drive, resumes=False)
bench.finish("AsyncGRPOTrainer: four steps and five transfers of weights", check_training)
