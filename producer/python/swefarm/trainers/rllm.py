"""
rLLM's agent flow and evaluator over a farm. See docs/trainers.md. The sources of the rules are rllm/types.py,
rllm/engine/agentflow_engine.py and rllm/trainer/algorithms of rLLM 0.3.0.pre (9beb6e0f). This import loads no trainer.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
import uuid
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from ..farm import Farm
from ..sample import Sample
from .batch import fitted_group, is_overlong, overlong_of, row_in, rows_by_id, run_of, sampling_of, turns_of, why_unjudged

if TYPE_CHECKING:
    from ..run import Run


class FarmFlow:
    """
    rLLM's ``agent_flow``. The metadata of a task names the instance by ``instance`` or ``instance_id``. ``rows``: dataset rows in which
    ``instance_id`` names one. ``policy_urls``: default: the workers behind rLLM's gateway, because the gateway's answers have no token ids.
    ``overlong``: ``mask`` or ``keep``. ``settings``: those of :meth:`swefarm.Farm.run` if ``source`` is a farm. The episode of an
    unjudged rollout has no trajectory, so no group includes the episode.
    """

    name = "swefarm"

    def __init__(
        self,
        source: "Union[Farm, Run]",
        *,
        rows: Optional[Iterable[Mapping[str, Any]]] = None,
        policy_urls: Optional[Sequence[str]] = None,
        max_prompt: int = 32_768,
        max_response: int = 32_768,
        overlong: str = "mask",
        **settings: Any,
    ) -> None:
        self.farm_run = run_of(source, "rllm", **settings)
        self.rows, self.policy_urls = rows_by_id(rows), policy_urls
        self.max_prompt, self.max_response, self.overlong = max_prompt, max_response, overlong_of(overlong)

    async def arun(self, task: Any, config: Any) -> Any:
        """Returns rLLM's Episode. Raises FarmRefusal, ValueError, and OSError if rLLM's gateway does not answer."""
        from rllm.types import Episode, Step, Trajectory  # type: ignore[import-not-found]
        from rllm.workflows.workflow import TerminationReason  # type: ignore[import-not-found]

        urls = self.policy_urls or await asyncio.to_thread(_workers, config.base_url)
        played = await self.farm_run.rollout(
            row_in(task.metadata, self.rows),
            group=config.session_uid.rpartition(":")[0],
            # The trainer may use the same session in another epoch.
            request_id=uuid.uuid4().hex,
            policy_urls=urls,
            model=config.model,
            sampling=sampling_of(config.sampling_params),
            max_response_tokens=self.max_response,
        )
        (sample,), judged = fitted_group([played], self.max_prompt, self.max_response, self.overlong)
        facts = {"rollout_id": sample.rollout_id, "exit_status": sample.exit_status, "why": why_unjudged(sample)}
        metrics = {"farm/judged": float(sample.judged), "farm/overlong": float(is_overlong(sample))}
        if not judged:
            ended = TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED if is_overlong(sample) else TerminationReason.ERROR
            return Episode(task=task.metadata, termination_reason=ended, metrics=metrics, metadata=facts)
        steps = [Step(**step) for step in _steps(sample)]
        trajectory = Trajectory(name=self.name, task=task.metadata, steps=steps, reward=sample.reward, metadata=facts)
        return Episode(
            task=task.metadata, termination_reason=TerminationReason.ENV_DONE, trajectories=[trajectory], metrics=metrics, metadata=facts
        )


class FarmEvaluator:
    """rLLM's ``evaluator``. Returns the farm's reward. An episode without a trajectory is not correct and gets the reward 0."""

    def __init__(self, solved: float = 1.0) -> None:
        self.solved = solved

    def evaluate(self, task: Any, episode: Any) -> Any:
        from rllm.eval.types import EvalOutput  # type: ignore[import-not-found]

        reward = next((one.reward for one in episode.trajectories if one.reward is not None), 0.0)
        return EvalOutput(reward=reward, is_correct=bool(episode.trajectories) and reward >= self.solved)


def _steps(sample: Sample) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for prompt, ids, log_probs, turn in turns_of(sample):
        version = int(turn.version) if turn.version is not None and turn.version.isdecimal() else None
        step = {"prompt_ids": prompt, "response_ids": ids, "logprobs": log_probs, "weight_version": version}
        steps.append({**step, "done": turn is sample.turns[-1]})
    return steps


def _workers(base_url: str) -> list[str]:
    """Returns the addresses, with /v1, of the healthy workers of the gateway whose session has this address."""
    with urllib.request.urlopen(f"{base_url.partition('/sessions/')[0]}/admin/workers", timeout=30) as reply:
        found = [f"{one['url'].rstrip('/')}{one.get('api_path', '/v1')}" for one in json.load(reply) if one.get("healthy", True)]
    if not found:
        raise ValueError(f"policy_urls: {base_url} has no healthy worker")
    return found
