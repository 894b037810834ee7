import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { killNamespace, membersBy, readNamespace } from './processes.ts';

test("all processes of a namespace but process 1 are killed, and none after the sandbox's end", async () => {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const inside = ['sh', '-c', 'sleep 600 & sleep 600 & echo up; while :; do wait; read -r _; done'];
  const child = spawn('unshare', [...user, '--pid', '--fork', '--kill-child', ...inside], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  const init = Number(children.trim().split(' ')[0]);
  const namespace = (await readNamespace(init, 'pid')) ?? '';
  const members = async (): Promise<number[]> => (await membersBy('pid')).get(namespace) ?? [];
  expect(await members()).toHaveLength(3);
  // The number may denote another namespace by now.
  expect(await killNamespace('pid', namespace, { namespace, init, alive: () => false })).toBe(true);
  expect(await members()).toHaveLength(3);
  expect(await killNamespace('pid', namespace, { namespace, init, alive: () => true })).toBe(true);
  expect(await members()).toEqual([init]);
});
