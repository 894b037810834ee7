"""Drives the adapters of TRL, SkyRL, slime and verl through the contract, with stand-ins for the classes of the trainers."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import importlib
import json
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional
from unittest import mock

from contract import INSTANCES, N, Trained
from scriptedfarm import ScriptedFarm

from swefarm import Farm
from swefarm.trainers import skyrl, slime, trl
from swefarm.trainers.baseline import group_advantages, is_judged

ROWS = ScriptedFarm.rows
THINGS = types.SimpleNamespace
TOKENIZER = ScriptedFarm.tokenizer
ASKED = [name for name in INSTANCES for _ in range(N)]


def run_at(farm: Any, name: str) -> Any:
    return Farm(farm.url, patience_s=20).run(name, **farm.options)


def advantages(rewards: "list[Optional[float]]") -> list[float]:
    """Returns the advantages that trainers compute when they ignore a reward of None."""
    groups = [at // N for at in range(len(rewards))]
    return group_advantages([reward or 0.0 for reward in rewards], [reward is not None for reward in rewards], groups)


def trl_trainer(step: int = 5) -> Any:
    args = THINGS(temperature=0.7, top_p=0.9, top_k=0, min_p=None, repetition_penalty=1.0, max_completion_length=64, seed=42)
    args.use_vllm, args.vllm_mode, args.vllm_server_base_url = True, "server", "http://10.0.0.1:8000"
    model = THINGS(training=True, config=THINGS(_name_or_path="/models/m"))
    return THINGS(args=args, model=model, state=THINGS(global_step=step), accelerator=THINGS(process_index=0), processing_class=TOKENIZER)


def drive_trl(farm: ScriptedFarm, name: str) -> list[Trained]:
    asked = [row["prompt"] for row in trl.prompts(ROWS) for _ in range(N)]
    out = trl.rollout_func(run_at(farm, name), rows=ROWS)(asked, trl_trainer())
    rewards = trl.reward(**{key: out[key] for key in ("farm_reward", "farm_overlong")})
    return [
        Trained(*sequence, advantage)
        for *sequence, advantage in zip(out["completion_ids"], out["env_mask"], out["logprobs"], advantages(rewards))
    ]


def drive_skyrl(farm: ScriptedFarm, name: str) -> list[Trained]:
    client = THINGS(get_endpoint_url=lambda: "http://router", weight_version=4)
    generator = skyrl.FarmGenerator(run_at(farm, name), client, TOKENIZER, model="m", max_prompt=16, max_response=64, rows=ROWS)
    out = asyncio.run(generator.generate(skyrl_batch()))
    rewards = [None if reward == skyrl.NO_REWARD else reward for reward in out["rewards"]]
    return [
        Trained(*sequence, advantage)
        for *sequence, advantage in zip(out["response_ids"], out["loss_masks"], out["rollout_logprobs"], advantages(rewards))
    ]


def skyrl_batch() -> dict[str, Any]:
    ids = [Trajectory(name, at % N) for at, name in enumerate(ASKED)]
    return {
        "trajectory_ids": ids,
        "env_extras": [{"instance_id": one.instance_id} for one in ids],
        "sampling_params": {"temperature": 1.0, "top_k": -1, "max_tokens": 64, "logprobs": 0},
        "batch_metadata": THINGS(global_step=5, training_phase="train"),
    }


@dataclass
class Trajectory:
    instance_id: str
    repetition_id: int

    def to_string(self) -> str:
        return f"{self.instance_id}_{self.repetition_id}"


@dataclass
class SlimeSample:
    """The fields of slime's Sample that the adapter reads or writes."""

    group_index: int
    index: int
    metadata: dict[str, Any]
    session_id: Optional[str] = None
    reward: Any = None
    loss_mask: list[int] = field(default_factory=list)
    rollout_log_probs: list[float] = field(default_factory=list)
    weight_versions: list[str] = field(default_factory=list)
    response_length: int = 0

    class Status(enum.Enum):
        COMPLETED, TRUNCATED, ABORTED, FAILED = "completed", "truncated", "aborted", "failed"


