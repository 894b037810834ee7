"""
Tests swefarm_env with verifiers' own loaders, EnvServer and EnvClient over ZMQ. The requests equal the requests of prime-rl's orchestrator.
With a checkout of PrimeIntellect-ai/prime-rl, which is in no package index, prime-rl's own GRPO and masks read the traces. The test runs on
CPU without an engine.
usage: check_verifiers.py [CHECKOUT]
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import bench
import verifiers.v1 as vf
from bench import contract
from swefarm.trainers.batch import rows_in, run_of_process
from verifiers.v1.serve import EnvClient, EnvServer
from verifiers.v1.utils.loaders import load_taskset, resolve_env_config

FOLDER = Path(tempfile.mkdtemp(prefix="swefarm-verifiers-"))
ROWS = FOLDER / "rows.jsonl"
prime = None
if len(sys.argv) > 1:
    bench.stand_in("wandb")
    sys.path[:0] = [f"{sys.argv[1]}/src", f"{sys.argv[1]}/packages/prime-rl-configs/src"]
    from prime_rl.orchestrator import trajectories as prime
    from prime_rl.orchestrator.algo.grpo import GRPOAlgorithm


async def episodes(farm: Any, config: Any) -> list[Any]:
    """Sends every task N times at once. Returns the groups of the batch."""
    more = {"cache_salt": str(farm.version), "top_k": -1, "min_p": 0.0, "return_token_ids": True}
    sampling = vf.SamplingConfig(temperature=1.0, max_tokens=farm.max_response, extra_body=more)
    team = {"X-Team": "TEAM_OF_THE_TEST"}
    endpoint = vf.TrainClientConfig(base_url=f"http://{farm.address}/v1", api_key_var="NONE", headers_from_env=team)
    server = EnvServer(config, address="tcp://127.0.0.1:0")
    serving = asyncio.create_task(server.run())
    client = EnvClient(address=server.address)
    tasks = list(load_taskset(config.taskset))

    async def one(task: Any) -> Any:
        return await client.run(client=endpoint, model=farm.model, task_data=task.data.model_dump(mode="json"), sampling=sampling)

    try:
        await client.wait_for_server_startup(timeout=60)
        return [await asyncio.gather(*(one(task) for _ in range(contract.N))) for task in tasks]
    finally:
        await client.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def advantages(group: list[Any]) -> None:
    """Adds advantages to the traces of a group as prime-rl does. Uses prime-rl's own code if there is a checkout."""
    if prime is not None:
        owner = object.__new__(GRPOAlgorithm)
        owner.length_penalty = None
        asyncio.run(owner.score_group(group))
        return
    ok = [episode.traces[0] for episode in group if not episode.traces[0].has_error]
    for trace in ok:
        for node in trace.nodes:
            node.advantages = [trace.reward - sum(one.reward for one in ok) / len(ok)] * sum(node.mask)


def drive(farm: Any, name: str) -> list[contract.Trained]:
    ROWS.write_text("".join(f"{json.dumps(row)}\n" for row in farm.rows))
    rows_in.cache_clear()
    limits = {"max_prompt": farm.max_prompt, "max_response": farm.max_response, "settings": {"model": farm.model, **farm.options}}
    config = resolve_env_config({"taskset": {"id": "swefarm_env", "rows": str(ROWS)}, "run": name, **limits})
    run_of_process.cache_clear()  # A new process has an empty cache.
    with mock.patch.dict(os.environ, {"SWEFARM_GATEWAY_URL": farm.url, "TEAM_OF_THE_TEST": "a"}):
        groups = asyncio.run(episodes(farm, config))
    trained = []
    for group in groups:
        advantages(group)
        for episode in group:
            (trace,) = episode.traces
            if episode.ok != trace.ok or trace.ok == bool(trace.errors):
                raise SystemExit(f"broken: {farm.fault}: ok {episode.ok} {trace.ok}, errors {trace.errors}")
            if not trace.ok:
                continue
            played = farm.by_mark[next(node for node in trace.nodes if node.sampled).token_ids[0]]
            expected = (2, len(played.sampled), len(played.prompt) + len(played.tokens))
            if (trace.num_turns, trace.num_output_tokens, trace.num_total_tokens) != expected:
                raise SystemExit(f"broken: {trace.num_turns} turns, {trace.num_output_tokens} of {trace.num_total_tokens} tokens")
            # prime-rl's trace_to_samples reads an attribute that verifiers 0.4.0 removed, so this test reads prime-rl's masks directly.
            ((branch, mask),) = [(one, one.sampled_mask) for one in trace.branches] if prime is None else prime.iter_trainable_branches(trace)
            (advantage,) = {value for value, sampled in zip(branch.advantages, mask) if sampled}
            trained.append(contract.Trained(branch.token_ids, mask, branch.logprobs, advantage))
    for policy in farm.policies[-1:]:
        expected = ([f"http://{farm.address}/v1"], "4", {"cache_salt": "4"}, "a")
        if (policy["urls"], policy["version"], policy["extra_body"], policy["headers"].get("X-Team")) != expected:
            raise SystemExit(f"broken: {policy}")
    return trained


reader = "GRPO and masks of prime-rl" if prime is not None else "branches of its traces"
bench.run(f"verifiers: EnvServer, {reader}", drive, resumes=False, std=False)

if prime is not None:
    from prime_rl.configs.rl import RLConfig

    config = RLConfig.model_validate(tomllib.loads((bench.RECIPES / "primerl" / "grpo.toml").read_text()))
    (source,) = config.orchestrator.train.source
    lengths = {"prompt": source.env.max_prompt, "response": source.env.max_response}
    bench.recipe("prime-rl", {"groups": config.orchestrator.batch_size // source.group_size, "samples": source.group_size, **lengths})
    if sum(lengths.values()) != config.orchestrator.seq_len:
        raise SystemExit(f"broken: {lengths} of {config.orchestrator.seq_len} tokens")
    for one in (*config.orchestrator.train.source, *config.orchestrator.eval.source):
        run_of_process("verifiers", one.env.run, json.dumps(one.env.settings))
