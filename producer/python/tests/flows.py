"""Drives the adapters of verifiers, OpenRLHF, Tinker, AReaL and rLLM through the contract, with stand-ins for the classes of the trainers."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, Iterator, Sequence
from unittest import mock

from contract import N, Trained
from drives import ROWS, THINGS, TOKENIZER
from scriptedfarm import ScriptedFarm

from swefarm.trainers.baseline import group_advantages


class Made:
    """An object with the attributes that it is made with, and a generic class."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __class_getitem__(cls, _: Any) -> type:
        return cls


@contextlib.contextmanager
def adapter(name: str, modules: "dict[str, dict[str, Any]]", farm: ScriptedFarm) -> "Iterator[Any]":
    """Loads an adapter over stand-ins for modules of its trainer, with the farm of the environment, and forgets it afterwards."""
    made = {}
    for path, names in modules.items():
        for depth in range(1, path.count(".") + 2):
            parent = ".".join(path.split(".")[:depth])
            made.setdefault(parent, types.ModuleType(parent))
        made[path].__dict__.update(names)
    for path, module in made.items():
        if "." in path:
            setattr(made[path.rpartition(".")[0]], path.rpartition(".")[2], module)
    with mock.patch.dict(sys.modules, made), mock.patch.dict("os.environ", {"SWEFARM_GATEWAY_URL": farm.url}):
        sys.modules.pop(f"swefarm.trainers.{name}", None)
        yield importlib.import_module(f"swefarm.trainers.{name}")
    sys.modules.pop(f"swefarm.trainers.{name}", None)


def centred(rewards: "Sequence[Any]", groups: "Sequence[Any]") -> "list[float]":
    """Distances to the mean of the rewards that are there."""
    return group_advantages([reward or 0.0 for reward in rewards], [reward is not None for reward in rewards], groups, by_deviation=False)


class Trace(Made):
    """What verifiers' Trace does for the adapter."""

    def __init__(self, **given: Any) -> None:
        self.nodes, self.calls, self.errors, self.ok, self.reward, self.stopped = [], [], [], False, None, None
        super().__init__(**given)

    def stop(self, condition: str) -> None:
        self.stopped = condition

    def record_reward(self, name: str, value: float) -> None:
        self.reward = value

    def record_metrics(self, values: "dict[str, float]") -> None:
        self.metrics = values


class Env(Made):
    def __init__(self, config: Any) -> None:
        self.config, self._default_harness = config, None


def verifiers_modules() -> "dict[str, dict[str, Any]]":
    plain = ("TaskData", "Task", "Taskset", "TasksetConfig", "SingleAgentEnvConfig", "AgentConfig", "SubprocessConfig", "AgentInfo")
    plain += ("Episode", "EnvInfo", "TraceTask", "MessageNode", "ModelCall", "Usage", "UserMessage", "AssistantMessage", "Error")
    names = {name: type(name, (Made,), {}) for name in plain}
    return {
        "verifiers.v1": {**names, "Env": Env, "Trace": Trace, "ModelContext": Made, "Agents": Made},
        "verifiers.v1.configs.agent": {"resolve_agent": lambda spec, **_: spec},
        "verifiers.v1.configs.client": {"resolve_headers": lambda client: {**client.headers, **client.headers_of_environment}},
        "verifiers.v1.harnesses.null.harness": {"NullHarnessConfig": Made},
    }


