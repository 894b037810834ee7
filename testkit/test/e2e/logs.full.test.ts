/** Test logs of 50 MB, and ones made to stall readers, graded by a worker that holds 64 other rollouts: none loses its lock. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand, startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { printingScript } from '../../src/results/bare.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const LIVE = 64;
const HOSTILE = {
  large: "w(('x' * 99 + '\\n') * 500000)",
  stalling: "w('_' * 3000000)",
} as const;

const jsonLines = async (path: string): Promise<Record<string, unknown>[]> =>
  (await readFile(path, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** Rows whose tests print what a line of Python says, then the one result that counts. */
async function hostileRows(from: string, to: string): Promise<void> {
  const [row] = await jsonLines(from);
  const rows = Object.entries(HOSTILE).map(([name, prints]) => ({
    ...row,
    instance_id: `own__${name}-1`,
    FAIL_TO_PASS: ['t.py::test_a'],
    PASS_TO_PASS: [],
    log_parser: 'pytest',
    eval_script: printingScript(prints),
  }));
  await writeFile(to, rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

test('64 rollouts keep their locks beside hostile logs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-e2e-'));
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({
    script: { ...twentyTurns(), delay: { fixed_ms: 2500 } },
  });
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  const hostile = join(folder, 'hostile.jsonl');
  await hostileRows(built.files.default, hostile);
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  };
  const worker = startCommand(
    'swefarm-worker',
    ['run', '--runtime', 'rootfs', '--concurrency', String(LIVE + 2)],
    env,
  );
  await worker.until(/"msg":"ready"/);
  const output = join(folder, 'out.jsonl');
  const submitted = await runCommand(
    'swefarm',
    [
      ...['submit', '--dataset', built.files.default, '--agent', 'mini', '--group-size', String(LIVE)],
      ...['--policy-url', policy.url, '--model', 'scripted'],
    ],
    env,
  );
  const run: string = JSON.parse(submitted.stdout).run_id;
  // Beside them, in the two slots that are left.
  const graded = join(folder, 'graded.jsonl');
  const evaluated = await runCommand(
    'swefarm',
    [
      ...['eval', '--dataset', hostile, '--predictions', 'gold', '--run-id', 'hostile', '--no-local-worker'],
      ...['--logs-dir', join(folder, 'logs'), '--report-dir', folder, '--output', graded],
    ],
    env,
  );
  expect(evaluated.code, evaluated.stderr).toBe(0);
  const status = await runCommand('swefarm', ['status', run, '--json'], env);
  expect(JSON.stringify(await jsonLines(graded))).toContain('"resolved":true');
  const collected = await runCommand('swefarm', ['collect', run, '--output', output], env);
  expect(collected.code, collected.stderr).toBe(0);

  const results = await jsonLines(output);
  expect(results.length, status.stdout).toBe(LIVE);
  for (const line of results) expect(line).toMatchObject({ outcome: 'judged', attempt: 1, turns: 20 });
  expect(worker.stdout() + worker.stderr()).not.toMatch(/lock lost/);
  worker.kill('SIGTERM');
  expect(await worker.exit).toBe(0);
  await rm(folder, { recursive: true, force: true });
});
