/** All calls of the farm, with the roles that may make them and the objects for them. */
import { expect } from 'vitest';
import { encodeArtifact, type Farm, newId, type RunRecord, Secret } from '../src/index.ts';
import type { FarmRole } from '../src/redis/connect.ts';
import { nth, testInstance, testResult, testRun } from './farm.ts';

const ITEM = 'a__b.c-1';
const ARTIFACT = {
  format: 'swefarm-artifact-1',
  rollout_id: 'r.i.0',
  attempt: 1,
  instance_id: 'i',
  trajectory: null,
  patch: null,
  report: null,
  test_log: null,
  eval_script: null,
  failure_detail: null,
} as const;

/** Creates a run with a claimed rollout, a session and a call, for one call of the farm. */
export type World = {
  run: RunRecord;
  id: string;
  rollout: string;
  session: string;
  gateway: string;
  call: string;
};

export async function aWorld({ producer, worker }: Record<FarmRole, Farm>): Promise<World> {
  const run = testRun({ open: true });
  const id = run.run_id;
  await producer.runs.create(run, [testInstance(ITEM)], [['p', 'diff']]);
  const rollout = `${id}.${ITEM}.0`;
  await producer.jobs.enqueue(run, [rollout]);
  await worker.journal.claim(rollout, { worker: 'w', node: 'n' });
  await producer.sessions.create({ session_id: id, rollout_id: rollout, lease_ms: 60_000 });
  await worker.sessions.open(id, 'w', 'one');
  const gateway = await producer.calls.enlist(`h:${newId()}`);
  const opened = await producer.calls.open(
    { fingerprint: id, nonce: newId(), named: true },
    gateway,
    run,
    ITEM,
    60_000,
  );
  if (opened.status !== 'opened') throw new Error(opened.status);
  await producer.secrets.put(id, { secret: new Secret('a-key-of-a-policy'), origins: [] }, 60);
  await producer.policies.set(id, { version: '1' });
  return { run, id, rollout, session: id, gateway, call: opened.call_id };
}

const beat = {
  ...{ worker: 'w', node: 'n', runtime: 'host', slots: 1, active: 0, started_at: 1, metrics: null },
  paused: null,
};
const turn = {
  ...{ attempt: 1, turn: 1, at: 1, messages: [], answer: 0, finish_reason: null, model_seconds: 0 },
  ...{ usage: null, policy_version: { start: null, end: null }, commands: [] },
};
const where = { attempt: 1, worker: 'w', node: 'n', stage: 'agent', turns: 0, claimed_at: 1, at: 1 };
const never = new AbortController().signal;

type Call = readonly [by: readonly FarmRole[], call: (farm: Farm, world: World) => Promise<unknown>];
const W = ['worker'] as const;
const P = ['producer'] as const;
export const BOTH = ['worker', 'producer'] as const;

