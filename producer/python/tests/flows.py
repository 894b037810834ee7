"""Drives the adapters of verifiers, OpenRLHF, Tinker and AReaL through the contract, with stand-ins for the classes of the trainers."""

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

from swefarm import Farm
from swefarm.trainers.baseline import group_advantages
from swefarm.trainers.batch import run_of_process


class Made:
    """An object with the attributes of its constructor, usable as a generic class."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __class_getitem__(cls, _: Any) -> type:
        return cls


@contextlib.contextmanager
def adapter(name: str, modules: "dict[str, dict[str, Any]]", farm: ScriptedFarm) -> "Iterator[Any]":
    """Imports an adapter with stand-ins for modules of its trainer and the farm of the environment. Removes the module afterwards."""
    made = {}
    for path, names in modules.items():
        for depth in range(1, path.count(".") + 2):
            parent = ".".join(path.split(".")[:depth])
            made.setdefault(parent, types.ModuleType(parent))
        made[path].__dict__.update(names)
    for path, module in made.items():
        if "." in path:
            setattr(made[path.rpartition(".")[0]], path.rpartition(".")[2], module)
    run_of_process.cache_clear()  # As in a new process.
    with mock.patch.dict(sys.modules, made), mock.patch.dict("os.environ", {"SWEFARM_GATEWAY_URL": farm.url}):
        sys.modules.pop(f"swefarm.trainers.{name}", None)
        yield importlib.import_module(f"swefarm.trainers.{name}")
    sys.modules.pop(f"swefarm.trainers.{name}", None)


def written(folder: str) -> str:
    """Returns the path of a file with the rows."""
    path = Path(folder, "rows.jsonl")
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return str(path)


def centred(rewards: "Sequence[Any]", groups: "Sequence[Any]") -> "list[float]":
    """Returns the distance of each reward to the mean. Ignores rewards that are None."""
    return group_advantages([reward or 0.0 for reward in rewards], [reward is not None for reward in rewards], groups, by_deviation=False)


class Trace(Made):
    """Stands in for verifiers' Trace."""

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
        taskset = module.FarmTaskset(config=THINGS(rows=written(folder), task=None))
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
        executor = module.executor(written(folder), run=name, max_prompt=16)()

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


class Client:
    """tinker's SamplingClient."""

    def __init__(self) -> None:
        self.asked: "list[Any]" = []

    async def sample(self, prompt: Any, num_samples: int, sampling_params: Any) -> Any:
        self.asked.append((prompt, vars(sampling_params)))
        return THINGS(sequences=[THINGS(tokens=[7, 8], logprobs=[-0.5, -1.0], stop_reason="stop")])


class AllFailed(Exception):
    pass


class Placed:
    """An object that takes its attributes positionally or by keyword."""

    names: "tuple[str, ...]" = ()

    def __init__(self, *places: Any, **given: Any) -> None:
        self.__dict__.update({**dict(zip(self.names, places)), **given})


def placed(name: str, *names: str) -> type:
    return type(name, (Placed,), {"names": names})


def tinker_modules() -> "dict[str, dict[str, Any]]":
    cookbook, transition = "tinker_cookbook", placed("Transition", "ob", "ac", "reward", "episode_done")
    return {
        "tinker.types": {"SamplingParams": placed("SamplingParams"), "ModelInput": THINGS(from_ints=list)},
        f"{cookbook}.completers": {"TokensWithLogprobs": placed("TokensWithLogprobs")},
        f"{cookbook}.exceptions": {"AllTrajectoriesFailedError": AllFailed},
        f"{cookbook}.rl.rollout_strategy": {"RolloutResult": placed("RolloutResult"), "RolloutStrategy": object},
        f"{cookbook}.rl.types": {
            **{"EnvGroupBuilder": object, "RLDataset": object, "RolloutError": placed("RolloutError", "error_type", "error_message")},
            **{"Trajectory": placed("Trajectory", "transitions", "final_ob"), "Transition": transition},
        },
    }