def play_verifiers(farm: ScriptedFarm, name: str) -> "list[Any]":
    """Returns the episodes of one batch."""
    with adapter("verifiers", verifiers_modules(), farm) as module, tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
        taskset = module.FarmTaskset(config=THINGS(rows=str(rows), task=None))
        module.FarmTask.__init__ = lambda self, data, _: Made.__init__(self, data=data, key=data.id, hash=data.id)
        module.FarmData.prompt_text = property(lambda self: self.prompt)
        limits = {"max_prompt": 16, "max_response": 64, "overlong": "mask", "settings": {}}
        config = THINGS(run=name, policy_urls=[], agent=None, env_id="swefarm_env", timeout=THINGS(episode=None), **limits)
        sampling = THINGS(model_dump=lambda **_: {"temperature": 1.0, "top_k": -1, "cache_salt": "4", "return_token_ids": True})
        headers = {"headers": {"X-A": "a"}, "headers_of_environment": {"X-B": "b"}}
        ctx = THINGS(model="m", client=THINGS(base_url="http://10.0.0.1:8000/v1", **headers), sampling=sampling)
        env = module.FarmEnv(config)

        async def batch() -> "list[Any]":
            return list(await asyncio.gather(*(env.run_episode(task, ctx) for task in taskset.load() for _ in range(N))))

        return asyncio.run(batch())


def drive_verifiers(farm: ScriptedFarm, name: str) -> "list[Trained]":
    traces = [episode.traces[0] for episode in play_verifiers(farm, name)]
    values = centred([trace.reward if trace.ok else None for trace in traces], [trace.task.data.id for trace in traces])
    trained = []
    for trace, value in zip(traces, values):
        parts: "list[list[Any]]" = [[], [], []]
        for node in trace.nodes:
            log_probs = node.logprobs if any(node.mask) else [0.0] * len(node.mask)
            for part, more in zip(parts, (node.token_ids, node.mask, log_probs)):
                part.extend(more)
        trained.append(Trained(*parts, value if trace.ok else 0.0))
    return trained


class Params(Made):
    """vLLM's SamplingParams."""

    stop: "list[str]" = []
    logprobs = None


class Engine:
    """OpenRLHF's actor as an executor sees it."""

    def __init__(self) -> None:
        self.asked: "list[Any]" = []

    async def generate(self, ids: "list[int]", params: Any) -> Any:
        self.asked.append((ids, vars(params)))
        return THINGS(outputs=[THINGS(token_ids=[7, 8], finish_reason="stop", logprobs=[{7: THINGS(logprob=-0.5)}, {8: THINGS(logprob=-1.0)}])])


def play_openrlhf(
    farm: ScriptedFarm, name: str, engine: Any, prompt: "str | None" = None
) -> "tuple[Any, list[list[dict[str, Any]]]]":
    """
    Returns the executor and the answers of each group. Its actor plays the samples of a prompt at once. ``prompt``: that of all rows, which
    then share their sampling parameters too.
    """
    with adapter("openrlhf", {"openrlhf.utils.agent": {"AgentExecutorBase": object}}, farm) as module, tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
        executor = module.executor(str(rows), run=name, max_prompt=16)()

        sampling = {"temperature": 0.7, "top_p": 1.0, "top_k": -1, "max_tokens": None, "logprobs": 1}
        shared = Params(**sampling)

        async def group(row: Any) -> "list[dict[str, Any]]":
            params = shared if prompt else Params(**sampling)
            given = (prompt or row["problem_statement"], row["instance_id"], params, 64, TOKENIZER, engine)
            return list(await asyncio.gather(*(executor.execute(*given) for _ in range(N))))

        async def batch() -> "list[list[dict[str, Any]]]":
            return list(await asyncio.gather(*(group(row) for row in ROWS)))

        return executor, asyncio.run(batch())


def drive_openrlhf(farm: ScriptedFarm, name: str) -> "list[Trained]":
    executor, groups = play_openrlhf(farm, name, Engine())
    executor.shim.close()
    trained = []
    for group in groups:
        for answer, value in zip(group, centred([answer["reward"] for answer in group], [0] * N)):
            tokens = answer["observation_tokens"]
            mask = [int(any(start <= at < stop for start, stop in answer["action_ranges"])) for at in range(len(tokens))]
            trained.append(Trained(tokens, mask, answer["rollout_log_probs"], value))
    return trained


__all__ = ["Made", "THINGS", "TOKENIZER", "adapter", "centred", "drive_openrlhf", "drive_verifiers"]
