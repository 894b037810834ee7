/** The contract, as far as it can hold, on the host itself. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { hostRuntime } from '../../src/sandbox/host/runtime.ts';
import { sandboxContract } from './contract.ts';
import { NEVER } from './subject.ts';

const scratchDir = await mkdtemp(join(tmpdir(), 'swefarm-host-'));

sandboxContract(
  'host',
  async () => ({ runtime: await hostRuntime({ scratchDir }), image: 'any', imageWithoutBash: null }),
  { isolated: false, limits: {} },
);

it('says loudly that it isolates nothing', async () => {
  const check = await (await hostRuntime({ scratchDir })).check(NEVER);
  expect(check.usable).toBe(true);
  expect(check.problems[0]).toContain('NO ISOLATION');
});

afterAll(async () => {
  expect(await readdir(scratchDir)).toEqual([]);
  await rm(scratchDir, { recursive: true, force: true });
});
