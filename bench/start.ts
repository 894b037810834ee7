/**
 * Measures the time of `swefarm --help`, `swefarm status`, and `swefarm rollout` until the first request to the model; and the floor,
 * which is the start of Node alone.
 */
import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { RuntimeName } from '@swefarm/shared';
import { conversation, type ScriptedPolicy, startScriptedPolicy, words, writeLines } from '@swefarm/testkit';
import { SOCKET } from './engine.ts';
import { type BenchEnvironment, openEnvironment } from './farm.ts';
import { skippedLines, table } from './print.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

export type StartCell = {
  what: string;
  /** `cold`: nothing was compiled before. `warm`: the command ran before. */
  cache: 'cold' | 'warm';
  /** Milliseconds of each round. */
  ms: number[];
  /** Milliseconds of each round of the other checkout. */
  before_ms: number[];
  /** CPU seconds of the command and of the processes that it waited for. */
  cpu_seconds: number[];
  before_cpu_seconds: number[];
};

export type StartPart = {
  against: string | null;
  /** Milliseconds of `node -e 0`, one sample for each round. */
  floor_ms: number[];
  cells: StartCell[];
  skipped: Skipped[];
};

export type StartOptions = {
  reps: number;
  /** Root of another checkout of this project, which is measured alternately with this one. */
  against: string | null;
};

type Scene = {
  environment: BenchEnvironment;
  policy: ScriptedPolicy;
  subject: Subject;
  dataset: string;
};

/** A measured command. `asks`: its time ends with the first request to the model. */
type Case = {
  what: string;
  args: (scene: Scene, folder: string) => string[];
  env: (scene: Scene) => Record<string, string>;
  asks: boolean;
};

const ROOT = resolve(import.meta.dirname, '..');
const withRedis = ({ environment }: Scene): Record<string, string> => ({
  SWEFARM_REDIS_URL: environment.redisUrl,
});

const COMMANDS: readonly Case[] = [
  { what: '--help', args: () => ['--help'], env: () => ({}), asks: false },
  { what: 'status', args: () => ['status'], env: withRedis, asks: false },
];

/** Returns the cases of a rollout until its first request, with a running Redis and with one that the command starts. */
const rolloutCases = (runtime: RuntimeName): Case[] =>
  (['Redis up', 'no Redis'] as const).map((redis) => ({
    what: `rollout, ${runtime}, ${redis}`,
    asks: true,
    env: (scene) => ({
      ...(redis === 'Redis up' ? withRedis(scene) : {}),
      SWEFARM_STATE_DIR: join(scene.environment.folder, 'state'),
      SWEFARM_SCRATCH_DIR: join(scene.environment.folder, 'scratch'),
      SWEFARM_DOCKER_SOCKET: SOCKET,
    }),
    args: ({ dataset, policy }, folder) =>
      words`rollout --dataset ${dataset} --output ${join(folder, 'out.jsonl')} --agent mini
        --policy-url ${policy.url} --model scripted --activate : --no-eval
        --runtime ${runtime} --concurrency 1`,
  }));

export async function measureStart(subject: Subject, { reps, against }: StartOptions): Promise<StartPart> {
  await using stack = new AsyncDisposableStack();
  const environment = stack.use(await openEnvironment());
  const script = conversation([{ submit: true }]);
  const policy = stack.use(await startScriptedPolicy({ script, tokens: false }));
  const dataset = await writeLines(join(environment.folder, 'rows.jsonl'), [subject.instance]);
  const scene = { environment, policy, subject, dataset };
  const { usable, skipped } = await usableRuntimes();
  const cases = [...COMMANDS, ...usable.flatMap(rolloutCases)];
  const cells = cases.flatMap(({ what }) => (['cold', 'warm'] as const).map((cache) => newCell(what, cache)));
  const part: StartPart = { against, floor_ms: [], cells, skipped };
  const roots = against === null ? [ROOT] : [ROOT, resolve(against)];
  // The first round fills the caches and is not counted.
  for (let rep = -1; rep < reps; rep++) {
    if (rep >= 0) part.floor_ms.push((await runTimed([process.execPath, '-e', '0'], {})).ms);
    for (const one of cases) {
      for (const cache of ['cold', 'warm'] as const) {
        const cell = cells.find((known) => known.what === one.what && known.cache === cache);
        // The order alternates, so that neither checkout always benefits from files that the other has cached.
        for (const root of rep % 2 === 0 ? roots : roots.toReversed()) {
          const { ms, cpuSeconds } = await measureOne(scene, one, root, cache);
          if (rep < 0 || !cell) continue;
          (root === ROOT ? cell.ms : cell.before_ms).push(Math.round(ms));
          (root === ROOT ? cell.cpu_seconds : cell.before_cpu_seconds).push(cpuSeconds);
        }
      }
      console.error(`  ${one.what}: round ${rep + 1} of ${reps} done`);
    }
  }
  return part;
}

