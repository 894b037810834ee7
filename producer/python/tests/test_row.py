import asyncio
import unittest

from swefarm.trainers.verl.row import drops_unjudged, instance_of, is_asynchronous, is_validation, line_problem, version_of
from swefarm.trainers.verl.servers import NoServers, server_urls


class Remote:
    """Stands in for a method of a Ray actor: ``remote`` returns the next answer, and the last one repeatedly."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    async def remote(self):
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class LinesTest(unittest.TestCase):
    def test_all_lines_need_a_trainer_that_computes_one_advantage_for_a_rollout(self):
        v1 = {"trainer": {"use_v1": True}, "algorithm": {"adv_estimator": "grpo"}}
        self.assertIsNone(line_problem("all", v1))
        self.assertIsNone(line_problem("main", {}))
        self.assertIn("expected one of main, all", line_problem("most", v1))
        self.assertIn("needs trainer.use_v1=True", line_problem("all", {**v1, "trainer": {}}))
        other = {**v1, "algorithm": {"adv_estimator": "grpo_judged"}}
        self.assertIn("needs algorithm.adv_estimator=grpo, got grpo_judged", line_problem("all", other))


class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class ServersTest(unittest.TestCase):
    def urls(self, manager, **more):
        return asyncio.run(server_urls(manager, **more))

    def test_every_call_asks_the_load_balancer(self):
        ask = Remote(["10.0.0.1:40001"], ["10.0.0.1:40001", "[fd00::2]:40002"])
        manager = Thing(_load_balancer=Thing(get_all_servers=ask), _server_id_to_handle={"old:1": None})
        self.assertEqual(self.urls(manager), ["http://10.0.0.1:40001/v1"])
        self.assertEqual(self.urls(manager), ["http://10.0.0.1:40001/v1", "http://[fd00::2]:40002/v1"])

    def test_a_balancer_without_addresses_falls_back_to_the_managers_servers(self):
        manager = Thing(_load_balancer=Thing(acquire_server=Remote("x")), _server_id_to_handle={"h:1": 0, "h:2": 0})
        self.assertEqual(self.urls(manager), ["http://h:1/v1", "http://h:2/v1"])

    def test_without_addresses_the_farm_uses_its_own_policy(self):
        for manager in (Thing(), Thing(_load_balancer=None), Thing(_server_id_to_handle={}), object()):
            self.assertIsNone(self.urls(manager))

    def test_the_wait_for_servers_that_train_has_a_limit(self):
        ask = Remote([], [], ["h:1"])
        self.assertEqual(self.urls(Thing(_load_balancer=Thing(get_all_servers=ask)), pause_s=0), ["http://h:1/v1"])
        self.assertEqual(ask.asked, 3)
        with self.assertRaises(NoServers):
            self.urls(Thing(_load_balancer=Thing(get_all_servers=Remote([]))), wait_s=0, pause_s=0)


class UnjudgedTest(unittest.TestCase):
    V1, LEGACY = {"trainer": {"use_v1": True}}, {"trainer": {}}

    def test_only_the_training_of_v1_drops_unjudged_samples(self):
        self.assertTrue(drops_unjudged("auto", "main", self.V1, validates=False))
        for config, validates in ((self.V1, True), (self.LEGACY, False), (self.LEGACY, True)):
            self.assertFalse(drops_unjudged("auto", "main", config, validates))
        self.assertFalse(drops_unjudged("mask", "main", self.V1, validates=False))
        self.assertTrue(drops_unjudged("auto", "all", self.V1, validates=False))

    def test_the_instance_is_the_text_in_the_row(self):
        extra = {"tools_kwargs": {"bash": {"create_kwargs": {"instance": '{"instance_id": "a__b-1", "repo": "a/b"}'}}}}
        self.assertEqual(instance_of({"extra_info": extra}), {"instance_id": "a__b-1", "repo": "a/b"})


class VersionTest(unittest.TestCase):
    #: APART has the values of verl's rollout.yaml. With ALIKE, validation samples as training does.
    APART = Thing(temperature=1.0, top_p=1.0, top_k=-1, val_kwargs=Thing(temperature=0, top_p=1.0, top_k=-1))
    ALIKE = Thing(temperature=1.0, top_p=1.0, top_k=-1, val_kwargs=Thing(temperature=1.0, top_p=1.0, top_k=-1))

    def test_a_step_trains_with_the_previous_weights_and_validates_with_its_own(self):
        self.assertEqual(version_of({"global_steps": 8}), 7)
        self.assertEqual(version_of({"global_steps": 8}, validates=True), 8)
        self.assertEqual(version_of({"global_steps": 1}), 0)
        self.assertIsNone(version_of({}))

    def test_the_number_of_the_first_weights_is_the_lowest(self):
        # val_before_train sends step 0.
        for validates in (False, True):
            self.assertEqual(version_of({"global_steps": 0}, validates), 0)
            self.assertIsNone(version_of({"global_steps": -1}, validates))

    def test_sampling_identifies_validation(self):
        greedy, sampled = {"temperature": 0, "top_p": 1.0, "top_k": -1}, {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        self.assertTrue(is_validation({}, greedy, self.APART))
        self.assertFalse(is_validation({}, sampled, self.APART))
        # If the sampling differs, the split of the row is ignored, because a training file may be used for validation.
        self.assertFalse(is_validation({"extra_info": {"split": "val"}}, sampled, self.APART))

    def test_with_equal_sampling_the_split_decides_unless_verl_passes_validate(self):
        sampled = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        for split, validates in (("val", True), ("train", False)):
            row = {"extra_info": {"split": split}}
            self.assertEqual(is_validation(row, sampled, self.ALIKE), validates)
            self.assertEqual(is_validation({**row, "validate": not validates}, sampled, self.ALIKE), not validates)
        self.assertFalse(is_validation({}, sampled, self.ALIKE))

    def test_trainers_that_change_weights_during_rollouts_are_recognised(self):
        def v1(mode):
            return {"trainer": {"use_v1": True, "v1": {"trainer_mode": mode}}}

        self.assertEqual([is_asynchronous(v1(mode)) for mode in ("sync", "colocate_async", "separate_async")], [False, True, True])
        self.assertFalse(is_asynchronous({"trainer": {**v1("separate_async")["trainer"], "use_v1": False}}))
        self.assertTrue(is_asynchronous({"async_training": {"trigger_parameter_sync_step": 4}}))
        self.assertFalse(is_asynchronous({}))


if __name__ == "__main__":
    unittest.main()
