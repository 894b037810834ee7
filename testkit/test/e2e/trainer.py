"""
A trainer for tests: trainer.py ROWS.json POLICY_URL OUT KEY LEASE_S [MOST]. Appends each sample to OUT as it consumes the group, and
continues after the last group in OUT. After MOST groups it stops to consume without leaving the loop, so that the test can kill it there.
"""

import json
import os
import sys
import time
from pathlib import Path

from swefarm import Farm

rows_file, policy_url, out, key, lease_s, *most = sys.argv[1:]
rows = json.loads(Path(rows_file).read_text())
consumed = [json.loads(line) for line in Path(out).read_text().splitlines()] if Path(out).exists() else []

with Farm().run("trainer", model="scripted", policy_urls=[policy_url], lease_s=float(lease_s)) as run:
    groups = run.groups(rows, n=2, key=key, after=consumed[-1]["cursor"] if consumed else "0")
    for number, group in enumerate(groups, 1):
        with open(out, "a") as file:
            for sample in group.samples:
                facts = {"rollout": sample.rollout_id, "reward": sample.reward, "sampled": sample.sampled, "failure": str(sample.failure)}
                file.write(json.dumps({**facts, "cursor": group.cursor, "end": group.end}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if most and number == int(most[0]):
            print("stopped", flush=True)
            time.sleep(3600)
