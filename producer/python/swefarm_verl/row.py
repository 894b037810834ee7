"""The request of an agent loop to the farm, and the credit for its answer; without verl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence as Many
from uuid import uuid4

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.session import plain
from swefarm_verl.trajectory import Sequence, is_masked

#: Sampling keys: the farm's name and verl's.
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
#: Sampling keys that verl takes from ``val_kwargs`` in validation.
VALIDATED = ("temperature", "top_p", "top_k")
#: Handling of a sample that is longer than the trainer's limit.
OVERLONG = ("mask", "keep")
#: The farm's name of the length limit.
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
    """The body of ``/run``: the row's instance, verl's sampling and servers, and limits of length and time."""
    tools = plain(plain(kwargs.get("extra_info")).get("tools_kwargs"))
    instance = plain(plain(plain(tools.get("bash")).get("create_kwargs")).get("instance"))
    create: dict[str, Any] = {"input": [], "metadata": {}}
    for ours, theirs in SAMPLING.items():
        if sampling_params.get(theirs) is not None:
            create[ours] = sampling_params[theirs]
    if create.get("top_k") == 0:  # verl's value for all tokens.
        create["top_k"] = -1
    if model:
        create["model"] = model
    return {
        **instance,
        "responses_create_params": create,
        "agent_ref": {"type": "responses_api_agents", "name": agent_ref},
        # Siblings have equal rows. A retried call has the same id.
        "_ng_rollout_id": f"verl-{uuid4().hex}",
        SEQUENCE: int(response_length),
        # The farm cancels the rollout after this time, also without a disconnect.
        **({"rollout_timeout_s": float(rollout_s)} if rollout_s is not None else {}),
        **({"policy_base_url": list(urls)} if urls else {}),
        **({"policy_version": str(version)} if version is not None else {}),
    }


def version_of(kwargs: Mapping[str, Any], validates: bool = False) -> Optional[int]:
    """
    verl's number of the weights at the start of a rollout: that of the step before. In validation it is the number of the
    step, because verl validates after the update. None: this verl gives no step.
    """
    step = kwargs.get("global_steps")
    if step is None or int(step) < 0:
        return None
    # verl trains from step 1; step 0 is the validation before.
    return int(step) if validates or int(step) == 0 else int(step) - 1


def is_validation(kwargs: Mapping[str, Any], sampling_params: Mapping[str, Any], rollout_config: Any) -> bool:
    """
    Whether verl validates. verl 0.9.1 does not pass this to a loop, but samples by ``val_kwargs`` in validation. If these equal
    the values of training, rows of the split ``val`` count as validation.
    """
    if kwargs.get("validate") is not None:
        return bool(kwargs["validate"])
    both = (rollout_config, getattr(rollout_config, "val_kwargs", None))
    training, validation = (tuple(getattr(one, key, None) for key in VALIDATED) for one in both)
    if training == validation:
        return plain(kwargs.get("extra_info")).get("split") == "val"
    return tuple(sampling_params.get(key) for key in VALIDATED) == validation


def is_asynchronous(config: Any) -> bool:
    """Whether verl changes weights during rollouts: the number of a step is then that of the first weights only."""
    if config.get("async_training") is not None:
        return True
    trainer = config.get("trainer") or {}
    if not trainer.get("use_v1", False):
        return False
    return (trainer.get("v1") or {}).get("trainer_mode", "sync") != "sync"


def versions_in(answer: Mapping[str, Any], asked: Optional[int]) -> dict[str, int]:
    """The oldest and newest weights of a rollout, by the farm if its names are verl's numbers."""
    names = answer.get("policy_versions") or []
    numbers = [int(name) for name in names if isinstance(name, str) and name.isdecimal()]
    if len(numbers) != len(names) or not numbers:
        numbers = [] if asked is None else [asked]
    return {"min_global_steps": min(numbers), "max_global_steps": max(numbers)} if numbers else {}


#: Prefix of the parts of a reward in an answer to /run.
PART = "score/"


@dataclass(frozen=True)
class Credit:
    """``reward`` is always a number. An unjudged sample is not trained on."""

    judged: bool
    reward: float
    overlong: bool
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)


def credit_of(answer: Mapping[str, Any], sequence: Sequence, overlong: str) -> Credit:
    """
    A sample without its end is masked, or credited with ``overlong`` = keep: turns were cut, or the farm ended it at
    ``max_sequence_tokens``, which is the trainer's length or a smaller one of the farm's operator.
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
