/** Tests ci/fresh.sh where it cannot run: it prints that nothing was checked, and does not count as passed. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from './temporaryfolder.ts';

const SCRIPT = resolve(import.meta.dirname, '../ci/fresh.sh');

function fresh(user: number, ...steps: string[]) {
  const folder = temporaryFolder('freshtest');
  writeFileSync(join(folder, 'id'), `#!/bin/sh\necho ${user}\n`);
  chmodSync(join(folder, 'id'), 0o755);
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, TMPDIR: folder };
  const ended = spawnSync('bash', [SCRIPT, ...steps], { env, encoding: 'utf8' });
  return { code: ended.status, output: `${ended.stdout}${ended.stderr}`, left: readdirSync(folder) };
}

test('without root it prints that nothing was checked, and no count', () => {
  const { code, output, left } = fresh(1000);
  expect([code, left]).toEqual([12, ['id']]);
  expect(output).toContain('######## NOTHING WAS CHECKED');
  expect(output).not.toMatch(/\d+ passed/);
});

test('an unknown step is named before any root is made', () => {
  const { code, output, left } = fresh(0, 'demo', 'tset');
  expect([code, left]).toEqual([12, ['id']]);
  expect(output).toContain('unknown step: tset');
});
