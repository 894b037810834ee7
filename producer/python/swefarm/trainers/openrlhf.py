"""
OpenRLHF's agent over a farm. The file of ``--train.agent_func_path`` has two lines: ``from swefarm.trainers import openrlhf`` and
``AgentExecutor = openrlhf.executor(rows="rows.jsonl")``. See docs/trainers.md. The sources of the rules are utils/agent.py,
trainer/ray/vllm_engine.py and trainer/ppo_utils of OpenRLHF 0.11.2.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Callable, Optional

from ..run import Run
from ..sample import Sample
from ..shim import PolicyShim
from .batch import SAMPLING, ends_token, fitted, is_overlong, overlong_of, row_in, rows_in, run_of_process, sampling_of

#: Keys of the farm's requests that vLLM's SamplingParams has too.
PASSED = (
    *(*SAMPLING, "min_tokens", "stop_token_ids", "ignore_eos"),
    *("include_stop_str_in_output", "skip_special_tokens", "spaces_between_special_tokens"),
)


def executor(
    rows: Optional[str] = None,
    *,
    host: str = "127.0.0.1",
    run: Optional[str] = None,
    max_prompt: Optional[int] = None,
    overlong: str = "mask",
    **settings: Any,
) -> Any:
    """
    Returns the class ``AgentExecutor``. The column of labels has the ``instance_id``. ``rows``: file of dataset rows, one JSON object per
    line; default: the gateway's dataset. ``host``: address of this node at which the farm's workers reach the policy. ``run``: name of the
    run; default: a name unique to this process. ``overlong``: ``mask`` or ``keep``. ``settings``: those of :meth:`swefarm.Farm.run`.
    """
    overlong_of(overlong)
    from openrlhf.utils.agent import AgentExecutorBase  # type: ignore[import-not-found]

    class AgentExecutor(AgentExecutorBase):  # type: ignore[misc]
        def __init__(self) -> None:
            self.run = run_of_process("openrlhf", run, json.dumps(settings))
            self.rows = rows_in(rows) if rows else {}
            self.shim: Optional[PolicyShim] = None
            self.groups: "dict[tuple[int, str, str], _Group]" = {}

        async def execute(
            self, prompt: str, label: str, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any, images: Any = None
        ) -> dict[str, Any]:
            """Returns a sample. OpenRLHF calls this method for all samples of a prompt at once, with the same ``sampling_params``."""
            row = row_in({"instance_id": label}, self.rows)
            if self.shim is None:
                loop = asyncio.get_running_loop()
                self.shim = PolicyShim(_sampler(llm_engine, sampling_params), hf_tokenizer, host=host, max_model_len=max_length, loop=loop)
            # Instances may have equal prompts, so the label is a part of the key.
            key = (id(sampling_params), prompt, label)
            group = self.groups.setdefault(key, _Group())
            index, group.size = group.size, group.size + 1
            await asyncio.sleep(0)  # The event loop has already scheduled the other samples of the prompt, so they join the group.
            if group.played is None:
                del self.groups[key]
                group.played = asyncio.ensure_future(group.play(self.run, row, self.shim.url, sampling_params, max_length))
            samples = [
                fitted(one, max_prompt or max_length - 1, max(1, max_length - len(one.prompt_ids)), overlong, ends_token(hf_tokenizer))
                for one in await group.played
            ]
            return {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None, **_response(samples, index, sampling_params)}

    return AgentExecutor


class _Group:
    """The samples of one prompt. OpenRLHF computes the baseline over this group."""

    def __init__(self) -> None:
        self.size = 0
        self.played: "Optional[asyncio.Future[list[Sample]]]" = None

    async def play(self, run: Run, row: Any, url: str, sampling_params: Any, max_length: int) -> list[Sample]:
        asked = sampling_of({name: getattr(sampling_params, name, None) for name in SAMPLING})
        own = {"policy_urls": [url], "model": "policy", "sampling": asked, "max_response_tokens": max_length}
        return list(await asyncio.gather(*(run.rollout(row, index=at, **own) for at in range(self.size))))


def _response(samples: "list[Sample]", index: int, sampling_params: Any) -> dict[str, Any]:
    """
    Returns OpenRLHF's fields. An unjudged sample has no action. Its reward is the mean of the judged rewards, so the sample does not change
    the baseline.
    """
    sample, start = samples[index], len(samples[index].prompt_ids)
    judged = [one.reward for one in samples if one.reward is not None]
    reward = sample.reward if sample.reward is not None else sum(judged) / len(judged) if judged else 0.0
    return {
        "reward": float(reward),
        "scores": float(reward),
        "observation_tokens": [*sample.prompt_ids, *sample.response_ids],
        "action_ranges": [(start + turn.start, start + turn.stop) for turn in sample.turns] if sample.judged else [],
        "rollout_log_probs": [0.0] * start + list(sample.log_probs) if sampling_params.logprobs is not None else None,
        "truncated": is_overlong(sample),
        "extra_logs": {"judged": float(sample.judged), "overlong": float(is_overlong(sample)), "turns": float(len(sample.turns))},
    }


def _sampler(llm_engine: Any, sampling_params: Any) -> Callable[[list[int], dict[str, Any]], Any]:
    async def generate(ids: list[int], params: dict[str, Any]) -> dict[str, Any]:
        known = {name: params[name] for name in PASSED if params.get(name) is not None}
        # With logprobs=0, vLLM returns only the log-probability of the sampled token.
        output = (await llm_engine.generate(ids, type(sampling_params)(**known, logprobs=0))).outputs[0]
        tokens = list(output.token_ids)
        log_probs = [given[token].logprob for token, given in zip(tokens, output.logprobs)]
        return {"token_ids": tokens, "log_probs": log_probs, "finish_reason": output.finish_reason}

    return generate
