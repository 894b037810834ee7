"""
The data of a rollout that a trainer needs: token ids as the policy sampled them, which of them are trained, their log-probabilities and
the reward. A sample that the farm did not judge has no reward, and no mean includes it.
"""

from __future__ import annotations

import base64
import math
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Iterable, Literal, Mapping, Optional, Sequence, TypeVar, Union

if TYPE_CHECKING:
    from .farm import Farm

Own = TypeVar("Own", bound="Segment")

#: Score for trainers that require a number from an unjudged sample. The number is exact in float32, and counts as zero in sums.
UNJUDGED = 2.0**-100
#: Values of ``overlong`` in :meth:`Sample.fit`.
OVERLONG = ("mask", "drop", "keep")


class BrokenTokens(ValueError):
    """Token ids that cannot be trained on. The message names the turn and the violated rule."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the policy: the tokens [start, stop) of the response, with the log-probability of each."""

    start: int
    stop: int
    log_probs: Sequence[float]
    #: Version of the policy at the end of the answer; None: unknown.
    version: Optional[str] = None
    finish_reason: Optional[str] = None

    def __post_init__(self) -> None:
        if not (isinstance(self.log_probs, array) and self.log_probs.typecode == "f"):
            object.__setattr__(self, "log_probs", array("f", self.log_probs))

    @property
    def stop_reason(self) -> Literal["length", "stop"]:
        """``length`` if a token limit ended the answer, else ``stop``."""
        return "length" if self.finish_reason == "length" else "stop"


@dataclass(frozen=True, slots=True)
class Span:
    """Policy ``version`` sampled the tokens [start, stop) of the response."""

    version: str
    start: int
    stop: int


@dataclass(frozen=True)
class Failure:
    """Why a sample has no reward: stage and class as in docs/reliability.md, or ``client`` and a class of this package."""

    stage: str
    cls: str
    message: str


@dataclass(frozen=True)
class Segment:
    """
    A sequence to train on. ``response_ids`` has tokens that the policy sampled (``turns``) and tokens of observations. Raises BrokenTokens
    when lengths and positions contradict each other.
    """

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    turns: tuple[Turn, ...] = ()
    spans: tuple[Span, ...] = ()
    #: The line of the agent, and its kind (docs/training-data.md, "Lines").
    line: str = "L1"
    kind: str = "main"
    #: Weight in the loss. The weights of all segments of a rollout have the sum 1.
    weight: float = 1.0
    #: Rows of experts in the farm's format; empty: not stored, or not requested. :meth:`experts` merges the rows into one table.
    routed_experts: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("prompt_ids", "response_ids"):
            ids = getattr(self, name)
            if not (isinstance(ids, array) and ids.typecode == "i"):
                object.__setattr__(self, name, array("i", ids))
        object.__setattr__(self, "turns", tuple(self.turns))
        object.__setattr__(self, "spans", tuple(self.spans))
        _require_in_order("turn", self.turns, len(self.response_ids))
        _require_in_order("span", self.spans, len(self.response_ids))
        for number, turn in enumerate(self.turns, 1):
            if len(turn.log_probs) != turn.stop - turn.start:
                raise BrokenTokens(f"turn {number}: {turn.stop - turn.start} tokens and {len(turn.log_probs)} log-probabilities")
            # A sum of finite numbers is finite, and a check of each number would take longer than all other checks.
            if not math.isfinite(sum(turn.log_probs)):
                raise BrokenTokens(f"turn {number}: a log-probability is no number")

    @property
    def mask(self) -> "array[int]":
        """1 for each sampled token of the response, 0 for each token of an observation."""
        mask = array("b", bytes(len(self.response_ids)))
        for turn in self.turns:
            mask[turn.start : turn.stop] = array("b", b"\1" * (turn.stop - turn.start))
        return mask

    @property
    def log_probs(self) -> "array[float]":
        """Log-probability of each sampled token of the response, 0.0 for each token of an observation."""
        log_probs = array("f", bytes(4 * len(self.response_ids)))
        for turn in self.turns:
            log_probs[turn.start : turn.stop] = array("f", turn.log_probs)
        return log_probs

    @property
    def sampled(self) -> int:
        """Number of sampled tokens."""
        return sum(turn.stop - turn.start for turn in self.turns)

    def to_arrays(self) -> dict[str, Any]:
        """Returns numpy arrays ``prompt_ids``, ``response_ids`` (both without a copy, read-only), ``mask`` and ``log_probs``."""
        import numpy

        arrays = {name: numpy.asarray(getattr(self, name)) for name in ("prompt_ids", "response_ids", "mask", "log_probs")}
        for name in ("prompt_ids", "response_ids"):
            arrays[name].flags.writeable = False
        return arrays

    def experts(self) -> Any:
        """
        Returns a numpy array [rows, layers, top_k] of the experts of each token from the start of the prompt. The last token may have no
        row. Returns None if the experts are missing for some tokens.
        """
        import numpy

        total, end = len(self.prompt_ids) + len(self.response_ids), 0
        table: Any = None
        for block in self.routed_experts:
            shape = (-1, block["layers"], block["top_k"])
            rows = numpy.frombuffer(base64.b64decode(block["rows"]), block["dtype"]).reshape(shape)
            start = block["start"]
            if start > end:
                return None
            if table is None:
                # Every type that the farm stores, except int32, has ids of experts below 2^15.
                table = numpy.zeros((total, *rows.shape[1:]), "int32" if block["dtype"] == "int32" else "int16")
            # The first row replaces the last row of the previous turn: the last token of an answer is routed with the next prompt.
            end = min(start + len(rows), total)
            table[start:end] = rows[: max(0, end - start)]
        return table[:end] if end >= total - 1 and table is not None else None

    def up_to(self: Own, stop: int) -> Own:
        """Returns the segment with the first ``stop`` tokens of its response. No turn may cross this position."""
        return replace(
            self,
            response_ids=self.response_ids[:stop],
            turns=tuple(turn for turn in self.turns if turn.stop <= stop),
            spans=tuple(replace(span, stop=min(span.stop, stop)) for span in self.spans if span.start < stop),
        )


