import { INTERNAL_SPEC } from '@swefarm/sandbox';
import { HarborTask, silentLog } from '@swefarm/shared';
import { expect, test, vi } from 'vitest';
import { taskOf } from '../../test/matrix/harbortasks.ts';
import { prepareTaskSandbox } from './sandbox.ts';

test.each([
  [['/start-server'], 1],
  [undefined, 0],
])('the log warns about an entrypoint that does not run: %j', async (entrypoint, warnings) => {
  const image = { name: 'own/server:1', digest: 'sha256:1', ref: '1', ...(entrypoint ? { entrypoint } : {}) };
  const owner = { farm: '', worker: '', pid: 1, pid_started: '', rollout_id: '', attempt: 1 };
  const log = silentLog();
  const warn = vi.spyOn(log, 'warn');
  const start = () => Promise.reject(new Error('not started'));
  const deps = { runtime: { start }, log, signal: new AbortController().signal };
  const task = HarborTask.parse(taskOf().harbor);
  await expect(prepareTaskSandbox({ ...INTERNAL_SPEC, image, owner }, task, deps)).rejects.toThrow(
    'not started',
  );
  expect(warn).toHaveBeenCalledTimes(warnings);
});
