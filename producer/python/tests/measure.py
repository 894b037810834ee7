"""
Measures what the client adds to a step: PYTHONPATH=. python tests/measure.py [GROUPS SIZE TOKENS]. Reads GROUPS x SIZE rollouts of TOKENS
tokens (default 32 x 16 x 60,000, a third of them sampled in 60 turns) from another process, and prints seconds of CPU and memory.
"""

import json
import multiprocessing
import resource
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from swefarm import Farm
from answers import body, packed, result, segment


def serve(ready, groups, size, tokens):
    each = tokens // 60
    turns = [[at * each, at * each + each // 3, "stop", "step-1"] for at in range(60)]
    ids = {"prompt_ids": packed("i", *range(2000)), "response_ids": packed("i", *range(tokens - 2000)), "turns": turns[:-3]}
    sampled = len(ids["turns"]) * (each // 3)
    whole = segment(**ids, log_probs=packed("f", *([-0.5] * sampled)), spans=[["step-1", start, stop] for start, stop, *_ in turns[:-3]])
    sample = json.dumps(body(segments=[whole])).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            names = [f"i{at}" for at in range(groups)]
            self.send(json.dumps({"run_id": "r1", "instance_ids": names, "rollouts": groups * size, "alive": ["r1"]}).encode())

        def do_GET(self):
            if "/sample" in self.path:
                return self.send(sample)
            at = int(self.path.split("after=")[1].split("&")[0])
            ended = {"instance_id": f"i{at}", "end": "uniform", "results": [result(n, 1.0, f"i{at}") for n in range(size)], "unreadable": []}
            last = at >= groups
            self.send(json.dumps({"groups": [] if last else [ended], "last_id": str(at + 1), "done": last}).encode())

        def send(self, data):
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.put((server.server_port, len(sample)))
    server.serve_forever()


if __name__ == "__main__":
    groups, size, tokens = (int(word) for word in sys.argv[1:] or (32, 16, 60_000))
    ready = multiprocessing.Queue()
    process = multiprocessing.Process(target=serve, args=(ready, groups, size, tokens), daemon=True)
    process.start()
    port, wire = ready.get()
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    kept = list(Farm(f"http://127.0.0.1:{port}", "t").run("measure", lease_s=None).groups([f"i{at}" for at in range(groups)], n=size))
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    samples = [sample for group in kept for sample in group.samples]
    assert len(samples) == groups * size and all(sample.judged for sample in samples)
    print(f"{len(samples)} rollouts of {tokens} tokens: {wire / 1e3:.0f} KB each on the wire, {seconds:.1f} s, {cpu:.1f} s of CPU,")
    print(f"{(after.ru_maxrss - before.ru_maxrss) / 1e3:.0f} MB for all of them at once")
    process.terminate()
