"""
GRPO in plain PyTorch: a small model learns to fix two bugs from the verdicts of a farm.

    python grpo.py --dataset instances.jsonl --out curve.jsonl

uses the farm of SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN, or starts one. Writes a line for each step to --out. Exits with 1
when the farm violates a guarantee: a repeated sample, or tokens of another version or that the policy did not sample.
"""

import torch
from transformers import get_linear_schedule_with_warmup

import loop
import servers
import tiny

#: Optimizer steps on each batch. The first step has ratios of 1; later ratios are clipped to these distances below and above 1.
STEPS_A_BATCH = 4
CLIP = (0.2, 0.6)
#: Batches until the full learning rate, which then falls to 0. With a constant rate, a few failures in one batch can undo what was learned.
WARM_UP = 2


class Learner:
    """The trained model. Its weights are those that sampled the current batch."""

    def __init__(self, model, tokenizer, rate, batches):
        self.model, self.pad = model, tokenizer.pad_token_id
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, betas=(0.9, 0.95))
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, WARM_UP, batches)

    def learn(self, samples, advantages):
        """Trains on the judged samples. Returns the largest distance of an importance ratio from 1 before the first step. Raises Broken."""
        pairs = [(sample, advantage) for sample, advantage in zip(samples, advantages) if sample.judged]
        if not pairs:
            return 0.0
        judged = [sample for sample, _ in pairs]
        sequences = [[*sample.prompt_ids, *sample.response_ids] for sample in judged]
        weight = torch.tensor([advantage for _, advantage in pairs])[:, None]
        distance = None
        self.model.train()
        for _ in range(STEPS_A_BATCH):
            scores = tiny.log_probs(self.model, sequences, self.pad)
            old, mask = _of_the_sampler(judged, scores)
            ratio = torch.where(mask > 0, (scores - old).exp(), 1.0)
            if distance is None:
                row, place = divmod(int((ratio.detach() - 1).abs().argmax()), ratio.shape[1])
                distance = loop.require_ratio(judged[row], place + 1, float(ratio[row, place].detach()))
            if not weight.any():
                # A batch of equal rewards has no gradient. A step would only apply the momentum of earlier batches.
                break
            gain = torch.min(ratio * weight, ratio.clamp(1 - CLIP[0], 1 + CLIP[1]) * weight)
            loss = -(gain * mask).sum() / mask.sum()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        self.schedule.step()
        return distance


def _of_the_sampler(samples, scores):
    """Returns log-probabilities and mask of the samples in the shape of ``scores``, whose position i belongs to token i + 1."""
    old, mask = torch.zeros_like(scores), torch.zeros_like(scores)
    for row, sample in enumerate(samples):
        place = slice(len(sample.prompt_ids) - 1, len(sample.prompt_ids) - 1 + len(sample.response_ids))
        old[row, place] = torch.tensor(sample.log_probs)
        mask[row, place] = torch.tensor(sample.mask, dtype=torch.float)
    return old, mask


def main():
    parser = loop.parser(__doc__, 1e-3)
    parser.add_argument("--vllm", help="URL of a vLLM that serves --folder; default: the model of this process")
    parser.add_argument("--folder", help="folder of the model for --vllm")
    options = parser.parse_args()
    # On a machine with few cores, the sandboxes need the other cores.
    torch.set_num_threads(1)
    model, tokenizer = tiny.make(options.seed, options.folder)
    loss = tiny.learn_form(model, tokenizer, options.seed)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, loss on the form {loss:.3f}", flush=True)
    server = servers.Vllm(options.vllm, options.folder) if options.vllm else servers.InProcess(model, tokenizer)
    learner = Learner(model, tokenizer, options.rate, options.steps)
    loop.train_with(options, server, learner, loop.SUBMITTED)


if __name__ == "__main__":
    main()
