/** Tests that a policy learns on a farm that its trainer starts: the loop of examples/train with a table instead of a model. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { readLines } from '../../src/lines.ts';

const ROOT = join(import.meta.dirname, '../../..');
const EXAMPLES = ['cpburnz__pathspec-0.10.2', 'r1chardj0n3s__parse-1.20.2'];

type Step = { reward: number; judged: number; rollouts: number; ratio_distance: number };

test("rewards rise by the farm's verdicts, and a wrong token id stops training", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-learns-'));
  const { files } = await buildExamples({ ids: EXAMPLES, for: 'rootfs', out: folder });
  const out = join(folder, 'curve.jsonl');
  const script = join(ROOT, 'examples/train/own/table.py');
  // The chance that a learning table misses the required rise in four steps is below 1 in 300.
  const child = spawn(
    'python3',
    [script, '--dataset', files.rootfs, '--out', out, '--steps', '5', '--spoil', '4'],
    {
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        PYTHONPATH: join(ROOT, 'producer/python'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  onTestFinished(() => void child.kill());
  const ended = once(child, 'close');
  const errors = await text(child.stderr);
  const [code] = await ended;
  const steps = await readLines<Step>(out);
  expect(steps.map(({ judged, rollouts }) => [judged, rollouts])).toEqual([1, 2, 3, 4].map(() => [16, 16]));
  expect(Math.max(...steps.map(({ ratio_distance }) => ratio_distance))).toBeLessThan(1e-4);
  const [first = 1] = steps.map(({ reward }) => reward);
  const last = steps.at(-1)?.reward ?? 0;
  expect(last).toBeGreaterThan(Math.max(0.6, first + 0.2));
  expect(code).toBe(1);
  expect(errors).toMatch(/loop\.Broken: \S+: the importance ratio of token \d+ is /);
});
