import asyncio
import unittest

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.row import credit_of, is_asynchronous, is_validation, line_problem, row_of, version_of, versions_in
from swefarm_verl.servers import NoServers, server_urls
from swefarm_verl.trajectory import sequence_of

NAMES = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
#: Sampling parameters that verl 0.9.1 passes to a loop, with additions of its users.
SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}


def answered(reward=1.0, **more):
    turns = (([1, 2], [3, 4], [-0.1, -0.2]), ([1, 2, 3, 4, 5], [6], [-0.3]))
    return {"reward": reward, "response": {"output": [dict(zip(NAMES, turn)) for turn in turns]}, **more}


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

    def test_a_row_asks_for_all_lines_only_if_the_loop_takes_them(self):
        row = {"agent_ref": "a", "response_length": 9}
        self.assertEqual(row_of({}, {}, **row, lines="all")["trajectory_lines"], "all")
        self.assertNotIn("trajectory_lines", row_of({}, {}, **row))


class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class ServersTest(unittest.TestCase):
    def urls(self, manager, **more):
        return asyncio.run(server_urls(manager, **more))

    def test_the_load_balancer_is_asked_anew_each_time(self):
        ask = Remote(["10.0.0.1:40001"], ["10.0.0.1:40001", "[fd00::2]:40002"])
        manager = Thing(_load_balancer=Thing(get_all_servers=ask), _server_id_to_handle={"old:1": None})
        self.assertEqual(self.urls(manager), ["http://10.0.0.1:40001/v1"])
        self.assertEqual(self.urls(manager), ["http://10.0.0.1:40001/v1", "http://[fd00::2]:40002/v1"])

    def test_a_balancer_that_cannot_tell_leaves_the_managers_own_servers(self):
        manager = Thing(_load_balancer=Thing(acquire_server=Remote("x")), _server_id_to_handle={"h:1": 0, "h:2": 0})
        self.assertEqual(self.urls(manager), ["http://h:1/v1", "http://h:2/v1"])

    def test_a_manager_that_tells_nothing_leaves_it_to_the_farm(self):
        for manager in (Thing(), Thing(_load_balancer=None), Thing(_server_id_to_handle={}), object()):
            self.assertIsNone(self.urls(manager))

    def test_servers_that_train_meanwhile_are_waited_for_but_not_for_ever(self):
        ask = Remote([], [], ["h:1"])
        self.assertEqual(self.urls(Thing(_load_balancer=Thing(get_all_servers=ask)), pause_s=0), ["http://h:1/v1"])
        self.assertEqual(ask.asked, 3)
        with self.assertRaises(NoServers):
            self.urls(Thing(_load_balancer=Thing(get_all_servers=Remote([]))), wait_s=0, pause_s=0)


class RowTest(unittest.TestCase):
    def row(self, sampling=SAMPLING, kwargs=None, **more):
        instance = '{"instance_id": "a__b-1", "repo": "a/b"}'
        extra = {"tools_kwargs": {"bash": {"create_kwargs": {"instance": instance}}}}
        options = {"agent_ref": "swe_farm", "response_length": 4096, **more}
        return row_of({"extra_info": extra, **(kwargs or {})}, sampling, **options)

    def test_what_shapes_the_distribution_goes_on_and_nothing_else(self):
        extra = {"min_p": 0.0, "presence_penalty": 0.5, "frequency_penalty": 0.25, "stop": ["x"], "max_tokens": 64}
        self.assertEqual(
            self.row({**SAMPLING, **extra})["responses_create_params"],
            {
                **{"input": [], "metadata": {}, "temperature": 0.7, "top_p": 0.9, "top_k": -1, "repetition_penalty": 1.0},
                **{key: value for key, value in extra.items() if key != "max_tokens"},
                "max_output_tokens": 64,
            },
        )

    def test_all_tokens_are_written_as_the_farm_writes_them(self):
        self.assertEqual(self.row({"top_k": 0})["responses_create_params"]["top_k"], -1)
        self.assertEqual(self.row({"top_k": 20})["responses_create_params"]["top_k"], 20)

    def test_length_servers_and_weights_are_in_the_row(self):
        row = self.row(urls=["http://h:1/v1"], model="/models/m", version=version_of({"global_steps": 8}))
        self.assertEqual((row["instance_id"], row["max_sequence_tokens"]), ("a__b-1", 4096))
        self.assertEqual((row["policy_base_url"], row["policy_version"]), (["http://h:1/v1"], "7"))
        self.assertEqual(row["responses_create_params"]["model"], "/models/m")
        bare = self.row()
        self.assertNotIn("policy_base_url", bare)
        self.assertNotIn("policy_version", bare)

    def test_the_farm_is_told_when_the_rollout_is_given_up(self):
        self.assertEqual(self.row(rollout_s=600)["rollout_timeout_s"], 600.0)
        self.assertNotIn("rollout_timeout_s", self.row())

    def test_siblings_are_rollouts_of_their_own(self):
        self.assertNotEqual(self.row()["_ng_rollout_id"], self.row()["_ng_rollout_id"])

    def test_versions_are_verls_numbers_or_what_was_asked_for(self):
        both = {"min_global_steps": 7, "max_global_steps": 9}
        self.assertEqual(versions_in({"policy_versions": ["9", "7", "8"]}, 3), both)
        for told in ([], ["step-7"], ["7", "step-8"], None):
            self.assertEqual(versions_in({"policy_versions": told}, 3), {"min_global_steps": 3, "max_global_steps": 3})
        self.assertEqual(versions_in({}, None), {})
        self.assertIsNone(version_of({}))


