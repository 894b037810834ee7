import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isProcessAlive, ownStartMark, processStarted, readProcessStat } from './identity.ts';

test('a living owner is alive, a dead one and one with a recycled pid are not', async () => {
  const self = { pid: process.pid, pid_started: ownStartMark() };
  expect(isProcessAlive(self)).toBe(true);
  expect(isProcessAlive({ ...self, pid_started: '1' })).toBe(false);
  expect(isProcessAlive({ ...self, pid_started: `${self.pid_started}0` })).toBeNull();
  const child = spawn('sleep', ['60']);
  const owner = { pid: child.pid ?? 0, pid_started: processStarted(child.pid ?? 0) ?? '' };
  expect(isProcessAlive(owner)).toBe(true);
  expect(readProcessStat(owner.pid)).toMatchObject({ parent: process.pid, started: owner.pid_started });
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isProcessAlive(owner)).toBe(false);
});
