import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { INTERNAL_SPEC } from '../internal.ts';
import { hostRuntime } from './runtime.ts';

test('a full disk is recognized at the end of a long error message', async () => {
  const folder = temporaryFolder('full');
  const program = join(folder, 'cp');
  const problems = `cp: cannot access '/${'x'.repeat(500)}'\\ncp: error writing '/y': No space left on device\\n`;
  await writeFile(program, `#!/bin/sh\nprintf "${problems}" >&2; exit 1\n`);
  await chmod(program, 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  await using runtime = await hostRuntime({ scratchDir: join(folder, 'scratch') });
  const signal = new AbortController().signal;
  const image = await runtime.ensureImage(`dir:${folder}`, signal);
  const starting = runtime.start({ ...INTERNAL_SPEC, image }, signal);
  await expect(starting).rejects.toMatchObject({ failureClass: 'node_disk' });
});
