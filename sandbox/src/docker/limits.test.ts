import { spawn } from 'node:child_process';
import { copyFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, it, onTestFinished } from 'vitest';
import { Watchdog } from '../namespaces/watchdog.ts';
import type { DockerContainer } from './container.ts';
import { type EngineLimits, engineLimits, watchContainer, watchedLimits } from './limits.ts';

const able = { MemoryLimit: true, CpuCfsQuota: true, PidsLimit: true };

it('trusts the report of an engine that runs as root', () => {
  expect(engineLimits({ ...able, CgroupVersion: '1' })).toEqual({
    cpu: 'enforced',
    memory: 'enforced',
    pids: 'enforced',
    disk: 'none',
  });
});

it.each([{ Rootless: true }, { SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'] }])(
  'does not believe one without root on control groups of version 1: %j',
  (report) => {
    const limits = { cpu: 'none', memory: 'watched', pids: 'watched', disk: 'none' };
    expect(engineLimits({ ...able, ...report, CgroupVersion: '1' })).toEqual(limits);
    expect(engineLimits({ ...able, ...report, CgroupVersion: '2' }).memory).toBe('enforced');
  },
);

const WATCHED: EngineLimits = { cpu: 'none', memory: 'watched', pids: 'watched', disk: 'none' };

it('does not watch an engine in another process namespace', async () => {
  using watchdog = new Watchdog();
  for (const id of await readdir('/proc/self/task')) {
    let isWatched = false;
    const fakeContainer = {
      spec: { limits: { memoryBytes: 1, pids: 1 } },
      idlePid: async () => Number(id),
      watch: () => {
        isWatched = true;
      },
    } as unknown as DockerContainer;
    const unwatch = await watchContainer(watchdog, fakeContainer, WATCHED);
    unwatch();
    expect(isWatched).toBe(false);
  }
});

it('reports watched limits only where the processes of the engine are visible', async () => {
  const folder = temporaryFolder('watch');
  const engine = join(folder, 'podman');
  await copyFile('/bin/sleep', engine);
  const process = spawn(engine, ['60']);
  onTestFinished(() => void process.kill());
  await new Promise((resolve) => process.once('spawn', resolve));
  await expect.poll(() => watchedLimits(WATCHED)).toEqual(WATCHED);
  const enforced: EngineLimits = { ...WATCHED, memory: 'enforced', pids: 'enforced' };
  expect(await watchedLimits(enforced)).toEqual(enforced);
});
