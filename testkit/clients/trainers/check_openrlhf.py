"""
Tests swefarm.trainers.openrlhf with OpenRLHF's own loader of agents, its actor's generate_responses, its conversion to experiences and its
advantages. Stand-ins replace packages that OpenRLHF imports and these parts never call. The test runs on CPU without a Ray process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any
from unittest import mock

import bench

bench.stand_in("deepspeed", "vllm", "flash_attn", "bitsandbytes", "optree", "ring_flash_attn", "isort", "loralib", "optimum")
import torch  # noqa: E402
from bench import contract, drives  # noqa: E402
from openrlhf.cli import train_ppo_ray  # noqa: E402
from openrlhf.models.loss import aggregate_loss  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.trainer.ray.vllm_engine import RolloutRayActor, _load_agent_executor  # noqa: E402
from swefarm.trainers.batch import rows_in, run_of_process  # noqa: E402

FOLDER = Path(tempfile.mkdtemp(prefix="swefarm-openrlhf-"))
Actor = RolloutRayActor.__ray_metadata__.modified_class
NONE = types.SimpleNamespace


class Params:
    """Stands in for vLLM's SamplingParams."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update({"logprobs": None, **given})


class Engine:
    """Stands in for vLLM's engine, which needs a GPU."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    async def generate(self, prompt: Any, params: Any, request_id: Any) -> Any:
        answer = self.policy(prompt.prompt_token_ids)
        log_probs = [{token: NONE(logprob=value)} for token, value in zip(answer["token_ids"], answer["log_probs"])]
        yield NONE(outputs=[NONE(token_ids=answer["token_ids"], finish_reason=answer["finish_reason"], logprobs=log_probs)])


def advantages(experiences: list[Any]) -> None:
    algo = NONE(advantage=NONE(estimator="dr_grpo", gamma=1.0, no_std_norm=False))
    args = NONE(algo=algo, reward=NONE(clip_range=None), rollout=NONE(n_samples_per_prompt=contract.N))
    maker = object.__new__(RemoteExperienceMaker)
    maker.strategy, maker.advantage_estimator, maker.kl_ctl = NONE(args=args), "dr_grpo", NONE(value=0.0)
    for at, one in enumerate(experiences):
        one.index, one.kl = [at], torch.zeros(one.action_mask.shape)
    maker.compute_advantages_and_returns(experiences)


def drive(farm: Any, name: str) -> list[contract.Trained]:
    (FOLDER / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in farm.rows))
    rows_in.cache_clear()
    length = farm.max_prompt + farm.max_response
    agent = FOLDER / "agent.py"
    options = f"rows={str(FOLDER / 'rows.jsonl')!r}, run={name!r}, max_prompt={farm.max_prompt}, **{farm.options!r}"
    agent.write_text(f"from swefarm.trainers import openrlhf\nAgentExecutor = openrlhf.executor({options})\n")
    actor = object.__new__(Actor)
    actor._mm_pad_token_ids, actor.llm = (), Engine(farm.sample)
    run_of_process.cache_clear()  # A new process has an empty cache.
    with mock.patch.dict(os.environ, {"SWEFARM_GATEWAY_URL": farm.url}):
        actor.executor = _load_agent_executor(str(agent))
    common = {"max_length": length, "hf_tokenizer": farm.tokenizer, "num_samples": contract.N}

    async def batch() -> list[Any]:
        def prompt(row: Any) -> Any:
            params = Params(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=None, logprobs=1)
            return actor.generate_responses(row["problem_statement"], row["instance_id"], sampling_params=params, **common)

        return list(await asyncio.gather(*(prompt(row) for row in farm.rows)))

    answers = asyncio.run(batch())
    actor.executor.shim.close()
    generator = object.__new__(SamplesGenerator)
    experiences = [generator._process_response_into_experience(one, max_len=length) for group in answers for one in group]
    advantages(experiences)
    for one in experiences:
        loss = aggregate_loss(-one.advantages, one.action_mask, token_level_loss=False, global_batch_size=len(experiences))
        if not torch.isfinite(loss):
            raise SystemExit(f"broken: {farm.fault}: a sample without an action has the loss {loss}")
    trained = []
    for one in experiences:
        mask = one.action_mask[0].tolist()
        values = one.advantages[0][one.action_mask[0].bool()].unique()
        if len(values) > 1:
            raise SystemExit(f"broken: advantages of one sample: {values}")
        trained.append(
            contract.Trained(one.sequences[0].tolist()[1:], mask, one.rollout_log_probs[0].tolist(), float(values[0]) if len(values) else 0.0)
        )
    return trained


bench.run("OpenRLHF: generate_responses, experiences, dr_grpo", drive, resumes=False, std=False)


def parsed(words: list[str]) -> Any:
    """Returns the arguments as OpenRLHF's command reads and checks them. The command itself then starts the training."""
    source = Path(train_ppo_ray.__file__).read_text()
    if source.count("\n    train(args)\n") != 1:
        raise SystemExit("broken: OpenRLHF's command does not end with train(args)")
    names: dict[str, Any] = {"__name__": "__main__"}
    with mock.patch.object(sys, "argv", words):
        exec(compile(source.replace("\n    train(args)\n", "\n"), train_ppo_ray.__file__, "exec"), names)
    return names["args"]


args = parsed(bench.recipe_words("openrlhf/run.sh", os.devnull, os.devnull)[1:])
with mock.patch.dict(os.environ, {"ROWS": os.devnull, "HOST": "127.0.0.1"}):
    agent = bench.recipe_module("openrlhf/agent.py")
    agent.AgentExecutor()
sizes = {"groups": args.rollout.batch_size, "samples": args.rollout.n_samples_per_prompt}
bench.recipe("OpenRLHF", {**sizes, "prompt": agent.MAX_PROMPT, "response": args.data.max_len - agent.MAX_PROMPT})
