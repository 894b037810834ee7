/** Workers, submitter, canceller and maintenance of one run. Steps call the real farm; the queue is a model. */
import type { Redis } from 'ioredis';
import {
  type AttemptName,
  decide,
  type Farm,
  newId,
  parseRolloutId,
  type Result,
  type RunRecord,
} from '../../src/index.ts';
import type { Keys } from '../../src/redis/keys.ts';
import { testInstance, testResult, testRun } from '../farm.ts';
import { copyRun, type KeyCopy, restoreRun } from './copy.ts';
import { type Copy, type Delivery, ModelQueue, type QueueRules } from './delivery.ts';

export const WORKERS = 3;
const GROUP = 'a__b.c-1';

/**
 * `store`: the artifact is written before the commit. `pause`: the lock is lost, and the attempt may finish late. `die`: the worker
 * stops. `beat`: a worker asks which of its attempts must stop. `go back`: Redis returns to the last `copy`, all processes continue.
 */
export type Step =
  | { do: 'claim'; worker: number; choice: number }
  | { do: 'finish' | 'store' | 'fail' | 'pause' | 'die' | 'drain'; choice: number }
  | { do: 'resubmit' | 'cancel' | 'keep' | 'keeper dies half way' }
  | { do: 'copy' | 'go back' | 'locks lapse' }
  | { do: 'beat'; worker: number }
  | { do: 'lose job'; index: number };

type Attempt = AttemptName & { delivery: Delivery; worker: string; stored: string | null };

export type World = {
  step(step: Step): Promise<void>;
  finish(): Promise<void>;
  results(): Promise<Map<string, number>>;
  /** Rollouts whose result and artifact are of different attempts. */
  torn(): Promise<string[]>;
};

export type Ground = { farm: Farm; redis: Redis; keys: Keys };

