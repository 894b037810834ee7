import { expect, test } from 'vitest';
import { kernelFindings } from './doctor.ts';

test('limits of the kernel that one sandbox can use up are reported with the command that raises them', async () => {
  const values: Record<string, string> = {
    'fs/inotify/max_user_instances': '128\n',
    'kernel/pty/max': '65536\n',
  };
  const findings = await kernelFindings(async (path) => values[path] ?? '');
  expect(findings.map(({ status, detail }) => [status, detail.split(': ')[1]])).toEqual([
    ['warn', 'sysctl -w fs.inotify.max_user_instances=8192'],
  ]);
  expect(await kernelFindings(() => Promise.reject(new Error('no such file')))).toEqual([]);
});
