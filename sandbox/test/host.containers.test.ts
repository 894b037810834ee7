/** The contract on the host, as far as it applies. */
import { readdir, readFile } from 'node:fs/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, expect, it } from 'vitest';
import { hostRuntime } from '../src/host/runtime.ts';
import { sandboxContract } from './contract.ts';
import { NEVER, OPTIONS, start } from './subject.ts';

const scratchDir = temporaryFolder('host');

sandboxContract(
  'host',
  async () => ({ runtime: await hostRuntime({ scratchDir }), image: 'any', imageWithoutBash: null }),
  { isolated: false, limits: {} },
);

it('reports that it has no isolation', async () => {
  const check = await (await hostRuntime({ scratchDir })).check(NEVER);
  expect(check.usable).toBe(true);
  expect(check.problems[0]).toContain('NO ISOLATION');
});

it('kills a process without an environment', async () => {
  const runtime = await hostRuntime({ scratchDir });
  const container = await start({ runtime, image: 'any', imageWithoutBash: null });
  const line = ['/bin/sh', '-c', 'env -i setsid sleep 600 >/dev/null 2>&1 & echo $!'];
  const { output } = await container.exec(line, OPTIONS);
  await container[Symbol.asyncDispose]();
  const state = await readFile(`/proc/${Number(output.toString())}/cmdline`, 'utf8').catch(() => '');
  expect(state).toBe('');
});

afterAll(async () => {
  expect(await readdir(scratchDir)).toEqual([]);
});
