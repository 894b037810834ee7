"""
AReaL's workflow over a farm. See docs/trainers.md. The sources of the rules are infra/remote_inf_engine.py, trainer/ppo/actor.py and
workflow/rlvr.py of AReaL 1.0.4.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any, Mapping, Optional, Sequence, Union

from areal.api import RolloutWorkflow  # type: ignore[import-not-found]

from ..run import Run
from ..sample import Sample, judged_advantages
from .batch import fitted_group, is_overlong, overlong_of, row_in, rows_in, run_of_process, sampling_of

#: The farm's name of each of AReaL's generation settings.
SAMPLED = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_new_tokens": "max_tokens", "stop": "stop"}


class FarmWorkflow(RolloutWorkflow):
    """
    Plays ``n`` rollouts of the row that ``data`` names (``instance`` or ``instance_id``). Requires ``gconfig.n_samples=1`` and
    ``actor.reward_norm=null``. ``gconfig``: AReaL's generation settings. ``run``: a run or its name; default: a run unique to this process.
    ``rows``: file of dataset rows, one JSON object per line. ``policy_urls``: default: AReaL's servers. ``model``: name of the policy at
    these servers. ``overlong``: ``mask`` or ``keep``. ``std``: divide advantages by the standard deviation. ``settings``: those of
    :meth:`swefarm.Farm.run`. AReaL constructs a workflow for each row, and sends these arguments to other processes.
    """

    def __init__(
        self,
        gconfig: Any,
        *,
        n: int,
        model: str,
        run: "Union[Run, str, None]" = None,
        rows: Optional[str] = None,
        policy_urls: Optional[Sequence[str]] = None,
        max_prompt: int = 32_768,
        max_response: int = 32_768,
        overlong: str = "mask",
        std: bool = True,
        **settings: Any,
    ) -> None:
        self.run = run if isinstance(run, Run) else run_of_process("areal", run, json.dumps(settings))
        self.n, self.model, self.policy_urls, self.std = n, model, policy_urls, std
        self.rows = rows_in(rows) if rows else {}
        self.max_prompt, self.max_response, self.overlong = max_prompt, max_response, overlong_of(overlong)
        given = {ours: getattr(gconfig, theirs, None) for theirs, ours in SAMPLED.items()}
        # AReaL writes 100 million for all tokens.
        given["top_k"] = -1 if (given["top_k"] or 0) >= 10**8 else given["top_k"]
        self.sampling = sampling_of(given)

    async def arun_episode(self, engine: Any, data: Mapping[str, Any]) -> Optional[dict[str, Any]]:
        """Returns the tensors of the judged samples. Returns None, so that AReaL draws another row, if fewer than two are judged."""
        version = int(engine.get_version())
        row, key = row_in(data, self.rows), uuid.uuid4().hex
        common = {"group": key, "model": self.model, "version": str(version), "sampling": self.sampling}
        # AReaL may replace its servers during training, so every group reads the addresses again.
        common.update(policy_urls=self.policy_urls or [f"http://{address}/v1" for address in engine.addresses])
        played = await asyncio.gather(
            *(
                self.run.rollout(row, index=at, request_id=f"{key}-{at}", max_response_tokens=self.max_response, **common)
                for at in range(self.n)
            )
        )
        samples, judged = fitted_group(played, self.max_prompt, self.max_response, self.overlong)
        _log(samples)
        if len(judged) < 2:
            return None
        return _tensors(judged, judged_advantages(judged, std=self.std), version)


def _tensors(samples: Sequence[Sample], advantages: Sequence[float], version: int) -> dict[str, Any]:
    import torch  # type: ignore[import-not-found]
    from areal.utils.data import concat_padded_tensors  # type: ignore[import-not-found]

    made = []
    for sample, advantage in zip(samples, advantages):
        # AReaL assigns the reward to the last token, and ignores the reward if this token was not sampled.
        sample = sample.up_to(sample.turns[-1].stop)
        zeros = [0] * len(sample.prompt_ids)
        versions = [version] * len(sample.response_ids)
        for span in sample.spans:
            if span.version.isdecimal():
                versions[span.start : span.stop] = [int(span.version)] * (span.stop - span.start)
        versions = [one if sampled else -1 for one, sampled in zip(versions, sample.mask)]
        sequence = {
            "input_ids": torch.tensor([*sample.prompt_ids, *sample.response_ids], dtype=torch.int32),
            "loss_mask": torch.tensor([*zeros, *sample.mask], dtype=torch.int32),
            "logprobs": torch.tensor([*zeros, *sample.log_probs], dtype=torch.float32),
            "versions": torch.tensor([-1 for _ in zeros] + versions, dtype=torch.int32),
            "attention_mask": torch.ones(len(zeros) + len(versions), dtype=torch.bool),
            "rewards": torch.tensor(advantage, dtype=torch.float32),
        }
        made.append({name: tensor.unsqueeze(0) for name, tensor in sequence.items()})
    whole: dict[str, Any] = concat_padded_tensors(made)
    return whole


def _log(samples: Sequence[Sample]) -> None:
    """Reports rewards to AReaL's statistics, because the tensors contain advantages as rewards."""
    from areal import workflow_context  # type: ignore[import-not-found]
    from areal.utils import stats_tracker  # type: ignore[import-not-found]

    log = stats_tracker.get(workflow_context.stat_scope())
    for sample in samples:
        log.scalar(farm_judged=float(sample.judged), farm_overlong=float(is_overlong(sample)))
        if sample.reward is not None:
            log.scalar(reward=sample.reward)
