/** All calls of the farm, with the roles that may make them and the objects for them. */
import { bareArtifact } from '@swefarm/testkit';
import { expect } from 'vitest';
import { encodeArtifact, type Farm, newId, type RunRecord, Secret } from '../src/index.ts';
import type { FarmRole } from '../src/redis/connect.ts';
import { nth, testInstance, testResult, testRun, testWorker } from './farm.ts';

const ITEM = 'a__b.c-1';
const ARTIFACT = bareArtifact();

/** The objects for one call of the farm: a run with a claimed rollout, a session, and a call at a gateway. */
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

const turn = {
  ...{ attempt: 1, turn: 1, at: 1, messages: [], answer: 0, finish_reason: null, model_seconds: 0 },
  ...{ usage: null, policy_version: { start: null, end: null }, commands: [] },
};
const where = { attempt: 1, worker: 'w', node: 'n', stage: 'agent', turns: 0, claimed_at: 1, at: 1 };
const ADMISSION = {
  ...{ limit: 1, threshold: null, wait_polls: 0, queue_polls: 0, refused: 0, endpoints: [] },
  ...{ reason: null, at: 1 },
};
const never = new AbortController().signal;

type Call = (farm: Farm, world: World) => Promise<unknown>;
type Calls = Readonly<Record<string, Call>>;
export const BOTH = ['worker', 'producer'] as const;

const OF_WORKERS: Calls = {
  commit: (farm, { run, id }) => farm.commit(run, testResult(id, 0, { policy_version: '1' })),
  'journal.claim': (farm, { rollout }) => farm.journal.claim(rollout, { worker: 'w', node: 'n' }),
  'journal.end': (farm, { rollout }) =>
    farm.journal.end(rollout, 'one', { stage: null, class: 'done', cause: null }),
  'journal.renewAttempts': (farm, { rollout }) =>
    farm.journal.renewAttempts({ worker: 'w', node: 'n' }, [{ rollout_id: rollout, ...nth(1) }]),
  'groups.retire': (farm, { id }) => farm.groups.retire(id),
  'registry.beat': (farm) => farm.registry.beat(testWorker()),
  'registry.leave': (farm) => farm.registry.leave('w'),
  'leases.acquire': (farm, { id }) => farm.leases.acquire(id, 'w', 1000),
  'leases.release': (farm, { id }) => farm.leases.release(id, 'w'),
  'controls.note': (farm, { id }) => farm.controls.note(id, 'gold', { starts: true, seconds: 1 }),
  'controls.read': (farm, { id }) => farm.controls.read(id),
  'verdicts.note': (farm, { run }) => farm.verdicts.note(run, 'p', null),
  'verdicts.read': (farm, { id }) => farm.verdicts.read(id, 'p'),
  'placement.seat': (farm, { rollout }) =>
    farm.placement.seat({ id: rollout, image: 'i' }, [{ worker: 'w', node: 'n' }], 'home'),
  'placement.leave': (farm, { rollout }) => farm.placement.leave('w', rollout),
  'placement.reconcileSeats': (farm, { rollout }) => farm.placement.reconcileSeats('w', [rollout], [rollout]),
  'placement.hand': (farm, { rollout }) => farm.placement.hand('w', { job: rollout, token: 't' }),
  'placement.receive': (farm) => farm.placement.receive('w'),
  'placement.wake': (farm) => farm.placement.wake('w'),
  'admissions.exchange': (farm, { id, rollout }) =>
    farm.admissions.exchange(id, [{ rollout, plays: false, order: 1 }], 1),
  'admissions.leave': (farm, { id, rollout }) => farm.admissions.leave(id, [rollout]),
  'admissions.setState': (farm, { id }) => farm.admissions.setState(id, ADMISSION),
  'policies.report': (farm) => farm.policies.report('w', []),
  'calls.expired': (farm) => farm.calls.expired(0),
  'calls.forget': (farm, { call }) => farm.calls.forget([call]),
  'live.mark': (farm, { rollout }) => farm.live.mark({ ...where, rollout_id: rollout }),
  'live.turn': (farm, { rollout }) => farm.live.turn(rollout, turn, 3),
  'live.end': (farm, { rollout }) => farm.live.end('w', rollout),
  'sessions.open': (farm, { session }) => farm.sessions.open(session, 'w', 'two'),
  'sessions.next': (farm, { session }) =>
    farm.sessions.next(session, { worker: 'w', claim: 'one' }, 0, 1, never),
  'sessions.pausedMs': (farm, { session }) => farm.sessions.pausedMs(session, 'one'),
  'sessions.isExpired': (farm, { session }) => farm.sessions.isExpired(session, 'one'),
  'sessions.reply': (farm, { session }) =>
    farm.sessions.reply(session, { seq: 1, observation: '', exit_code: 0, seconds: 0, note: null }),
  'sessions.overdue': (farm) => farm.sessions.overdue(0),
  'runLeases.overdue': (farm) => farm.runLeases.overdue(),
};