class VersionTest(unittest.TestCase):
    #: APART has the values of verl's rollout.yaml. In ALIKE, validation samples as training does.
    APART = Thing(temperature=1.0, top_p=1.0, top_k=-1, val_kwargs=Thing(temperature=0, top_p=1.0, top_k=-1))
    ALIKE = Thing(temperature=1.0, top_p=1.0, top_k=-1, val_kwargs=Thing(temperature=1.0, top_p=1.0, top_k=-1))

    def test_a_step_trains_with_the_weights_before_it_and_validates_with_its_own(self):
        self.assertEqual(version_of({"global_steps": 8}), 7)
        self.assertEqual(version_of({"global_steps": 8}, validates=True), 8)
        self.assertEqual(version_of({"global_steps": 1}), 0)

    def test_no_number_is_below_that_of_the_first_weights(self):
        # val_before_train sends step 0.
        for validates in (False, True):
            self.assertEqual(version_of({"global_steps": 0}, validates), 0)
            self.assertIsNone(version_of({"global_steps": -1}, validates))

    def test_validation_is_known_by_its_sampling(self):
        greedy, sampled = {"temperature": 0, "top_p": 1.0, "top_k": -1}, {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        self.assertTrue(is_validation({}, greedy, self.APART))
        self.assertFalse(is_validation({}, sampled, self.APART))
        # If the sampling differs, the split of the row is ignored, because a training file may be used for validation.
        self.assertFalse(is_validation({"extra_info": {"split": "val"}}, sampled, self.APART))

    def test_where_sampling_is_alike_the_split_tells_and_verls_own_word_wins(self):
        sampled = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        for split, validates in (("val", True), ("train", False)):
            row = {"extra_info": {"split": split}}
            self.assertEqual(is_validation(row, sampled, self.ALIKE), validates)
            self.assertEqual(is_validation({**row, "validate": not validates}, sampled, self.ALIKE), not validates)
        self.assertFalse(is_validation({}, sampled, self.ALIKE))

    def test_trainers_that_change_weights_in_the_middle_are_known(self):
        def v1(mode):
            return {"trainer": {"use_v1": True, "v1": {"trainer_mode": mode}}}

        self.assertEqual([is_asynchronous(v1(mode)) for mode in ("sync", "colocate_async", "separate_async")], [False, True, True])
        self.assertFalse(is_asynchronous({"trainer": {**v1("separate_async")["trainer"], "use_v1": False}}))
        self.assertTrue(is_asynchronous({"async_training": {"trigger_parameter_sync_step": 4}}))
        self.assertFalse(is_asynchronous({}))


class CreditTest(unittest.TestCase):
    def credit(self, answer, response_length=100, overlong="mask"):
        return credit_of(answer, sequence_of(answer, 10, response_length), overlong)

    def test_a_whole_sample_earns_its_reward(self):
        credit = self.credit(answered(0.0))
        self.assertEqual((credit.judged, credit.reward, credit.overlong), (True, 0.0, False))

    def test_the_parts_of_a_reward_come_with_it_and_with_no_other_sample(self):
        parts = {"score/tests": 0.25, "score/style": 0.5}
        self.assertEqual(self.credit(answered(0.75, **parts)).parts, {"tests": 0.25, "style": 0.5})
        self.assertEqual(self.credit(answered(0.75)).parts, {})
        self.assertEqual(self.credit(answered(None, **parts)).parts, {})

    def test_a_prefix_earns_nothing_by_default(self):
        for given in ((answered(), 3), (answered(limit="max_sequence_tokens"), 100)):
            credit = self.credit(*given)
            self.assertEqual((credit.judged, credit.reward, credit.overlong), (False, UNJUDGED, True))
            self.assertIn("overlong", credit.why)
            kept = self.credit(*given, overlong="keep")
            self.assertEqual((kept.judged, kept.reward, kept.overlong), (True, 1.0, True))

    def test_a_smaller_length_of_the_farms_operator_is_not_called_verls(self):
        credit = self.credit(answered(limit="max_sequence_tokens"), response_length=100_000)
        self.assertIn("a smaller one of the farm's operator", credit.why)
        self.assertEqual(self.credit(answered(), 3).why, "overlong: 1 turns cut")

    def test_other_limits_are_judged_as_the_farm_judges_them(self):
        for limit in ("context_limit", "endpoint", None):
            self.assertTrue(self.credit(answered(limit=limit)).judged)

    def test_what_has_no_reward_has_none_however_long(self):
        for answer in (answered(None), answered(0.0, instance_config={"mask_sample": True}), answered(0.0, _ng_failure_class="x")):
            for length in (3, 100):
                credit = self.credit(answer, length, "keep")
                self.assertEqual((credit.judged, credit.reward), (False, UNJUDGED))


if __name__ == "__main__":
    unittest.main()
