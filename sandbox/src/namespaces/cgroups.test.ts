import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RolloutFailure } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, it } from 'vitest';
import { type MemoryGroup, readKills, readWasFull, requireOwnKills } from '../memorygroup.ts';
import { openCgroups } from './cgroups.ts';

let root: string;
let self: string;
beforeEach(() => {
  root = temporaryFolder('cgroups');
  self = join(root, 'self');
});

const OWN = 'swefarm-parent';
const LIMITS = { cpus: 1.5, memoryBytes: 1_000_000, pids: 50, diskBytes: null };
const killed = (group: MemoryGroup) => ({
  oomKills: () => readKills(group),
  wasFull: () => readWasFull(group),
});
const classOf = (error: RolloutFailure): string => error.failureClass;
const folder = (path: string, files: Record<string, string>): void => {
  mkdirSync(join(root, path), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, path, name), text);
};

it("version 1: makes groups below this process's group of each controller", async () => {
  folder('memory/job/7', { 'cgroup.procs': '' });
  folder('pids', { 'cgroup.procs': '' });
  writeFileSync(self, '4:memory:/job/7\n3:pids:/elsewhere\n2:cpu,cpuacct:/\n0::/\n');
  const cgroups = await openCgroups(root, self, OWN);
  expect([...(cgroups?.controllers ?? [])].sort()).toEqual(['memory', 'pids']);
  const group = await cgroups?.create('one', LIMITS);
  const memory = join(root, 'memory/job/7', OWN, 'one');
  expect(readFileSync(join(memory, 'memory.limit_in_bytes'), 'utf8')).toBe('1000000');
  expect(readFileSync(join(root, 'pids', OWN, 'one/shell/pids.max'), 'utf8')).toBe('58');
  expect(group?.joins.shell).toEqual([
    join(memory, 'cgroup.procs'),
    join(root, 'pids', OWN, 'one/shell/cgroup.procs'),
  ]);
  expect(group?.joins.other).toEqual([
    join(memory, 'cgroup.procs'),
    join(root, 'pids', OWN, 'one/cgroup.procs'),
  ]);
  for (const made of cgroups?.folders('one') ?? ['none']) expect(existsSync(made)).toBe(true);
  writeFileSync(join(memory, 'memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n');
  const counted = group?.memory as MemoryGroup;
  expect(await readKills(counted)).toBe(3);
  expect(await readWasFull(counted)).toBeNull();
  writeFileSync(join(memory, 'memory.max_usage_in_bytes'), '900000\n');
  expect(await requireOwnKills(killed(counted)).catch(classOf)).toBe('node_memory');
  writeFileSync(join(memory, 'memory.max_usage_in_bytes'), '995000\n');
  expect(await requireOwnKills(killed(counted))).toBeUndefined();
});

it('closing one runtime leaves the groups of the others', async () => {
  folder('memory', { 'cgroup.procs': '' });
  writeFileSync(self, '4:memory:/\n');
  const [first, second] = [await openCgroups(root, self), await openCgroups(root, self)];
  await first?.[Symbol.asyncDispose]();
  await second?.create('one', LIMITS);
  for (const made of second?.folders('one') ?? []) rmSync(made, { recursive: true, force: true });
  await second?.[Symbol.asyncDispose]();
  expect(readdirSync(join(root, 'memory'))).toEqual(['cgroup.procs']);
});

it("the name of a worker's groups does not depend on its pid alone", async () => {
  folder('memory', { 'cgroup.procs': '' });
  writeFileSync(self, '4:memory:/\n');
  await openCgroups(root, self);
  expect(readdirSync(join(root, 'memory'))).toContainEqual(
    expect.stringMatching(new RegExp(`^swefarm-${process.pid}-[0-9a-z]{8,}$`)),
  );
});

it("version 2: makes groups below this process's group, with controllers enabled", async () => {
  folder('user/worker', {
    'cgroup.controllers': 'cpu memory pids',
    'cgroup.subtree_control': 'cpu memory pids',
    'cgroup.procs': '',
  });
  // The kernel fills a new group; here the files already exist.
  folder(`user/worker/${OWN}`, {
    'cgroup.controllers': 'cpu memory pids',
    'cgroup.subtree_control': 'cpu memory pids',
  });
  folder('', { 'cgroup.controllers': 'cpu memory pids' });
  writeFileSync(self, '0::/user/worker\n');
  const cgroups = await openCgroups(root, self, OWN);
  const group = await cgroups?.create('one', LIMITS);
  expect(group?.memory?.version).toBe(2);
  const own = join(root, 'user/worker', OWN, 'one');
  expect(readFileSync(join(own, 'cpu.max'), 'utf8')).toBe('150000 100000');
  expect(readFileSync(join(own, 'memory.max'), 'utf8')).toBe('1000000');
  expect(readFileSync(join(own, 'memory.swap.max'), 'utf8')).toBe('0');
  expect(readFileSync(join(own, 'pids.max'), 'utf8')).toBe('74');
  expect(readFileSync(join(own, 'shell/pids.max'), 'utf8')).toBe('58');
  expect(group?.joins.other).toEqual([join(own, 'other/cgroup.procs')]);
  const counted = group?.memory as MemoryGroup;
  expect(await readKills(counted)).toBeNull();
  writeFileSync(join(own, 'memory.events'), 'low 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n');
  expect(await readKills(counted)).toBe(1);
  expect(await requireOwnKills(killed(counted)).catch(classOf)).toBe('node_memory');
  writeFileSync(join(own, 'memory.events'), 'low 0\nmax 31\noom 2\noom_kill 1\n');
  expect(await requireOwnKills(killed(counted))).toBeUndefined();
});

it('returns null where no group can be made', async () => {
  writeFileSync(self, '0::/\n');
  expect(await openCgroups(root, self, OWN)).toBeNull();
  folder('', { 'cgroup.controllers': 'cpu memory', 'cgroup.subtree_control': '' });
  expect(await openCgroups(root, self, OWN)).toBeNull();
  expect(existsSync(join(root, OWN, 'one'))).toBe(false);
});
