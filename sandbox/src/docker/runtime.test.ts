import { readdir } from 'node:fs/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type DockerRuntimeOptions, dockerRuntime } from './runtime.ts';

test('a runtime that fails to open removes its seccomp profile', async () => {
  const folder = temporaryFolder('seccomp');
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const options: DockerRuntimeOptions = {
    ...{ engine: 'podman', socketPath: '/absent.sock' },
    get gapMs(): number {
      throw new Error('failed to open');
    },
  };
  await expect(dockerRuntime(options)).rejects.toThrow('failed to open');
  expect(await readdir(folder)).toEqual([]);
});
