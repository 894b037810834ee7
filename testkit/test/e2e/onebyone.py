"""
Plays single rollouts for a test: onebyone.py ROW.json QUICK_URL SLOW_URL. Prints index, reward, version and the presence of tokens of two
concurrent rollouts, and the id of a third one that is cancelled while its agent works.
"""

import asyncio
import json
import sys
from pathlib import Path

from swefarm import Farm

row = json.loads(Path(sys.argv[1]).read_text())
_, _, quick, slow = sys.argv


async def main():
    farm = Farm()
    async with farm.run("one-by-one", model="scripted") as run:
        common = {"policy_urls": [quick], "version": "step-7"}
        samples = await asyncio.gather(*(run.rollout(row, group="g", index=index, **common) for index in range(2)))
        played = [[one.index, one.reward, one.turns[-1].version, one.sampled > 0] for one in samples]
        task = asyncio.ensure_future(run.rollout(row, policy_urls=[slow]))
        cancelled = ""
        while not cancelled:
            await asyncio.sleep(0.2)
            for found in farm.call("GET", "/v1/runs")["runs"]:
                groups = farm.call("GET", f"/v1/runs/{found['run_id']}")["groups"]
                if any(group["left"] > 0 for group in groups.values()):
                    cancelled = f"{found['run_id']}.{row['instance_id']}.0"
        while farm.call("GET", f"/v1/rollouts/{cancelled}")["status"] != "running":
            await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    print(json.dumps({"played": played, "cancelled": cancelled}))


asyncio.run(main())
