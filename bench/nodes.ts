/**
 * Many simulated nodes in one process; each has the loops and connections of a real worker. fleet.ts starts this process,
 * controls the rollouts by messages, and kills the process to lose all of its nodes.
 */
import { loadConfig, onAbort, type RolloutJob, sleep, type Trajectory } from '@swefarm/shared';
import { bareTrajectory, bareTurn } from '@swefarm/testkit';
import { simulateWorker } from '@swefarm/worker/test/simulated.ts';
import { secondsOf, shareOf } from './durations.ts';

export type NodesConfig = {
  names: readonly string[];
  slots: number;
  redisUrl: string;
  redisPrefix: string;
};

export type Order =
  /** Rollouts of this run take their drawn duration divided by this number. All other rollouts run until they are released. */
  | { order: 'time'; run_id: string; compress: number }
  /** Ends this share of the rollouts that run, and of those that start later. */
  | { order: 'release'; share: number }
  /** Each running rollout reports one more turn. */
  | { order: 'turn' };

/** The events since the last report. */
export type News = { up: number; started: string[]; ended: string[]; pulled: string[]; cpu_ms: number };

/** A pull of half a minute, compressed by the same factor as the durations. */
const PULL_MS = 500;
const NEWS_MS = 50;
/** Number of nodes that connect at the same time. */
const AT_ONCE = 10;

type Waiting = { id: string; turns: number; publish(trajectory: Trajectory): void; end(): void };

const config = JSON.parse(process.argv[2] ?? '') as NodesConfig;
const compress = new Map<string, number>();
const waiting = new Set<Waiting>();
let released = 0;
let news = { up: 0, started: [] as string[], ended: [] as string[], pulled: [] as string[] };

async function work(
  job: RolloutJob,
  { signal, turns: publish }: { signal: AbortSignal; turns(trajectory: Trajectory): void },
): Promise<void> {
  const id = job.rollout_id;
  news.started.push(id);
  try {
    const by = compress.get(job.run_id);
    if (by !== undefined) await sleep((1000 * secondsOf(id)) / by, signal);
    else if (shareOf(id) >= released) {
      await new Promise<void>((end, reject) => {
        const one: Waiting = { id, turns: 0, publish, end };
        waiting.add(one);
        onAbort(signal, () => reject(signal.reason));
      });
    }
  } finally {
    news.ended.push(id);
  }
}

process.on('message', (order: Order) => {
  if (order.order === 'time') compress.set(order.run_id, order.compress);
  if (order.order === 'turn') {
    for (const one of waiting) one.publish(trajectoryOf(++one.turns));
  }
  if (order.order === 'release') {
    released = order.share;
    for (const one of [...waiting].filter(({ id }) => shareOf(id) < released)) {
      waiting.delete(one);
      one.end();
    }
  }
});
// This process must not outlive the measurement.
process.on('disconnect', () => process.exit(0));

setInterval(() => {
  const { user, system } = process.cpuUsage();
  process.send?.({ ...news, cpu_ms: (user + system) / 1000 } satisfies News);
  news = { up: 0, started: [], ended: [], pulled: [] };
}, NEWS_MS);

for (let at = 0; at < config.names.length; at += AT_ONCE) {
  await Promise.all(config.names.slice(at, at + AT_ONCE).map(start));
}

async function start(name: string): Promise<void> {
  const { redisUrl, redisPrefix } = config;
  const flags = { redisUrl, redisPrefix, workerId: name, node: `node-${name}` };
  await simulateWorker(loadConfig('worker', { env: {}, flags }), {
    slots: config.slots,
    async pull(image) {
      news.pulled.push(image);
      await sleep(PULL_MS);
    },
    work,
  });
  news.up += 1;
}

const THOUGHT = 'The failing test calls the parser with an empty list. '.repeat(8);
const SHOWN = 'src/package/module.py:120:    def parse(self, text):\n'.repeat(40);

/** Returns typical turns, each with some words, a command, and 2 KB of output. */
function trajectoryOf(count: number): Trajectory {
  const turns = Array.from({ length: count }, (_, turn) =>
    bareTurn(1 + turn * 2, {
      model_seconds: 4,
      usage: { prompt_tokens: 9_000, completion_tokens: 200 },
      commands: [{ command: 'grep -rn parse', exit_code: 0, seconds: 0.1, output_bytes: 2_000, note: null }],
    }),
  );
  const messages = turns.flatMap(() => [
    { role: 'assistant' as const, content: THOUGHT },
    { role: 'user' as const, content: SHOWN },
  ]);
  return bareTrajectory({
    ...{ model: null, turns, exit_status: null },
    messages: [{ role: 'user', content: 'It breaks.' }, ...messages],
  });
}
