import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { agents } from './agents.ts';

const CARD = {
  ...{ card: 1, name: 'own', version: '1.5', description: 'a toy', bundle: { name: 'own' } },
  ...{
    needs: { libc: 'none' },
    api: { dialects: ['chat'] },
    command: ['{bundle}/own'],
    check: ['{bundle}/own'],
  },
  options: { level: { default: 1, help: 'how much' } },
  ends: [{ exit: 'any', status: 'submitted' }],
};

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

async function run(...args: string[]): Promise<{ code: unknown; out: string }> {
  let out = '';
  const write = (text: unknown, done?: unknown): boolean => {
    out += text;
    if (typeof done === 'function') done();
    return true;
  };
  const streams = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation(write),
  );
  const program = new Command();
  agents(program, 'agents');
  process.exitCode = undefined;
  try {
    await program.parseAsync(['agents', ...args], { from: 'user' });
    return { code: process.exitCode ?? 0, out };
  } finally {
    for (const stream of streams) stream.mockRestore();
    process.exitCode = undefined;
  }
}

test('an agent of a user is installed, listed, checked and repaired', async () => {
  const folder = temporaryFolder();
  vi.stubEnv('SWEFARM_AGENTS_DIR', join(folder, 'store'));
  const card = join(folder, 'own.yaml');
  writeFileSync(card, JSON.stringify(CARD));
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'own'), '#!/bin/sh\necho own 1.5');
  chmodSync(join(programs, 'own'), 0o755);

  expect(await run('check', card)).toMatchObject({
    code: 10,
    out: expect.stringMatching(/own +1\.5 +missing/),
  });
  await expect(run('install', card)).rejects.toThrow('--source FOLDER');
  expect((await run('install', card, '--source', programs)).out).toMatch(
    /own\.yaml: installed: 1\.5, 0 MB, /,
  );
  const rows = (await run('list', card, '--json')).out.trim().split('\n');
  const own = rows.map((row) => JSON.parse(row)).find(({ name }) => name === 'own');
  expect(own).toMatchObject({ card, installed: { version: '1.5' }, options: { level: { default: 1 } } });
  expect((await run('list', card)).out).toMatch(/own +1\.5 +yes/);
  expect(await run('check', card)).toMatchObject({ code: 0, out: expect.stringMatching(/own +1\.5 +ok/) });

  writeFileSync(join(own.installed.folder, 'own'), 'changed');
  expect(await run('check', card)).toMatchObject({
    code: 10,
    out: expect.stringMatching(/damaged.*--again/),
  });
  await run('install', '--again', card, '--source', programs);
  expect((await run('check', card)).code).toBe(0);
});

test('a mistyped agent installs nothing and names the nearest', async () => {
  vi.stubEnv('SWEFARM_AGENTS_DIR', temporaryFolder());
  await expect(run('install', 'codex', 'claude-cod')).rejects.toThrow('did you mean claude-code?');
});
