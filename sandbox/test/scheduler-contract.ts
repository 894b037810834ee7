/** A scheduler that ends a job sends TERM to its processes one by one: to workers, and to sandboxes that are their children. */
import { poll, readProcessStat } from '@swefarm/shared';
import { expect, it } from 'vitest';
import { isCausedByCode } from '../src/attribution.ts';
import { allPids } from '../src/namespaces/processes.ts';
import { NEVER, OPTIONS, type Subject, start } from './subject.ts';

/** Descendants of this process. */
async function descendants(): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const pid of await allPids()) {
    const stat = readProcessStat(pid);
    if (stat) parents.set(pid, stat.parent);
  }
  const isOurs = (pid: number): boolean => {
    const parent = parents.get(pid) ?? 0;
    return parent === process.pid || (parent > 1 && isOurs(parent));
  };
  return [...parents.keys()].filter(isOurs);
}

/** Requirements of runtimes whose sandboxes are children of the worker. */
export function schedulerContract(subject: () => Subject): void {
  it.each([
    ['parents first', (a: number, b: number) => a - b],
    ['children first', (a: number, b: number) => b - a],
  ])(
    'TERM for every process, %s: the sandbox ends, and nobody takes it for its own doing',
    async (_order, order) => {
      const { runtime } = subject();
      const before = new Set(await descendants());
      await using container = await start(subject());
      const command = container.exec(['/bin/sh', '-c', 'echo in >/tmp/in; sleep 600'], OPTIONS).then(
        ({ exitCode }) => exitCode,
        (error: unknown) => error,
      );
      const isIn = async () => (await container.getFile('/tmp/in', 10, NEVER)) !== null || null;
      expect(await poll(isIn, { pauseMs: 50, withinMs: 60_000 })).toBe(true);
      const signalled = (await descendants()).filter((pid) => !before.has(pid)).sort(order);
      expect(signalled.length).toBeGreaterThan(2);
      for (const pid of signalled) {
        try {
          process.kill(pid, 'SIGTERM');
        } catch {
          // The process ended with its parent.
        }
      }
      const end = await command;
      // A program that TERM killed is judged by the container's end, which follows.
      if (end !== 143) {
        const fresh = () => start(subject());
        const suspect = { container, runtime, fresh, diskBytes: null, signal: NEVER };
        expect(await isCausedByCode(end, suspect)).toBe(false);
      }
      const isOver = async () => ((await container.state()) === 'running' ? null : container.state());
      expect(await poll(isOver, { pauseMs: 50, withinMs: 10_000 })).toBe('killed');
      await container[Symbol.asyncDispose]();
      expect((await runtime.listOwned()).map(({ id }) => id)).not.toContain(container.id);
      // The last process reports its end a moment before it is gone.
      await expect.poll(async () => (await descendants()).filter((pid) => !before.has(pid))).toEqual([]);
    },
  );
}
