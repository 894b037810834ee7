/** Simulated nodes in a few processes: tracks what runs where and what was pulled, and kills some nodes at once. */

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { until } from '@swefarm/testkit';
import type { News, NodesConfig, Order } from './nodes.ts';

/** With more nodes, one event loop would be too slow. */
const NODES_PER_PROCESS = 150;
export const PATIENCE = { withinMs: 600_000 };
const PROGRAM = fileURLToPath(new URL('./nodes.ts', import.meta.url));

export type Fleet = AsyncDisposable & {
  send(order: Order): void;
  running(): number;
  /** Image names, one entry for each node that pulled the image. */
  readonly pulled: readonly string[];
  /** Summed over all living nodes. */
  cpuMs(): number;
  /** Kills a tenth of the nodes with SIGKILL and returns the rollouts that they ran. */
  lose(): string[];
  /** Resolves when each of these rollouts runs again after {@link lose}, with the milliseconds of each in ascending order. */
  recovered(rollouts: readonly string[]): Promise<number[]>;
};

type Part = { process: ChildProcess; up: number; cpuMs: number; running: Map<string, number>; lost: boolean };

/** The nodes that will be killed, a tenth of all, have a process of their own. */
export async function startFleet(count: number, config: Omit<NodesConfig, 'names'>): Promise<Fleet> {
  const names = Array.from({ length: count }, (_, at) => `n${String(at).padStart(4, '0')}`);
  const pulled: string[] = [];
  /** Rollout → when it was last started, by the monotonic clock. */
  const startedAt = new Map<string, number>();
  let lostAt = 0;
  const parts = divided(names).map((mine): Part => {
    const child = fork(PROGRAM, [JSON.stringify({ ...config, names: mine })], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const part: Part = { process: child, up: 0, cpuMs: 0, running: new Map(), lost: false };
    child.on('message', (news: News) => {
      if (part.lost) return;
      part.up += news.up;
      part.cpuMs = news.cpu_ms;
      pulled.push(...news.pulled);
      for (const id of news.started) {
        // A rollout is on two nodes at once when the first one lost the lock and has not noticed it yet.
        part.running.set(id, (part.running.get(id) ?? 0) + 1);
        startedAt.set(id, performance.now());
      }
      for (const id of news.ended) {
        const left = (part.running.get(id) ?? 0) - 1;
        if (left > 0) part.running.set(id, left);
        else part.running.delete(id);
      }
    });
    return part;
  });
  const living = (): Part[] => parts.filter(({ lost }) => !lost);
  const sum = (of: (part: Part) => number): number => living().reduce((all, part) => all + of(part), 0);
  const kill = (): void => {
    for (const { process } of parts) process.kill('SIGKILL');
  };
  process.once('exit', kill);
  await until(() => {
    const ended = living().find((part) => part.process.exitCode !== null);
    if (ended) throw new Error(`simulated nodes ended with ${ended.process.exitCode} before all were up`);
    return sum(({ up }) => up) === count;
  }, PATIENCE);
  return {
    pulled,
    send: (order) => void living().map((part) => part.process.send(order)),
    running: () => sum(({ running }) => running.size),
    cpuMs: () => sum(({ cpuMs }) => cpuMs),
    lose() {
      const [first] = parts;
      if (!first) return [];
      first.process.kill('SIGKILL');
      first.lost = true;
      lostAt = performance.now();
      // A rollout is not lost if another node took it over because this node renewed its lock too late.
      return [...first.running.keys()].filter((id) => !living().some(({ running }) => running.has(id)));
    },
    async recovered(rollouts) {
      const after = (id: string): number => (startedAt.get(id) ?? 0) - lostAt;
      await until(() => rollouts.every((id) => after(id) > 0), PATIENCE);
      return rollouts.map(after).sort((a, b) => a - b);
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', kill);
      kill();
      await until(() =>
        parts.every(({ process: { exitCode, signalCode } }) => exitCode !== null || signalCode !== null),
      );
    },
  };
}

function divided(names: readonly string[]): string[][] {
  const lost = Math.floor(names.length / 10);
  const rest = names.length - lost;
  const each = Math.ceil(rest / Math.ceil(rest / NODES_PER_PROCESS));
  const parts = lost > 0 ? [names.slice(0, lost)] : [];
  for (let at = lost; at < names.length; at += each) parts.push(names.slice(at, at + each));
  return parts;
}
