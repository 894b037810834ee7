"""
verifiers' taskset and environment over a farm, for verifiers itself and for prime-rl: ``taskset.id = "swefarm_env"``. See
docs/trainers.md. The sources of the rules are v1/env.py, v1/trace.py and v1/serve of verifiers 0.4.0.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Callable, Iterator, Optional

import verifiers.v1 as vf  # type: ignore[import-not-found]
from verifiers.v1.configs.agent import resolve_agent  # type: ignore[import-not-found]
from verifiers.v1.configs.client import resolve_headers  # type: ignore[import-not-found]
from verifiers.v1.harnesses.null.harness import NullHarnessConfig  # type: ignore[import-not-found]

from ..sample import Sample
from .batch import fitted, is_overlong, overlong_of, rows_in, run_of_process, sampling_of, turns_of, why_unjudged


class FarmData(vf.TaskData):
    #: Row of a dataset of the farm.
    row: dict[str, Any] = {}


class FarmTask(vf.Task[FarmData]):
    """A task without hooks, because the farm starts the image and runs the tests."""


class FarmTasksetConfig(vf.TasksetConfig):
    #: File of dataset rows, one JSON object per line.
    rows: str = ""


class FarmTaskset(vf.Taskset[FarmTask, FarmTasksetConfig]):
    def load(self) -> Iterator[FarmTask]:
        """Yields a task for each row. Raises OSError and ValueError."""
        for name, row in rows_in(self.config.rows).items():
            yield FarmTask(FarmData(id=name, name=name, prompt=str(row.get("problem_statement") or ""), row=dict(row)), self.config.task)


class FarmEnvConfig(vf.SingleAgentEnvConfig):
    #: Placeholder program and runtime. They need no tunnel and no account, because the farm runs the sandboxes.
    agent: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())
    #: Name of the run on the farm; empty: a name unique to this process.
    run: str = ""
    #: Addresses at which the farm's workers reach the policy; empty: the address in each request.
    policy_urls: list[str] = []
    max_prompt: int = 32_768
    max_response: int = 32_768
    #: ``mask`` or ``keep`` (:meth:`swefarm.Sample.fit`).
    overlong: str = "mask"
    #: Further arguments of :meth:`swefarm.Farm.run`.
    settings: dict[str, Any] = {}


class FarmEnv(vf.Env[FarmEnvConfig]):
    """
    Plays every episode on the farm, with the endpoint, model and sampling of its request. An unjudged episode has an error and is not
    ``ok``, so no mean includes the episode. SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN of the env server name the farm.
    """

    def __init__(self, config: FarmEnvConfig) -> None:
        super().__init__(config)
        overlong_of(config.overlong)
        self.farm_run = run_of_process("verifiers", config.run or None, json.dumps(config.settings))

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        raise NotImplementedError("run_episode plays the episode on the farm")

    async def run_episode(
        self,
        task: vf.Task,
        ctx: vf.ModelContext,
        *,
        on_trace: Optional[Callable[[vf.Trace], None]] = None,
        on_discard: Optional[Callable[[vf.Trace], None]] = None,
    ) -> vf.Episode:
        """Returns the episode of one rollout. Cancelling the coroutine cancels the rollout. Raises as :meth:`swefarm.Run.rollout`."""
        request, sampling = uuid.uuid4().hex, ctx.sampling.model_dump(exclude_none=True)
        salt = sampling.get("cache_salt")
        played = await self.farm_run.rollout(
            task.data.row or task.data.id,
            group=task.data.id or request,
            request_id=request,
            policy_urls=self.config.policy_urls or [ctx.client.base_url],
            model=ctx.model,
            # prime-rl does not reset the prefix cache at an update, so every request needs the version as its salt.
            version=salt,
            extra_body=None if salt is None else {"cache_salt": salt},
            headers={**resolve_headers(ctx.client), "X-Session-ID": request},
            sampling=sampling_of(sampling),
            max_response_tokens=self.config.max_response,
            timeout_s=self.config.timeout.episode,
        )
        sample = fitted(played, self.config.max_prompt, self.config.max_response, self.config.overlong, 0)
        agent = resolve_agent(
            self.config.agent, model=ctx.model, client=ctx.client, sampling=ctx.sampling, harness=self._default_harness
        )
        about = vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        trace = _trace(sample, about, vf.AgentInfo(config=agent))
        if on_trace is not None:
            on_trace(trace)
        return vf.Episode(env=vf.EnvInfo(id=self.config.env_id), task=about, ok=trace.ok, traces=[trace])


def _trace(sample: Sample, task: vf.TraceTask, agent: vf.AgentInfo) -> vf.Trace:
    """Returns a trace of one branch. Each node has the tokens that the node adds. Only trained tokens have log-probabilities."""
    trace = vf.Trace(task=task, agent=agent, info={"rollout": sample.rollout_id, "exit_status": sample.exit_status})

    def add(message: Any, ids: list[int], log_probs: list[float], sampled: bool) -> None:
        trains = sampled and sample.judged
        known = {"token_ids": ids, "mask": [trains] * len(ids), "logprobs": log_probs if trains else []}
        trace.nodes.append(vf.MessageNode(parent=len(trace.nodes) - 1 if trace.nodes else None, message=message, sampled=sampled, **known))

    end = 0
    for prompt, ids, log_probs, turn in turns_of(sample):
        add(vf.UserMessage(content="" if trace.nodes else task.data.prompt_text), prompt[end:], [], False)
        add(vf.AssistantMessage(content=""), ids, log_probs, True)
        end = len(prompt) + len(ids)
        usage = vf.Usage(prompt_tokens=len(prompt), completion_tokens=len(ids))
        trace.calls.append(vf.ModelCall(node=len(trace.nodes) - 1, usage=usage, finish_reason=turn.stop_reason))
    trace.stop("max_total_tokens" if is_overlong(sample) else "agent_completed" if sample.judged else "error")
    if sample.reward is None:
        trace.errors.append(vf.Error(type=sample.failure.cls if sample.failure else "unjudged", message=why_unjudged(sample)))
    else:
        trace.record_reward("farm", sample.reward)
        trace.record_metrics({**sample.parts, "overlong": float(is_overlong(sample))})
        trace.ok = True
    return trace
