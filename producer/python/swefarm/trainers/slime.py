"""
slime's hooks over a farm: ``--custom-generate-function-path swefarm.trainers.slime.generate``, ``--custom-reward-post-process-path
swefarm.trainers.slime.post_process`` and optionally ``--dynamic-sampling-filter-path swefarm.trainers.slime.mixed``. See
docs/trainers.md. The sources of slime's rules are slime/rollout/sglang_rollout.py and slime/ray/rollout.py of slime 0.3.1.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from ..farm import Farm
from ..sample import Sample
from .baseline import group_advantages
from .batch import ends_token, fitted, is_overlong, overlong_of, row_in, sampling_of, why_unjudged

if TYPE_CHECKING:
    from ..run import Run

#: Seconds between two checks whether slime has ended the step.
ABORT_S = 0.5
_runs: "dict[str, Run]" = {}
_guard = threading.Lock()
#: Part of the name of a run without a fixed name, so that each process has its own run.
_PROCESS = uuid.uuid4().hex[:12]


async def generate(args: Any, sample: Any, sampling_params: Mapping[str, Any], evaluation: bool = False) -> Any:
    """
    Plays one rollout, and fills slime's sample. ``sample.metadata`` names the instance: ``instance``, a row or its JSON text, or
    ``instance_id``, the id of an instance of the gateway's dataset. Settings are attributes of ``args``, by ``--custom-config-path``:
    ``swefarm_run`` (name of the run; a fixed name gives a resumed trainer the samples of its first process again), ``swefarm_model``,
    ``swefarm_policy_urls``, ``swefarm_max_prompt``, ``swefarm_overlong``, ``swefarm_settings`` (:meth:`swefarm.Farm.run`). An unjudged
    sample has the reward 0 and a mask of zeros, so the mean of its group needs :func:`post_process`. When slime ends a step early, the
    farm cancels the rollout and the sample is ABORTED.
    """
    overlong = overlong_of(getattr(args, "swefarm_overlong", "mask"))
    status, run = type(sample).Status, _run(args)
    # Samples of an evaluation may have another length.
    longest = int(sampling_params.get("max_new_tokens") or args.rollout_max_response_len)
    session = sample.session_id or uuid.uuid4().hex
    tries = sample.metadata["swefarm_tries"] = sample.metadata.get("swefarm_tries", 0) + 1
    kind = "eval" if evaluation else "train"
    urls = getattr(args, "swefarm_policy_urls", None)
    rollout = asyncio.ensure_future(
        run.rollout(
            row_in(sample.metadata, {}),
            group=f"{kind}-{sample.group_index}",
            index=int(sample.index or 0),
            # slime counts samples over all epochs and in its checkpoints. A sample that slime aborted is played again.
            request_id=f"{kind}-{session if evaluation else sample.index}-{tries}",
            policy_urls=urls or [f"http://{args.sglang_router_ip}:{args.sglang_router_port}/v1"],
            model=getattr(args, "swefarm_model", None) or args.hf_checkpoint,
            # slime's own requests have the same header, by which slime's router sends all requests of a session to one server.
            headers={"X-SMG-Routing-Key": session} if getattr(args, "router_policy", None) == "consistent_hashing" else None,
            sampling=sampling_of(sampling_params),
            max_response_tokens=longest,
        )
    )
    try:
        while not (await asyncio.wait([rollout], timeout=ABORT_S))[0]:
            if _is_aborted(args):
                sample.status = status.ABORTED
                return sample
        played: Sample = rollout.result()
    finally:
        rollout.cancel()
    max_prompt = int(getattr(args, "swefarm_max_prompt", None) or 32_768)
    one = fitted(played, max_prompt, longest, overlong, ends_token(None))
    sample.tokens = [*one.prompt_ids, *one.response_ids]
    sample.response_length = len(one.response_ids)
    sample.response = f"[rollout {one.rollout_id}: {one.exit_status or why_unjudged(one)}]"
    sample.loss_mask, sample.rollout_log_probs = list(one.mask), list(one.log_probs)
    sample.weight_versions = list(dict.fromkeys(span.version for span in one.spans))
    sample.reward, sample.remove_sample = one.reward or 0.0, not one.judged
    sample.status = status.TRUNCATED if is_overlong(one) else status.COMPLETED if one.judged else status.FAILED
    facts = {"judged": one.judged, "rollout_id": one.rollout_id, "exit_status": one.exit_status, "why": why_unjudged(one)}
    sample.metadata = {**sample.metadata, **facts}
    return sample


def post_process(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """
    Returns raw rewards and advantages over the judged samples of each group. The raw reward of an unjudged sample is the mean of the
    judged samples of its group (or of the batch, if its group has none), because slime's metrics are means over all raw rewards.
    """
    judged = [bool(one.metadata.get("judged")) for one in samples]
    rewards = [float(one.reward or 0.0) for one in samples]
    groups = [one.group_index for one in samples]
    by_deviation = bool(getattr(args, "grpo_std_normalization", True))
    everyone = [reward for reward, counts in zip(rewards, judged) if counts]
    raw = []
    for reward, counts, group in zip(rewards, judged, groups):
        siblings = [r for r, c, g in zip(rewards, judged, groups) if c and g == group] or everyone
        raw.append(reward if counts else sum(siblings) / len(siblings) if siblings else 0.0)
    return raw, group_advantages(rewards, judged, groups, 1e-6, by_deviation)


def mixed(args: Any, samples: Sequence[Any], **_: Any) -> bool:
    """
    A dynamic sampling filter: returns whether the rewards of the group's judged samples differ. slime's own filter counts unjudged samples
    as 0.
    """
    return len({one.reward for one in samples if one.metadata.get("judged")}) > 1


def _run(args: Any) -> "Run":
    name = getattr(args, "swefarm_run", None) or f"slime-{_PROCESS}"
    with _guard:
        if name not in _runs:
            _runs[name] = Farm().run(name, **dict(getattr(args, "swefarm_settings", None) or {}))
        return _runs[name]


def _is_aborted(args: Any) -> bool:
    """Returns whether slime has enough samples for the step. slime then waits for every task, and cancels no task."""
    module: Optional[Any] = sys.modules.get("slime.rollout.sglang_rollout")
    return module is not None and bool(module.GenerateState(args).aborted)
