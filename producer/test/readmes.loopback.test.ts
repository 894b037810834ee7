/** Runs the examples in the READMEs of the packages unchanged. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { row } from '@swefarm/datasets/test/rows.ts';
import { startScriptedPolicy } from '@swefarm/testkit';
import { aLine } from '@swefarm/trajectories/test/result.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

let folder: string;
beforeAll(async () => {
  const parent = join(ROOT, '.swefarm');
  await mkdir(parent, { recursive: true });
  // The folder is below the root, so that Node finds the packages.
  folder = await mkdtemp(join(parent, 'readmes-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs the example with these arguments and returns its standard output. */
async function output(name: string, ...args: string[]): Promise<string> {
  const [, code = ''] =
    /```ts\n([\s\S]*?)```/.exec(await readFile(join(ROOT, name, 'README.md'), 'utf8')) ?? [];
  const file = join(folder, `${name}.ts`);
  await writeFile(file, code);
  return (await promisify(execFile)(process.execPath, [file, ...args])).stdout;
}

async function file(name: string, value: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `${JSON.stringify(value)}\n`);
  return path;
}

test('policy: one answer of an endpoint with its token ids', async () => {
  await using policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[{ text: 'hello' }]] }] },
  });
  expect(await output('policy', policy.url, 'scripted')).toMatch(/^hello \d+\n$/);
});

test('sandbox: one command in a shell', async () => {
  expect(await output('sandbox', join(folder, 'sandboxes'))).toBe('0 hello\n\n');
});

test('grading: the verdict of a log', async () => {
  expect(await output('grading')).toBe('true\n');
});

test('datasets: the instances of a file', async () => {
  expect(await output('datasets', await file('rows.jsonl', row()))).toContain('pallets__flask-1 ');
});

test('trajectories: the sums over an output', async () => {
  expect(await output('trajectories', await file('rollouts.jsonl', aLine()))).toBe(
    '1 of 1 resolved, mean reward 1\nr1.a__b-1.0 judged 1\n',
  );
});
