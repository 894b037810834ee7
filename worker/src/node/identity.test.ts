import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { identify, ownerAlive, processStarted } from './identity.ts';

test('a living owner is alive, a dead one and one with a recycled pid are not', async () => {
  const self = identify('farm', 'w1', 'n1');
  expect(ownerAlive(self)).toBe(true);
  expect(ownerAlive({ ...self, pid_started: '1' })).toBe(false);
  expect(ownerAlive({ ...self, pid_started: `${self.pid_started}0` })).toBeNull();
  const child = spawn('sleep', ['60']);
  const owner = { pid: child.pid ?? 0, pid_started: processStarted(child.pid ?? 0) ?? '' };
  expect(ownerAlive(owner)).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(ownerAlive(owner)).toBe(false);
});