@dataclass(frozen=True)
class Sample(Segment):
    """
    A rollout for a trainer. ``reward`` None: the farm did not judge the rollout, and ``failure`` has the reason. Its ``mask`` is then 0
    everywhere, so that a trainer that requires all samples of a group learns nothing from it.
    """

    group: str = ""
    index: int = 0
    rollout_id: str = ""
    instance_id: str = ""
    reward: Optional[float] = None
    #: Components of the reward, such as ``tests`` (docs/rewards.md).
    parts: Mapping[str, float] = field(default_factory=dict)
    exit_status: str = ""
    #: Whether a token limit of the farm or of the server ended the rollout.
    truncated: bool = False
    #: Whether :meth:`fit` shortened the sample.
    cut: bool = False
    failure: Optional[Failure] = None
    #: Further trained sequences of an agent that comes as a program; empty without ``lines="all"``, and without a reward.
    segments: tuple[Segment, ...] = ()
    #: Seconds by activity: ``policy``, ``tools``, ``grading``.
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: The whole result in the farm's format.
    result: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward is not None and not math.isfinite(self.reward):
            raise ValueError(f"reward: expected a number, got {self.reward} ({self.rollout_id})")
        if self.reward is None and self.failure is None:
            object.__setattr__(self, "failure", Failure("client", "unjudged", "no reward was given"))
        if self.reward is None:  # The masks of the segments ignore the reward.
            object.__setattr__(self, "segments", ())

    @property
    def judged(self) -> bool:
        return self.reward is not None

    @property
    def mask(self) -> "array[int]":
        """1 for each sampled token of the response of a judged sample, else 0."""
        return super().mask if self.judged else array("b", bytes(len(self.response_ids)))

    @classmethod
    def failed(cls, failure: Failure, **facts: Any) -> "Sample":
        """Returns a sample without reward. ``facts``: its known fields."""
        return cls(**{"prompt_ids": (), "response_ids": (), **facts, "reward": None, "failure": failure})

    @classmethod
    def masked_by(
        cls, prompt_ids: Iterable[int], response_ids: Sequence[int], mask: Sequence[int], log_probs: Sequence[float], **facts: Any
    ) -> "Sample":
        """Returns a sample whose turns are the runs of 1 in ``mask``. ``log_probs`` has a number for each token of the response."""
        if not len(response_ids) == len(mask) == len(log_probs):
            raise BrokenTokens(f"{len(response_ids)} tokens, {len(mask)} of the mask and {len(log_probs)} log-probabilities")
        edges = [at for at in range(len(mask) + 1) if bool(at and mask[at - 1]) != bool(at < len(mask) and mask[at])]
        turns = tuple(Turn(a, b, log_probs[a:b]) for a, b in zip(edges[::2], edges[1::2]))
        return cls(prompt_ids=array("i", prompt_ids), response_ids=response_ids, turns=turns, **facts)

    def fit(self, max_prompt: int, max_response: int, overlong: str = "mask") -> "Optional[Sample]":
        """
        Returns the sample within the trainer's lengths, cut after a whole turn. A sample that is cut, or that the farm truncated, is
        overlong. With ``mask`` it has neither reward nor trained tokens, because a verdict on the whole does not apply to a prefix. With
        ``drop`` the result is None. With ``keep`` the tokens that fit are trained. A sample whose prompt or first turn does not fit is
        never trained on.
        """
        if overlong not in OVERLONG:
            raise ValueError(f"overlong: expected one of {', '.join(OVERLONG)}, got {overlong!r}")
        fits = len(self.prompt_ids) <= max_prompt and len(self.response_ids) <= max_response
        if fits and not self.truncated:
            return self
        if overlong == "drop":
            return None
        kept = max((turn.stop for turn in self.turns if turn.stop <= max_response), default=0)
        trains = len(self.prompt_ids) <= max_prompt and (kept > 0 or fits)
        if fits:
            short = self
        elif kept > 0:
            short = replace(self.up_to(kept), cut=True, prompt_ids=self.prompt_ids[:max_prompt])
        else:
            prompt, response = self.prompt_ids[:max_prompt], self.response_ids[:max_response]
            short = replace(self, cut=True, turns=(), spans=(), prompt_ids=prompt, response_ids=response)
        if overlong == "keep" and trains:
            return short
        lengths = f"{len(self.prompt_ids)} + {len(self.response_ids)} tokens, the trainer takes {max_prompt} + {max_response}"
        why = lengths if short.cut else "a token limit of the farm ended the rollout"
        return replace(short, reward=None, failure=self.failure or Failure("client", "overlong", why))

    def messages(self, farm: "Optional[Farm]" = None) -> list[dict[str, Any]]:
        """
        Fetches the conversation. ``farm``: default: the farm of the environment. Raises FarmRefusal when the farm no longer stores the
        conversation.
        """
        from .farm import Farm

        asked = farm if farm is not None else Farm()
        trajectory = asked.call("GET", f"/v1/rollouts/{self.rollout_id}/trajectory")
        return list(trajectory["messages"]) if trajectory else []