def slime_args(farm: Any, name: str) -> Any:
    slime._runs[name] = run_at(farm, name)
    address = {"sglang_router_ip": farm.host, "sglang_router_port": farm.port}
    return THINGS(swefarm_run=name, hf_checkpoint=farm.model, rollout_max_response_len=farm.max_response, **address)


def drive_slime(farm: ScriptedFarm, name: str) -> list[Trained]:
    args = slime_args(farm, name)
    samples = [SlimeSample(at // N, at, {"instance_id": instance}) for at, instance in enumerate(ASKED)]

    async def play() -> None:
        await asyncio.gather(*(slime.generate(args, one, {"temperature": 1.0, "max_new_tokens": 64}) for one in samples))

    asyncio.run(play())
    _, values = slime.post_process(args, samples)
    return [
        Trained(one.tokens[-one.response_length :], one.loss_mask, one.rollout_log_probs, value, steps(one.weight_versions))
        for one, value in zip(samples, values)
    ]


class AgentLoopBase:
    """The attributes that verl's base class sets on a loop."""

    def __init__(self, config: Any) -> None:
        self.config, self.rollout_config = config, config["actor_rollout_ref"].rollout
        self.server_manager, self.tokenizer = object(), TOKENIZER


@contextlib.contextmanager
def verl_stand_in() -> "Iterator[Any]":
    """Imports the loop with stand-ins for verl's classes, and removes the module afterwards."""
    name = "verl.experimental.agent_loop.agent_loop"
    module = types.ModuleType(name)
    module.AgentLoopBase = AgentLoopBase
    module.AgentLoopMetrics = module.AgentLoopOutput = THINGS
    with mock.patch.dict(sys.modules, {name: module}):
        sys.modules.pop("swefarm.trainers.verl.loop", None)
        yield importlib.import_module("swefarm.trainers.verl.loop").SwefarmLoop


def play_verl(loop_class: Any, farm: Any, use_v1: bool) -> list[Any]:
    """Returns what verl's agent loops return for one batch. Their base class gets only the attributes that the loops read."""
    limits = {"prompt_length": farm.max_prompt, "response_length": farm.max_response}
    rollout = THINGS(**limits, temperature=1.0, top_p=1.0, top_k=-1, val_kwargs=THINGS(temperature=0))
    config = {"trainer": {"use_v1": use_v1}, "actor_rollout_ref": THINGS(rollout=rollout, model=THINGS(path=farm.model))}
    asked = [row for row in farm.rows for _ in range(N)]

    async def one(loop: Any, at: int) -> Any:
        instance = json.dumps(asked[at])
        extra = {"tools_kwargs": {"bash": {"create_kwargs": {"instance": instance}}}}
        sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        return await loop.run(sampling, extra_info=extra, global_steps=farm.step, uid=asked[at]["instance_id"], session_id=at % N)

    async def batch(loop: Any) -> list[Any]:
        return await asyncio.gather(*(one(loop, at) for at in range(len(asked))))

    with mock.patch.object(loop_class.__mro__[1], "__init__", AgentLoopBase.__init__):
        return asyncio.run(batch(loop_class(config, farm_url=farm.url, policy_base_url=f"http://{farm.address}/v1", run=farm.options)))


def drive_verl(farm: ScriptedFarm, use_v1: bool) -> list[Trained]:
    with verl_stand_in() as loop_class:
        outs = play_verl(loop_class, farm, use_v1)
    rows = [(at // N, out) for at, out in enumerate(outs) if out != []]
    scores, masks = [out.reward_score for _, out in rows], [sum(out.response_mask) for _, out in rows]
    values = group_advantages(scores, [is_judged(*pair) for pair in zip(scores, masks)], [group for group, _ in rows])
    return [
        Trained(out.response_ids, out.response_mask, out.response_logprobs, value, verl_steps(out.extra_fields))
        for (_, out), value in zip(rows, values)
    ]


def verl_steps(fields: dict[str, Any]) -> "tuple[int, int]":
    return fields["min_global_steps"], fields["max_global_steps"]


def steps(names: list[str]) -> "Optional[tuple[int, int]]":
    return (int(names[0]), int(names[-1])) if names else None
