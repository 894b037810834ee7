"""The contract of the adapters that play a rollout for each call, with stand-ins for their trainers."""

from __future__ import annotations

import unittest

import contract
import flows
from scriptedfarm import ScriptedFarm


class ContractTest(unittest.TestCase):
    def test_verifiers(self):
        contract.check(self, flows.drive_verifiers, resumes=False, std=False)


class VerifiersTest(unittest.TestCase):
    def test_the_version_of_the_request_is_the_salt_of_every_policy_request(self):
        with ScriptedFarm("none") as farm:
            flows.play_verifiers(farm, "run-1")
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["urls"], policy["version"]), (["http://10.0.0.1:8000/v1"], "4"))
            self.assertEqual(policy["extra_body"], {"cache_salt": "4"})
            self.assertEqual({name: policy["sampling"][name] for name in ("temperature", "top_k")}, {"temperature": 1.0, "top_k": -1})

    def test_an_unjudged_episode_names_the_class_of_its_failure(self):
        with ScriptedFarm("a sample without reward") as farm:
            broken = [episode for episode in flows.play_verifiers(farm, "run-1") if not episode.ok]
            self.assertEqual([one.traces[0].errors[0].type for one in broken], ["node_lost", "node_lost"])
            self.assertEqual({one.traces[0].stopped for one in broken}, {"error"})


if __name__ == "__main__":
    unittest.main()
