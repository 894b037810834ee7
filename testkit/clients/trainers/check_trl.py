"""swefarm.trainers.trl inside TRL's own GRPOTrainer: one optimizer step under each fault, with importance correction. CPU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import bench
import trl.trainer.grpo_trainer as grpo
from bench import contract, drives
from datasets import Dataset
from swefarm.trainers import trl as ours
from trl import GRPOConfig, GRPOTrainer

FOLDER = tempfile.mkdtemp(prefix="swefarm-trl-")
MODEL, TOKENIZER = bench.make_model(Path(FOLDER))


class NoEngine:
    """Stands in for VLLMGeneration, which needs a GPU: nothing is synchronised, and the farm has the completions."""

    synced = 0

    def __init__(self, **_: Any) -> None:
        info = {"model_config": {"logprobs_mode": "processed_logprobs"}}
        self.vllm_client = type("Client", (), {"get_server_info": lambda self: info})()

    def sync_weights(self) -> None:
        NoEngine.synced += 1


class Watched(GRPOTrainer):
    lowered: dict[str, Any] = {}

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.lowered = super()._generate_and_score_completions(inputs)
        return self.lowered


def drive(farm: Any, name: str) -> list[contract.Trained]:
    sizes = {"per_device_train_batch_size": 8, "num_generations": contract.N, "max_steps": 1, "max_completion_length": farm.max_response}
    server = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": f"http://{farm.address}"}
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    plain = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "remove_unused_columns": False, "beta": 0.0}
    args = GRPOConfig(
        output_dir=FOLDER, vllm_importance_sampling_mode="token_truncate", learning_rate=1e-3, **sizes, **server, **quiet, **plain
    )
    # Every trainer begins at its step 0, so each of the farm's steps has another run.
    trainer = Watched(
        model=MODEL,
        reward_funcs=ours.reward,
        args=args,
        train_dataset=Dataset.from_list(ours.prompts(farm.rows)),
        processing_class=TOKENIZER,
        rollout_func=ours.rollout_func(drives.run_at(farm, f"{name}-{farm.step}"), rows=farm.rows, model=farm.model),
    )
    before = MODEL.model.layers[0].mlp.up_proj.weight.detach().clone()
    trainer.train()
    out = trainer.lowered
    trained = []
    for at, advantage in enumerate(out["advantages"].tolist()):
        length = int(out["completion_mask"][at].sum())
        mask = (out["completion_mask"][at] * out["tool_mask"][at]).tolist()[:length]
        log_probs = out["sampling_per_token_logps"][at].tolist()[:length]
        trained.append(contract.Trained(out["completion_ids"][at].tolist()[:length], mask, log_probs, advantage))
    moved = float((MODEL.model.layers[0].mlp.up_proj.weight - before).abs().max())
    if any(one.advantage for one in trained) != (moved > 0):
        raise SystemExit(f"broken: {farm.fault}: weights moved by {moved}")
    if "importance_sampling_ratio" not in out or "farm/judged" not in str(trainer.state.log_history):
        raise SystemExit("broken: TRL corrects for the sampler, and logs the judged share")
    return trained


grpo.VLLMGeneration = NoEngine
bench.run("GRPOTrainer", drive)
if NoEngine.synced == 0:
    raise SystemExit("broken: weights are synchronised before the rollouts")
