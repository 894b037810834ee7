"""
Provides a real farm for the checks: gateway, Redis, a worker, rootfs sandboxes and grading, with a policy of this process whose every
answer is known. Run as a program, it starts the farm, and runs a command whose checks use it.
usage: realfarm.py DATASET COMMAND... (DATASET: rows with the two instances of examples/train/own/tasks.py)
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Mapping

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "examples/train/own"), str(ROOT / "producer/python"), str(ROOT / "producer/python/tests")]

import contract  # noqa: E402
import loop  # noqa: E402
import table  # noqa: E402
import tasks  # noqa: E402
from swefarm import Farm, PolicyShim  # noqa: E402

URL, ROWS = "SWEFARM_TEST_FARM", "SWEFARM_TEST_ROWS"
#: Fixed rollouts of each group. The groups differ, so a trainer that mixes them computes other advantages.
FIXED = {tasks.PATHSPEC: 1, tasks.PARSE: 3}
#: The first token of a rollout's first answer is its mark. The tokenizer decodes a mark to an empty text.
MARKS = range(contract.MARKS, table.TEXT)
WRONG = tasks.COMMANDS.index("git status > /dev/null")


class Tokenizer(table.Tokenizer):
    pad_token_id = table.END

    def decode(self, ids: Any, skip_special_tokens: bool = False) -> str:
        return str(super().decode([token for token in ids if token not in MARKS], skip_special_tokens))


@dataclass
class Played:
    """What the policy sampled in a rollout, and the reward that the tests of the instance must give for it."""

    mark: int
    instance: str
    reward: float
    siblings: "tuple[float, ...]"
    prompt: "tuple[int, ...]"
    tokens: list[int] = field(default_factory=list)
    sampled: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    versions: "tuple[int, int]" = (0, 0)


class RealFarm:
    """The farm that SWEFARM_TEST_FARM names, with the attributes of ScriptedFarm that the checks use, and an endpoint of its policy."""

    fault, host, model = "none", "127.0.0.1", loop.MODEL
    max_prompt = max_response = 1024
    options = {"model": loop.MODEL, "settings": loop.SETTINGS}
    #: What the farm was asked is not visible from here.
    policies: list[Any] = []

    def __init__(self) -> None:
        self.url, self.rows = os.environ[URL], loop.rows_of(SimpleNamespace(dataset=os.environ[ROWS]))
        self.step, self.version = 5, 4
        self.tokenizer = Tokenizer()
        self.by_mark: dict[int, Played] = {}
        self._lock = threading.Lock()
        self.shim = PolicyShim(self.sample, self.tokenizer, model=self.model, version=str(self.version))
        self.port = int(self.shim.url.rpartition(":")[2].partition("/")[0])
        self.address = f"{self.host}:{self.port}"

    @property
    def rollouts(self) -> Mapping[int, Played]:
        """Returns the rollouts of the present weights."""
        return {mark: played for mark, played in self.by_mark.items() if played.versions[0] == self.version}

    def update(self) -> None:
        """Begins the trainer's next step with new weights."""
        with self.shim.update(str(self.version + 1)):
            self.step, self.version = self.step + 1, self.version + 1

    def sample(self, ids: list[int], _: Any = None) -> dict[str, Any]:
        """Answers with one command and then with a submission. The log-probabilities of each answer are unique."""
        with self._lock:
            mark = next((token for token in ids if token in MARKS), None)
            played = self._begun(ids) if mark is None else self.by_mark[mark]
            answer = [1 + self._command(played), table.END] if played.tokens else [played.mark, 1 + self._command(played), table.END]
            log_probs = [-played.mark / 64 - (len(played.sampled) + at) / 8 for at in range(len(answer))]
            played.tokens = [*ids[len(played.prompt) :], *answer]
            played.sampled, played.log_probs = played.sampled + answer, played.log_probs + log_probs
            played.versions = (played.versions[0], self.version)
            return {"token_ids": answer, "log_probs": log_probs, "finish_reason": "stop"}

    def _begun(self, ids: list[int]) -> Played:
        text = self.tokenizer.decode(ids)
        instance = next(name for name in tasks.FIX if name in text)
        number = sum(one.instance == instance for one in self.rollouts.values())
        siblings = tuple(float(at < FIXED[instance]) for at in range(contract.N))
        mark = MARKS[len(self.by_mark)]
        played = Played(mark, instance, siblings[number % contract.N], siblings, tuple(ids), versions=(self.version, self.version))
        self.by_mark[mark] = played
        return played

    @staticmethod
    def _command(played: Played) -> int:
        if played.tokens:
            return len(tasks.COMMANDS)
        return tasks.COMMANDS.index(tasks.FIX[played.instance]) if played.reward else WRONG


def check(test: unittest.TestCase, drive: "contract.Drive", name: str, std: bool) -> None:
    """Plays two steps with an update of the weights between. Fails unless the farm plays each rollout exactly once and the trainer receives each sample exactly once."""
    farm = RealFarm()
    try:
        for step in (1, 2):
            trained = drive(farm, name)
            test.assertEqual(len(farm.by_mark), step * len(farm.rows) * contract.N, "no rollout is played again")
            test.assertEqual(len(trained), len(farm.rollouts))
            test.assertTrue(all(math.isfinite(one.advantage) for one in trained))
            contract.require_each_once(test, farm, trained, std)
            farm.update()
    finally:
        farm.shim.close()


def main() -> int:
    dataset, command = str(Path(sys.argv[1]).resolve()), sys.argv[2:]
    with Farm.local(runtime="rootfs", concurrency=4) as farm:
        own = {URL: farm.url, "SWEFARM_GATEWAY_TOKEN": farm.token, ROWS: dataset}
        return subprocess.run(command, env={**os.environ, **own}).returncode


if __name__ == "__main__":
    sys.exit(main())
