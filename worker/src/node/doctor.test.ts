import { expect, test } from 'vitest';
import { kernelFindings } from './doctor.ts';

test('doctor reports kernel limits that one sandbox can exhaust, and how to raise them', async () => {
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
