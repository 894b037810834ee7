/**
 * A model learns on a farm (examples/train). The trainer starts the farm: real gateway, Redis, worker, rootfs sandboxes and grading. Checks
 * that the reward rises for each seed, that it does not rise with random rewards, and that the trainer notices one wrong token id.
 * usage: run.ts [--venv DIR] [--folder DIR] [--seed N...] [--only learns|control|spoiled...] [--trainer own/grpo.py|trl/train.py]
 * [--vllm FOLDER]: uses a vLLM that testkit/clients/vllm/up.sh installs in FOLDER. The last line of the output: N passed, N failed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { errorMessage, freePort } from '@swefarm/shared';
import { buildExamples } from '../../src/examples/build.ts';

const ROOT = join(import.meta.dirname, '../../..');
const EXAMPLES = ['cpburnz__pathspec-0.10.2', 'r1chardj0n3s__parse-1.20.2'];
const { values } = parseArgs({
  options: {
    venv: { type: 'string', default: '.swefarm/cache/venvs/train' },
    folder: { type: 'string', default: '.swefarm/train' },
    seed: { type: 'string', multiple: true, default: ['0'] },
    only: { type: 'string', multiple: true, default: ['learns', 'control', 'spoiled'] },
    vllm: { type: 'string' },
    trainer: { type: 'string', default: 'own/grpo.py' },
  },
});

type Finished = { code: number; stdout: string; stderr: string };

async function run(
  program: string,
  args: readonly string[],
  more: Record<string, string> = {},
): Promise<Finished> {
  const { SWEFARM_GATEWAY_URL: _, ...environment } = process.env;
  const env = {
    ...{ PYTHONPATH: join(ROOT, 'producer/python'), CUDA_VISIBLE_DEVICES: '', HF_HUB_OFFLINE: '1' },
    ...{ PYTHONDONTWRITEBYTECODE: '1' },
  };
  const child = spawn(program, args, {
    env: { ...environment, ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  child.stdout.on('data', (chunk: Buffer) => process.stdout.write(chunk));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code: Number(code), stdout, stderr };
}

const must = (promise: boolean, what: string): void => {
  if (!promise) throw new Error(what);
};

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

const train = (dataset: string, out: string, args: readonly string[]): Promise<Finished> =>
  run(join(values.venv, 'bin/python'), [
    ...[join(ROOT, 'examples/train', values.trainer), '--dataset', dataset, '--out', out],
    ...[...args, ...vllm],
  ]);

/** Starts a vLLM with the random tiny model. Returns the options with which the trainer uses it. */
async function startVllm(folder: string): Promise<string[]> {
  const model = join(values.folder, 'model');
  const made = await run(join(values.venv, 'bin/python'), [join(ROOT, 'examples/train/own/tiny.py'), model]);
  must(made.code === 0, made.stderr);
  const up = await run('bash', [join(import.meta.dirname, '../vllm/up.sh'), folder], {
    MODEL: model,
    PORT: String(await freePort()),
    // The model's max_position_embeddings (CONTEXT of tiny.py). vLLM refuses a longer context.
    CONTEXT: '2048',
  });
  must(up.code === 0, up.stderr);
  return ['--vllm', up.stdout.trim(), '--folder', model];
}

/** Returns the mean rewards of the first and the last tenth of the steps, and the largest distance of a ratio from 1. */
async function tenths(out: string): Promise<{ first: number; last: number; farthest: number }> {
  const steps = (await readFile(out, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const rewards = steps.map(({ reward }) => Number(reward));
  const tenth = Math.ceil(rewards.length / 10);
  const farthest = Math.max(...steps.map(({ ratio_distance }) => Number(ratio_distance)));
  return { first: mean(rewards.slice(0, tenth)), last: mean(rewards.slice(-tenth)), farthest };
}

const rose = ({ first, last }: { first: number; last: number }): boolean => last >= 2 * first && last > 0.6;

async function curve(dataset: string, name: string, args: readonly string[]) {
  const out = join(values.folder, `${name}.jsonl`);
  const { code, stderr } = await train(dataset, out, ['--name', name, ...args]);
  must(code === 0, `exit code ${code}: ${stderr.slice(-2000)}`);
  const ends = await tenths(out);
  must(ends.farthest <= 1e-4, `an importance ratio differs from 1 by ${ends.farthest}`);
  const shown = `mean reward ${ends.first.toFixed(2)} in the first tenth, ${ends.last.toFixed(2)} in the last`;
  return { ends, shown: `${shown}; importance ratios within ${ends.farthest.toExponential(1)} of 1` };
}

async function learns(dataset: string, seed: string): Promise<string> {
  const { ends, shown } = await curve(dataset, `seed-${seed}`, ['--seed', seed]);
  must(rose(ends), shown);
  return shown;
}

async function control(dataset: string): Promise<string> {
  const { ends, shown } = await curve(dataset, 'control', ['--control']);
  must(!rose(ends), shown);
  return shown;
}

async function spoiled(dataset: string): Promise<string> {
  const args = ['--steps', '2', '--spoil', '1', '--group-size', '2', '--name', 'spoiled'];
  const { code, stderr } = await train(dataset, join(values.folder, 'spoiled.jsonl'), args);
  must(code === 1 && /Broken: .*importance ratio/.test(stderr), `exit code ${code}: ${stderr}`);
  return /Broken: (.*)/.exec(stderr)?.[1] ?? '';
}

const setup = await run('bash', [join(import.meta.dirname, 'setup.sh'), values.venv]);
if (setup.code !== 0) throw new Error(setup.stderr);
await mkdir(values.folder, { recursive: true });
const { files } = await buildExamples({ ids: EXAMPLES, for: 'rootfs', host: true, out: values.folder });
const vllm = values.vllm === undefined ? [] : await startVllm(values.vllm);
const checks: [name: string, check: () => Promise<string>][] = values.only.flatMap((name) => {
  if (name === 'learns') {
    return values.seed.map((seed) => [`learns, seed ${seed}`, () => learns(files.rootfs, seed)] as const);
  }
  return [[name, () => (name === 'control' ? control : spoiled)(files.rootfs)] as const];
}) as never;
let failed = 0;
for (const [name, check] of checks) {
  const from = performance.now();
  const [mark, outcome] = await check().then(
    (shown) => ['ok  ', shown] as const,
    (error: unknown) => ['FAIL', errorMessage(error)] as const,
  );
  if (mark === 'FAIL') failed++;
  console.log(`${mark} ${name}: ${outcome} (${((performance.now() - from) / 1000).toFixed(0)} s)`);
}
console.log(`${checks.length - failed} passed, ${failed} failed`);
if (values.vllm !== undefined) {
  process.kill(-Number(await readFile(join(values.vllm, 'pid'), 'utf8')), 'SIGKILL');
}
process.exitCode = failed > 0 ? 1 : 0;
