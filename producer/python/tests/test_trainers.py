"""The contract of the adapters with stand-ins for the trainers. testkit/clients/trainers runs it with the trainers' own classes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import types
import unittest
import unittest.mock
from typing import Any

import contract
import drives
import flows
from contract import INSTANCES, N
from drives import ASKED, ROWS, THINGS, TOKENIZER, SlimeSample, run_at, slime_args, trl_trainer
from scriptedfarm import ScriptedFarm

from swefarm import FarmRefusal
from swefarm.trainers import rllm, skyrl, slime, trl


class ContractTest(unittest.TestCase):
    def test_trl(self):
        contract.check(self, drives.drive_trl)

    def test_skyrl(self):
        contract.check(self, drives.drive_skyrl)

    def test_verl_v1(self):
        contract.check(self, lambda farm, _: drives.drive_verl(farm, True), resumes=False)

    def test_verl_legacy(self):
        contract.check(self, lambda farm, _: drives.drive_verl(farm, False), resumes=False)

    def test_slime(self):
        contract.check(self, drives.drive_slime)


class RequestTest(unittest.TestCase):
    def asked(self, drive, fault="none"):
        with ScriptedFarm(fault) as farm:
            drive(farm, "run-1")
            return [played.asked for played in farm.rollouts.values()]

    def test_addresses_version_and_sampling_of_the_trainer_are_in_every_rollout(self):
        policy = self.asked(drives.drive_trl)[0]["run"]["policy"]
        self.assertEqual((policy["urls"], policy["model"], policy["version"]), (["http://10.0.0.1:8000/v1"], "/models/m", "5"))
        sampling = policy["sampling"]
        self.assertEqual([sampling[name] for name in ("temperature", "top_p", "top_k")], [0.7, 0.9, -1])
        self.assertNotIn("seed", sampling, "the seed of the trainer is no seed of the sampler")
        policy = self.asked(drives.drive_skyrl)[0]["run"]["policy"]
        self.assertEqual((policy["urls"], policy["version"]), (["http://router/v1"], "4"))
        self.assertRegex(policy["headers"]["X-Session-ID"], r"^(a__b-1|c__d-2)_[0-3]$")
        policy = self.asked(drives.drive_slime)[0]["run"]["policy"]
        self.assertEqual(policy["urls"], ["http://10.0.0.1:8000/v1"])

    def test_the_same_prompts_in_a_later_step_are_other_rollouts(self):
        with ScriptedFarm("none") as farm:
            play = trl.rollout_func(run_at(farm, "run-1"), rows=ROWS)
            asked = [trl.prompts(ROWS)[0]["prompt"]] * N
            for step in (5, 5, 6):
                play(asked, trl_trainer(step))
            self.assertEqual(len(farm.rollouts), 3 * N)

    def test_a_second_batch_of_a_step_has_rollouts_of_its_own(self):
        with ScriptedFarm("none") as farm:
            client = THINGS(get_endpoint_url=lambda: "http://router")
            generator = skyrl.FarmGenerator(run_at(farm, "run-1"), client, TOKENIZER, model="m", max_prompt=16, max_response=64, rows=ROWS)
            for _ in range(2):
                asyncio.run(generator.generate(drives.skyrl_batch()))
            self.assertEqual(len(farm.rollouts), 2 * len(ASKED))

    def test_an_unknown_instance_is_an_error_before_any_rollout(self):
        with ScriptedFarm("none") as farm:
            with self.assertRaisesRegex(ValueError, "is in none of the 2 rows"):
                trl.rollout_func(run_at(farm, "run-1"), rows=ROWS)(["e__f-3"], trl_trainer())
            self.assertEqual(farm.rollouts, {})

    def test_a_refusal_by_the_farm_is_an_error(self):
        with ScriptedFarm("none") as farm:
            farm.refuses = True
            with self.assertRaises(FarmRefusal):
                drives.drive_trl(farm, "run-1")


class OverlongTest(unittest.TestCase):
    def test_every_adapter_refuses_to_drop_samples_before_the_first_rollout(self):
        with ScriptedFarm("none") as farm:
            run, drop = run_at(farm, "run-1"), {"overlong": "drop"}
            limits = {"max_prompt": 16, "max_response": 64, **drop}

            def of_verl() -> None:
                with drives.verl_stand_in() as loop_class, unittest.mock.patch.object(loop_class.__mro__[1], "__init__", lambda *_: None):
                    loop_class(None, farm_url=farm.url, **drop)

            def play_slime() -> None:
                args = slime_args(farm, "run-1")
                args.swefarm_overlong = "drop"
                asyncio.run(slime.generate(args, SlimeSample(0, 0, {"instance_id": INSTANCES[0]}), {}))

            made = {
                "trl": lambda: trl.rollout_func(run, **drop),
                "skyrl": lambda: skyrl.FarmGenerator(run, None, TOKENIZER, model="m", **limits),
                "rllm": lambda: rllm.FarmFlow(run, **limits),
                "verl": of_verl,
                "slime": play_slime,
                "verifiers": lambda: self.in_flow(
                    farm, "verifiers", flows.verifiers_modules(), lambda module: module.FarmEnv(THINGS(run="", settings={}, **drop))
                ),
                "openrlhf": lambda: self.in_flow(farm, "openrlhf", {}, lambda module: module.executor(**drop)),
                "tinker": lambda: self.in_flow(
                    farm, "tinker", flows.tinker_modules(), lambda module: module.FarmStrategy(run, TOKENIZER, **drop)
                ),
                "areal": lambda: self.in_flow(
                    farm, "areal", flows.areal_modules(), lambda module: module.FarmWorkflow(THINGS(top_k=0), n=N, model="m", run=run, **drop)
                ),
            }
            for name, make in made.items():
                with self.subTest(name), self.assertRaisesRegex(ValueError, "^overlong: expected one of mask, keep, got 'drop'; change it"):
                    make()
            self.assertEqual(farm.rollouts, {})

    def in_flow(self, farm, name, modules, make):
        with flows.adapter(name, modules, farm) as module:
            make(module)


class FarmWorkerTest(unittest.TestCase):
    def test_a_worker_whose_groups_take_long_is_healthy(self):
        with ScriptedFarm("none") as farm:
            farm.waits = True
            worker = trl.FarmWorker(run_at(farm, "run-1"), ROWS, n=2, model="m", policy_urls=["http://10.0.0.1:8000/v1"])
            worker.update_model_version(1)
            threads = threading.active_count()
            worker.start()
            try:
                self.until(lambda: len(farm.rollouts) == worker.in_flight * 2)
                before = worker._beat_at
                self.until(lambda: worker._beat_at > before)
                worker.check_health(60)
            finally:
                worker.stop()
                self.until(lambda: threading.active_count() <= threads)
            # The policy's record overrides the model, but the farm refuses a run without the name of a model.
            policy = next(iter(farm.rollouts.values())).asked["run"]["policy"]
            self.assertEqual((policy["name"], policy["model"]), ("run-1", "m"))

    def until(self, holds: Any) -> None:
        end = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class SlimeTest(unittest.TestCase):
    def test_an_evaluation_has_a_length_of_its_own(self):
        with ScriptedFarm("none") as farm:
            args = slime_args(farm, "run-1")
            args.rollout_max_response_len = 4
            sample = SlimeSample(0, 0, {"instance_id": INSTANCES[0]})
            asyncio.run(slime.generate(args, sample, {"max_new_tokens": 64}, evaluation=True))
            self.assertEqual((sample.status, sample.response_length), (SlimeSample.Status.COMPLETED, 7))
            (played,) = farm.rollouts.values()
            self.assertEqual(played.asked["run"]["agent"]["max_sequence_tokens"], 64)

    def test_a_step_that_ends_early_cancels_its_rollouts_and_plays_them_anew(self):
        module = types.ModuleType("slime.rollout.sglang_rollout")
        state = THINGS(aborted=True)
        module.GenerateState = lambda args: state
        sys.modules[module.__name__] = module
        self.addCleanup(sys.modules.pop, module.__name__)
        with ScriptedFarm("none") as farm:
            farm.waits = True
            args = slime_args(farm, "run-1")
            sample = SlimeSample(0, 0, {"instance_id": INSTANCES[0]})
            asyncio.run(slime.generate(args, sample, {}))
            self.assertEqual(sample.status, SlimeSample.Status.ABORTED)
            self.assertEqual((sample.response_length, sample.reward), (0, None))
            state.aborted, farm.waits = False, False
            asyncio.run(slime.generate(args, sample, {}))
            self.assertEqual((sample.status, sample.reward), (SlimeSample.Status.COMPLETED, 0.0))
            self.assertEqual(len(farm.rollouts), 2)

    def test_metrics_and_filter_see_only_judged_samples(self):
        samples = [SlimeSample(0, at, {"judged": reward is not None}, reward=reward or 0.0) for at, reward in enumerate([1.0, 1.0, None])]
        raw, values = slime.post_process(THINGS(), samples)
        self.assertEqual((raw, values), ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]))
        self.assertFalse(slime.mixed(None, samples))


if __name__ == "__main__":
    unittest.main()
