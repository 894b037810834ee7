import type { Live, LiveRollout, LiveTurn, Trajectory } from '@swefarm/shared';
import { bareTrajectory, bareTurn } from '@swefarm/testkit';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { startLive } from './live.ts';

/** Records the writes, which complete when `open` resolves. */
function watched(limit = 3) {
  const marks: LiveRollout[] = [];
  const turns: LiveTurn[] = [];
  const ended: string[] = [];
  let open = Promise.resolve();
  const live: Live = {
    mark: async (state) => {
      await open;
      marks.push(state);
    },
    turn: async (_id, turn) => {
      await open;
      turns.push(turn);
    },
    end: async (_worker, id) => void ended.push(id),
    running: async () => [],
    turns: async () => ({ turns: [], last_id: '0' }),
  };
  const deps = {
    live,
    clock: { now: () => 7 },
    worker: 'w',
    node: 'n',
    mostTurns: limit,
    log: pino({ level: 'silent' }),
  };
  return {
    ...{ marks, turns, ended, live, deps },
    block(until: Promise<void>) {
      open = until;
    },
  };
}

const turnsSoFar = (count: number): Trajectory =>
  bareTrajectory({
    messages: [
      { role: 'system', content: 'rules' },
      { role: 'user', content: 'problem' },
      ...Array.from({ length: count }, (_, at) => [
        { role: 'assistant' as const, content: `reply ${at}` },
        { role: 'user' as const, content: `output ${at}` },
      ]).flat(),
    ],
    turns: Array.from({ length: count }, (_, at) => bareTurn(2 + 2 * at)),
    exit_status: null,
  });

test('stages and turns are published in order and once; the first turn has the prompt', async () => {
  const { deps, marks, turns, ended } = watched();
  const trace = startLive(deps, 'r.i.0', 2);
  trace.stage('agent');
  trace.turns(turnsSoFar(1));
  await expect.poll(() => turns.length).toBe(1);
  trace.turns(turnsSoFar(2));
  await expect.poll(() => turns.length).toBe(2);
  await trace.end();
  expect(turns.map(({ turn, answer, messages }) => [turn, answer, messages.map((m) => m.content)])).toEqual([
    [1, 2, ['rules', 'problem', 'reply 0', 'output 0']],
    [2, 0, ['reply 1', 'output 1']],
  ]);
  expect(marks.at(-1)).toMatchObject({ rollout_id: 'r.i.0', attempt: 2, stage: 'agent', turns: 2 });
  expect(ended).toEqual(['r.i.0']);
});

test('after an outage of Redis only the latest turns are published', async () => {
  const { deps, turns, block } = watched(3);
  const back = Promise.withResolvers<void>();
  block(back.promise);
  const trace = startLive(deps, 'r.i.0', 1);
  for (let count = 1; count <= 50; count++) trace.turns(turnsSoFar(count));
  back.resolve();
  await expect.poll(() => turns.map((one) => one.turn)).toEqual([48, 49, 50]);
  await trace.end();
});

test('the end publishes the remaining turns, and nothing follows it', async () => {
  const { deps, turns, ended, block } = watched();
  const back = Promise.withResolvers<void>();
  block(back.promise);
  const trace = startLive(deps, 'r.i.0', 1);
  trace.turns(turnsSoFar(1));
  const over = trace.end();
  trace.turns(turnsSoFar(2));
  back.resolve();
  await over;
  expect([turns.map(({ turn }) => turn), ended]).toEqual([[1, 2], ['r.i.0']]);
  trace.turns(turnsSoFar(3));
  await trace.end();
  expect(turns).toHaveLength(2);
});

test('turns that Redis refused are published with the next write', async () => {
  const { deps, live, turns } = watched();
  const { mark } = live;
  live.mark = () => Promise.reject(new Error('away'));
  live.turn = () => Promise.reject(new Error('away'));
  const trace = startLive(deps, 'r.i.0', 1);
  trace.turns(turnsSoFar(1));
  await new Promise(setImmediate);
  Object.assign(live, { mark, turn: async (_id: string, turn: LiveTurn) => void turns.push(turn) });
  trace.turns(turnsSoFar(2));
  await trace.end();
  expect(turns.map(({ turn }) => turn)).toEqual([1, 2]);
});

test('a failing Redis does not fail the rollout', async () => {
  const { deps, live, ended } = watched();
  live.mark = () => Promise.reject(new Error('away'));
  const trace = startLive(deps, 'r.i.0', 1);
  trace.turns(turnsSoFar(1));
  await trace.end();
  expect(ended).toEqual(['r.i.0']);
});

test('with live_turns 0 nothing is published', async () => {
  const { deps, marks, ended } = watched(0);
  const trace = startLive(deps, 'r.i.0', 1);
  trace.turns(turnsSoFar(1));
  await trace.end();
  expect([marks, ended]).toEqual([[], []]);
});
