"""Reads verl's configuration and the columns of a row for the agent loop. Does not import verl."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, Optional

from swefarm.sample import Segment
from swefarm.trainers.verl.session import plain

#: Sampling keys that verl takes from ``val_kwargs`` in validation.
VALIDATED = ("temperature", "top_p", "top_k")
#: Values of ``unjudged``: handling of a sample that the farm did not judge.
UNJUDGED_AS = ("auto", "mask", "drop")


def instance_of(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the dataset row of a rollout, from the columns that ``swefarm dataset to-verl`` writes."""
    tools = plain(plain(kwargs.get("extra_info")).get("tools_kwargs"))
    return plain(plain(plain(tools.get("bash")).get("create_kwargs")).get("instance"))


def drops_unjudged(unjudged: str, lines: str, config: Any, validates: bool) -> bool:
    """
    Returns whether verl receives no sample of an unjudged rollout. In validation verl always receives one: verl raises if a batch has no
    sample, and counts a missing one as wrong.
    """
    if lines == "all" or unjudged == "drop":
        return True
    return unjudged == "auto" and not validates and is_v1(config)


def is_v1(config: Any) -> bool:
    """Returns whether the trainer is V1 (TransferQueue), which accepts any number of samples of a rollout."""
    return bool((config.get("trainer") or {}).get("use_v1", False))


def spilled(segment: Segment, prompt_length: int, response_length: int) -> Optional[Segment]:
    """
    Returns another line within the trainer's lengths; None if its first turn does not fit. Tokens of the prompt after ``prompt_length``
    become told tokens of the response, because a line may begin with the history of another line.
    """
    more = segment.prompt_ids[prompt_length:]
    turns = tuple(replace(turn, start=turn.start + len(more), stop=turn.stop + len(more)) for turn in segment.turns)
    kept = max((turn.stop for turn in turns if turn.stop <= response_length), default=0)
    whole = replace(
        segment, prompt_ids=segment.prompt_ids[:prompt_length], response_ids=more + segment.response_ids, turns=turns, spans=()
    )
    return whole.up_to(kept) if kept > 0 else None


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
    return is_v1(config) and ((config.get("trainer") or {}).get("v1") or {}).get("trainer_mode", "sync") != "sync"


#: Values of ``lines``: the main line, or all trained lines of an agent that comes as a program.
LINES = ("main", "all")


def line_problem(lines: str, config: Any) -> Optional[str]:
    """
    Returns why the trainer cannot use these lines; None if it can. Only verl's V1 trainer accepts several samples of a rollout, and only
    its estimator ``grpo`` computes one advantage for all of them; other estimators count each as a rollout.
    """
    if lines not in LINES:
        return f"lines: expected one of {', '.join(LINES)}, got {lines!r}; change it in the agent loop's YAML"
    if lines == "main":
        return None
    if not is_v1(config):
        return "lines: all needs trainer.use_v1=True: the older trainer accepts one sample of a rollout; set lines: main"
    estimator = (config.get("algorithm") or {}).get("adv_estimator")
    if str(getattr(estimator, "value", estimator)) != "grpo":
        return (
            f"lines: all needs algorithm.adv_estimator=grpo, got {estimator}: other estimators count each line as a rollout "
            "of its group; change the estimator, or set lines: main"
        )
    return None