const newCell = (what: string, cache: StartCell['cache']): StartCell => ({
  ...{ what, cache, ms: [], before_ms: [] },
  ...{ cpu_seconds: [], before_cpu_seconds: [] },
});

async function measureOne(scene: Scene, one: Case, root: string, cache: StartCell['cache']): Promise<Timed> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-'));
  try {
    const env = {
      ...one.env(scene),
      ...(cache === 'cold' ? { NODE_COMPILE_CACHE: join(folder, 'cache') } : {}),
    };
    const line = [process.execPath, join(root, 'producer/bin/swefarm.mjs'), ...one.args(scene, folder)];
    if (!one.asks) return await runTimed(line, env);
    const asked = untilAsked();
    const run = runTimed(line, env);
    const first = await Promise.race([asked.at, run.then(() => null)]);
    asked.forget();
    const { from, cpuSeconds } = await run;
    if (first === null) throw new Error(`${one.what} ended before its model was asked`);
    return { from, ms: first - from, cpuSeconds };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves with the time at which a request to the model reaches this process, by an event of Node's HTTP server. */
function untilAsked(): { at: Promise<number>; forget: () => void } {
  const channel = 'http.server.request.start';
  const { promise: at, resolve } = Promise.withResolvers<number>();
  const onRequest = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage };
    if (request.method === 'POST' && request.url?.endsWith('/chat/completions')) resolve(performance.now());
  };
  subscribe(channel, onRequest);
  return { at, forget: () => void unsubscribe(channel, onRequest) };
}

type Timed = { from: number; ms: number; cpuSeconds: number };

/** Runs a command. `cpuSeconds` includes all processes that were waited for, as bash's `time` counts them. */
async function runTimed(line: readonly string[], env: Record<string, string>): Promise<Timed> {
  const bare = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/root', LANG: 'C.UTF-8' };
  const timed = 'exec 3>&2; TIMEFORMAT="cpu %U %S"; time "$@" >/dev/null 2>&3 3>&-';
  const from = performance.now();
  const child = spawn('bash', ['-c', timed, 'bash', ...line], {
    env: { ...bare, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  const ms = performance.now() - from;
  const cpu = /^cpu ([\d.]+) ([\d.]+)$/m.exec(stderr);
  if (code !== 0 || !cpu) throw new Error(`${line.join(' ')} ended with ${code}:\n${stderr}`);
  return { from, ms, cpuSeconds: Number(cpu[1]) + Number(cpu[2]) };
}

export function printStart({ against, floor_ms, cells, skipped }: StartPart): string {
  const floor = median(floor_ms);
  const rows = cells.map(({ what, cache, ms, before_ms, cpu_seconds, before_cpu_seconds }) => {
    const before =
      against === null ? [] : [Math.round(median(before_ms)), rounded(median(before_cpu_seconds), 2)];
    const ratio =
      against === null ? [] : [rounded(median(before_ms.map((one, at) => one / (ms[at] ?? NaN))), 2)];
    return [
      ...[what, cache, median(ms), Math.max(...ms), rounded(median(ms) / floor, 1)],
      ...[rounded(median(cpu_seconds), 2), ...before, ...ratio],
    ];
  });
  const compared = against === null ? [] : ['before ms', 'before CPU s', 'before/now'];
  return [
    `From the command line to its end, of rollout to the first question (${floor_ms.length} rounds); floor: node -e 0, ${Math.round(floor)} ms`,
    table([['what', 'cache', 'p50 ms', 'worst', 'p50/floor', 'CPU s', ...compared], ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}