def judged_advantages(samples: Sequence[Sample], std: bool = True, epsilon: float = 1e-6) -> list[float]:
    """
    Returns GRPO's advantages over the judged samples of each group: the distance to the mean, by default in standard deviations (n - 1,
    plus ``epsilon``). Unjudged samples get 0 and do not change a mean. A judged sample that is alone in its group gets 0 too.
    """
    rewards: dict[str, list[float]] = {}
    for sample in samples:
        if sample.reward is not None:
            rewards.setdefault(sample.group, []).append(sample.reward)
    scales: dict[str, tuple[float, float]] = {}
    for group, values in rewards.items():
        if len(values) > 1:
            mean = math.fsum(values) / len(values)
            deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
            scales[group] = (mean, deviation + epsilon if std else 1.0)
    advantages = []
    for sample in samples:
        mean, scale = scales.get(sample.group, (sample.reward or 0.0, 1.0))
        advantages.append(0.0 if sample.reward is None else (sample.reward - mean) / scale)
    return advantages


def _require_in_order(what: str, pieces: "Iterable[Union[Turn, Span]]", length: int) -> None:
    before = 0
    for number, piece in enumerate(pieces, 1):
        if not before <= piece.start < piece.stop <= length:
            raise BrokenTokens(f"{what} {number}: [{piece.start}, {piece.stop}) behind {before} of {length} tokens")
        before = piece.stop
