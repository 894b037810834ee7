"""
GRPO in plain PyTorch: a tiny model learns to fix two bugs by the verdicts of a farm.

    python grpo.py --dataset instances.jsonl --out curve.jsonl

uses the farm of SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN, or starts one beside it. Writes a line a step to --out. Exits with 1
when a promise of the farm is broken: a sample comes twice, or has tokens of another version or that the policy did not sample.
"""

import argparse
import json
import os
import random
import time
from contextlib import nullcontext
from dataclasses import replace

import torch
from swefarm import Farm, Sampling, judged_advantages

import servers
import tasks
import tiny

#: The log-probabilities are those of this distribution, so the loss must not change it (temperature, top_k).
SAMPLING = Sampling(temperature=1.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, max_tokens=32)
SETTINGS = {"agent": {"type": "mini", "action": "fenced", "step_limit": tasks.TURNS, "prompt_overrides": tasks.PROMPTS}}
#: Steps of the optimizer on each batch. The ratios of the first are 1, those of the second are clipped.
STEPS_A_BATCH = 2
CLIP = 0.2
#: Largest distance of an importance ratio from 1 in the first step after new weights. float32 on one machine: some 1e-6.
RATIO_TOLERANCE = 1e-4


class Broken(Exception):
    """A promise of the farm is broken."""


class Learner:
    """The trained model. Its weights are those that sampled the batch that it learns from."""

    def __init__(self, model, tokenizer, rate):
        self.model, self.pad = model, tokenizer.pad_token_id
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, betas=(0.9, 0.95))

    def learn(self, samples, advantages):
        """Trains on the judged samples. Returns the largest distance of an importance ratio from 1 before the first step. Raises Broken."""
        pairs = [(sample, advantage) for sample, advantage in zip(samples, advantages) if sample.judged]
        if not pairs:
            return 0.0
        sequences = [[*sample.prompt_ids, *sample.response_ids] for sample, _ in pairs]
        weight = torch.tensor([advantage for _, advantage in pairs])[:, None]
        old = mask = distance = None
        self.model.train()
        for _ in range(STEPS_A_BATCH):
            scores = tiny.log_probs(self.model, sequences, self.pad)
            if old is None:
                old, mask = _of_the_sampler([sample for sample, _ in pairs], scores)
                distance = _distance([sample for sample, _ in pairs], torch.where(mask > 0, (scores.detach() - old).exp(), 1.0))
            ratio = torch.where(mask > 0, (scores - old).exp(), 1.0)
            gain = torch.min(ratio * weight, ratio.clamp(1 - CLIP, 1 + CLIP) * weight)
            loss = -(gain * mask).sum() / mask.sum()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        return distance


def _of_the_sampler(samples, scores):
    """Returns log-probabilities and mask of the samples at the places of ``scores``, where place i is that of token i + 1."""
    old, mask = torch.zeros_like(scores), torch.zeros_like(scores)
    for row, sample in enumerate(samples):
        place = slice(len(sample.prompt_ids) - 1, len(sample.prompt_ids) - 1 + len(sample.response_ids))
        old[row, place] = torch.tensor(sample.log_probs)
        mask[row, place] = torch.tensor(sample.mask, dtype=torch.float)
    return old, mask


def _distance(samples, ratio):
    """Returns the largest distance of a ratio from 1. Raises Broken if it is over the tolerance."""
    distance = (ratio - 1).abs()
    largest = float(distance.max())
    if largest > RATIO_TOLERANCE:
        row, at = divmod(int(distance.argmax()), distance.shape[1])
        raise Broken(
            f"{samples[row].rollout_id}: the importance ratio of token {at + 1} is {float(ratio[row, at]):.6f} in the first step after new "
            f"weights, expected 1 within {RATIO_TOLERANCE:g}: the policy did not sample this token, or not with these weights"
        )
    return largest


def checked(samples, version, seen):
    """Returns the samples. Raises Broken for a sample that came before, or with tokens of another version."""
    for sample in samples:
        if sample.rollout_id in seen:
            raise Broken(f"{sample.rollout_id}: this sample came before")
        seen.add(sample.rollout_id)
        others = {span.version for span in sample.spans} - {version}
        if sample.judged and others:
            raise Broken(f"{sample.rollout_id}: tokens of {', '.join(sorted(others))}, expected {version} only")
    return samples


def spoiled(sample):
    """Returns the sample with another id at its first sampled token, as a trainer would get it that tokenises texts again."""
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
        advantages = judged_advantages(samples)
        if options.control:
            advantages = [draw.choice((-1.0, 1.0)) if sample.judged else 0.0 for sample in samples]
        if step == options.spoil:
            samples = [spoiled(sample) if sample is judged[0] else sample for sample in samples]
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


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True, help="rows with the two instances of tasks.py")
    parser.add_argument("--out", required=True, help="a line of JSON a step")
    parser.add_argument("--name", default="own", help="name of the run and of its policy")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--runtime", default="rootfs", help="of the farm that it starts")
    parser.add_argument("--vllm", help="URL of a vLLM that serves --folder; default: the model of this process")
    parser.add_argument("--folder", help="folder of the model for --vllm")
    parser.add_argument("--control", action="store_true", help="advantages by lot: the reward must not rise")
    parser.add_argument("--spoil", type=int, help="spoil a token id in this step: the trainer must notice")
    return parser.parse_args()


def main():
    options = parsed()
    # On few cores, the sandboxes need the others.
    torch.set_num_threads(1)
    with open(options.dataset, encoding="utf8") as lines:
        rows = [row for row in map(json.loads, lines) if row["instance_id"] in tasks.FIX]
    model, tokenizer = tiny.make(options.seed)
    loss = tiny.learn_form(model, tokenizer, options.seed)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, loss of the form {loss:.3f}", flush=True)
    server = servers.Vllm(options.vllm, options.folder) if options.vllm else servers.InProcess(model, tokenizer)
    learner = Learner(model, tokenizer, options.rate)
    with (
        open(options.out, "w", encoding="utf8") as out,
        nullcontext(Farm()) if os.environ.get("SWEFARM_GATEWAY_URL") else Farm.local(runtime=options.runtime) as farm,
        farm.run(
            options.name, model=servers.MODEL, policy_urls=[server.url], sampling=SAMPLING, kind="training", settings=SETTINGS
        ) as run,
    ):
        run.policy(version="step-0")
        for facts in train(run, server, learner, rows, options):
            print(json.dumps(facts), file=out, flush=True)
            print("step {step:3d}  reward {reward:.2f}  judged {judged}/{rollouts}  {rollout_s:5.1f} s".format(**facts), flush=True)


if __name__ == "__main__":
    main()
