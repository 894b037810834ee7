"""The AgentLoop `swefarm`: the farm runs the whole rollout against verl's servers and returns the tokens."""

from __future__ import annotations

import logging
import time
from typing import Any, Mapping, Optional, Sequence as Many, Union

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.farm import ANSWER_S, Farm, in_thread
from swefarm_verl.row import (
    OVERLONG,
    Credit,
    credit_of,
    is_asynchronous,
    is_validation,
    line_problem,
    row_of,
    version_of,
    versions_in,
)
from swefarm_verl.servers import server_urls
from swefarm_verl.session import named_parts
from swefarm_verl.trajectory import Line, Sequence, other_lines, sequence_of

logger = logging.getLogger(__name__)

#: Default time limit of a rollout in seconds, including the wait in the queue and the evaluation.
ROLLOUT_S = 6 * 3600.0


class SwefarmLoop(AgentLoopBase):
    """
    ``policy_base_url``: one URL or a list, with /v1; default: the servers in verl's load balancer at the start of a rollout,
    or the policy of the farm's configuration if verl has no load balancer. ``model``: name of the model at these servers;
    default: the model path of verl. ``agent_ref``: name of the agent in the request. ``overlong``: ``mask`` or ``keep`` a
    sample that is longer than verl's response_length. ``rollout_s``: seconds after which the farm cancels a rollout.
    ``score_parts``: names of parts of rewards that verl's metrics show (``score/NAME``). ``lines``: ``main``, or ``all`` trained
    lines of an agent that comes as a program; verl's V1 trainer and its estimator ``grpo`` then compute one advantage for each
    rollout. ``run`` does not raise, because an exception would end the whole batch in verl's older trainer: a failed rollout
    becomes a sample that is not trained on or, with ``all``, no sample.
    """

    def __init__(
        self,
        *args: Any,
        farm_url: Optional[str] = None,
        token_env: Optional[str] = None,
        policy_base_url: "Optional[str | Many[str]]" = None,
        model: Optional[str] = None,
        agent_ref: str = "swe_farm",
        rollout_s: float = ROLLOUT_S,
        overlong: str = "mask",
        score_parts: Many[str] = (),
        lines: str = "main",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if overlong not in OVERLONG:
            raise ValueError(f"overlong: expected one of {', '.join(OVERLONG)}, got {overlong!r}; change it in the agent loop's YAML")
        problem = line_problem(lines, self.config)
        if problem is not None:
            raise ValueError(problem)
        self.lines = lines
        self.farm = Farm(farm_url, token_env=token_env)
        self.policy_base_url = [policy_base_url] if isinstance(policy_base_url, str) else policy_base_url
        self.model = model
        self.agent_ref = agent_ref
        self.rollout_s = rollout_s
        self.overlong = overlong
        self.score_parts = list(score_parts)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Union[AgentLoopOutput, list[AgentLoopOutput]]:
        began = time.monotonic()
        limits = self.rollout_config
        answer: Mapping[str, Any] = {}
        others: list[Line] = []
        version = version_of(kwargs)
        try:
            version = version_of(kwargs, is_validation(kwargs, sampling_params, limits))
            # In asynchronous training the weights change during a rollout, so the request names no version.
            row = await self._row(sampling_params, kwargs, None if is_asynchronous(self.config) else version)
            # The farm cancels the rollout after rollout_s, so the call must last longer.
            answer = await in_thread(lambda: self.farm.call("POST", "/run", row, self.rollout_s + ANSWER_S))
            sequence = sequence_of(answer, limits.prompt_length, limits.response_length)
            credit = credit_of(answer, sequence, self.overlong)
            others, left_out = other_lines(answer, limits.prompt_length, limits.response_length)
            for why in left_out:
                logger.warning("swefarm: %s: a line is left out: %s", answer.get("rollout_id"), why)
        except Exception as error:  # An error must not end the batch.
            logger.warning("swefarm: a rollout is left out: %s: %s", type(error).__name__, error)
            token = self._any_token()
            sequence = Sequence([token], [token], [0], [0.0], 0, 0)
            credit = Credit(False, UNJUDGED, False, f"{type(error).__name__}: {error}"[:200])
        if self.lines == "all" and not credit.judged:
            return []
        facts = {**versions_in(answer, version), "swefarm_rollout": str(answer.get("rollout_id") or "")}
        # verl computes the advantage of a rollout from its last output, so the main line is the last one.
        lines = [*others, Line("main", "main", sequence)]
        seconds = time.monotonic() - began
        outputs = [self._output(line, credit, facts, len(lines), seconds if line is lines[-1] else 0.0) for line in lines]
        return outputs if self.lines == "all" else outputs[-1]

    async def _row(
        self, sampling_params: Mapping[str, Any], kwargs: Mapping[str, Any], version: Optional[int]
    ) -> dict[str, Any]:
        urls, model = self.policy_base_url, self.model
        if urls is None:
            urls = await server_urls(self.server_manager)
            # verl's servers name the model by its path.
            if urls is not None and model is None:
                model = str(self.config.actor_rollout_ref.model.path)
        return row_of(
            kwargs,
            sampling_params,
            agent_ref=self.agent_ref,
            response_length=self.rollout_config.response_length,
            urls=urls,
            model=model,
            version=version,
            rollout_s=self.rollout_s,
            lines=self.lines,
        )

    def _any_token(self) -> int:
        tokens = (self.tokenizer.eos_token_id, self.tokenizer.pad_token_id)
        return next((int(token) for token in tokens if token is not None), 0)

    def _output(
        self, line: Line, credit: Credit, facts: Mapping[str, Any], count: int, seconds: float
    ) -> AgentLoopOutput:
        sequence = line.sequence
        reward_facts = {
            "judged": float(credit.judged),
            "overlong": float(credit.overlong),
            "acc": credit.reward if credit.judged else 0.0,
            "why": credit.why,
            **named_parts(credit.parts, self.score_parts),
        }
        return AgentLoopOutput(
            prompt_ids=sequence.prompt_ids,
            response_ids=sequence.response_ids,
            response_mask=sequence.mask if credit.judged else [0] * len(sequence.mask),
            response_logprobs=sequence.log_probs,
            reward_score=credit.reward,
            num_turns=sequence.turns,
            metrics=AgentLoopMetrics(generate_sequences=seconds),
            extra_fields={
                "judged": credit.judged,
                "swefarm_cut_turns": sequence.cut_turns,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": reward_facts,
                # The loss of verl does not read the weight: 1 / the number of this rollout's samples.
                "swefarm_line": line.id,
                "swefarm_line_kind": line.kind,
                "swefarm_line_count": count,
                "swefarm_line_weight": 1.0 / count,
                **facts,
            },
        )