/** All functions of the farm by member; a test checks that the list is complete. */
export const CALLS: Record<string, Call> = {
  ping: [BOTH, (farm) => farm.ping()],
  vitals: [P, (farm) => farm.vitals()],
  commit: [W, (farm, { run, id }) => farm.commit(run, testResult(id, 0, { policy_version: '1' }))],
  'runs.create': [P, (farm) => farm.runs.create(testRun(), [testInstance()], [['p', 'diff']])],
  'runs.get': [BOTH, (farm, { id }) => farm.runs.get(id)],
  'runs.append': [P, (farm, { id }) => farm.runs.append(id, testInstance('x__y-2'))],
  'runs.getOpen': [P, (farm) => farm.runs.getOpen('name')],
  'runs.setOpen': [P, (farm, { id }) => farm.runs.setOpen(newId(), id, 60)],
  'runs.getInstance': [BOTH, (farm, { id }) => farm.runs.getInstance(id, ITEM)],
  'runs.getPatch': [BOTH, (farm, { id }) => farm.runs.getPatch(id, 'p')],
  'runs.instanceIds': [P, (farm, { id }) => farm.runs.instanceIds(id)],
  'runs.list': [P, (farm) => farm.runs.list()],
  'runs.unreadable': [P, (farm) => farm.runs.unreadable()],
  'runs.exists': [BOTH, (farm, { id }) => farm.runs.exists(id)],
  'runs.remove': [P, (farm, { id }) => farm.runs.remove(id)],
  'journal.claim': [W, (farm, { rollout }) => farm.journal.claim(rollout, { worker: 'w', node: 'n' })],
  'journal.end': [
    W,
    (farm, { rollout }) => farm.journal.end(rollout, 'one', { stage: null, class: 'done', cause: null }),
  ],
  'journal.read': [BOTH, (farm, { rollout }) => farm.journal.read(rollout)],
  'journal.readRetried': [BOTH, (farm, { id }) => farm.journal.readRetried(id)],
  'journal.countInWork': [BOTH, (farm, { id }) => farm.journal.countInWork(id)],
  'journal.renewAttempts': [
    W,
    (farm, { rollout }) =>
      farm.journal.renewAttempts({ worker: 'w', node: 'n' }, [{ rollout_id: rollout, ...nth(1) }]),
  ],
  'results.read': [P, (farm, { id }) => farm.results.read(id, '0')],
  'results.latest': [P, (farm, { id }) => farm.results.latest(id)],
  'results.committedIds': [P, (farm, { id }) => farm.results.committedIds(id)],
  'results.winners': [BOTH, (farm, { id }) => farm.results.winners(id, [`${id}.i.0`])],
  'results.get': [BOTH, (farm, { rollout }) => farm.results.get(rollout)],
  'results.unreadable': [P, (farm) => farm.results.unreadable()],
  'results.counts': [BOTH, (farm, { id }) => farm.results.counts(id)],
  'results.groups': [BOTH, (farm, { id }) => farm.results.groups(id)],
  'results.totals': [P, (farm) => farm.results.totals()],
  'results.versionTotals': [P, (farm) => farm.results.versionTotals()],
  'groups.unfinishedRuns': [BOTH, (farm) => farm.groups.unfinishedRuns()],
  'groups.rollouts': [BOTH, (farm, { id }) => farm.groups.rollouts(id)],
  'groups.open': [BOTH, (farm, { id }) => farm.groups.open(id)],
  'groups.rolloutParts': [BOTH, (farm, { id }) => Array.fromAsync(farm.groups.rolloutParts(id))],
  'groups.openParts': [BOTH, (farm, { id }) => Array.fromAsync(farm.groups.openParts(id))],
  'groups.left': [BOTH, (farm, { id }) => farm.groups.left(id)],
  'groups.stillOpen': [BOTH, (farm, { id, rollout }) => farm.groups.stillOpen(id, [rollout])],
  'groups.add': [BOTH, (farm, { id }) => farm.groups.add(id, ITEM, 1)],
  'groups.markDoneElsewhere': [P, (farm, { rollout }) => farm.groups.markDoneElsewhere([rollout])],
  'groups.reopen': [P, (farm, { rollout }) => farm.groups.reopen([rollout])],
  'groups.retire': [W, (farm, { id }) => farm.groups.retire(id)],
  'groups.pause': [BOTH, (farm, { id }) => farm.groups.pause(id, 'a test')],
  'groups.resume': [P, (farm, { id }) => farm.groups.resume(id, null)],
  'groups.paused': [BOTH, (farm, { id }) => farm.groups.paused(id)],
  'jobs.enqueue': [BOTH, (farm, { run, id }) => farm.jobs.enqueue(run, [`${id}.${ITEM}.1`])],
  'jobs.missing': [BOTH, (farm, { rollout }) => farm.jobs.missing([rollout])],
  'jobs.drop': [BOTH, (farm, { rollout }) => farm.jobs.drop([rollout])],
  'jobs.dropRun': [P, (farm, { id }) => farm.jobs.dropRun(id)],
  'nodes.drain': [P, (farm) => farm.nodes.drain('n')],
  'nodes.undrain': [P, (farm) => farm.nodes.undrain('n')],
  'nodes.drained': [BOTH, (farm) => farm.nodes.drained()],
  'cancel.cancelRun': [BOTH, (farm, { id }) => farm.cancel.cancelRun(id)],
  'cancel.cancelGroup': [BOTH, (farm, { id }) => farm.cancel.cancelGroup(id, ITEM)],
  'cancel.cancelRollouts': [BOTH, (farm, { rollout }) => farm.cancel.cancelRollouts([rollout])],
  'cancel.isCancelled': [BOTH, (farm, { rollout }) => farm.cancel.isCancelled([rollout])],
  'cancel.runCancelled': [BOTH, (farm, { id }) => farm.cancel.runCancelled(id)],
  'cancel.markParts': [BOTH, (farm, { id }) => Array.fromAsync(farm.cancel.markParts(id))],
  'cancel.epoch': [BOTH, (farm) => farm.cancel.epoch()],
  'registry.beat': [W, (farm) => farm.registry.beat(beat)],
  'registry.leave': [W, (farm) => farm.registry.leave('w')],
  'registry.lives': [BOTH, (farm) => farm.registry.lives('w')],
  'registry.canJudgeDead': [BOTH, async (farm) => farm.registry.canJudgeDead()],
  'registry.list': [BOTH, (farm) => farm.registry.list()],
  'registry.lost': [P, (farm) => farm.registry.lost()],
  'secrets.put': [
    P,
    (farm, { id }) => farm.secrets.put(id, { secret: new Secret('another-key'), origins: [] }, 60),
  ],
  'secrets.get': [
    BOTH,
    async (farm, { id }) => expect((await farm.secrets.get(id))?.secret.reveal()).toMatch(/key/),
  ],
  'secrets.remove': [P, (farm, { id }) => farm.secrets.remove(id)],
  'leases.acquire': [W, (farm, { id }) => farm.leases.acquire(id, 'w', 1000)],
  'leases.release': [W, (farm, { id }) => farm.leases.release(id, 'w')],
  'controls.note': [W, (farm, { id }) => farm.controls.note(id, 'gold', { starts: true, seconds: 1 })],
  'controls.read': [W, (farm, { id }) => farm.controls.read(id)],
  'probes.claim': [P, (farm, { id }) => farm.probes.claim(id, 1000)],
  'probes.store': [P, (farm, { id }) => farm.probes.store(id, { logprobs: null, problems: [] }, 1000)],
  'probes.get': [P, (farm, { id }) => farm.probes.get(id)],
  'placement.seat': [
    W,
    (farm, { rollout }) =>
      farm.placement.seat({ id: rollout, image: 'i' }, [{ worker: 'w', node: 'n' }], 'home'),
  ],
  'placement.leave': [W, (farm, { rollout }) => farm.placement.leave('w', rollout)],
  'placement.reconcileSeats': [
    W,
    (farm, { rollout }) => farm.placement.reconcileSeats('w', [rollout], [rollout]),
  ],
  'placement.hand': [W, (farm, { rollout }) => farm.placement.hand('w', { job: rollout, token: 't' })],
  'placement.receive': [W, (farm) => farm.placement.receive('w')],
  'placement.wake': [W, (farm) => farm.placement.wake('w')],
  'policies.set': [P, (farm, { id }) => farm.policies.set(id, { version: '2' })],
  'policies.get': [BOTH, async (farm, { id }) => expect(await farm.policies.get([id])).toHaveLength(1)],
  'policies.list': [P, (farm) => farm.policies.list()],
  'policies.remove': [P, (farm, { id }) => farm.policies.remove(id)],
  'policies.report': [W, (farm) => farm.policies.report('w', [])],
  'policies.reports': [BOTH, (farm) => farm.policies.reports()],
  'calls.enlist': [P, (farm) => farm.calls.enlist(`h:${newId()}`)],
  'calls.beat': [P, (farm, { gateway }) => farm.calls.beat(gateway)],
  'calls.retire': [P, (farm, { gateway }) => farm.calls.retire(gateway)],
  'calls.claim': [
    P,
    (farm, { id, gateway }) => farm.calls.claim({ fingerprint: id, nonce: newId(), named: true }, gateway),
  ],
  'calls.open': [
    P,
    (farm, { run, gateway }) =>
      farm.calls.open({ fingerprint: newId(), nonce: newId(), named: false }, gateway, run, ITEM, 60_000),
  ],
  'calls.abandon': [
    P,
    (farm, { id, gateway }) => farm.calls.abandon({ fingerprint: id, nonce: 'n', named: true }, gateway, 1),
  ],
  'calls.drop': [P, (farm, { call, gateway }) => farm.calls.drop(call, gateway, 1000)],
  'calls.answered': [P, (farm, { call }) => farm.calls.answered(call, 0)],
  'calls.retry': [P, (farm, { call, rollout }) => farm.calls.retry(call, rollout)],
  'calls.expired': [W, (farm) => farm.calls.expired(0)],
  'calls.forget': [W, (farm, { call }) => farm.calls.forget([call])],
  'quotas.enter': [P, (farm, { run }) => farm.quotas.enter('caller', run, 1)],
  'quotas.inFlight': [P, (farm) => farm.quotas.inFlight('caller')],
  'calls.count': [BOTH, (farm) => farm.calls.count()],
  'live.mark': [W, (farm, { rollout }) => farm.live.mark({ ...where, rollout_id: rollout })],
  'live.turn': [W, (farm, { rollout }) => farm.live.turn(rollout, turn, 3)],
  'live.end': [W, (farm, { rollout }) => farm.live.end('w', rollout)],
  'live.running': [P, (farm) => farm.live.running(['w'])],
  'live.turns': [P, (farm, { rollout }) => farm.live.turns(rollout)],
  'clock.now': [BOTH, async (farm) => farm.clock.now()],
  'clock.ask': [BOTH, (farm) => farm.clock.ask()],
  'clock.observe': [BOTH, async (farm) => farm.clock.observe(['1', '0'])],
  'jobs.hasten': [BOTH, (farm) => farm.jobs.hasten(0)],
  'locks.renew': [BOTH, (farm, { rollout }) => farm.locks.renew([{ job: rollout, token: 't', back: true }])],
  'sessions.create': [
    P,
    (farm, { rollout }) => farm.sessions.create({ session_id: newId(), rollout_id: rollout, lease_ms: 1000 }),
  ],
  'sessions.state': [BOTH, (farm, { session }) => farm.sessions.state(session)],
  'sessions.renew': [BOTH, (farm, { session }) => farm.sessions.renew([session])],
  'sessions.post': [P, (farm, { session }) => farm.sessions.post(session, 0, { kind: 'submit' })],
  'sessions.answer': [P, (farm, { session }) => farm.sessions.answer(session, 1, 0)],
  'sessions.open': [W, (farm, { session }) => farm.sessions.open(session, 'w', 'two')],
  'sessions.next': [
    W,
    (farm, { session }) => farm.sessions.next(session, { worker: 'w', claim: 'one' }, 0, 1, never),
  ],
  'sessions.isExpired': [W, (farm, { session }) => farm.sessions.isExpired(session, 'one')],
  'sessions.reply': [
    W,
    (farm, { session }) =>
      farm.sessions.reply(session, { seq: 1, observation: '', exit_code: 0, seconds: 0, note: null }),
  ],
  'sessions.end': [BOTH, (farm, { session }) => farm.sessions.end(session, 'submitted')],
  'sessions.overdue': [W, (farm) => farm.sessions.overdue(0)],
  'sessions.live': [BOTH, (farm) => farm.sessions.live()],
  'artifacts.put': [BOTH, (farm, { rollout }) => farm.artifacts.put(rollout, nth(1), Buffer.from('a'))],
  'artifacts.get': [
    BOTH,
    async (farm, { rollout }) =>
      farm.artifacts.get(await farm.artifacts.put(rollout, nth(1), Buffer.from('a'))),
  ],
  'artifacts.read': [
    BOTH,
    async (farm, { rollout }) =>
      farm.artifacts.read(await farm.artifacts.put(rollout, nth(1), await encodeArtifact(ARTIFACT))),
  ],
  'artifacts.remove': [BOTH, (farm, { rollout }) => farm.artifacts.remove(`redis:${rollout}/claim1/1`)],
  'artifacts.removeRun': [BOTH, (farm, { id }) => farm.artifacts.removeRun(id)],
  'artifacts.runParts': [BOTH, (farm, { id }) => Array.fromAsync(farm.artifacts.runParts(id))],
  'artifacts.usage': [BOTH, (farm) => farm.artifacts.usage()],
};
