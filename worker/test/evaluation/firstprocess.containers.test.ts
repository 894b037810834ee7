/** An evaluation by the first process of its container equals the same one by execs. */

import { dockerRuntime, openPreparedShell, prepareTree } from '@swefarm/sandbox';
import { NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import type { InstancePlan } from '@swefarm/shared';
import Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { rowOf, socketPath, useEvaluator } from './evaluator.ts';

const at = useEvaluator();

type Case = {
  /** Shell text before the one test passes. */
  lines?: string[];
  patch?: string;
  plan?: Partial<InstancePlan>;
  limits?: { timeoutSeconds?: number; logLimit?: number };
};

/** A patch that adds a file. */
const NEW_FILE =
  'diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n';
const BROKEN = 'diff --git a/gone.txt b/gone.txt\n--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-old\n+new\n';
const KILLED = `python3 -c 'x = b"x" * (1 << 30)'`;

const CASES: Record<string, Case> = {
  'a patch that applies': { patch: NEW_FILE, lines: ['cat new.txt'] },
  'a patch that does not apply': { patch: BROKEN },
  'no patch': {},
  'output on both streams': { lines: ['echo out; echo err >&2; printf "no end of line"'] },
  'more output than is kept': {
    lines: ['head -c 4000000 /dev/zero | tr "\\0" x'],
    limits: { logLimit: 200_000 },
  },
  'a script that fails before its test': { lines: ['exit 3'] },
  'a script that kills itself': { lines: ['kill -9 $$'] },
  'a script that ends everything it can': { lines: ['echo before; kill -9 -1; sleep 1'] },
  'tests that take too long': { lines: ['echo begun; sleep 600'], limits: { timeoutSeconds: 3 } },
  'tests that take too much memory': { lines: [`${KILLED}; echo "python ended with $?"`] },
  'a file of outcomes': {
    lines: ['echo "{}" >/tmp/outcomes.json'],
    plan: { files: ['/tmp/outcomes.json', '/tmp/none'] },
  },
  'steps before': {
    plan: { before: [{ name: 'b', script: 'echo b >/tmp/b', may_fail: false, timeout: 30 }] },
    lines: ['cat /tmp/b'],
  },
  'steps after': {
    plan: { after: [{ name: 'a', script: 'echo a >/tmp/a', may_fail: false, timeout: 30 }] },
    lines: ['cat /tmp/a'],
  },
  'a step after that fails': {
    plan: { after: [{ name: 'a', script: 'exit 3', may_fail: false, timeout: 30 }] },
  },
  'tools that were replaced': { lines: ['cp /usr/bin/env /usr/bin/nohup', 'echo exit 0 >>/eval.sh'] },
  'a process that lives on': { lines: ['(sleep 600; echo late) >/dev/null 2>&1 &'] },
};

describe('an evaluation gives the same report and log with and without execs', () => {
  test.each(Object.entries(CASES))('%s', async (_name, { lines = [], patch = '', plan, limits }) => {
    const evaluated = async (byExec: boolean) => {
      const changes = { ...limits, byExec, ...(plan ? { plan } : {}) };
      const { report, log } = await at.evaluator.run(rowOf(lines), patch, at.image, changes);
      // bash prints the number of the killed process, right-aligned.
      return { report, log: log?.toString('latin1').replace(/ *\b\d+ Killed/, ' N Killed') };
    };
    expect(await evaluated(false)).toEqual(await evaluated(true));
  });
});

test('neither an evaluation nor the shell of an agent needs an exec', async () => {
  await using runtime = await dockerRuntime({ socketPath });
  const docker = new Docker({ socketPath });
  const ready = await runtime.ensureImage(at.image, NEVER);
  const from = Math.floor(Date.now() / 1000) - 1;

  await using clean = await runtime.start(spec(ready, { role: 'evaluation' }), NEVER);
  await clean.putFiles([{ path: '/eval.sh', content: Buffer.from('echo tested\n'), mode: 0o755 }], NEVER);
  const options = { cwd: '/', timeoutMs: 60_000, maxOutputBytes: 1_000, signal: NEVER };
  await clean.exec(['git', '--version'], { ...options, standing: 'clean' });
  const tests = await clean.exec(['/bin/bash', '/eval.sh'], { ...options, standing: 'last' });
  expect(tests.output.toString()).toBe('tested\n');

  await using container = await runtime.start(spec(ready), NEVER);
  const made =
    'cd /testbed && git init -q && git -c user.name=n -c user.email=e commit -q --allow-empty -m base';
  expect(await container.exec(['/bin/sh', '-c', made], { ...options, standing: 'clean' })).toMatchObject({
    exitCode: 0,
  });
  const tree = prepareTree(container.workdir);
  const { shell, prepared } = await openPreparedShell(container, { activate: '' }, tree);
  expect(tree.snapshot(prepared).workdir).toBe('/testbed');
  await shell.run('echo made >made.txt', { timeoutMs: 60_000, maxOutputBytes: 10_000, signal: NEVER });
  await shell[Symbol.asyncDispose]();

  const events = await docker.getEvents({
    since: from,
    until: Math.floor(Date.now() / 1000) + 1,
    filters: { event: ['exec_create'], container: [clean.id, container.id] },
  });
  let seen = '';
  for await (const part of events) seen += String(part);
  expect(seen).toBe('');
});
