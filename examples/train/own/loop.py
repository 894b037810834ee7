"""
A training loop on a farm, for any learner and any server of its policy. The loop needs only the client.

A learner has ``model`` and ``learn(samples, advantages)``, which returns the largest distance of an importance ratio from 1 before its
first step (:func:`require_ratio`). A server has ``url`` and ``refit(model, version)``.
"""

import argparse
import json
import os
import random
import time
from contextlib import nullcontext
from dataclasses import replace

from swefarm import Farm, Sampling, judged_advantages

import tasks

MODEL = "tiny"
#: The farm's log-probabilities belong to this distribution (temperature, top_k), so the loss must use it unchanged.
SAMPLING = Sampling(temperature=1.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, max_tokens=32)
SETTINGS = {"agent": {"type": "mini", "action": "fenced", "step_limit": tasks.TURNS, "prompt_overrides": tasks.PROMPTS}}
#: For models that can also lose the form of the answers: a rollout earns its reward only if it submits.
SUBMITTED = {**SETTINGS, "reward": {"overrides": {"on_limit": "zero"}}}
#: Largest accepted distance of an importance ratio from 1 in the first step after new weights. float32 on one machine: about 1e-6.
RATIO_TOLERANCE = 1e-4


class Broken(Exception):
    """The farm violated a guarantee."""


def require_ratio(sample, token, ratio):
    """Returns the distance of an importance ratio from 1 in the first step. ``token``: position in prompt and response. Raises Broken."""
    if not abs(ratio - 1) <= RATIO_TOLERANCE:
        raise Broken(
            f"{sample.rollout_id}: the importance ratio of token {token} is {ratio:.6f} in the first step after new weights, expected 1 "
            f"within {RATIO_TOLERANCE:g}: the policy did not sample this token, or not with these weights"
        )
    return abs(ratio - 1)


def checked(samples, version, seen):
    """Returns the samples. Raises Broken for a repeated sample, or for one with tokens of another version."""
    for sample in samples:
        if sample.rollout_id in seen:
            raise Broken(f"{sample.rollout_id}: this sample is repeated")
        seen.add(sample.rollout_id)
        others = {span.version for span in sample.spans} - {version}
        if sample.judged and others:
            raise Broken(f"{sample.rollout_id}: tokens of {', '.join(sorted(others))}, expected {version} only")
    return samples


def spoiled(sample):
    """Returns the sample with another id at its first sampled token, as a trainer that tokenises texts again would get it."""
    ids, at = list(sample.response_ids), sample.turns[0].start
    ids[at] = ids[at] + 1
    return replace(sample, response_ids=ids)


def train(run, server, learner, rows, options):
    """Yields the facts of each step."""
    seen, draw = set(), random.Random(options.seed)
    for step in range(options.steps):
        version, started = f"step-{step}", time.monotonic()
        with run.update(version):
            server.refit(learner.model, version)
        groups = run.groups(rows, n=options.group_size, key=version)
        samples = checked([sample for group in groups for sample in group.samples], version, seen)
        judged = [sample for sample in samples if sample.judged]
        played = time.monotonic()
        if options.control:
            samples = [replace(sample, reward=draw.choice((0.0, 1.0))) if sample.judged else sample for sample in samples]
        advantages = judged_advantages(samples)
        if step == options.spoil:
            samples = [spoiled(sample) if sample.rollout_id == judged[0].rollout_id else sample for sample in samples]
        distance = learner.learn(samples, advantages)
        yield {
            "step": step,
            "version": version,
            "reward": sum(sample.reward for sample in judged) / max(1, len(judged)),
            "judged": len(judged),
            "rollouts": len(samples),
            "sampled_tokens": sum(sample.sampled for sample in judged),
            "ratio_distance": distance,
            "rollout_s": round(played - started, 3),
            "train_s": round(time.monotonic() - played, 3),
        }


def train_with(options, server, learner, settings=SETTINGS):
    """Trains on the farm of SWEFARM_GATEWAY_URL, or starts a farm. Writes and prints a line for each step."""
    with (
        open(options.out, "w", encoding="utf8") as out,
        farm_of(options) as farm,
        farm.run(options.name, model=MODEL, policy_urls=[server.url], sampling=SAMPLING, kind="training", settings=settings) as run,
    ):
        run.policy(version="step-0")
        for facts in train(run, server, learner, rows_of(options), options):
            print(json.dumps(facts), file=out, flush=True)
            print("step {step:3d}  reward {reward:.2f}  judged {judged}/{rollouts}  {rollout_s:5.1f} s".format(**facts), flush=True)


def farm_of(options):
    """Returns a context manager with the farm."""
    return nullcontext(Farm()) if os.environ.get("SWEFARM_GATEWAY_URL") else Farm.local(runtime=options.runtime)


def rows_of(options):
    """Returns the rows of the two instances. Their images contain the installed packages, from the edited tree."""
    with open(options.dataset, encoding="utf8") as lines:
        return [{**row, "install": "true"} for row in map(json.loads, lines) if row["instance_id"] in tasks.FIX]


def parser(doc, rate):
    """Returns the parser of the command line. ``rate``: default of --rate."""
    options = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dataset", required=True, help="rows with the two instances of tasks.py")
    options.add_argument("--out", required=True, help="file for one JSON line per step")
    options.add_argument("--name", default="own", help="name of the run and of its policy; each training needs its own")
    options.add_argument("--steps", type=int, default=24)
    options.add_argument("--group-size", type=int, default=8)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--rate", type=float, default=rate)
    options.add_argument("--runtime", default="rootfs", help="runtime of the farm that the trainer starts")
    options.add_argument("--control", action="store_true", help="train on random rewards: the reward must not rise")
    options.add_argument("--spoil", type=int, help="change a token id in this step: the trainer must stop")
    return options
