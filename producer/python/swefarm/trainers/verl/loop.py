"""The AgentLoop `swefarm`: the farm runs the whole rollout against verl's servers and returns the tokens."""

from __future__ import annotations

import logging
import time
from typing import Any, Mapping, Optional, Union
from typing import Sequence as Many

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from swefarm.farm import Farm
from swefarm.sample import UNJUDGED, Failure, Sample, Segment
from swefarm.trainers.batch import ends_token, fitted, is_overlong, overlong_of, run_of, sampling_of, versions_of, why_unjudged
from swefarm.trainers.verl.row import (
    UNJUDGED_AS,
    drops_unjudged,
    instance_of,
    is_asynchronous,
    is_validation,
    line_problem,
    spilled,
    version_of,
)
from swefarm.trainers.verl.servers import NoServers, server_urls
from swefarm.trainers.verl.session import named_parts

logger = logging.getLogger(__name__)

#: Default time limit of a rollout in seconds, including the wait in the queue and the evaluation.
ROLLOUT_S = 6 * 3600.0
#: The run of each farm and settings, because verl makes a loop for each sample.
_runs: dict[str, Any] = {}


class SwefarmLoop(AgentLoopBase):
    """
    ``policy_base_url``: one URL or a list, with /v1; default: the servers in verl's load balancer at the start of a rollout, or the policy
    of the farm's configuration if verl has no load balancer. ``model``: name of the model at these servers; default: the model path of
    verl. ``overlong``: ``mask`` or ``keep`` a sample that is longer than verl's response_length. ``unjudged``: ``mask`` returns a sample
    without trained tokens to verl, ``drop`` returns none (only the V1 trainer accepts this), ``auto`` drops in the training of V1.
    ``rollout_s``: seconds after which the rollout is cancelled. ``score_parts``: names of parts of rewards that verl's metrics show
    (``score/NAME``). ``lines``: ``main``, or ``all`` trained lines of an agent that comes as a program; V1 and its estimator ``grpo`` then
    compute one advantage for each rollout. ``run``: arguments of :meth:`swefarm.Farm.run`. A failed rollout is an unjudged sample, and
    ``run`` raises only if the farm refuses the request.
    """

    def __init__(
        self,
        *args: Any,
        farm_url: Optional[str] = None,
        token_env: Optional[str] = None,
        policy_base_url: "Optional[str | Many[str]]" = None,
        model: Optional[str] = None,
        rollout_s: float = ROLLOUT_S,
        overlong: str = "mask",
        unjudged: str = "auto",
        score_parts: Many[str] = (),
        lines: str = "main",
        run: Optional[Mapping[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.overlong = overlong_of(overlong)
        if unjudged not in UNJUDGED_AS:
            raise ValueError(f"unjudged: expected one of {', '.join(UNJUDGED_AS)}, got {unjudged!r}; change it in the agent loop's YAML")
        problem = line_problem(lines, self.config)
        if problem is not None:
            raise ValueError(problem)
        self.lines, self.unjudged = lines, unjudged
        self.policy_base_url = [policy_base_url] if isinstance(policy_base_url, str) else policy_base_url
        self.model = model
        self.rollout_s = rollout_s
        self.score_parts = list(score_parts)
        farm = Farm(farm_url, token_env=token_env)
        key = f"{farm.url} {farm.token} {lines} {run}"
        if key not in _runs:
            _runs[key] = run_of(farm, "verl", lines=lines, **dict(run or {}))
        self._run = _runs[key]

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Union[AgentLoopOutput, list[AgentLoopOutput]]:
        began = time.monotonic()
        limits = self.rollout_config
        validates = is_validation(kwargs, sampling_params, limits)
        version = version_of(kwargs, validates)
        # In asynchronous training the weights change during a rollout, so the request names no version.
        whole = await self._played(sampling_params, kwargs, None if is_asynchronous(self.config) else version)
        sample = fitted(whole, limits.prompt_length, limits.response_length, self.overlong, ends_token(self.tokenizer))
        if not sample.judged:
            logger.warning("swefarm: %s is excluded: %s", sample.rollout_id or "a rollout", why_unjudged(sample))
            if drops_unjudged(self.unjudged, self.lines, self.config, validates):
                return []
        others = [spilled(one, limits.prompt_length, limits.response_length) for one in whole.segments]
        # verl computes the advantage of a rollout from its last output, so the main line is the last one.
        lines = [*(one for one in others if one is not None), sample]
        steps = versions_of(sample, version)
        facts = {
            **({"min_global_steps": steps[0], "max_global_steps": steps[1]} if steps else {}),
            **{"swefarm_rollout": sample.rollout_id, "swefarm_cut_turns": len(whole.turns) - len(sample.turns)},
        }
        seconds = time.monotonic() - began
        outputs = [self._output(line, sample, facts, len(lines), seconds if line is sample else 0.0) for line in lines]
        return outputs if self.lines == "all" else outputs[-1]

    async def _played(self, sampling_params: Mapping[str, Any], kwargs: Mapping[str, Any], version: Optional[int]) -> Sample:
        try:
            urls, model = self.policy_base_url, self.model
            if urls is None:
                urls = await server_urls(self.server_manager)
                # verl's servers use the model path as the model's name.
                if urls is not None and model is None:
                    model = str(self.config.actor_rollout_ref.model.path)
            return await self._run.rollout(
                instance_of(kwargs),
                group=str(kwargs.get("uid") or ""),
                index=int(kwargs.get("session_id") or 0),
                policy_urls=urls,
                model=model,
                version=None if version is None else str(version),
                sampling=sampling_of(sampling_params),
                max_response_tokens=int(self.rollout_config.response_length),
                timeout_s=self.rollout_s,
            )
        except NoServers as error:
            return Sample.failed(Failure("client", "no_servers", str(error)))

    def _output(self, line: Segment, sample: Sample, facts: Mapping[str, Any], count: int, seconds: float) -> AgentLoopOutput:
        score = UNJUDGED if sample.reward is None else sample.reward
        reward_facts = {
            "judged": float(sample.judged),
            "overlong": float(is_overlong(sample)),
            "acc": sample.reward or 0.0,
            "why": why_unjudged(sample),
            **named_parts(sample.parts if sample.judged else {}, self.score_parts),
        }
        return AgentLoopOutput(
            prompt_ids=list(line.prompt_ids),
            response_ids=list(line.response_ids),
            response_mask=list(line.mask),
            response_logprobs=list(line.log_probs),
            reward_score=score,
            num_turns=len(line.turns),
            metrics=AgentLoopMetrics(generate_sequences=seconds),
            extra_fields={
                "judged": sample.judged,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": reward_facts,
                # verl's loss ignores the weight, which is 1 / the number of samples of this rollout.
                "swefarm_line": line.line,
                "swefarm_line_kind": line.kind,
                "swefarm_line_count": count,
                "swefarm_line_weight": 1.0 / count,
                **facts,
            },
        )
