"""Reads exported files with swesmith, swebench and safetensors. usage: smith.py FOLDER; prints one JSON object."""
import contextlib
import json
import os
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
found = {}
with contextlib.redirect_stdout(sys.stderr):
    from safetensors.numpy import load_file
    from swebench.harness.utils import get_predictions_from_file
    from swesmith.train.traj_mgr.collect_trajs import main

    for style in ("xml", "tool", "ticks"):
        main(folder, folder / "swe-agent", folder / "reports", style, 1)
        lines = (folder / f"reports.{style}.jsonl").read_text().splitlines()
        found[style] = {row["instance_id"]: row for row in map(json.loads, lines)}
    found["predictions"] = len(get_predictions_from_file(str(folder / "preds.jsonl"), "x", "test"))
    tensors = load_file(next((folder / "safetensors").glob("*.safetensors")))
    found["tensors"] = {name: [str(tensor.dtype), list(tensor.shape)] for name, tensor in tensors.items()}
print(json.dumps(found))
