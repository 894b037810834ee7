/** Runs tests as a user without root. */
import { spawnSync } from 'node:child_process';
import { chown, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { run } from '../src/run.ts';

/** Id of a separate user for each test process, because process limits count all processes of a user. */
const USER = 100_000 + process.pid;
const IDS = ['--reuid', String(USER), '--regid', String(USER)];
const LINE = [...IDS, '--clear-groups'];

/**
 * Returns why tests cannot run as another user here; null when they can: this process is root, and the user can read this checkout
 * and make user namespaces.
 */
export function cannotBeAnother(program: string): string | null {
  if (process.getuid?.() !== 0) return 'only root can become another user';
  const read = `require('fs').accessSync(${JSON.stringify(program)})`;
  const probe = spawnSync('setpriv', [...LINE, process.execPath, '-e', read]);
  const namespaces = spawnSync('setpriv', [
    ...LINE,
    'unshare',
    '--user',
    '--map-root-user',
    '--mount',
    'true',
  ]);
  if (probe.status !== 0) return `another user cannot read this checkout (${program}) or its Node`;
  return namespaces.status === 0 ? null : 'this kernel gives users without root no user namespaces';
}

/** Runs a program as that user; returns its last line, which is JSON. @param group another group of the user */
export async function runAsUser(
  program: string,
  args: readonly string[],
  group?: number,
): Promise<Record<string, unknown>> {
  const line = group === undefined ? LINE : [...IDS, '--groups', String(group)];
  const { stdout } = await run('setpriv', [...line, process.execPath, program, ...args]);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

/**
 * Runs a sandbox over a copy of `tree` that belongs to that user: it starts, limits its processes, and leaves nothing in
 * `folder`.
 */
export async function tryAsUser(program: string, folder: string, tree: string): Promise<void> {
  const own = join(folder, 'user');
  const copy = join(own, 'tree');
  await mkdir(own);
  await run('cp', ['-a', tree, copy]);
  await run('chown', ['-R', `${USER}:${USER}`, copy]);
  await chown(own, USER, USER);
  const answer = await runAsUser(program, [own, `dir:${copy}`, 'run']);
  expect(answer).toMatchObject({
    usable: true,
    id: '0',
    hog: '137 killed_by_limit next',
    file: 'written',
    folders: '',
    listens: 'worker heard',
    replaced: program.includes('rootfs') ? 'new new' : null,
    after: 'alive',
    left: [],
  });
  expect(answer.forks).toMatch(/Cannot fork|Resource temporarily unavailable/);
  expect(await readdir(join(own, 'scratch'))).toEqual([]);
}
