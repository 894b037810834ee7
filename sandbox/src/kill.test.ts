import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processStarted, RolloutFailure } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { NEVER, OPTIONS, shellOf } from '../test/subject.ts';
import { hostRuntime } from './host/runtime.ts';
import { INTERNAL_SPEC } from './internal.ts';
import type { Container } from './runtime.ts';

/** Simulates a full process table: open shells work, and no new process can start. */
const withoutExec = (container: Container): Container =>
  new Proxy(container, {
    get(target, name) {
      if (name === 'exec') return () => Promise.reject(new RolloutFailure('sandbox_lost', 'no process'));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

test('leftovers of a lost shell are killed even if no process can be started', async () => {
  await using runtime = await hostRuntime({ scratchDir: temporaryFolder('kill') });
  await using container = await runtime.start(INTERNAL_SPEC, NEVER);
  await using shell = await shellOf(withoutExec(container));
  const lost = await shell.run('sleep 1000 & echo $! >pid; kill -9 $$; wait', OPTIONS);
  expect(lost.note).toBe('shell_reopened');
  const pid = Number(await readFile(join(container.workdir, 'pid'), 'utf8'));
  expect(processStarted(pid)).toBeNull();
});
