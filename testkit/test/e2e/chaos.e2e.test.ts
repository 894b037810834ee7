/** Runs `npm run test:chaos --short` for one seed, and a run that is killed. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { sleep } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../temporaryfolder.ts';
import { processesOf } from './leftovers.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

type Chaos = { process: ChildProcess; folder: string; stdout: () => string; stderr: () => string };

function chaos(folder: string, ...args: string[]): Chaos {
  const child = spawn('bash', ['testkit/chaos/chaos.sh', ...args], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  return { process: child, folder, stdout: () => output.stdout, stderr: () => output.stderr };
}

test('60 rollouts under scheduled faults have one result each, as scripted, and leave nothing', async () => {
  const run = chaos(temporaryFolder('chaos'), '--seed', '1', '--short');
  const [code] = await once(run.process, 'close');
  expect(code, run.stderr()).toBe(0);
  const report = JSON.parse(run.stdout().trimEnd().split('\n').at(-1) ?? '');
  expect(report.problems).toEqual([]);
  expect(report.results).toEqual({ 'reward 0': 24, 'reward 1': 36 });
  expect(Object.keys(report.faults)).toHaveLength(16);
  expect(await readdir(run.folder)).toEqual([]);
});

test('the farm of a killed run ends, and the next run removes its folder', async () => {
  const run = chaos(temporaryFolder('chaos'), '--seed', '1', '--short');
  const over = once(run.process, 'close');
  const engine = async (): Promise<boolean> =>
    (await processesOf(run.folder)).some((line) => line.includes('dockerd'));
  while (!(await engine())) {
    if (run.process.exitCode !== null) throw new Error(run.stderr());
    await sleep(100);
  }
  run.process.kill('SIGKILL');
  await over;
  while ((await processesOf(run.folder)).length > 0) await sleep(100);
  expect(await readdir(run.folder)).toHaveLength(1);
  const next = chaos(run.folder, '--no-such-flag');
  await once(next.process, 'close');
  expect(await readdir(run.folder)).toEqual([]);
});
