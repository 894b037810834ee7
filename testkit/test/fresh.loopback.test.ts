/** ci/fresh.sh where it cannot run: it says loudly that nothing was checked, and never counts as passed. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const SCRIPT = resolve(import.meta.dirname, '../ci/fresh.sh');

function fresh(user: number, ...steps: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'swefarm-freshtest-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'id'), `#!/bin/sh\necho ${user}\n`);
  chmodSync(join(folder, 'id'), 0o755);
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, TMPDIR: folder };
  const ended = spawnSync('bash', [SCRIPT, ...steps], { env, encoding: 'utf8' });
  return { code: ended.status, said: `${ended.stdout}${ended.stderr}`, left: readdirSync(folder) };
}

test('who is not root is told that nothing was checked, and no closing line counts', () => {
  const { code, said, left } = fresh(1000);
  expect([code, left]).toEqual([12, ['id']]);
  expect(said).toContain('######## NOTHING WAS CHECKED');
  expect(said).not.toMatch(/\d+ passed/);
});

test('a step that there is not is named before anything is made', () => {
  const { code, said, left } = fresh(0, 'demo', 'tset');
  expect([code, left]).toEqual([12, ['id']]);
  expect(said).toContain('unknown step: tset');
});
