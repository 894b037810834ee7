import asyncio
import contextlib
import unittest

from answers import run_of
from fakefarm import FakeFarm
from swefarm import Farm


class PolicyTest(unittest.TestCase):
    def script(self, method, path, asked):
        return 200, {**(asked or {}), "name": "exp"}

    def test_an_update_stops_the_policy_and_names_the_new_weights(self):
        with FakeFarm(self.script) as fake:
            run = run_of(fake)
            self.assertEqual(run.settings()["policy"]["urls"], ["http://p/v1"])
            run.policy(["http://q/v1"], version="step-0")
            with run.update("step-1"):
                self.assertEqual(fake.asked[-1], ("PUT", "/v1/policies/exp", {"state": "updating", "endpoints": ["http://q/v1"]}))

            async def drive():
                async with run.update("step-2", urls=["http://r/v1"], model="m-v2"):
                    pass

            asyncio.run(drive())
        # An earlier process may have left another model in the record.
        first = {"state": "serving", "endpoints": ["http://q/v1"], "version": "step-0", "model": "m"}
        last = {"state": "serving", "endpoints": ["http://r/v1"], "version": "step-2", "model": "m-v2"}
        self.assertEqual((fake.asked[0][2], fake.asked[-1][2], run.version), (first, last, "step-2"))
        # Rollouts follow the policy's record, so that a resumed run may have other addresses.
        self.assertEqual((run.settings()["policy"]["name"], "urls" in run.settings()["policy"]), ("exp", False))

    def test_the_first_model_of_the_policy_is_that_of_the_settings(self):
        with FakeFarm(self.script) as fake:
            run = Farm(fake.url).run("exp")
            run.policy(["http://q/v1"], model="lora-v0", version="0")
            with run.update("1", model="lora-v1"):
                pass
            run.policy(["http://r/v1"])
            self.assertEqual([asked.get("model") for _, _, asked in fake.asked], ["lora-v0", None, "lora-v1", "lora-v1"])
        self.assertEqual((run.settings()["policy"]["name"], run.settings()["policy"]["model"]), ("exp", "lora-v0"))

    def test_after_a_failed_update_the_policy_stays_stopped(self):
        with FakeFarm(self.script) as fake:
            run = run_of(fake)
            with self.assertLogs("swefarm.run", "WARNING"), contextlib.suppress(ZeroDivisionError), run.update("step-1"):
                raise ZeroDivisionError
            self.assertEqual([asked["state"] for _, _, asked in fake.asked], ["updating"])


if __name__ == "__main__":
    unittest.main()