def play_tinker(farm: ScriptedFarm, name: str, policy: Any, batches: int = 1) -> "tuple[Any, list[Any]]":
    """Returns the strategy, and result and rewards of each group, as the cookbook's do_group_rollout makes them."""
    with adapter("tinker", tinker_modules(), farm) as module:
        strategy = module.FarmStrategy(Farm(farm.url, patience_s=20).run(name), TOKENIZER, max_prompt=16, max_response=64)
        builders = module.FarmDataset(ROWS, n=N, groups_per_batch=len(ROWS), batches=1, key="train").get_batch(0)

        async def group(builder: Any) -> Any:
            try:
                result = await strategy.execute(builder, policy)
            except AllFailed:
                return None
            return result, [reward for reward, _ in await builder.compute_group_rewards(result.trajectories, result.envs)]

        async def batch() -> "list[Any]":
            return list(await asyncio.gather(*(group(builder) for builder in builders)))

        return strategy, [asyncio.run(batch()) for _ in range(batches)][-1]


def drive_tinker(farm: ScriptedFarm, name: str) -> "list[Trained]":
    strategy, groups = play_tinker(farm, name, THINGS(sampling_client=Client(), temperature=1.0, max_tokens=64))
    strategy.shim.close()
    trained = []
    for result, rewards in (group for group in groups if group is not None):
        for trajectory, value in zip(result.trajectories, centred(rewards, [0] * len(rewards))):
            tokens, mask, log_probs = [], [], []
            for step in trajectory.transitions:
                told = step.ob[len(tokens) :]
                tokens += [*told, *step.ac.tokens]
                mask += [0] * len(told) + [1] * len(step.ac.tokens)
                log_probs += [0.0] * len(told) + step.ac.maybe_logprobs
            trained.append(Trained(tokens, mask, log_probs, value))
    return trained


class Tensor(list):
    """A row of torch's tensors."""

    def unsqueeze(self, _: int) -> "list[Any]":
        return [self]


def areal_modules() -> "dict[str, dict[str, Any]]":
    def tensor(values: Any, dtype: Any = None) -> Tensor:
        return Tensor(values if isinstance(values, list) else [values])

    log = THINGS(get=lambda scope: THINGS(scalar=lambda **_: None))
    torch = {"tensor": tensor, "ones": lambda length, dtype: Tensor([1] * length), "int32": 0, "float32": 0, "bool": 0}
    return {
        "areal": {"workflow_context": THINGS(stat_scope=lambda: "rollout")},
        "areal.api": {"RolloutWorkflow": object},
        "areal.utils": {"stats_tracker": log},
        "areal.utils.data": {"concat_padded_tensors": lambda rows: {name: [row[name][0] for row in rows] for name in rows[0]}},
        "torch": torch,
    }


def play_areal(farm: ScriptedFarm, name: str) -> "list[Any]":
    """Returns AReaL's tensors of each group."""
    with adapter("areal", areal_modules(), farm) as module, tempfile.TemporaryDirectory() as folder:
        gconfig = THINGS(temperature=0.7, top_p=1.0, top_k=10**8, max_new_tokens=64, stop=[])
        workflow = module.FarmWorkflow(gconfig, n=N, model="m", run=name, rows=written(folder), max_prompt=16, max_response=64)
        engine = THINGS(addresses=["10.0.0.1:8000"], get_version=lambda: 4)

        async def batch() -> "list[Any]":
            return list(await asyncio.gather(*(workflow.arun_episode(engine, {"instance_id": row["instance_id"]}) for row in ROWS)))

        return asyncio.run(batch())


def drive_areal(farm: ScriptedFarm, name: str) -> "list[Trained]":
    trained = []
    for group in play_areal(farm, name):
        for ids, mask, log_probs, versions, (value,) in zip(
            *(group[key] for key in ("input_ids", "loss_mask", "logprobs", "versions", "rewards")) if group else [()] * 5
        ):
            known = [version for version, sampled in zip(versions, mask) if sampled]
            trained.append(Trained(ids, mask, log_probs, value, (min(known), max(known))))
    return trained


__all__ = ["Client", "Engine", "THINGS", "drive_areal", "drive_openrlhf", "drive_tinker", "drive_verifiers", "play_areal", "play_tinker"]
