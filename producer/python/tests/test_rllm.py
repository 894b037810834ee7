"""The contract of rLLM's adapter with stand-ins for its types and its gateway."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

import contract
from contract import N, Trained
from drives import ROWS, THINGS, run_at
from fakefarm import FakeFarm
from flows import Made, adapter, centred
from scriptedfarm import ScriptedFarm

from swefarm import FarmRefusal


class Episode(Made):
    trajectories: "list[Any]" = []


def modules() -> "dict[str, dict[str, Any]]":
    reasons = THINGS(MAX_RESPONSE_LENGTH_EXCEEDED="length", ERROR="error", ENV_DONE="done")
    return {
        "rllm.types": {"Episode": Episode, "Step": Made, "Trajectory": Made},
        "rllm.workflows.workflow": {"TerminationReason": reasons},
        "rllm.eval.types": {"EvalOutput": Made},
    }


def workers(method: str, path: str, body: Any) -> Any:
    one = {"url": "http://10.0.0.1:8000", "api_path": "/v1", "healthy": True}
    return 200, [one, {**one, "url": "http://10.0.0.2:8000", "healthy": False}]


def play(farm: ScriptedFarm, name: str, gateway: Any = workers) -> "list[Any]":
    """Returns the episodes of one batch."""
    with adapter("rllm", modules(), farm) as module, FakeFarm(gateway) as server:
        flow = module.FarmFlow(run_at(farm, name), rows=ROWS, max_prompt=16, max_response=64)

        def config(task: str, at: int) -> Any:
            return THINGS(base_url=f"{server.url}/sessions/{task}:{at}/v1", model="m", session_uid=f"{task}:{at}", sampling_params={"top_k": 0})

        async def batch() -> "list[Any]":
            names = [row["instance_id"] for row in ROWS for _ in range(N)]
            tasks = [(THINGS(metadata={"instance_id": one}), config(one, at % N)) for at, one in enumerate(names)]
            return list(await asyncio.gather(*(flow.arun(*task) for task in tasks)))

        episodes = asyncio.run(batch())
        evaluator = module.FarmEvaluator()
        for episode in episodes:
            if evaluator.evaluate(None, episode).is_correct != any(one.reward == 1.0 for one in episode.trajectories):
                raise AssertionError("an episode is correct if it has the reward 1")
        return episodes


def drive(farm: ScriptedFarm, name: str) -> "list[Trained]":
    trajectories = [one for episode in play(farm, name) for one in episode.trajectories]
    values = centred([one.reward for one in trajectories], [one.task["instance_id"] for one in trajectories])
    trained = []
    for trajectory, value in zip(trajectories, values):
        last = trajectory.steps[-1]
        tokens = [*last.prompt_ids, *last.response_ids]
        mask, log_probs = [0] * len(tokens), [0.0] * len(tokens)
        for step in trajectory.steps:
            start = len(step.prompt_ids)
            mask[start : start + len(step.response_ids)] = [1] * len(step.response_ids)
            log_probs[start : start + len(step.response_ids)] = step.logprobs
        trained.append(Trained(tokens, mask, log_probs, value, (trajectory.steps[0].weight_version, last.weight_version)))
    return trained


class RLLMTest(unittest.TestCase):
    def test_contract(self):
        contract.check(self, drive, resumes=False, std=False)

    def test_the_farm_asks_the_healthy_workers_behind_the_gateway(self):
        with ScriptedFarm("none") as farm:
            play(farm, "run-1")
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["urls"], policy["model"]), (["http://10.0.0.1:8000/v1"], "m"))
            self.assertEqual(policy["sampling"]["top_k"], -1)

    def test_an_unjudged_episode_has_no_trajectory_and_tells_why(self):
        with ScriptedFarm("a token limit cuts a rollout") as farm:
            ends = [(one.termination_reason, len(one.trajectories), one.metadata["why"] != "") for one in play(farm, "run-1")]
            self.assertEqual(sorted(set(ends)), [("done", 1, False), ("length", 0, True)])

    def test_a_gateway_without_workers_and_a_refusal_are_errors(self):
        with ScriptedFarm("none") as farm:
            with self.assertRaisesRegex(ValueError, "has no healthy worker"):
                play(farm, "run-1", lambda *_: (200, []))
            farm.refuses = True
            with self.assertRaises(FarmRefusal):
                play(farm, "run-1")


if __name__ == "__main__":
    unittest.main()
