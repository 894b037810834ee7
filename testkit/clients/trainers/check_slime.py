"""
swefarm.trainers.slime inside slime's own rollout of a group, its filter, and its conversion to train data. slime is in no package index:
usage: check_slime.py CHECKOUT (of THUDM/slime). SGLang and wandb are imported by slime and never called here, so stand-ins are enough.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import types
from pathlib import Path
from typing import Any, Iterator

import bench
import yaml
from bench import contract, drives

bench.stand_in("sglang", "sglang_router", "wandb")
sys.path.insert(0, sys.argv[1])
from slime.observability.rollout_data_utils import validate_rollout_id_annotated  # noqa: E402
from slime.ray.rollout import RolloutManager  # noqa: E402
from slime.rollout import sglang_rollout  # noqa: E402
from slime.rollout.filter_hub.base_types import call_dynamic_filter  # noqa: E402
from slime.utils import arguments  # noqa: E402
from slime.utils.misc import load_function  # noqa: E402
from slime.utils.types import Sample  # noqa: E402


#: Options of Megatron-LM, which is in no package index: those of slime's own scripts.
MEGATRON = {word for script in Path(sys.argv[1], "scripts").rglob("*.sh") for word in script.read_text().split() if word.startswith("--")}


class State:
    """Stands in for GenerateState, which loads a tokenizer."""

    aborted = False

    def __init__(self, args: Any) -> None:
        self.semaphore = asyncio.Semaphore(64)

    @contextlib.contextmanager
    def dp_rank_context(self) -> Iterator[int]:
        yield 0


sglang_rollout.GenerateState = State
manager = getattr(RolloutManager, "__ray_metadata__", types.SimpleNamespace(modified_class=RolloutManager)).modified_class


def drive(farm: Any, name: str) -> list[contract.Trained]:
    given = vars(drives.slime_args(farm, name))
    modes = dict.fromkeys(("partial_rollout", "mask_offpolicy_in_partial_rollout", "group_rm", "use_rollout_routing_replay"), False)
    estimator = {"advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True, "reward_key": None}
    sizes = {"n_samples_per_prompt": contract.N, "rollout_batch_size": 2, "rollout_top_p": 1.0}
    path = {"custom_generate_function_path": "swefarm.trainers.slime.generate"}
    args = types.SimpleNamespace(**given, **modes, **estimator, **sizes, **path, sglang_enable_deterministic_inference=False)
    groups = []
    for number, row in enumerate(farm.rows, farm.step * len(farm.rows)):
        indices = range(number * contract.N, (number + 1) * contract.N)
        group = [Sample(group_index=number, index=index, prompt="Fix it.", metadata={"instance": row}) for index in indices]
        groups.append(asyncio.run(sglang_rollout.generate_and_rm_group(args, group, {"max_new_tokens": farm.max_response, "temperature": 1.0})))
    validate_rollout_id_annotated(groups)
    keeps = [call_dynamic_filter(load_function("swefarm.trainers.slime.mixed"), args, group).keep for group in groups]
    samples = list(itertools.chain(*groups))
    for one in samples:
        one._validate_response_metadata_lengths()
    hook = load_function("swefarm.trainers.slime.post_process")
    owner = types.SimpleNamespace(args=args, custom_reward_post_process_func=hook, custom_convert_samples_to_train_data_func=None)
    owner._post_process_rewards = lambda given: manager._post_process_rewards(owner, given)
    data = manager._convert_samples_to_train_data(owner, samples)
    if keeps != [any(value for value in data["rewards"][at : at + contract.N]) for at in (0, contract.N)]:
        raise SystemExit(f"broken: {farm.fault}: the filter keeps {keeps}")
    return [
        contract.Trained(tokens[-length:], mask, log_probs, advantage, drives.steps(one.weight_versions))
        for one, tokens, length, mask, log_probs, advantage in zip(
            samples,
            *(data[key] for key in ("tokens", "response_lengths", "loss_masks", "rollout_log_probs", "rewards")),
        )
    ]


bench.run("slime: generate_and_rm_group, train data", drive)

parser = arguments.get_slime_extra_args_provider()(argparse.ArgumentParser(allow_abbrev=False))
args, others = parser.parse_known_args(bench.recipe_words("slime/run.sh", sys.argv[1], "model", "train.jsonl", "verified.jsonl")[1:])
if unknown := [word for word in others if word.startswith("--") and word not in MEGATRON]:
    raise SystemExit(f"broken: slime's recipe: {unknown} are options of neither slime nor its scripts for Megatron-LM")
for hook in (args.custom_generate_function_path, args.custom_reward_post_process_path, args.dynamic_sampling_filter_path):
    load_function(hook)
settings = yaml.safe_load(Path(args.custom_config_path).read_text())
sizes = {"groups": args.rollout_batch_size, "samples": args.n_samples_per_prompt}
bench.recipe("slime", {**sizes, "prompt": settings["swefarm_max_prompt"], "response": args.rollout_max_response_len})
