"""What an agent loop asks of the farm, and what its answer is worth: plain values, so that it can be read and tried without verl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence as Many
from uuid import uuid4

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.session import plain
from swefarm_verl.trajectory import Sequence, is_masked

#: The farm's names of what shapes the distribution, and verl's.
SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "stop": "stop",
    "seed": "seed",
    "max_output_tokens": "max_tokens",
}
#: What verl exchanges for ``val_kwargs`` when it validates.
VALIDATED = ("temperature", "top_p", "top_k")
#: What becomes of a sample that is longer than the trainer takes.
OVERLONG = ("mask", "keep")
#: The farm's name of the limit that ``max_sequence_tokens`` is.
SEQUENCE = "max_sequence_tokens"


def row_of(
    kwargs: Mapping[str, Any],
    sampling_params: Mapping[str, Any],
    *,
    agent_ref: str,
    response_length: int,
    urls: Optional[Many[str]] = None,
    model: Optional[str] = None,
    version: Optional[int] = None,
    rollout_s: Optional[float] = None,
) -> dict[str, Any]:
    """One call of ``/run``: the dataset row's instance, verl's sampling, its servers, and the length and time that it takes."""
    tools = plain(plain(kwargs.get("extra_info")).get("tools_kwargs"))
    instance = plain(plain(plain(tools.get("bash")).get("create_kwargs")).get("instance"))
    create: dict[str, Any] = {"input": [], "metadata": {}}
    for ours, theirs in SAMPLING.items():
        if sampling_params.get(theirs) is not None:
            create[ours] = sampling_params[theirs]
    if create.get("top_k") == 0:  # As verl writes "all tokens" for its own rollouts.
        create["top_k"] = -1
    if model:
        create["model"] = model
    return {
        **instance,
        "responses_create_params": create,
        "agent_ref": {"type": "responses_api_agents", "name": agent_ref},
        # Siblings of a group have equal rows: each call is a rollout of its own, and stays it when it is repeated.
        "_ng_rollout_id": f"verl-{uuid4().hex}",
        SEQUENCE: int(response_length),
        # Past this the farm cancels the rollout by itself, also where it is not told that nobody waits.
        **({"rollout_timeout_s": float(rollout_s)} if rollout_s is not None else {}),
        **({"policy_base_url": list(urls)} if urls else {}),
        **({"policy_version": str(version)} if version is not None else {}),
    }


def version_of(kwargs: Mapping[str, Any], validates: bool = False) -> Optional[int]:
    """
    verl's number of the weights that a rollout begins with: those of the step before, in validation the step's own, for
    verl validates after it has updated them. None: this verl tells no step.
    """
    step = kwargs.get("global_steps")
    if step is None or int(step) < 0:
        return None
    # verl trains from step 1 on: 0 is the validation before.
    return int(step) if validates or int(step) == 0 else int(step) - 1


def is_validation(kwargs: Mapping[str, Any], sampling_params: Mapping[str, Any], rollout_config: Any) -> bool:
    """
    Whether verl validates. verl 0.9.1 keeps it from a loop, but samples by ``val_kwargs`` then; where these are those of
    training too, a row that the dataset's converter put into the split ``val`` is taken to be validated.
    """
    if kwargs.get("validate") is not None:
        return bool(kwargs["validate"])
    both = (rollout_config, getattr(rollout_config, "val_kwargs", None))
    training, validation = (tuple(getattr(one, key, None) for key in VALIDATED) for one in both)
    if training == validation:
        return plain(kwargs.get("extra_info")).get("split") == "val"
    return tuple(sampling_params.get(key) for key in VALIDATED) == validation


def is_asynchronous(config: Any) -> bool:
    """Whether verl changes weights while rollouts are played: then a step's number tells only what a rollout began with."""
    if config.get("async_training") is not None:
        return True
    trainer = config.get("trainer") or {}
    if not trainer.get("use_v1", False):
        return False
    return (trainer.get("v1") or {}).get("trainer_mode", "sync") != "sync"


def versions_in(answer: Mapping[str, Any], asked: Optional[int]) -> dict[str, int]:
    """The oldest and newest weights of a rollout under verl's names: by the farm where its names are verl's numbers."""
    told = answer.get("policy_versions") or []
    numbers = [int(name) for name in told if isinstance(name, str) and name.isdecimal()]
    if len(numbers) != len(told) or not numbers:
        numbers = [] if asked is None else [asked]
    return {"min_global_steps": min(numbers), "max_global_steps": max(numbers)} if numbers else {}


#: Before the name of each part of a reward, in an answer to /run.
PART = "score/"


@dataclass(frozen=True)
class Credit:
    """``reward`` is a number in any case; of a sample that is not judged nothing is trained."""

    judged: bool
    reward: float
    overlong: bool
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)


def credit_of(answer: Mapping[str, Any], sequence: Sequence, overlong: str) -> Credit:
    """
    A sample whose end is missing (turns were cut, or the farm ended it at ``max_sequence_tokens``: the trainer's length,
    or a smaller one that the farm's operator set) earned nothing with what is left of it: masked, or credited all the
    same with ``overlong`` = keep.
    """
    long = sequence.cut_turns > 0 or answer.get("limit") == SEQUENCE
    if is_masked(answer) or answer.get("reward") is None:
        why = str(answer.get("_ng_failure_class") or answer.get("failure_reason") or "no reward")
        return Credit(False, UNJUDGED, long, why)
    if long and overlong == "mask":
        ended = f"ended at {SEQUENCE}: verl's response_length, or a smaller one of the farm's operator"
        cut = f"{sequence.cut_turns} turns cut" if sequence.cut_turns else ended
        return Credit(False, UNJUDGED, True, f"overlong: {cut}")
    parts = {key[len(PART):]: float(value) for key, value in answer.items() if key.startswith(PART)}
    return Credit(True, float(answer["reward"]), long, "", parts)