export async function openWorld(
  { farm, redis, keys }: Ground,
  size: number,
  rules: QueueRules,
): Promise<World & { ids: string[] }> {
  const run: RunRecord = testRun({ group_size: size });
  await farm.runs.create(run, [testInstance(GROUP)]);
  const ids = await farm.groups.rollouts(run.run_id);
  const queue = new ModelQueue(rules);
  const running: Attempt[] = [];
  const lives = Array(WORKERS).fill(0);
  /** How often the queue completed each rollout: the outcomes, if `outcomeBy` is `completion`. */
  const completed = new Map<string, number>();

  const commit = async (id: string, by: AttemptName & { worker: string }, change: Partial<Result>) => {
    const { index } = parseRolloutId(id);
    const { attempt, claim, worker } = by;
    return await farm.commit(
      run,
      testResult(run.run_id, index, { instance_id: GROUP, attempt, claim, worker, ...change }),
    );
  };
  const store = async (one: Attempt): Promise<void> => {
    one.stored = await farm.artifacts.put(one.delivery.rolloutId, one, Buffer.from(one.claim));
  };
  /** Stores the artifact, then commits; a late attempt removes its artifact. */
  const finishAttempt = async (one: Attempt): Promise<void> => {
    if (rules.outcomeBy === 'completion') return;
    for (;;) {
      if (one.stored === null) await store(one);
      const reply = await commit(one.delivery.rolloutId, one, { artifact: one.stored });
      if (reply.status === 'artifact_lost') one.stored = null;
      else if (reply.status === 'committed') return;
      else if (one.stored) return await farm.artifacts.remove(one.stored);
    }
  };
  const none = { resolved: null, reward: null, artifact: null } as const;
  const cancelled = { ...none, outcome: 'cancelled', reward_row: 'cancelled' } as const;
  const end = (one: Attempt): void => void running.splice(running.indexOf(one), 1);
  const complete = (one: { delivery: Delivery }): void => {
    const { rolloutId } = one.delivery;
    if (queue.complete(one.delivery)) completed.set(rolloutId, (completed.get(rolloutId) ?? 0) + 1);
  };
  const nameOf = (worker: number): string => `w${worker}-${lives[worker]}`;

  const claim = async (worker: number, choice: number): Promise<void> => {
    const delivery = queue.take(choice);
    if (!delivery) return;
    const { rolloutId } = delivery;
    const by = { worker: nameOf(worker), node: `n${worker}` };
    // A worker does not start a running rollout again; its attempt gets the new lock.
    const same = running.find((one) => one.worker === by.worker && one.delivery.rolloutId === rolloutId);
    if (same) return void Object.assign(same, { delivery });
    const reply = await farm.journal.claim(rolloutId, by);
    if (reply.status !== 'claimed') return complete({ delivery });
    const { attempt, claim } = reply;
    const one: Attempt = { delivery, attempt, claim, worker: by.worker, stored: null };
    const decision = decide(reply.previous, 0);
    if (reply.cancelled || decision.action === 'give_up') {
      const failure = decision.action === 'give_up' ? decision.failure : null;
      const failed = { ...none, outcome: 'failed', reward_row: 'failed', failure } as const;
      if (rules.outcomeBy === 'commit') await commit(rolloutId, one, reply.cancelled ? cancelled : failed);
      return complete(one);
    }
    running.push(one);
  };

  /** A round of maintenance, interrupted after `most` rollouts. */
  const trimQueue = async (most = Number.POSITIVE_INFINITY): Promise<void> => {
    let done = 0;
    const open = await farm.groups.open(run.run_id);
    const marks = await farm.cancel.isCancelled(open);
    for (const id of open) {
      if (done++ >= most) return;
      const isRunning = running.some((one) => one.delivery.rolloutId === id);
      if (marks.has(id) && !isRunning && rules.outcomeBy === 'commit') {
        const attempt = (await farm.journal.read(id)).at(-1)?.attempt ?? 0;
        await commit(id, { attempt, claim: newId(), worker: 'keeper' }, cancelled);
      } else for (const lost of queue.missing([id])) queue.add(lost);
    }
  };

  const beat = async (worker: number): Promise<void> => {
    const by = { worker: nameOf(worker), node: `n${worker}` };
    const mine = running.filter((one) => one.worker === by.worker);
    const names = mine.map((one) => ({ ...one, rollout_id: one.delivery.rolloutId }));
    const over = await farm.journal.renewAttempts(by, names);
    for (const one of mine.filter(({ delivery }) => over.has(delivery.rolloutId))) {
      end(one);
      complete(one);
    }
  };

  let saved: { keys: KeyCopy; queue: Copy };
  const copy = async (): Promise<void> => {
    saved = { keys: await copyRun(redis, keys, run.run_id), queue: queue.copy() };
  };

  const during = async (what: 'finish' | 'store' | 'fail' | 'pause' | 'die' | 'drain', one: Attempt) => {
    const { rolloutId } = one.delivery;
    if (what === 'store') return rules.outcomeBy === 'commit' ? await store(one) : undefined;
    if (what === 'pause') return queue.stall(one.delivery);
    if (what === 'die') {
      lives[Number(one.worker[1])] += 1;
      for (const lost of running.filter(({ worker }) => worker === one.worker)) {
        queue.stall(lost.delivery);
        end(lost);
      }
      return;
    }
    end(one);
    if (what === 'finish') {
      await finishAttempt(one);
      await farm.journal.end(rolloutId, one.claim, { stage: null, class: 'done', cause: null });
      return complete(one);
    }
    const lost = { stage: 'sandbox', class: 'sandbox_lost', cause: null } as const;
    const drained = { stage: null, class: 'drained', cause: null } as const;
    await farm.journal.end(rolloutId, one.claim, what === 'drain' ? drained : lost);
    return queue.giveBack(one.delivery);
  };

  const step = async (what: Step): Promise<void> => {
    switch (what.do) {
      case 'claim':
        return await claim(what.worker, what.choice);
      case 'resubmit': {
        const committed = await farm.results.committedIds(run.run_id);
        for (const id of ids) if (!committed.has(id) && !completed.has(id)) queue.add(id);
        return;
      }
      case 'cancel':
        return await farm.cancel.cancelRollouts(ids.slice(0, 1));
      case 'keep':
        return await trimQueue();
      case 'keeper dies half way':
        return await trimQueue(1);
      case 'lose job':
        return queue.lose(ids[what.index % ids.length] ?? '');
      case 'locks lapse':
        return queue.expire([]);
      case 'beat':
        return await beat(what.worker);
      case 'copy':
        return await copy();
      case 'go back':
        await restoreRun(redis, keys, run.run_id, saved.keys);
        return queue.restore(saved.queue);
      default: {
        const one = running[what.choice % Math.max(1, running.length)];
        if (one) await during(what.do, one);
      }
    }
  };

  /** Runs all processes without faults, for enough rounds to end every rollout. */
  const finish = async (): Promise<void> => {
    for (let round = 0; round < 12 * ids.length; round++) {
      while (running.length > 0) await step({ do: 'finish', choice: 0 });
      if (rules.outcomeBy === 'commit') queue.expire([]);
      await trimQueue();
      await claim(0, 0);
    }
  };

  const read = async () => (await farm.results.read(run.run_id, '0')).results.map(({ result }) => result);
  const results = async (): Promise<Map<string, number>> => {
    if (rules.outcomeBy === 'completion') return new Map(ids.map((id) => [id, completed.get(id) ?? 0]));
    const counts = new Map(ids.map((id) => [id, 0]));
    for (const { rollout_id } of await read()) counts.set(rollout_id, (counts.get(rollout_id) ?? 0) + 1);
    return counts;
  };
  const torn = async (): Promise<string[]> => {
    const judged = (await read()).filter(({ outcome }) => outcome === 'judged');
    const whole = await Promise.all(
      judged.map(async ({ artifact, claim }) => {
        const content = farm.artifacts.get(artifact ?? '').then(String, () => null);
        return (await content) === claim;
      }),
    );
    return judged.flatMap(({ rollout_id }, at) => (whole[at] ? [] : [rollout_id]));
  };
  for (const id of ids) queue.add(id);
  await copy();
  return { ids, step, finish, results, torn };
}
