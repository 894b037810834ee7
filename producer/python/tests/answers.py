"""Answers of the gateway about rollouts, and a run that asks for them."""

import base64
from array import array

from swefarm import Farm

SECONDS = {"model": 3.0, "command": 2.0, "evaluation": 1.0}


def packed(typecode, *numbers):
    return base64.b64encode(array(typecode, numbers).tobytes()).decode()


def result(index=0, reward=1.0, instance="a", **more):
    known = {"rollout_id": f"r1.{instance}.{index}", "instance_id": instance, "rollout_index": index, "outcome": "judged", "reward": reward}
    ends = {"reward_row": "judged", "exit_status": "submitted", "failure": None, "seconds": SECONDS, "artifact": "redis:x"}
    return {**known, **ends, **more}


LOST = {"outcome": "failed", "artifact": None, "failure": {"stage": "agent", "class": "node_lost", "message": "n1 is gone"}}


def segment(**more):
    """Returns a segment with prompt ids 1 2 and response ids 3 4 (a turn), 5 (an observation), 6 (a turn)."""
    ids = {"prompt_ids": packed("i", 1, 2), "response_ids": packed("i", 3, 4, 5, 6), "log_probs": packed("f", -0.5, -0.25, -1.0)}
    turns = {"turns": [[0, 2, "stop", "v1"], [3, 4, "length", None]], "spans": [["v1", 0, 2]]}
    return {"line": "L1", "kind": "main", "weight": 1.0, **ids, **turns, **more}


def body(of=None, **more):
    return {"result": of or result(), "truncated": False, "segments": [segment()], "missing": None, **more}


def run_of(fake, patience_s=0.2, **options):
    return Farm(fake.url, "t", patience_s=patience_s).run("exp", model="m", policy_urls=["http://p/v1"], **options)
