"""Builds the request of an agent loop to the farm, and computes the credit for the answer. Does not import verl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence as Many
from uuid import uuid4

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.session import plain
from swefarm_verl.trajectory import Sequence, is_masked

#: Sampling settings that have the same name in the farm and in verl.
ALIKE = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "stop", "seed")
#: Sampling settings: the farm's name and verl's name of each.
SAMPLING = {**{name: name for name in ALIKE}, "max_output_tokens": "max_tokens"}
#: Sampling keys that verl takes from ``val_kwargs`` in validation.
VALIDATED = ("temperature", "top_p", "top_k")
#: Handling of a sample that is longer than the trainer's limit.
OVERLONG = ("mask", "keep")
#: The farm's name for the limit on the tokens of a rollout.
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
    lines: str = "main",
) -> dict[str, Any]:
    """Returns the body of a call of ``/run``: the row's instance, verl's sampling and servers, and limits of length and time."""
    tools = plain(plain(kwargs.get("extra_info")).get("tools_kwargs"))
    instance = plain(plain(plain(tools.get("bash")).get("create_kwargs")).get("instance"))
    create: dict[str, Any] = {"input": [], "metadata": {}}
    for ours, theirs in SAMPLING.items():
        if sampling_params.get(theirs) is not None:
            create[ours] = sampling_params[theirs]
    if create.get("top_k") == 0:  # verl uses 0 for all tokens.
        create["top_k"] = -1
    if model:
        create["model"] = model
    return {
        **instance,
        "responses_create_params": create,
        "agent_ref": {"type": "responses_api_agents", "name": agent_ref},
        # The rollouts of a prompt have equal rows, so each needs its own id. A retried call has the same id.
        "_ng_rollout_id": f"verl-{uuid4().hex}",
        SEQUENCE: int(response_length),
        # The answer then has the tokens of each trained line of an agent that comes as a program.
        **({"trajectory_lines": lines} if lines != "main" else {}),
        # The farm cancels the rollout after this time, even if the call is still connected.
        **({"rollout_timeout_s": float(rollout_s)} if rollout_s is not None else {}),
        **({"policy_base_url": list(urls)} if urls else {}),
        **({"policy_version": str(version)} if version is not None else {}),
    }


def version_of(kwargs: Mapping[str, Any], validates: bool = False) -> Optional[int]:
    """
    Returns verl's number of the weights at the start of a rollout: the number of the previous step or, in validation, of the
    current step, because verl validates after the update. None: this version of verl passes no step.
    """
    step = kwargs.get("global_steps")
    if step is None or int(step) < 0:
        return None
    # Training starts at step 1; step 0 is the validation before training.
    return int(step) if validates or int(step) == 0 else int(step) - 1


def is_validation(kwargs: Mapping[str, Any], sampling_params: Mapping[str, Any], rollout_config: Any) -> bool:
    """
    Returns whether the rollout is part of a validation. verl 0.9.1 does not pass this to a loop, but samples by ``val_kwargs``
    in validation. If these equal the values of training, rows of the split ``val`` count as validation.
    """
    if kwargs.get("validate") is not None:
        return bool(kwargs["validate"])
    both = (rollout_config, getattr(rollout_config, "val_kwargs", None))
    training, validation = (tuple(getattr(one, key, None) for key in VALIDATED) for one in both)
    if training == validation:
        return plain(kwargs.get("extra_info")).get("split") == "val"
    return tuple(sampling_params.get(key) for key in VALIDATED) == validation


def is_asynchronous(config: Any) -> bool:
    """Returns whether verl changes the weights during rollouts. A step number then describes only the first weights."""
    if config.get("async_training") is not None:
        return True
    trainer = config.get("trainer") or {}
    if not trainer.get("use_v1", False):
        return False
    return (trainer.get("v1") or {}).get("trainer_mode", "sync") != "sync"


def versions_in(answer: Mapping[str, Any], asked: Optional[int]) -> dict[str, int]:
    """Returns the oldest and newest weights of a rollout: the farm's versions if all are numbers, else ``asked``."""
    names = answer.get("policy_versions") or []
    numbers = [int(name) for name in names if isinstance(name, str) and name.isdecimal()]
    if len(numbers) != len(names) or not numbers:
        numbers = [] if asked is None else [asked]
    return {"min_global_steps": min(numbers), "max_global_steps": max(numbers)} if numbers else {}


#: Lines of an agent that comes as a program: the main line, or all that are trained on.
LINES = ("main", "all")


def line_problem(lines: str, config: Any) -> Optional[str]:
    """
    Returns why the trainer cannot take these lines; None: it can. Only verl's V1 trainer takes several samples of a rollout,
    and only its estimator ``grpo`` computes one advantage for all of them; other estimators count each as a rollout.
    """
    if lines not in LINES:
        return f"lines: expected one of {', '.join(LINES)}, got {lines!r}; change it in the agent loop's YAML"
    if lines == "main":
        return None
    if not (config.get("trainer") or {}).get("use_v1", False):
        return "lines: all needs trainer.use_v1=True: the older trainer takes one sample of a rollout; set lines: main"
    estimator = (config.get("algorithm") or {}).get("adv_estimator")
    if str(getattr(estimator, "value", estimator)) != "grpo":
        return (
            f"lines: all needs algorithm.adv_estimator=grpo, got {estimator}: other estimators count each line as a rollout "
            "of its group; change the estimator, or set lines: main"
        )
    return None


#: Prefix of the keys of reward parts in an answer to /run.
PART = "score/"


@dataclass(frozen=True)
class Credit:
    """The reward of a sample. ``reward`` is always a number, but an unjudged sample is not trained on."""

    judged: bool
    reward: float
    overlong: bool
    why: str
    parts: Mapping[str, float] = field(default_factory=dict)


def credit_of(answer: Mapping[str, Any], sequence: Sequence, overlong: str) -> Credit:
    """
    Computes the credit of a sample. ``overlong`` decides whether an incomplete sample is masked (``mask``) or credited
    (``keep``). A sample is incomplete if turns were cut or the farm ended the rollout at ``max_sequence_tokens``.
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
