/** Two farms, and two workers of one farm, on one host and one engine: each removes only its own dead sandboxes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Container } from '@swefarm/sandbox';
import { LIMITS, NEVER, sh, spec } from '@swefarm/sandbox/test/subject.ts';
import { newId, processStarted, silentLog } from '@swefarm/shared';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Identity, identify, reap } from '../src/node/reaper.ts';
import { useRuntime } from './evaluation/evaluator.ts';

const FARMS = { a: `a-${newId()}`, b: `b-${newId()}` };
const [, namespace = ''] = identify('', '', '').pid_started.split('@');

/** Processes in place of workers: one lives, one was killed. */
let living: ChildProcess;
let dead: { pid: number; started: string };
beforeAll(async () => {
  living = spawn('sleep', ['600']);
  const killed = spawn('sleep', ['600']);
  dead = { pid: killed.pid ?? 0, started: processStarted(killed.pid ?? 0) ?? '' };
  killed.kill('SIGKILL');
  await once(killed, 'exit');
});
afterAll(async () => {
  living.kill('SIGKILL');
});

const worker = (farm: string, name: string, pid: number, started: string | null): Identity => ({
  ...{ farm, worker: name, node: 'n', pid, pid_started: `${started}@${namespace}` },
});

describe.each(['docker', 'rootfs'] as const)('%s', (name) => {
  const at = useRuntime(name);
  test('sweeps of two farms remove their own dead sandboxes; each sandbox has its own limits', async () => {
    const { runtime, image } = at;
    await using stack = new AsyncDisposableStack();
    const startAs = async (who: Identity): Promise<Container> => {
      const { farm, worker: id, pid, pid_started } = who;
      const owner = { farm, worker: id, pid, pid_started, rollout_id: 'r.i.0', attempt: 1 };
      return stack.use(await runtime.start(spec(image, { owner, limits: { ...LIMITS, pids: 60 } }), NEVER));
    };
    const alive = (farm: string): Identity =>
      worker(farm, `alive-${farm}`, living.pid ?? 0, processStarted(living.pid ?? 0));
    const gone = (farm: string): Identity => worker(farm, `gone-${farm}`, dead.pid, dead.started);
    const boxes = {
      aAlive: await startAs(alive(FARMS.a)),
      aGone: await startAs(gone(FARMS.a)),
      bAlive: await startAs(alive(FARMS.b)),
      bGone: await startAs(gone(FARMS.b)),
    };
    const sweep = (farm: string) =>
      reap({
        runtime,
        self: identify(farm, `sweeper-${farm}`, 'n'),
        // A worker without a record is alive while its process is.
        registry: { list: async () => [] },
        active: { list: () => [] },
        log: silentLog(),
      });
    const left = async (): Promise<string[]> => {
      const owned = await runtime.listOwned();
      const ids = new Set(owned.map(({ id }) => id));
      return Object.entries(boxes).flatMap(([box, { id }]) => (ids.has(id) ? [box] : []));
    };

    // One sandbox exhausts its processes; the others, of its farm and of the other one, are not affected.
    await sh(boxes.aAlive, 'for i in $(seq 200); do sleep 100 & done 2>/dev/null; true').catch(
      () => undefined,
    );
    for (const box of [boxes.bAlive, boxes.bGone]) {
      const many = 'for i in $(seq 30); do sleep 0.1 & done; wait; echo all';
      expect((await sh(box, many)).output.toString()).toBe('all\n');
    }

    expect(await sweep(FARMS.a)).toBe(1);
    expect(await left()).toEqual(['aAlive', 'bAlive', 'bGone']);
    expect(await sweep(FARMS.a)).toBe(0);
    expect(await sweep(FARMS.b)).toBe(1);
    expect(await left()).toEqual(['aAlive', 'bAlive']);
    expect((await sh(boxes.bAlive, 'echo works')).output.toString()).toBe('works\n');
  });
});
