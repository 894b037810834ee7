"""
A gateway that plays the faults of the trainers' contract over HTTP, in this process. It answers `POST /v1/rollouts` as the real one does.
The first sampled token of a rollout is its mark: whatever a trainer's own classes make of a sample, its tokens tell the rollout.
"""

from __future__ import annotations

import base64
import json
import threading
from array import array
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Optional

from fakefarm import FakeFarm

INSTANCES = ("a__b-1", "c__d-2")
#: Rewards of the four siblings of every group, in the order in which the rollouts begin; None: not judged.
REWARDS: "tuple[Optional[float], ...]" = (1.0, 0.0, 0.0, 1.0)
#: Faults, and the rewards that siblings then have.
FAULTS: "dict[str, tuple[Optional[float], ...]]" = {
    "none": REWARDS,
    "a sample without reward": (1.0, 0.0, None, 1.0),
    "a group cut short": (1.0, 0.0, None, None),
    "a lone judged sample": (None, 1.0, None, None),
    "non-contiguous ids": (1.0, 0.0, None, 1.0),
    "the farm is gone and back": REWARDS,
    "the trainer is killed and resumed": REWARDS,
    "weights are updated in mid-answer": REWARDS,
    "a token limit cuts a rollout": (1.0, 0.0, None, 1.0),
    "nobody is judged": (None, None, None, None),
}
#: Marks begin here; smaller ids are the other tokens.
MARKS = 20
PROMPT = (1, 2, 3)
#: Version of the weights with which a rollout begins.
VERSION = 4


@dataclass
class Played:
    """The state of a rollout on the farm."""

    mark: int
    instance: str
    reward: Optional[float]
    fault: str
    asked: dict[str, Any]
    answers: int = 0
    #: Tokens of the response.
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    prompt: "tuple[int, ...]" = PROMPT

    def __post_init__(self) -> None:
        self.tokens = [self.mark, 5, 6, 7, 8, 9, 10]
        self.log_probs = [-0.5, -0.25, -0.125, -1.0, -2.0]

    @property
    def siblings(self) -> "tuple[Optional[float], ...]":
        """Returns the rewards of the group."""
        return FAULTS[self.fault]

    @property
    def versions(self) -> "tuple[int, int]":
        return VERSION, VERSION + (self.fault == "weights are updated in mid-answer")

    @property
    def sampled(self) -> list[int]:
        return self.tokens[:3] + self.tokens[5:]


class ScriptedFarm(FakeFarm):
    """``fault``: a key of FAULTS. ``rollouts`` has every rollout by its request and settings."""

    rows = [{"instance_id": name, "problem_statement": f"Fix {name}."} for name in INSTANCES]
    host, model, step, version = "10.0.0.1", "m", VERSION + 1, VERSION
    max_prompt, max_response = 16, 64
    tokenizer = SimpleNamespace(eos_token_id=2, pad_token_id=0)
    #: A policy of this process. The scripted rollouts need none.
    sample = None
    #: Arguments of ``Farm.run``.
    options: "dict[str, Any]" = {}

    def __init__(self, fault: str, size: int = len(REWARDS)) -> None:
        self.fault, self.size = fault, size
        self.rollouts: dict[str, Played] = {}
        self.lost = 0
        #: Port of the policy: a resumed trainer has another one.
        self.port = 8000
        #: Refuses every request, or lets every rollout wait.
        self.refuses = self.waits = False
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__(self._answer)

    @property
    def address(self) -> str:
        """Returns host and port of the policy."""
        return f"{self.host}:{self.port}"

    @property
    def policies(self) -> list[dict[str, Any]]:
        """Returns the policy of each rollout as the adapter requested it."""
        return [played.asked["run"]["policy"] for played in self.rollouts.values()]

    @property
    def by_mark(self) -> dict[int, Played]:
        return {played.mark: played for played in self.rollouts.values()}

    def _answer(self, method: str, path: str, body: Any) -> Any:
        if path == "/v1/rollouts":
            return self._rollout(body)
        return 200, {}

    def _rollout(self, body: Any) -> Any:
        with self._lock:
            if self.refuses:
                return 422, {"error": {"code": "bad_settings", "message": "run.agent: no such agent", "field": "run.agent"}}
            if self.fault == "the farm is gone and back" and self.lost < 6:
                self.lost += 1
                return None if self.lost % 2 else (503, {})
            instance = body["instance"] if isinstance(body["instance"], str) else body["instance"]["instance_id"]
            name = _name_of(body)
            played = self.rollouts.get(name)
            if played is None:
                number = self._seen[instance] = self._seen.get(instance, -1) + 1
                reward = FAULTS[self.fault][number % self.size]
                played = Played(MARKS + len(self.rollouts), instance, reward, self.fault, body)
                self.rollouts[name] = played
            played.answers += 1
            if self.waits or played.answers == 1:
                return 200, {"status": "waiting", "rollout_id": f"r.{instance}.{played.mark}"}
            return 200, {"status": "done", "rollout_id": f"r.{instance}.{played.mark}", **_sample(played)}


def _name_of(body: Any) -> str:
    """Returns the identity of a rollout: endpoints, headers and fields of its policy are no settings of the run."""
    policy = {key: value for key, value in body["run"]["policy"].items() if key not in ("urls", "headers", "extra_body")}
    return json.dumps([body["request_id"], body["instance"], {**body["run"], "policy": policy}], sort_keys=True)


def _sample(played: Played) -> dict[str, Any]:
    judged = played.reward is not None
    broken = played.fault == "non-contiguous ids" and not judged
    cut = played.fault == "a token limit cuts a rollout" and not judged
    versions = [str(version) for version in played.versions]
    failure = None if judged or broken or cut else {"stage": "agent", "class": "node_lost", "message": "the node was lost"}
    result = {
        "rollout_id": f"r.{played.instance}.{played.mark}",
        "instance_id": played.instance,
        "rollout_index": 0,
        "outcome": "failed" if failure else "judged",
        "reward_row": "failed" if failure else "judged",
        "reward": played.reward if judged or failure else 1.0,
        "reward_parts": {"tests": played.reward} if judged else {},
        "exit_status": "limit" if cut else "submitted",
        "failure": failure,
        "seconds": {"model": 1.0, "command": 2.0, "evaluation": 3.0},
    }
    segment = {
        "line": "L1",
        "kind": "main",
        "weight": 1.0,
        "prompt_ids": _packed("i", PROMPT),
        "response_ids": _packed("i", played.tokens),
        "log_probs": _packed("f", played.log_probs[: 4 if broken and played.mark % 2 else 5]),
        "turns": [[0, 3, "stop", versions[0]], [5, 7, "length" if cut else "stop", versions[1]]],
        "spans": [[versions[0], 0, 3], [versions[1], 5, 7]],
    }
    # The farm begins another segment where a prompt does not continue the tokens before it. Lengths may also contradict each other.
    segments = [segment, segment] if broken and not played.mark % 2 else [segment]
    return {"result": result, "truncated": cut, "segments": segments, "missing": None}


def _packed(code: str, numbers: Any) -> str:
    return base64.b64encode(array(code, numbers).tobytes()).decode()
