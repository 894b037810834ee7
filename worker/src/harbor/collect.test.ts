/** Tests the limits of the artifacts of a rollout. The container is a folder of this machine. */
import { execFile } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Container } from '@swefarm/sandbox';
import type { HarborTask } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { copyArtifacts } from './collect.ts';

const MIB = 1024 ** 2;
const run = promisify(execFile);

/** Copies files of the given sizes in bytes. @param undeclared name of the artifact that the task does not declare */
async function copied(sizes: Record<string, number>, separate = false, undeclared = '') {
  const folder = temporaryFolder('artifacts');
  const artifacts: HarborTask['artifacts'] = [];
  for (const [name, bytes] of Object.entries(sizes)) {
    await writeFile(join(folder, name), '');
    truncateSync(join(folder, name), bytes);
    const own = name === undeclared ? { declared: false as const } : {};
    artifacts.push({ source: join(folder, name), destination: name, exclude: [], ...own });
  }
  let copies = 0;
  const exec = async ([program = '', ...args]: readonly string[]) => {
    copies += 1;
    const { stdout } = await run(program, args, { encoding: 'buffer', maxBuffer: 100 * MIB });
    return { exitCode: 0, output: stdout, outputBytes: stdout.length };
  };
  const verifier = separate ? { separate: {} as NonNullable<HarborTask['verifier']['separate']> } : {};
  const how = { signal: new AbortController().signal, warn: () => undefined };
  const collected = await copyArtifacts({ exec } as unknown as Container, { artifacts, verifier }, how);
  return { copies, statuses: collected.map(({ status }) => status) };
}

test.each<[string, boolean, string]>([
  ['shared', false, 'failed'],
  ['separate', true, 'ok'],
])('5 MiB in an undeclared folder, %s verifier', async (_, separate, status) => {
  const { statuses } = await copied({ logs: 5 * MIB, a: 1 }, separate, 'logs');
  expect(statuses).toEqual([status, 'ok']);
});

test('nothing is copied after an artifact that is too large', async () => {
  expect(await copied({ a: 1, b: 33 * MIB, c: 1 })).toEqual({
    copies: 2,
    statuses: ['ok', 'failed', 'failed'],
  });
});

test('all artifacts together have a limit', async () => {
  expect((await copied({ a: 20 * MIB, b: 20 * MIB })).statuses).toEqual(['ok', 'failed']);
});
