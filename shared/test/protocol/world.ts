/** Workers, a submitter, a canceller and a keeper over one run: each step is one call they really make. */
import { decide, type Farm, parseRolloutId, type Result, type RunRecord } from '../../src/index.ts';
import { testInstance, testResult, testRun } from '../farm.ts';
import { type Delivery, ModelQueue, type QueueRules } from './delivery.ts';

export const WORKERS = 3;
const GROUP = 'a__b.c-1';

/** `pause`: the lock is lost, the attempt goes on and may finish late. `die`: it never says another word. */
export type Step =
  | { do: 'claim'; worker: number; choice: number }
  | { do: 'finish' | 'fail' | 'pause' | 'die' | 'drain'; choice: number }
  | { do: 'resubmit' | 'cancel' | 'keep' | 'keeper dies half way' }
  | { do: 'lose job'; index: number };

type Attempt = { delivery: Delivery; attempt: number; worker: string; alive: boolean };

export type World = {
  step(step: Step): Promise<void>;
  settle(): Promise<void>;
  results(): Promise<Map<string, number>>;
};

export async function openWorld(
  farm: Farm,
  size: number,
  rules: QueueRules,
): Promise<World & { ids: string[] }> {
  const run: RunRecord = testRun({ group_size: size });
  await farm.runs.create(run, [testInstance(GROUP)]);
  const ids = await farm.groups.rollouts(run.run_id);
  const queue = new ModelQueue(rules);
  const running: Attempt[] = [];
  let life = 0;
  /** What the queue alone would call the outcome: every job that it completed or failed. */
  const completed = new Map<string, number>();

  const commit = async (
    id: string,
    attempt: number,
    worker: string,
    change: Partial<Result>,
  ): Promise<void> => {
    if (rules.outcomeBy === 'completion') return;
    const { index } = parseRolloutId(id);
    await farm.commit(run, testResult(run.run_id, index, { instance_id: GROUP, attempt, worker, ...change }));
  };
  const cancelled = { outcome: 'cancelled', resolved: null, reward: null, reward_row: 'cancelled' } as const;
  const end = (one: Attempt): void => void running.splice(running.indexOf(one), 1);
  const complete = (one: Attempt): void => {
    const { rolloutId } = one.delivery;
    if (queue.complete(one.delivery)) completed.set(rolloutId, (completed.get(rolloutId) ?? 0) + 1);
  };

  const claim = async (worker: number, choice: number): Promise<void> => {
    const delivery = queue.take(choice);
    if (!delivery) return;
    const name = `w${worker}-${life++}`;
    const claim = await farm.journal.claim(delivery.rolloutId, { worker: name, node: `n${worker}` });
    const one: Attempt = { delivery, attempt: 0, worker: name, alive: true };
    if (claim.status !== 'claimed') return complete(one);
    one.attempt = claim.attempt;
    const decision = decide(claim.previous, 0);
    if (claim.cancelled || decision.action === 'give_up') {
      const failure = decision.action === 'give_up' ? decision.failure : null;
      const failed = {
        outcome: 'failed',
        resolved: null,
        reward: null,
        reward_row: 'failed',
        failure,
      } as const;
      await commit(delivery.rolloutId, claim.attempt, name, claim.cancelled ? cancelled : failed);
      return complete(one);
    }
    running.push(one);
  };

  /** The keeper's round, cut off after `most` rollouts. */
  const keep = async (most = Number.POSITIVE_INFINITY): Promise<void> => {
    let done = 0;
    const open = await farm.groups.open(run.run_id);
    const marks = await farm.cancel.isCancelled(open);
    for (const id of open) {
      if (done++ >= most) return;
      const held = running.some((one) => one.alive && one.delivery.rolloutId === id);
      if (marks.has(id) && !held)
        await commit(id, (await farm.journal.read(id)).at(-1)?.attempt ?? 0, 'keeper', cancelled);
      else for (const lost of queue.missing([id])) queue.add(lost);
    }
  };

  const step = async (what: Step): Promise<void> => {
    if (what.do === 'claim') return await claim(what.worker, what.choice);
    if (what.do === 'resubmit') {
      const settled = await farm.results.committedIds(run.run_id);
      for (const id of ids) if (!settled.has(id) && !completed.has(id)) queue.add(id);
      return;
    }
    if (what.do === 'cancel') return await farm.cancel.cancelRollouts(ids.slice(0, 1));
    if (what.do === 'keep') return await keep();
    if (what.do === 'keeper dies half way') return await keep(1);
    if (what.do === 'lose job') return queue.lose(ids[what.index % ids.length] ?? '');
    if (!('choice' in what)) return;
    const alive = running.filter((one) => one.alive);
    const one = alive[what.choice % Math.max(1, alive.length)];
    if (!one) return;
    const { rolloutId } = one.delivery;
    if (what.do === 'pause') return queue.stall(one.delivery);
    if (what.do === 'die') {
      one.alive = false;
      queue.stall(one.delivery);
      return end(one);
    }
    end(one);
    if (what.do === 'drain') {
      await farm.journal.end(rolloutId, one.attempt, { stage: null, class: 'drained', cause: null });
      return queue.giveBack(one.delivery);
    }
    if (what.do === 'fail') {
      const lost = { stage: 'sandbox', class: 'sandbox_lost', cause: null } as const;
      await farm.journal.end(rolloutId, one.attempt, lost);
      return queue.giveBack(one.delivery);
    }
    await commit(rolloutId, one.attempt, one.worker, {});
    await farm.journal.end(rolloutId, one.attempt, { stage: null, class: 'done', cause: null });
    complete(one);
  };

  /** The faults are over: everybody does what they do until nothing changes. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 12 * ids.length; round++) {
      while (running.length > 0) await step({ do: 'finish', choice: 0 });
      await keep();
      await claim(0, 0);
    }
  };

  const results = async (): Promise<Map<string, number>> => {
    if (rules.outcomeBy === 'completion') return new Map(ids.map((id) => [id, completed.get(id) ?? 0]));
    const counts = new Map(ids.map((id) => [id, 0]));
    for (const { result } of (await farm.results.read(run.run_id, '0')).results)
      counts.set(result.rollout_id, (counts.get(result.rollout_id) ?? 0) + 1);
    return counts;
  };
  for (const id of ids) queue.add(id);
  return { ids, step, settle, results };
}
