"""
SkyRL's generator over a farm, and an advantage estimator that excludes unjudged samples. See docs/trainers.md. The sources of SkyRL's
rules are train/generators/base.py, train/utils/trainer_utils.py and backends/skyrl_train/utils/ppo_utils.py of SkyRL 0.4.0.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from ..farm import Farm
from ..sample import UNJUDGED, Sample
from .baseline import group_advantages, is_judged
from .batch import ends_token, fitted, is_overlong, overlong_of, row_in, rows_by_id, run_of, sampling_of

if TYPE_CHECKING:
    from ..run import Run

#: Reward of an unjudged sample. It is negative, because SkyRL's pass@n counts every positive reward as a pass.
NO_REWARD = -UNJUDGED


class FarmGenerator:
    """
    A generator to return from ``get_generator`` of a BasePPOExp. ``client`` and ``tokenizer`` are the arguments of ``get_generator``.
    ``rows``: dataset rows; the column ``instance_id`` names one, or the column ``instance`` has the row. ``model``: name of the policy at
    SkyRL's endpoint. ``policy_urls``: default: SkyRL's endpoint. ``cache_salt``: send the version of the weights as vLLM's cache salt, for
    runs that do not reset the prefix cache. ``overlong``: ``mask`` or ``keep``. ``settings``: those of :meth:`swefarm.Farm.run` if
    ``source`` is a farm.
    """

    def __init__(
        self,
        source: "Union[Farm, Run]",
        client: Any,
        tokenizer: Any,
        *,
        model: str,
        max_prompt: int,
        max_response: int,
        rows: Optional[Iterable[Mapping[str, Any]]] = None,
        policy_urls: Optional[Sequence[str]] = None,
        cache_salt: bool = False,
        overlong: str = "mask",
        **settings: Any,
    ) -> None:
        self.run = run_of(source, "skyrl", **settings)
        self.client, self.model, self.cache_salt, self.overlong = client, model, cache_salt, overlong_of(overlong)
        self.rows, self.policy_urls = rows_by_id(rows), policy_urls
        self.max_prompt, self.max_response = max_prompt, max_response
        self._token = ends_token(tokenizer)
        self._calls: dict[str, int] = {}

    async def generate(self, input_batch: Mapping[str, Any], disable_tqdm: bool = False) -> dict[str, Any]:
        """Returns SkyRL's GeneratorOutput, with a row for each prompt in order. An unjudged sample has NO_REWARD and a mask of zeros."""
        ids, metadata = input_batch["trajectory_ids"], input_batch["batch_metadata"]
        step = f"{metadata.training_phase}-{metadata.global_step}"
        # Dynamic sampling calls the generator several times in a step. A resumed trainer makes the same calls, so they have the same ids.
        call = self._calls[step] = self._calls.get(step, -1) + 1
        key = f"{step}-{call}"
        began, version = time.monotonic(), getattr(self.client, "weight_version", None)
        params = sampling_of(input_batch.get("sampling_params") or {})
        ends: list[float] = [0.0] * len(ids)

        async def played(at: int) -> Sample:
            session = ids[at].to_string()
            try:
                sample = await self.run.rollout(
                    row_in((input_batch["env_extras"] or [{}] * len(ids))[at], self.rows),
                    group=f"{key}-{ids[at].instance_id}",
                    index=ids[at].repetition_id,
                    request_id=f"{key}-{session}",
                    # Engines change their address while SkyRL recovers from a fault, so every batch reads the address again.
                    policy_urls=self.policy_urls or [f"{self.client.get_endpoint_url().rstrip('/')}/v1"],
                    model=self.model,
                    version=None if version is None else str(version),
                    headers={"X-Session-ID": session},
                    extra_body={"cache_salt": str(version)} if self.cache_salt and version is not None else None,
                    sampling=params,
                    max_response_tokens=self.max_response,
                )
            finally:
                finish = getattr(self.client, "finish_session", None)
                if finish is not None:  # SkyRL's router assigns a session to one engine.
                    await finish(session)
            ends[at] = time.monotonic() - began
            return fitted(sample, self.max_prompt, self.max_response, self.overlong, self._token)

        samples = await asyncio.gather(*(played(at) for at in range(len(ids))))
        return {
            "prompt_token_ids": [list(one.prompt_ids) for one in samples],
            "response_ids": [list(one.response_ids) for one in samples],
            "rewards": [NO_REWARD if one.reward is None else one.reward for one in samples],
            "loss_masks": [list(one.mask) for one in samples],
            "stop_reasons": [_stop_reason(one) for one in samples],
            "rollout_logprobs": [list(one.log_probs) for one in samples],
            "rollout_metrics": _metrics(samples),
            "trajectory_ids": list(ids),
            "trajectory_generation_times": ends,
            **dict.fromkeys(("trajectory_time_splits", "rollout_expert_indices", "rollout_sample_support", "is_last_step")),
            **dict.fromkeys(("env_metrics", "pixel_values", "image_grid_thw")),
        }


def _stop_reason(sample: Sample) -> str:
    return "error" if not sample.judged and not is_overlong(sample) else "length" if is_overlong(sample) else "stop"


def _metrics(samples: Sequence[Sample]) -> dict[str, float]:
    rewards = [one.reward for one in samples if one.reward is not None]
    return {
        "farm/judged": len(rewards) / max(1, len(samples)),
        "farm/overlong": sum(map(is_overlong, samples)) / max(1, len(samples)),
        # SkyRL's own mean of rewards counts unjudged samples as 0.
        **({"farm/reward": sum(rewards) / len(rewards)} if rewards else {}),
        "farm/turns": sum(len(one.turns) for one in samples) / max(1, len(samples)),
    }


def grpo_judged(
    token_level_rewards: Any, response_mask: Any, index: Any, epsilon: float = 1e-6, grpo_norm_by_std: bool = True, **_: Any
) -> tuple[Any, Any]:
    """Returns SkyRL's GRPO advantages over the judged samples, twice: as advantages and as returns, of shape (batch, response length)."""
    scores = [float(score) for score in token_level_rewards.sum(-1).tolist()]
    judged = [is_judged(score, tokens) for score, tokens in zip(scores, response_mask.sum(-1).tolist())]
    values = group_advantages(scores, judged, [str(uid) for uid in index], epsilon, grpo_norm_by_std)
    advantages = token_level_rewards.new_tensor(values).unsqueeze(-1) * response_mask
    return advantages, advantages


def register() -> None:
    """Registers ``trainer.algorithm.advantage_estimator=grpo_judged``. Call it in the entry point, before Ray starts the trainer."""
    from skyrl.backends.skyrl_train.utils.ppo_utils import register_advantage_estimator  # type: ignore[import-not-found]

    register_advantage_estimator("grpo_judged")(grpo_judged)
