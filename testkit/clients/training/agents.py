"""Reads exported files with Harbor's validator and OpenHands' own events. usage: agents.py FOLDER; prints one JSON object."""
import contextlib
import json
import os
import pathlib
import sys
import tempfile

folder = pathlib.Path(sys.argv[1])
os.environ["HOME"] = tempfile.mkdtemp()
found = {}
with contextlib.redirect_stdout(sys.stderr):
    from harbor.models.trajectories import Trajectory
    from harbor.utils.trajectory_validator import TrajectoryValidator
    from openhands.events.serialization.event import event_from_dict, event_to_dict

    found["atif"] = {}
    for path in sorted((folder / "atif").glob("*.json")):
        validator = TrajectoryValidator()
        valid = validator.validate(path)
        steps = Trajectory.model_validate_json(path.read_text()).steps if valid else []
        found["atif"][path.name.split(".")[1]] = {
            "errors": validator.errors,
            "sources": [step.source for step in steps],
            "calls": [call.arguments for step in steps for call in step.tool_calls or []],
            "tokens": sum(len(step.metrics.completion_token_ids or []) for step in steps if step.metrics),
            "logprobs": sum(sum(step.metrics.logprobs or []) for step in steps if step.metrics),
        }
    rows = map(json.loads, (folder / "openhands.jsonl").read_text().splitlines())
    found["openhands"] = {
        row["instance_id"]: [(type(event).__name__, event_to_dict(event)) for event in map(event_from_dict, row["history"])]
        for row in rows
    }
print(json.dumps(found))
