"""The AgentLoop `swefarm`: the farm plays the whole rollout against the policy's own HTTP endpoint; verl gets its tokens."""

from __future__ import annotations

import logging
import time
from typing import Any, Mapping, Optional, Sequence as Many
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from swefarm_verl.baseline import UNJUDGED
from swefarm_verl.farm import Farm, in_thread
from swefarm_verl.session import plain
from swefarm_verl.trajectory import Sequence, is_masked, sequence_of

logger = logging.getLogger(__name__)

#: verl's name of what shapes an answer -> ours, in a row.
SAMPLING = {
    **{key: key for key in ("temperature", "top_p", "top_k", "min_p", "stop", "seed")},
    **{key: key for key in ("repetition_penalty", "presence_penalty", "frequency_penalty")},
    "max_tokens": "max_output_tokens",
}

#: A rollout waits its turn, works, and is graded.
ROLLOUT_S = 6 * 3600.0


class SwefarmLoop(AgentLoopBase):
    """
    ``policy_base_url``: one address or a list, with /v1; without it the farm asks the policy its own configuration names.
    ``agent_ref``: which entry of the gateway's callers plays. Nothing that happens here raises: verl gathers a whole batch
    without isolation, so a failure comes back as a sample that is not trained on.
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
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.farm = Farm({"farm_url": farm_url, "token_env": token_env})
        self.policy_base_url = policy_base_url
        self.model = model
        self.agent_ref = agent_ref
        self.rollout_s = rollout_s

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        began = time.monotonic()
        try:
            answer = await in_thread(
                lambda: self.farm.call("POST", "/run", self._row(sampling_params, kwargs), self.rollout_s)
            )
            limits = self.rollout_config
            sequence = sequence_of(answer, limits.prompt_length, limits.response_length)
            judged = not is_masked(answer) and answer.get("reward") is not None
            why = str(answer.get("_ng_failure_class") or answer.get("failure_reason") or "")
            reward = float(answer["reward"]) if judged else UNJUDGED
        except Exception as error:  # Whatever it is, it must not take the batch with it.
            logger.warning("swefarm: a rollout is left out: %s: %s", type(error).__name__, error)
            token = self._any_token()
            sequence = Sequence([token], [token], [0], [0.0], 0, 0)
            judged, reward, why = False, UNJUDGED, f"{type(error).__name__}: {error}"[:200]
        return self._output(sequence, judged, reward, why, time.monotonic() - began)

    def _row(self, sampling_params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        extra = plain(kwargs.get("extra_info"))
        tools = plain(extra.get("tools_kwargs"))
        instance = plain(plain(plain(tools.get("bash")).get("create_kwargs")).get("instance"))
        create: dict[str, Any] = {"input": [], "metadata": {}}
        for theirs in SAMPLING:
            if sampling_params.get(theirs) is not None:
                create[SAMPLING[theirs]] = sampling_params[theirs]
        if create.get("top_k") == 0:  # As verl writes "all tokens" for its own rollouts.
            create["top_k"] = -1
        if self.model:
            create["model"] = self.model
        policy = self.policy_base_url
        if policy is not None and not isinstance(policy, str):
            policy = list(policy)
        return {
            **instance,
            "responses_create_params": create,
            "agent_ref": {"type": "responses_api_agents", "name": self.agent_ref},
            # Siblings of a group have equal rows: each call is a rollout of its own, and stays it when it is repeated.
            "_ng_rollout_id": f"verl-{uuid4().hex}",
            **({"policy_base_url": policy} if policy else {}),
        }

    def _any_token(self) -> int:
        for token in (self.tokenizer.eos_token_id, self.tokenizer.pad_token_id):
            if token is not None:
                return int(token)
        return 0

    def _output(self, sequence: Sequence, judged: bool, reward: float, why: str, seconds: float) -> AgentLoopOutput:
        facts = {"judged": float(judged), "acc": reward if judged else 0.0, "why": why}
        return AgentLoopOutput(
            prompt_ids=sequence.prompt_ids,
            response_ids=sequence.response_ids,
            response_mask=sequence.mask if judged else [0] * len(sequence.mask),
            response_logprobs=sequence.log_probs,
            reward_score=reward,
            num_turns=sequence.turns,
            metrics=AgentLoopMetrics(generate_sequences=seconds),
            extra_fields={
                "judged": judged,
                "swefarm_cut_turns": sequence.cut_turns,
                "turn_scores": [],
                "tool_rewards": [],
                "reward_extra_info": facts,
            },
        )


