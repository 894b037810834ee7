"""Reads a job of `swefarm export --format harbor` with Harbor's own classes and the HTTP API of its viewer.

usage: readjob.py JOB; prints one JSON object. Fails if a class of Harbor refuses a file.
"""
import json
import os
import pathlib
import sys
import tempfile

os.environ.update(HOME=tempfile.mkdtemp(), HARBOR_TELEMETRY="0")
from fastapi.testclient import TestClient
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.artifact_manifest import ArtifactManifestEntry
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.utils.pass_at_k import compute_pass_at_k_by_evals
from harbor.utils.trajectory_validator import TrajectoryValidator
from harbor.viewer.server import create_app

job = pathlib.Path(sys.argv[1])
JobConfig.model_validate_json((job / "config.json").read_text())
result = JobResult.model_validate_json((job / "result.json").read_text())
trials = []
trajectories = 0
for folder in sorted(path for path in job.iterdir() if path.is_dir()):
    trial = TrialResult.model_validate_json((folder / "result.json").read_text())
    assert TrialConfig.model_validate_json((folder / "config.json").read_text()) == trial.config
    assert (folder.name, folder.as_uri()) == (trial.trial_name, trial.trial_uri)
    for entry in json.loads((folder / "artifacts/manifest.json").read_text()):
        assert (folder / ArtifactManifestEntry.model_validate(entry).destination).exists()
    trajectory = folder / "agent/trajectory.json"
    if trajectory.exists():
        validator = TrajectoryValidator()
        assert validator.validate(trajectory), validator.errors
        trajectories += 1
    trials.append(trial)

counted = JobStats.from_trial_results(trials, n_total_trials=len(trials))
for name, passed in compute_pass_at_k_by_evals(trials).items():
    counted.evals[name].pass_at_k = passed


def comparable(stats):
    """Returns the statistics without metrics, which Harbor computes elsewhere, and with sorted lists of names."""
    found = stats.model_dump(mode="json")
    for one in found["evals"].values():
        one["metrics"] = []
        one["reward_stats"] = {
            key: {float(value): sorted(names) for value, names in values.items()} for key, values in one["reward_stats"].items()
        }
        one["exception_stats"] = {key: sorted(names) for key, names in one["exception_stats"].items()}
        one["pass_at_k"] = {k: round(value, 9) for k, value in one["pass_at_k"].items()}
    return found


viewer = TestClient(create_app(job.parent, mode="jobs"))


def get(path):
    answer = viewer.get(path)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:500])
    return answer.json()


base = f"/api/jobs/{job.name}"
shown = []
for trial in trials:
    path = f"{base}/trials/{trial.trial_name}"
    get(path)
    steps = (get(f"{path}/trajectory") or {}).get("steps", [])
    shown.append([len(steps), len((get(f"{path}/verifier-output") or {}).get("stdout") or "")])
    get(f"{path}/artifacts")
print(
    json.dumps(
        {
            "trials": len(trials),
            "trajectories": trajectories,
            "valid": sum(trial.reward_valid or (trial.verifier_result is not None and trial.exception_info is None) for trial in trials),
            "causes": sorted(trial.failure_cause for trial in trials if trial.failure_cause),
            "counts": "equal" if comparable(counted) == comparable(result.stats) else [comparable(counted), comparable(result.stats)],
            "jobs": [one["name"] for one in get("/api/jobs")["items"]],
            "tasks": len(get(f"{base}/tasks")["items"]),
            "shown": shown,
        }
    )
)
