"""
The advantage estimator `grpo_judged`: verl's grpo over the judged samples alone. Name this module in VERL_USE_EXTERNAL_MODULES, and set
algorithm.adv_estimator=grpo_judged.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from verl.trainer.ppo.core_algos import register_adv_est

from swefarm.trainers.baseline import group_advantages, is_judged


@register_adv_est("grpo_judged")
def compute_grpo_judged_advantage(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any,
    epsilon: float = 1e-6,
    config: Optional[Any] = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the advantages and the returns, both of shape (batch, response length)."""
    by_deviation = True if config is None else bool(config.get("norm_adv_by_std_in_grpo", True))
    with torch.no_grad():
        scores = token_level_rewards.sum(dim=-1).tolist()
        trained = response_mask.sum(dim=-1).tolist()
        judged = [is_judged(score, int(tokens)) for score, tokens in zip(scores, trained)]
        values = group_advantages(scores, judged, list(index), epsilon, by_deviation)
        column = torch.tensor(values, dtype=token_level_rewards.dtype, device=token_level_rewards.device)
        advantages = column.unsqueeze(-1) * response_mask
    return advantages, advantages
