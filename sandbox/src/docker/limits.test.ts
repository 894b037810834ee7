import { expect, it } from 'vitest';
import { engineLimits } from './limits.ts';

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
