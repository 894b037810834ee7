import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isProcessAlive, namespaceName, ownStartMark, processStarted, readProcessStat } from './identity.ts';

test('a live process is alive, a dead one and one with a reused pid are not', async () => {
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

test('namespaces of different kernels or pods have different names despite equal numbers', () => {
  const names = [
    namespaceName('4026532201', 'boot-a', 'pod-a'),
    namespaceName('4026532201', 'boot-b', 'pod-a'),
    namespaceName('4026532201', 'boot-a', 'pod-b'),
    namespaceName('4026532202', 'boot-a', 'pod-a'),
  ];
  expect(new Set(names).size).toBe(4);
  for (const name of names) expect(name).toMatch(/^\d{20}$/);
  expect(namespaceName('4026532201', 'boot-a', 'pod-a')).toBe(names[0]);
});

test('a process in another namespace is unknown, and dead after a restart of the host', async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root makes a process namespace here');
  const source = new URL('./identity.ts', import.meta.url).pathname;
  const script = `import { isProcessAlive, ownStartMark } from ${JSON.stringify(source)};
    const outside = { pid: Number(process.argv[1]), pid_started: process.argv[2] };
    console.log(JSON.stringify([isProcessAlive(outside), ownStartMark()]));`;
  // Pid 1 exists in both namespaces.
  const node = [process.execPath, '--input-type=module', '-e', script, '1', ownStartMark()];
  const inside = execFileSync('unshare', ['--pid', '--fork', '--mount-proc', ...node], { encoding: 'utf8' });
  const [seen, pid_started] = JSON.parse(inside);
  expect(seen).toBeNull();
  expect(isProcessAlive({ pid: 1, pid_started })).toBeNull();
  expect(isProcessAlive({ pid: process.pid, pid_started: `1@${ownStartMark().split('@')[1]}` })).toBe(false);
});
