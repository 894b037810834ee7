/** `npm run bundle`: the folder that nodes run from does a whole rollout in an empty environment, far from any node_modules. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { buildExamples, startScriptedPolicy } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const run = promisify(execFile);

let folder = '';
let bundle = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swefarm-bundle-'));
  bundle = join(folder, 'bundle');
  await run('npm', ['run', 'bundle', '--', '--out', bundle], { cwd: ROOT });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A bare environment, except for where things may be put. */
const bundled = async (command: string, args: readonly string[]) => {
  const env = { PATH: '/usr/bin:/bin:/usr/sbin', HOME: folder, SWEFARM_SCRATCH_DIR: join(folder, 'scratch') };
  return await run(join(bundle, 'bin', command), args, { cwd: '/', env }).catch(
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
};

test('both commands find their texts and say what is there', async () => {
  const producer = await bundled('swefarm', ['doctor', '--json']);
  expect(JSON.parse(producer.stdout)).toMatchObject({ status: 'warn', subject: 'redis' });
  const worker = await bundled('swefarm-worker', ['doctor', '--runtime', 'host', '--json']);
  expect(JSON.parse(worker.stdout)).toContainEqual(expect.objectContaining({ subject: 'runtime host' }));
});

test('a rollout: its own Redis, a worker, threads, prompts, a sandbox, grading', async () => {
  await using policy = await startScriptedPolicy({ script: twentyTurns() });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const output = join(folder, 'out.jsonl');
  const given = ['--dataset', built.files.rootfs, '--agent', 'mini', '--group-size', '2', '--output', output];
  const model = ['--policy-url', policy.url, '--model', 'scripted', '--require-tokens'];
  const { stderr } = await bundled('swefarm', ['rollout', ...given, ...model, '--runtime', 'rootfs']);
  const lines = (await readFile(output, 'utf8')).trim().split('\n');
  expect(lines, stderr).toHaveLength(2);
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ outcome: 'judged', turns: 20 });
});
