"""
Plays one step through the Python client: step.py GROUPS SIZE. Prints JSON: seconds of the step until the last result, seconds from the last
result of a group to the group in this process (median, and of the last group), own seconds of CPU, and memory in MB of all samples together.
"""

import json
import resource
import statistics
import sys
import time

from swefarm import Farm

groups, size = (int(word) for word in sys.argv[1:])
rows = [f"bench__row-{at}" for at in range(groups)]
run = Farm().run("client", progress=False)
before, began = resource.getrusage(resource.RUSAGE_SELF), time.time()
consumed = [(group, time.time()) for group in run.groups(rows, n=size)]
after = resource.getrusage(resource.RUSAGE_SELF)
samples = [sample for group, _ in consumed for sample in group.samples]
assert len(samples) == groups * size and all(sample.judged and sample.sampled for sample in samples)
ended = [max(sample.result["finished_at"] for sample in group.samples) / 1000 for group, _ in consumed]
late = [at - end for end, (_, at) in zip(ended, consumed)]
facts = {
    "rollouts": len(samples),
    "tokens": int(statistics.median(len(sample.prompt_ids) + len(sample.response_ids) for sample in samples)),
    "step_seconds": max(ended) - began,
    "group_late_seconds": statistics.median(late),
    "last_late_seconds": consumed[-1][1] - max(ended),
    "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "memory_mb": (after.ru_maxrss - before.ru_maxrss) * 1024 / 1e6,
}
print(json.dumps({name: round(value, 3) for name, value in facts.items()}))
