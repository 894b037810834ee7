"""The contract of the adapters that play a rollout for each call, with stand-ins for their trainers."""

from __future__ import annotations

import unittest

import contract
import flows
from scriptedfarm import ScriptedFarm
from test_shim import Letters

from swefarm import FarmRefusal


class ContractTest(unittest.TestCase):
    def test_verifiers(self):
        contract.check(self, flows.drive_verifiers, resumes=False, std=False)

    def test_openrlhf(self):
        contract.check(self, flows.drive_openrlhf, resumes=False, std=False)

    def test_tinker(self):
        contract.check(self, flows.drive_tinker, std=False)

    def test_areal(self):
        contract.check(self, flows.drive_areal, resumes=False)


class TinkerTest(unittest.TestCase):
    def test_a_request_of_the_farm_is_sampled_by_the_client_of_its_group(self):
        with ScriptedFarm("none") as farm:
            client = flows.Client()
            policy = flows.THINGS(sampling_client=client, temperature=0.7, max_tokens=64)
            strategy, _ = flows.play_tinker(farm, "run-1", policy)
            self.addCleanup(strategy.shim.close)
            asked = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((asked["urls"], asked["sampling"]["temperature"]), ([strategy.shim.url], 0.7))
            strategy._policies[asked["headers"]["X-Session-ID"]] = policy
            strategy.shim.tokenizer = Letters()
            body = {"prompt": [1, 2], "temperature": 0.7, "stop": [], "max_tokens": 5}
            answer = strategy.shim.answer("/v1/completions", body, asked["headers"]["X-Session-ID"])[0]["choices"][0]
            self.assertEqual((answer["token_ids"], answer["logprobs"]["token_logprobs"]), ([7, 8], [-0.5, -1.0]))
            # An empty list would turn off the end of the text.
            self.assertEqual(client.asked, [([1, 2], {"temperature": 0.7, "max_tokens": 5, "stop": None})])

    def test_a_group_that_the_cookbook_repeats_is_played_anew(self):
        with ScriptedFarm("none") as farm:
            policy = flows.THINGS(sampling_client=flows.Client(), temperature=0.7, max_tokens=64)
            strategy, _ = flows.play_tinker(farm, "run-1", policy, batches=2)
            self.addCleanup(strategy.shim.close)
            self.assertEqual(len(farm.rollouts), 2 * len(contract.INSTANCES) * contract.N)


class ARealTest(unittest.TestCase):
    def test_addresses_version_and_sampling_of_the_engine_are_in_every_rollout(self):
        with ScriptedFarm("none") as farm:
            flows.play_areal(farm, "run-1")
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["urls"], policy["version"], policy["model"]), (["http://10.0.0.1:8000/v1"], "4", "m"))
            sampling = policy["sampling"]
            self.assertEqual((sampling["temperature"], sampling["top_k"], sampling["max_tokens"]), (0.7, -1, 64))

    def test_a_group_with_fewer_than_two_judged_samples_is_rejected(self):
        for fault in ("a lone judged sample", "nobody is judged"):
            with ScriptedFarm(fault) as farm:
                self.assertEqual(flows.play_areal(farm, "run-1"), [None, None])


class OpenRLHFTest(unittest.TestCase):
    def test_a_request_of_the_farm_is_sampled_by_the_engine_of_the_actor(self):
        with ScriptedFarm("none") as farm:
            engine = flows.Engine()
            executor, _ = flows.play_openrlhf(farm, "run-1", engine)
            self.addCleanup(executor.shim.close)
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["urls"], policy["model"], policy["sampling"]["temperature"]), ([executor.shim.url], "policy", 0.7))
            executor.shim.loop = None  # The loop of the actor ended with the batch.
            executor.shim.tokenizer = Letters()
            body = {"prompt": [1, 2], "temperature": 0.7, "stop_token_ids": [9], "max_tokens": 5, "logprobs": 1}
            answer = executor.shim.answer("/v1/completions", body, None)[0]["choices"][0]
            self.assertEqual((answer["token_ids"], answer["logprobs"]["token_logprobs"]), ([7, 8], [-0.5, -1.0]))
            asked = {"temperature": 0.7, "stop_token_ids": [9], "max_tokens": 5, "logprobs": 0}
            self.assertEqual(engine.asked, [([1, 2], asked)])

    def test_an_unjudged_sample_does_not_move_the_baseline(self):
        with ScriptedFarm("a sample without reward") as farm:
            executor, groups = flows.play_openrlhf(farm, "run-1", flows.Engine())
            self.addCleanup(executor.shim.close)
            for group in groups:
                self.assertEqual(sorted(answer["reward"] for answer in group), [0.0, 2 / 3, 1.0, 1.0])
                self.assertEqual([answer["action_ranges"] for answer in group if answer["reward"] == 2 / 3], [[]])

    def test_instances_with_equal_prompts_are_groups_of_their_own(self):
        with ScriptedFarm("none") as farm:
            executor, groups = flows.play_openrlhf(farm, "run-1", flows.Engine(), "Fix it.")
            self.addCleanup(executor.shim.close)
            played = [[farm.by_mark[answer["observation_tokens"][3]].instance for answer in group] for group in groups]
            self.assertEqual(played, [[name] * contract.N for name in contract.INSTANCES])

    def test_a_refusal_ends_the_batch(self):
        with ScriptedFarm("none") as farm:
            farm.refuses = True
            with self.assertRaises(FarmRefusal):
                flows.play_openrlhf(farm, "run-1", flows.Engine())


class VerifiersTest(unittest.TestCase):
    def test_the_version_of_the_request_is_the_salt_of_every_policy_request(self):
        with ScriptedFarm("none") as farm:
            flows.play_verifiers(farm, "run-1")
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["urls"], policy["version"]), (["http://10.0.0.1:8000/v1"], "4"))
            self.assertEqual(policy["extra_body"], {"cache_salt": "4"})
            self.assertEqual({name: policy["headers"][name] for name in ("X-A", "X-B")}, {"X-A": "a", "X-B": "b"})
            self.assertEqual({name: policy["sampling"][name] for name in ("temperature", "top_k")}, {"temperature": 1.0, "top_k": -1})

    def test_an_unjudged_episode_names_the_class_of_its_failure(self):
        with ScriptedFarm("a sample without reward") as farm:
            broken = [episode for episode in flows.play_verifiers(farm, "run-1") if not episode.ok]
            self.assertEqual([one.traces[0].errors[0].type for one in broken], ["node_lost", "node_lost"])
            self.assertEqual({one.traces[0].stopped for one in broken}, {"error"})


if __name__ == "__main__":
    unittest.main()