const OF_PRODUCERS: Calls = {
  vitals: (farm) => farm.vitals(),
  'runs.create': (farm) => farm.runs.create(testRun(), [testInstance()], [['p', 'diff']]),
  'runs.storeDraws': (farm, { run }) => farm.runs.storeDraws({ ...run, run_id: 'drawn' }, []),
  'runs.append': (farm, { id }) => farm.runs.append(id, testInstance('x__y-2')),
  'runs.getOpen': (farm) => farm.runs.getOpen('name'),
  'runs.setOpen': (farm, { id }) => farm.runs.setOpen(newId(), id, 60),
  'runs.instanceIds': (farm, { id }) => farm.runs.instanceIds(id),
  'runs.list': (farm) => farm.runs.list(),
  'runs.unreadable': (farm) => farm.runs.unreadable(),
  'runs.remove': (farm, { id }) => farm.runs.remove(id),
  'groupEnds.list': (farm, { id }) => farm.groupEnds.list(id),
  'groupEnds.read': (farm, { id }) => farm.groupEnds.read(id, '0'),
  'passes.read': (farm) => farm.passes.read({ name: null, model: 'm' }, 'custom'),
  'runs.draws': (farm, { id }) => farm.runs.draws(id),
  'results.ofRollouts': (farm, { id, rollout }) => farm.results.ofRollouts(id, [rollout]),
  'results.read': (farm, { id }) => farm.results.read(id, '0'),
  'results.latest': (farm, { id }) => farm.results.latest(id),
  'results.committedIds': (farm, { id }) => farm.results.committedIds(id),
  'results.unreadable': (farm) => farm.results.unreadable(),
  'results.totals': (farm) => farm.results.totals(),
  'results.versionTotals': (farm) => farm.results.versionTotals(),
  'groups.markDoneElsewhere': (farm, { rollout }) => farm.groups.markDoneElsewhere([rollout]),
  'groups.reopen': (farm, { rollout }) => farm.groups.reopen([rollout]),
  'groups.resume': (farm, { id }) => farm.groups.resume(id, null),
  'jobs.dropRun': (farm, { id }) => farm.jobs.dropRun(id),
  'history.read': (farm, { run }) => farm.history.read(run.agent, [testInstance(ITEM)]),
  'nodes.drain': (farm) => farm.nodes.drain('n'),
  'nodes.undrain': (farm) => farm.nodes.undrain('n'),
  'registry.lost': (farm) => farm.registry.lost(),
  'secrets.put': (farm, { id }) =>
    farm.secrets.put(id, { secret: new Secret('another-key'), origins: [] }, 60),
  'secrets.remove': (farm, { id }) => farm.secrets.remove(id),
  'probes.claim': (farm, { id }) => farm.probes.claim(id, 1000),
  'probes.store': (farm, { id }) => farm.probes.store(id, { logprobs: null, problems: [] }, 1000),
  'probes.get': (farm, { id }) => farm.probes.get(id),
  'policies.set': (farm, { id }) => farm.policies.set(id, { version: '2' }),
  'policies.list': (farm) => farm.policies.list(),
  'policies.remove': (farm, { id }) => farm.policies.remove(id),
  'calls.enlist': (farm) => farm.calls.enlist(`h:${newId()}`),
  'calls.beat': (farm, { gateway }) => farm.calls.beat(gateway),
  'calls.retire': (farm, { gateway }) => farm.calls.retire(gateway),
  'calls.claim': (farm, { id, gateway }) =>
    farm.calls.claim({ fingerprint: id, nonce: newId(), named: true }, gateway),
  'calls.open': (farm, { run, gateway }) =>
    farm.calls.open({ fingerprint: newId(), nonce: newId(), named: false }, gateway, run, ITEM, 60_000),
  'calls.abandon': (farm, { id, gateway }) =>
    farm.calls.abandon({ fingerprint: id, nonce: 'n', named: true }, gateway, 1),
  'calls.drop': (farm, { call, gateway }) => farm.calls.drop(call, gateway, 1000),
  'calls.answered': (farm, { call }) => farm.calls.answered(call, 0),
  'calls.retry': (farm, { call, rollout }) => farm.calls.retry(call, rollout),
  'runLeases.renew': (farm, { id }) => farm.runLeases.renew([id], 60_000),
  'quotas.enter': (farm, { run }) => farm.quotas.enter('caller', run, 1),
  'quotas.inFlight': (farm) => farm.quotas.inFlight('caller'),
  'live.running': (farm) => farm.live.running(['w']),
  'live.turns': (farm, { rollout }) => farm.live.turns(rollout),
  'sessions.create': (farm, { rollout }) =>
    farm.sessions.create({ session_id: newId(), rollout_id: rollout, lease_ms: 1000 }),
  'sessions.post': (farm, { session }) => farm.sessions.post(session, 0, { kind: 'submit' }),
  'sessions.setClock': (farm, { session }) => farm.sessions.setClock(session, true),
  'sessions.answer': (farm, { session }) => farm.sessions.answer(session, 1, 0),
};

