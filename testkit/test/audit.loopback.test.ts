import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const AUDIT = fileURLToPath(new URL('../ci/audit.ts', import.meta.url));
const report = (severity: string): string =>
  JSON.stringify({
    vulnerabilities: {
      left: { severity, range: '<2', via: [{ title: 'Bad', url: 'https://a/1' }, 'right'] },
    },
    metadata: { dependencies: { total: 9 } },
  });

test('high and critical fail and are named; moderate is only counted', () => {
  for (const severity of ['high', 'critical']) {
    const input = report(severity);
    const { status, stdout } = spawnSync(process.execPath, [AUDIT], { input, encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stdout).toContain(`${severity}: left <2 Bad https://a/1\n`);
  }
  const passed = execFileSync(process.execPath, [AUDIT], { input: report('moderate'), encoding: 'utf8' });
  expect(passed).toBe('AUDIT: 0 high or critical, 1 in all, 9 dependencies\n');
});

test('a registry without audits fails nothing, and is reported', () => {
  for (const input of ['', 'npm error audit endpoint', '{"message":"405 Method Not Allowed","error":{}}']) {
    const output = execFileSync(process.execPath, [AUDIT], { input, encoding: 'utf8' });
    expect(output).toMatch(/^AUDIT NOT ANSWERED/);
  }
});
