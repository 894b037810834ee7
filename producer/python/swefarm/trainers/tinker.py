"""
tinker-cookbook's group rollouts over a farm: ``FarmDataset`` in place of a dataset of environments, and ``FarmStrategy`` as
``rollout_error_tolerance`` of its training config. See docs/trainers.md. The sources of the rules are rl/rollouts.py,
rl/rollout_strategy.py and rl/data_processing.py of tinker-cookbook 0.6.1.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from tinker.types import ModelInput, SamplingParams  # type: ignore[import-not-found]
from tinker_cookbook.completers import TokensWithLogprobs  # type: ignore[import-not-found]
from tinker_cookbook.exceptions import AllTrajectoriesFailedError  # type: ignore[import-not-found]
from tinker_cookbook.rl.rollout_strategy import RolloutResult, RolloutStrategy  # type: ignore[import-not-found]
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset, RolloutError, Trajectory, Transition  # type: ignore[import-not-found]

from ..farm import Farm
from ..sample import Sample
from ..shim import PolicyShim
from .batch import fitted_group, is_overlong, overlong_of, rows_by_id, run_of, turns_of, why_unjudged

if TYPE_CHECKING:
    from ..run import Run


class FarmGroupBuilder(EnvGroupBuilder):
    """``n`` rollouts of one dataset row. If the cookbook repeats a group that is too old, the farm plays new rollouts."""

    def __init__(self, row: Mapping[str, Any], n: int, key: str) -> None:
        self.row, self.n, self.key, self.tries = row, n, key, 0

    async def make_envs(self) -> Sequence[Any]:
        raise TypeError("the farm has the environments: set rollout_error_tolerance to a FarmStrategy")

    async def compute_group_rewards(self, trajectory_group: Any, env_group: Sequence[Sample]) -> list[tuple[float, dict[str, float]]]:
        """Returns the rewards of the judged samples, which the strategy returns as environments."""
        return [(float(one.reward or 0.0), {"overlong": float(is_overlong(one)), "turns": float(len(one.turns))}) for one in env_group]

    def logging_tags(self) -> list[str]:
        return ["swefarm"]


class FarmDataset(RLDataset):
    """
    Returns ``groups_per_batch`` rows for each of ``batches`` batches, in order. The first row follows the last. With a fixed ``key`` and a
    run of a fixed name, a resumed trainer gets the samples of its first process again. The dataset of an evaluation must have no ``key``.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], *, n: int, groups_per_batch: int, batches: int, key: Optional[str] = None
    ) -> None:
        self.rows, self.n, self.size, self.batches = list(rows_by_id(rows).values()), n, groups_per_batch, batches
        self.key = key or uuid.uuid4().hex

    def get_batch(self, index: int) -> Sequence[FarmGroupBuilder]:
        places = range(index * self.size, (index + 1) * self.size)
        return [FarmGroupBuilder(self.rows[at % len(self.rows)], self.n, f"{self.key}-{at}") for at in places]

    def __len__(self) -> int:
        return self.batches


class FarmStrategy(RolloutStrategy):
    """
    Plays a group on the farm. One endpoint of this process serves the sampling clients of all groups. ``tokenizer``: the model's tokenizer.
    ``host``, ``port``: address of this machine at which the farm's workers reach the endpoint; port 0: a free port. ``max_prompt``,
    ``max_response``, ``overlong``: :meth:`swefarm.Sample.fit`. ``settings``: those of :meth:`swefarm.Farm.run` if ``source`` is a farm. The
    group excludes unjudged samples. A strategy cannot be pickled or sent to another process.
    """

    def __init__(
        self,
        source: "Union[Farm, Run]",
        tokenizer: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        max_prompt: int = 32_768,
        max_response: int = 32_768,
        overlong: str = "mask",
        **settings: Any,
    ) -> None:
        self.run = run_of(source, "tinker", **settings)
        self.max_prompt, self.max_response, self.overlong = max_prompt, max_response, overlong_of(overlong)
        self._policies: dict[str, Any] = {}
        self.shim = PolicyShim(self._generate, tokenizer, host=host, port=port, max_model_len=max_prompt + max_response)

    async def execute(self, env_group_builder: FarmGroupBuilder, policy: Any) -> Any:
        """Returns the judged trajectories of the group. Raises AllTrajectoriesFailedError if none is judged, which skips the group."""
        session, tries = uuid.uuid4().hex, env_group_builder.tries
        env_group_builder.tries += 1
        self._policies[session] = policy
        common: dict[str, Any] = {"group": env_group_builder.key, "policy_urls": [self.shim.url], "model": "policy"}
        common["headers"] = {"X-Session-ID": session}
        common.update(sampling={"temperature": policy.temperature, "max_tokens": policy.max_tokens}, max_response_tokens=self.max_response)
        try:
            played = await asyncio.gather(
                *(
                    self.run.rollout(env_group_builder.row, index=at, request_id=f"{env_group_builder.key}-{tries}-{at}", **common)
                    for at in range(env_group_builder.n)
                )
            )
        finally:
            del self._policies[session]
        samples, judged = fitted_group(played, self.max_prompt, self.max_response, self.overlong)
        errors = [RolloutError(one.failure.cls if one.failure else "no_tokens", why_unjudged(one)) for one in samples if one not in judged]
        if not judged:
            raise AllTrajectoriesFailedError(f"{env_group_builder.key}: {errors[0].error_message}")
        return RolloutResult(trajectories=[_trajectory(one) for one in judged], envs=judged, errors=errors)

    async def _generate(self, ids: list[int], params: dict[str, Any]) -> dict[str, Any]:
        policy = self._policies[params["session_id"]]
        known = {name: params[name] for name in ("temperature", "top_p", "top_k", "max_tokens", "seed") if params.get(name) is not None}
        # An empty list would also disable Tinker's end-of-text token.
        asked = SamplingParams(**known, stop=params.get("stop_token_ids") or params.get("stop") or None)
        result = await policy.sampling_client.sample(prompt=ModelInput.from_ints(ids), num_samples=1, sampling_params=asked)
        answer = result.sequences[0]
        return {"token_ids": answer.tokens, "log_probs": answer.logprobs, "finish_reason": answer.stop_reason}


def _trajectory(sample: Sample) -> Any:
    """Returns one transition for each turn. The cookbook merges transitions that continue each other's tokens."""
    transitions: list[Any] = []
    end: list[int] = []
    for prompt, ids, log_probs, turn in turns_of(sample):
        action = TokensWithLogprobs(tokens=ids, maybe_logprobs=log_probs, stop_reason=turn.stop_reason)
        transitions.append(Transition(ModelInput.from_ints(prompt), action, 0.0, turn is sample.turns[-1]))
        end = [*prompt, *ids]
    return Trajectory(transitions, ModelInput.from_ints(end))
