/** Starts the farm for the scripts that run Gym's programs: Redis, scripted policy, one example, a worker and `serve`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { newId } from '@swefarm/shared';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import { gatewayUrl, startCommand, words } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { untilTerminated } from '../../src/launchers/untilterminated.ts';
import { loadScript } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type Check, endGym, type Gym, gymIn, startChecks } from './gym.ts';

export const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';
const ROOT = resolve(import.meta.dirname, '../../..');

type Options<Name extends string> = {
  venv: string;
  runtime: 'docker' | 'rootfs';
  numbers: Record<Name, number>;
};

/** Reads the options of the script: `--venv`, `--runtime`, and a number for each key of `defaults`. Exits with 2 without `--venv`. */
export function readOptions<Name extends string = never>(
  defaults = {} as Record<Name, number>,
): Options<Name> {
  const names = Object.keys(defaults) as Name[];
  const { values } = parseArgs({
    options: Object.fromEntries(['venv', 'runtime', ...names].map((name) => [name, { type: 'string' }])),
  });
  const told = values as Record<string, string | undefined>;
  if (told.venv === undefined) {
    const more = names.map((name) => ` [--${name} N]`).join('');
    console.error(`usage: ${basename(process.argv[1] ?? '')} --venv DIR [--runtime docker|rootfs]${more}`);
    process.exit(2);
  }
  return {
    venv: resolve(told.venv),
    runtime: told.runtime === 'rootfs' ? 'rootfs' : 'docker',
    numbers: Object.fromEntries(names.map((name) => [name, Number(told[name] ?? defaults[name])])) as Record<
      Name,
      number
    >,
  };
}

type Farm = AsyncDisposable & {
  folder: string;
  built: BuiltExamples;
  token: string;
  port: number;
  policyUrl: string;
  env: Record<string, string>;
  check: Check;
  /** Starts a program of Gym that ends with the farm. */
  startGym: (args: readonly string[]) => Gym;
  /** Waits for the checks or a signal, and sets the exit code of this process. */
  finish: (checks: Promise<void>) => Promise<void>;
};

/** `delayMs`: delay of each answer of the policy. Even rollouts resolve, odd rollouts do not. Without `concurrency` no worker starts. */
export async function startFarm(
  { venv, runtime }: Options<string>,
  options: { concurrency?: number; delayMs: number; serve?: string },
): Promise<Farm> {
  const terminated = untilTerminated();
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-gym-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { conversations } = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const variants = conversations.find(({ name }) => name?.startsWith('parse'))?.variants.slice(0, 2) ?? [];
  const script = { conversations: [{ variants }], delay: { fixed_ms: options.delayMs } };
  const redis = stack.use(await startRedis());
  const policy = stack.use(await startScriptedPolicy({ script }));
  const built = await buildExamples({ ids: [EXAMPLE], for: runtime, out: folder });
  const token = newId();
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_GATEWAY_TOKEN: token,
  };
  if (options.concurrency !== undefined) {
    const flags = words`run --runtime ${runtime} --concurrency ${options.concurrency}`;
    await stack.use(startCommand('swefarm-worker', flags, env)).until(/"msg":"ready"/);
  }
  const flags = words`serve --port 0 --policy-url ${policy.url} --model scripted --token-mode echo`;
  const more = (options.serve ?? '').split(' ').filter(Boolean);
  const url = await gatewayUrl(stack.use(startCommand('swefarm', [...flags, ...more], env)));
  const { check, wrong } = startChecks();
  const runGym = gymIn(venv, folder);
  const owned = stack.move();
  return {
    ...{ folder, built, token, port: Number(new URL(url).port), policyUrl: policy.url, env, check },
    startGym(args) {
      const gym = runGym(args);
      owned.defer(() => endGym(gym));
      return gym;
    },
    async finish(checks) {
      await Promise.race([terminated, checks]);
      console.log(wrong.length === 0 ? 'all good' : `${wrong.length} wrong`);
      process.exitCode = wrong.length === 0 ? 0 : 1;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