const OF_BOTH: Calls = {
  ping: (farm) => farm.ping(),
  'runLeases.drop': (farm, { id }) => farm.runLeases.drop(id),
  'runs.get': (farm, { id }) => farm.runs.get(id),
  'runs.getInstance': (farm, { id }) => farm.runs.getInstance(id, ITEM),
  'runs.getPatch': (farm, { id }) => farm.runs.getPatch(id, 'p'),
  'runs.exists': (farm, { id }) => farm.runs.exists(id),
  'journal.read': (farm, { rollout }) => farm.journal.read(rollout),
  'journal.readRetried': (farm, { id }) => farm.journal.readRetried(id),
  'journal.countInWork': (farm, { id }) => farm.journal.countInWork(id),
  'results.winners': (farm, { id }) => farm.results.winners(id, [`${id}.i.0`]),
  'results.get': (farm, { rollout }) => farm.results.get(rollout),
  'results.counts': (farm, { id }) => farm.results.counts(id),
  'results.groups': (farm, { id }) => farm.results.groups(id),
  'groups.unfinishedRuns': (farm) => farm.groups.unfinishedRuns(),
  'groups.rollouts': (farm, { id }) => farm.groups.rollouts(id),
  'groups.open': (farm, { id }) => farm.groups.open(id),
  'groups.rolloutParts': (farm, { id }) => Array.fromAsync(farm.groups.rolloutParts(id)),
  'groups.openParts': (farm, { id }) => Array.fromAsync(farm.groups.openParts(id)),
  'groups.left': (farm, { id }) => farm.groups.left(id),
  'groups.stillOpen': (farm, { id, rollout }) => farm.groups.stillOpen(id, [rollout]),
  'groups.add': (farm, { id }) => farm.groups.add(id, ITEM, 1),
  'groups.pause': (farm, { id }) => farm.groups.pause(id, 'a test'),
  'groups.paused': (farm, { id }) => farm.groups.paused(id),
  'jobs.enqueue': (farm, { run, id }) => farm.jobs.enqueue(run, [`${id}.${ITEM}.1`]),
  'jobs.missing': (farm, { rollout }) => farm.jobs.missing([rollout]),
  'jobs.policyOf': (farm, { rollout }) => farm.jobs.policyOf(rollout),
  'jobs.drop': (farm, { rollout }) => farm.jobs.drop([rollout]),
  'nodes.drained': (farm) => farm.nodes.drained(),
  'cancel.cancelRun': (farm, { id }) => farm.cancel.cancelRun(id),
  'cancel.cancelGroup': (farm, { id }) => farm.cancel.cancelGroup(id, ITEM),
  'cancel.cancelRollouts': (farm, { rollout }) => farm.cancel.cancelRollouts([rollout]),
  'cancel.isCancelled': (farm, { rollout }) => farm.cancel.isCancelled([rollout]),
  'cancel.runCancelled': (farm, { id }) => farm.cancel.runCancelled(id),
  'cancel.markParts': (farm, { id }) => Array.fromAsync(farm.cancel.markParts(id)),
  'cancel.epoch': (farm) => farm.cancel.epoch(),
  'registry.lives': (farm) => farm.registry.lives('w'),
  'registry.canJudgeDead': async (farm) => farm.registry.canJudgeDead(),
  'registry.list': (farm) => farm.registry.list(),
  'secrets.get': async (farm, { id }) => expect((await farm.secrets.get(id))?.secret.reveal()).toMatch(/key/),
  'policies.get': async (farm, { id }) => expect(await farm.policies.get([id])).toHaveLength(1),
  'admissions.state': (farm, { id }) => farm.admissions.state(id),
  'admissions.list': (farm) => farm.admissions.list(),
  'policies.reports': (farm) => farm.policies.reports(),
  'calls.count': (farm) => farm.calls.count(),
  'clock.now': async (farm) => farm.clock.now(),
  'clock.ask': (farm) => farm.clock.ask(),
  'clock.observe': async (farm) => farm.clock.observe(['1', '0']),
  'jobs.hasten': (farm) => farm.jobs.hasten(0),
  'jobs.promote': (farm, { rollout }) => farm.jobs.promote([rollout]),
  'locks.renew': (farm, { rollout }) => farm.locks.renew([{ job: rollout, token: 't', back: true }]),
  'sessions.state': (farm, { session }) => farm.sessions.state(session),
  'sessions.renew': (farm, { session }) => farm.sessions.renew([session]),
  'sessions.end': (farm, { session }) => farm.sessions.end(session, 'submitted'),
  'sessions.live': (farm) => farm.sessions.live(),
  'artifacts.put': (farm, { rollout }) => farm.artifacts.put(rollout, nth(1), Buffer.from('a')),
  'artifacts.append': (farm, { rollout }) => farm.artifacts.append(rollout, nth(1), Buffer.from('a'), 0),
  'artifacts.locate': async (farm, { rollout }) => farm.artifacts.locate(rollout, nth(1)),
  'artifacts.get': async (farm, { rollout }) =>
    farm.artifacts.get(await farm.artifacts.put(rollout, nth(1), Buffer.from('a'))),
  'artifacts.read': async (farm, { rollout }) =>
    farm.artifacts.read(await farm.artifacts.put(rollout, nth(1), await encodeArtifact(ARTIFACT))),
  'artifacts.remove': (farm, { rollout }) => farm.artifacts.remove(`redis:${rollout}/claim1/1`),
  'artifacts.removeRun': (farm, { id }) => farm.artifacts.removeRun(id),
  'artifacts.runParts': (farm, { id }) => Array.fromAsync(farm.artifacts.runParts(id)),
  'artifacts.usage': (farm) => farm.artifacts.usage(),
};

/** All functions of the farm by member; a test checks that the list is complete. */
export const CALLS: Calls = { ...OF_WORKERS, ...OF_PRODUCERS, ...OF_BOTH };

export const callsOf = (role: FarmRole): Calls => ({
  ...(role === 'worker' ? OF_WORKERS : OF_PRODUCERS),
  ...OF_BOTH,
});
