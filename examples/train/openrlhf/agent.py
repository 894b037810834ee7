"""The agent of --train.agent_func_path. Environment: ROWS (file of the farm's rows, training and validation) and HOST (this node)."""

import os

from swefarm.trainers import openrlhf

SETTINGS = {"agent": {"action": "tool", "step_limit": 100, "time_limit": 3600}}
MAX_PROMPT = 8192
AgentExecutor = openrlhf.executor(
    os.environ["ROWS"], host=os.environ["HOST"], run="swefarm-openrlhf", max_prompt=MAX_PROMPT, settings=SETTINGS
)
