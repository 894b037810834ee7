/** Programs of datasets that read outcomes, on real runtimes: their output is read, and hostile ones affect only their own rollout. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createRemovals } from '@swefarm/sandbox';
import { FARM, NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import { loadConfig, type ProgramSource } from '@swefarm/shared';
import { minimalImage } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, describe, expect, test } from 'vitest';
import { PROGRAM_LIMITS, runProgram } from '../../src/evaluation/program.ts';
import { parserImageFindings } from '../../src/node/doctor.ts';
import { useRuntime } from './evaluator.ts';

const OUTPUT = '/outcomes.json';
const GOOD = `import json; json.dump({"tests/a.py::one": "pass"}, open("${OUTPUT}", "w"))`;

const python = (text: string, changes: Partial<ProgramSource> = {}): ProgramSource => ({
  from: 'program',
  files: { '/program/main.py': text },
  argv: ['python3', '/program/main.py'],
  output: OUTPUT,
  form: 'map',
  image: 'tools',
  timeout: 60,
  ...changes,
});

describe.each(['docker', 'rootfs'] as const)('on %s', (name) => {
  const at = useRuntime(name);
  const removals = createRemovals();
  // Hooks run in reverse order, so the removals end before the runtime closes.
  afterAll(() => removals.finished());

  const run = (source: ProgramSource, log = 'a log', files: Record<string, string> = {}) => {
    const { runtime, image } = at;
    const given = spec(image, { role: 'evaluation', limits: PROGRAM_LIMITS, workdir: '/' });
    const startProgram = () => runtime.start(given, NEVER);
    const deps = { startProgram, removals, runtime, signal: NEVER };
    return runProgram(source, { log: Buffer.from(log), files }, deps);
  };
  const left = async () => (await at.runtime.listOwned()).filter(({ owner }) => owner.farm === FARM);

  test('a program gets its files, the log and the files of the tests, and its output is read', async () => {
    const text = `import json, sys
read = lambda path: open(path).read()
json.dump({read("/inputs/log"): read("/inputs/stdout.log"), sys.argv[1]: read("/program/more.txt")}, open("${OUTPUT}", "w"))`;
    const source = python(text, {
      files: { '/program/main.py': text, '/program/more.txt': 'more' },
      argv: ['python3', '/program/main.py', 'a b'],
    });
    const inputs = { '/workspace/stdout.log': 'of the tests', '/other/log': 'not the log' };
    const { output } = (await run(source, 'the log', inputs)) as { output: string };
    expect(JSON.parse(output)).toEqual({ 'the log': 'of the tests', 'a b': 'more' });
  });

  test('without an output file, stdout is read and stderr is not', async () => {
    const { output: _none, ...source } = python('import sys; print("{}"); print("hm", file=sys.stderr)');
    expect(await run(source)).toEqual({ output: '{}\n' });
    const many = 'import sys\nfor _ in range(1 << 8): sys.stdout.write("x" * (1 << 20))';
    const { output: _no, ...endless } = python(many);
    expect(await run(endless)).toEqual({ failed: expect.stringMatching(/printed more than 16 MiB/) });
  });

  /** Each hostile program, and the reason why there are no outcomes. */
  const HOSTILE: [what: string, text: string, failed: RegExp][] = [
    [
      'exits without zero',
      'raise ValueError("cannot read this")',
      /exit code 1: ValueError: cannot read this/,
    ],
    ['leaves nothing', 'pass', /left no regular file/],
    [
      'removes its output',
      `open("${OUTPUT}", "w").write("{}"); import os; os.remove("${OUTPUT}")`,
      /no regular file/,
    ],
    ['leaves a link', `import os; os.symlink("/etc/passwd", "${OUTPUT}")`, /no regular file/],
    ['leaves a pipe', `import os; os.mkfifo("${OUTPUT}")`, /no regular file/],
    ['leaves a folder', `import os; os.mkdir("${OUTPUT}")`, /no regular file/],
    ['writes 100 MB of outcomes', `open("${OUTPUT}", "w").truncate(100 << 20)`, /is larger than 16 MiB/],
    [
      'writes 1 GB into one file',
      'f = open("/big", "wb")\nfor _ in range(1024): f.write(b"x" * (1 << 20))',
      /exit code|wrote more than|a signal/,
    ],
    [
      'writes 1 GB into many files',
      `import time
for n in range(64):
  open(f"/big{n}", "wb").write(b"x" * (16 << 20))
  time.sleep(0.1)`,
      /wrote more than 256 MiB/,
    ],
    [
      'eats memory',
      'x = []\nwhile True: x.append(bytearray(16 << 20))',
      /limit of 1024 MiB|exit code 137|MemoryError/,
    ],
    ['kills what it can', 'import os\nos.kill(-1, 9)\nraise SystemExit(3)', /ended with/],
  ];
  test.concurrent.each(HOSTILE)(
    'a program that %s has no outcomes, with a reason',
    async (_what, text, failed) => {
      expect(await run(python(text))).toEqual({ failed: expect.stringMatching(failed) });
    },
  );

  test('programs that loop or fork for ever delay no others and leave nothing behind', async () => {
    const loops = run(python('while True: pass', { timeout: 30 }));
    const forking = `import os, time
while True:
  try: os.fork()
  except OSError: time.sleep(0.01)`;
    const forks = run(python(forking, { timeout: 30 }));
    const hostile = Promise.all([loops, forks]).then((ended) => ({ ended, at: performance.now() }));
    for (let round = 0; round < 3; round++) expect(await run(python(GOOD))).toHaveProperty('output');
    const goodAt = performance.now();
    const { ended, at } = await hostile;
    expect(goodAt).toBeLessThan(at);
    expect(ended[0]).toEqual({ failed: 'it did not end in 30 s' });
    expect(ended[1]).toEqual({
      failed: expect.stringMatching(/did not end in 30 s|limit of|broke its container|exit code/),
    });
    await removals.finished();
    expect(await left()).toEqual([]);
  });

  test('a process that a program leaves behind changes nothing', async () => {
    const text = `import os, time
open("${OUTPUT}", "w").write('{"a": "pass"}')
if os.fork() == 0:
  os.setsid()
  while True:
    open("/next", "w").write('{"a": "late"}')
    os.rename("/next", "${OUTPUT}")`;
    // The time at which the process is killed decides which of the two whole outputs is read.
    const { output } = (await run(python(text))) as { output: string };
    expect(['pass', 'late']).toContain(JSON.parse(output).a);
    await removals.finished();
    expect(await left()).toEqual([]);
  });

  test('a program has no network, not even to the host of the container', async () => {
    const server = createServer((_request, response) => response.end('reached')).listen(0, '0.0.0.0');
    try {
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const hosts = Object.values(networkInterfaces()).flatMap((all) =>
        (all ?? []).map(({ address }) => address),
      );
      const text = `import json, socket
found = {}
for host in ${JSON.stringify([...hosts.filter((host) => !host.includes(':')), '127.0.0.1'])}:
  try: socket.create_connection((host, ${port}), 1).close(); found[host] = "reached"
  except OSError: pass
json.dump(found, open("${OUTPUT}", "w"))`;
      expect(await run(python(text))).toEqual({ output: '{}' });
    } finally {
      server.close();
    }
  });
});

test('doctor reports whether the Python of a parser image starts and has the package', async () => {
  const { tree } = await minimalImage();
  const folder = temporaryFolder('doctor');
  const finding = async (parserImage: string | null) => {
    const folders = { scratchDir: join(folder, 'doctor'), imagesDir: join(folder, 'doctorimages') };
    const flags = { runtime: 'rootfs', ...folders, ...(parserImage === null ? {} : { parserImage }) };
    const [finding] = await parserImageFindings(loadConfig('worker', { env: {}, flags }), NEVER);
    return `${finding?.status}: ${finding?.detail}`;
  };
  expect(await finding(`dir:${tree}`)).toMatch(/^warn: .*python3; without the package multi-swe-bench/);
  expect(await finding(`dir:${join(folder, 'nowhere')}`)).toMatch(/^fail: .*nowhere/);
  expect(await finding(null)).toMatch(/^ok: not set: rows whose outcomes a program of the dataset reads/);
});
