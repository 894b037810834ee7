/** Tests that the folder of `npm run bundle` runs a complete rollout in an empty environment, without a node_modules folder above it. */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { words } from '../../src/launchers/commands.ts';
import { run } from '../../src/launchers/run.ts';
import { readLines } from '../../src/lines.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

let folder = '';
let bundle = '';
beforeAll(async () => {
  folder = temporaryFolder('bundle');
  bundle = join(folder, 'bundle');
  await run('npm', ['run', 'bundle', '--', '--out', bundle], { cwd: ROOT });
});

/** Runs a command of the bundle in a bare environment with only PATH, HOME and the scratch folder. */
const bundled = async (...line: Parameters<typeof words>) => {
  const env = { PATH: '/usr/bin:/bin:/usr/sbin', HOME: folder, SWEFARM_SCRATCH_DIR: join(folder, 'scratch') };
  const [command = '', ...args] = words(...line);
  return await run(join(bundle, 'bin', command), args, { cwd: '/', env }).catch(
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
};

test('both commands find their texts and print what is installed', async () => {
  const producer = await bundled`swefarm doctor --json`;
  expect(JSON.parse(producer.stdout)).toMatchObject({ status: 'warn', subject: 'redis' });
  const worker = await bundled`swefarm-worker doctor --runtime host --json`;
  expect(JSON.parse(worker.stdout)).toContainEqual(expect.objectContaining({ subject: 'runtime host' }));
  expect(JSON.parse(worker.stdout)).toContainEqual(
    expect.objectContaining({ status: 'warn', subject: 'redis' }),
  );
});

test('the bundle has the packages of first use: YAML, the client of engines, the readable log', async () => {
  const config = join(folder, 'config.yaml');
  await writeFile(config, 'redis_url: redis://127.0.0.1:1 # nobody answers there\n');
  const producer = await bundled`swefarm doctor --config ${config} --json`;
  expect(JSON.parse(producer.stdout)).toMatchObject({ status: 'fail', subject: 'redis' });
  const engine = words`--runtime docker --docker-socket ${join(folder, 'nothing.sock')}`;
  const worker = await bundled`swefarm-worker doctor ${engine} --json`;
  const ofRuntime = {
    subject: 'runtime docker',
    status: 'fail',
    detail: expect.stringMatching(/nothing\.sock/),
  };
  expect(JSON.parse(worker.stdout)).toContainEqual(expect.objectContaining(ofRuntime));
  const run = await bundled`swefarm-worker run --config ${config} ${engine}
    --log-format pretty --engine-patience-seconds 0`;
  expect(run).toMatchObject({
    code: 12,
    stderr: expect.stringMatching(/INFO: starting[\s\S]*nothing\.sock/),
  });
});

test('a rollout: its own Redis, a worker, threads, prompts, a sandbox, grading', async () => {
  await using policy = await startScriptedPolicy({ script: twentyTurns() });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const output = join(folder, 'out.jsonl');
  const { stderr } = await bundled`swefarm rollout --dataset ${built.files.rootfs} --agent mini --group-size 2
    --output ${output} --policy-url ${policy.url} --model scripted --require-tokens --runtime rootfs`;
  expect(await readLines(output), stderr).toMatchObject(Array(2).fill({ outcome: 'judged', turns: 20 }));
});
