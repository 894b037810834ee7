"""Reads exported files with pandas, pyarrow, datasets, sb-cli and mini-swe-agent. usage: readers.py FOLDER; prints one JSON object."""
import asyncio
import glob
import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp()
os.environ["MSWEA_SILENT_STARTUP"] = "1"
folder = sys.argv[1]
at = lambda *names: os.path.join(folder, *names)
found = {}

import datasets
import pandas
import pyarrow.parquet

for name in ("sft", "ft_xml", "ft_tool", "verifier", "openhands"):
    table = datasets.load_dataset("json", data_files=at(f"{name}.jsonl"), split="train")
    found[name] = {"rows": len(table), "columns": sorted(table.column_names), "ids": table["instance_id"][:]}
    assert len(pandas.read_json(at(f"{name}.jsonl"), lines=True)) == len(table)
found["completions"] = len(pandas.read_json(at("output.with_completions.jsonl.gz"), lines=True)["raw_completions"][0]["messages"])

shards = glob.glob(at("tokens", "*.parquet"))
tokens = datasets.load_dataset("parquet", data_files=shards, split="train")
found["tokens"] = {
    "rows": len(tokens),
    "lengths": [[len(row[key]) for key in ("input_ids", "loss_mask", "log_probs")] for row in tokens],
    "trained": [sum(row["loss_mask"]) for row in tokens],
    "types": {field.name: str(field.type) for field in pyarrow.parquet.read_schema(shards[0])},
}
everything = pandas.read_parquet(at("everything"))
found["everything"] = {
    "rows": len(everything),
    "resolved": everything["resolved"].tolist(),
    "first": everything["messages"][0][2]["content"],
}

from sb_cli.submit import process_predictions

found["predictions"] = [len(process_predictions(at(name), [])) for name in ("preds.jsonl", "preds.json")]

from minisweagent.run.utilities.inspector import TrajectoryInspector


async def steps(path):
    app = TrajectoryInspector([pathlib.Path(path)])
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        return len(app.steps)


found["inspector"] = {
    form: [asyncio.run(steps(path)) for path in sorted(glob.glob(at(form, "*", "*.traj.json")))]
    for form in ("mini-1", "mini-1.1")
}
print(json.dumps(found))
