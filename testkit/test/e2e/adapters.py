"""
Runs adapters against a real farm, with the contract's stand-ins for trainers: adapters.py ROWS.jsonl POLICY_URL SLOW_URL. Prints the
samples that a trainer receives in a step, in the same step after a restart, and in a step of slime that ends early.
"""

import asyncio
import json
import sys
import time
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "producer" / "python" / "tests"))
import drives as stand_ins  # noqa: E402

from swefarm import Farm  # noqa: E402
from swefarm.trainers import slime, trl  # noqa: E402

rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
policy_url, slow_url = sys.argv[2:]
prompts = [row["prompt"] for row in trl.prompts(rows) for _ in range(4)]


def step() -> dict:
    """Plays a step as a trainer that has just started."""
    run = Farm().run("adapters", model="scripted")
    trainer = stand_ins.trl_trainer()
    trainer.args.max_completion_length = 20_000
    return trl.rollout_func(run, rows=rows, policy_urls=[policy_url], model="scripted")(prompts, trainer)


first, again = step(), step()
rewards = trl.reward(**{key: first[key] for key in ("farm_reward", "farm_overlong")})
told = [[value for value, sampled in zip(*pair) if not sampled] for pair in zip(first["logprobs"], first["env_mask"])]
sampled = [sum(mask) for mask in first["env_mask"]]
judged = [value is not None for value in rewards]
print(
    json.dumps(
        {
            "rewards": sorted(-1 if value is None else value for value in rewards),
            "why": sorted(set(first["farm_why"])),
            "lengths": all(len(a) == len(b) == len(c) for a, b, c in zip(*(first[key] for key in ("completion_ids", "logprobs", "env_mask")))),
            "sampled": [tokens > 0 for tokens in sampled] == judged,
            "told": all(zeros and not any(zeros) for zeros, counts in zip(told, judged) if counts),
            "same": first == again,
            "rollouts": len(set(first["farm_rollout"])),
        }
    ),
    flush=True,
)

state = types.SimpleNamespace(aborted=False)
module = types.ModuleType("slime.rollout.sglang_rollout")
module.GenerateState = lambda args: state
sys.modules[module.__name__] = module
slime._runs["adapters"] = Farm().run("adapters", model="scripted")
args = types.SimpleNamespace(
    swefarm_run="adapters", swefarm_policy_urls=[slow_url], hf_checkpoint="scripted", rollout_max_response_len=20_000
)


async def ends_early() -> stand_ins.SlimeSample:
    sample = stand_ins.SlimeSample(0, 0, {"instance": json.dumps(rows[0])})
    playing = asyncio.ensure_future(slime.generate(args, sample, {"temperature": 1.0}))
    await asyncio.sleep(3)
    state.aborted = True
    began = time.monotonic()
    await playing
    sample.waited = time.monotonic() - began < 20
    return sample


sample = asyncio.run(ends_early())
print(json.dumps({"status": sample.status.value, "quick": sample.waited}), flush=True)
