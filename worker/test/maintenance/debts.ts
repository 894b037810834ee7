/** Work that a farm may need, one duty of maintenance each, and the state of the farm afterwards. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { newId, type RunRecord, resumeRun } from '@swefarm/shared';
import { aWorker, BY, claimBy, endBy, GROUP, redisUrl, type Scene, startRun } from './farm.ts';

export type Debt = {
  duty: string;
  /** Makes the work in a farm of its own; returns what happens while the first worker is dead or stopped. */
  arrange(at: Scene, prefix: string): Promise<(() => Promise<void>) | undefined | void>;
};

export const DEBTS: readonly Debt[] = [
  {
    duty: 'cancel-expired-runs',
    async arrange(at) {
      const { run, ids } = await startRun(at, { deadline_at: Date.now() - 1 });
      await endBy(at, run, ids[0] ?? '', { judged: 1 });
      await startRun(at, { deadline_at: Date.now() + 3_600_000, group_size: 2 });
    },
  },
  {
    duty: 'cancel-stale-runs',
    async arrange(at) {
      const policy = { urls: ['http://127.0.0.1:1/v1'], model: 'm', version: 'v1', name: 'p' };
      await startRun(at, { max_staleness: 0, policy: policy as RunRecord['policy'] });
      for (const version of ['v1', 'v2']) await at.farm.policies.set('p', { version });
    },
  },
  {
    duty: 'cancel-abandoned-runs',
    async arrange(at) {
      const { run, ids } = await startRun(at, { group_size: 2 });
      const kept = await startRun(at, { group_size: 1 });
      await endBy(at, run, ids[0] ?? '', { judged: 1 });
      await at.farm.runLeases.renew([run.run_id], -60_000);
      await at.farm.runLeases.renew([kept.run.run_id], 3_600_000);
    },
  },
  {
    duty: 'cancel-abandoned-calls',
    async arrange(at) {
      const { run } = await startRun(at, { open: true, group_size: 1 });
      const gateway = await at.farm.calls.enlist('127.0.0.1:1');
      for (const fingerprint of ['one', 'two']) {
        const call = { fingerprint, nonce: newId(), named: false };
        const opened = await at.farm.calls.open(call, gateway, run, GROUP, 3_600_000);
        if (opened.status === 'opened') await at.farm.calls.drop(opened.call_id, gateway, -60_000);
      }
    },
  },
  {
    duty: 'commit-cancelled',
    async arrange(at) {
      const { run, ids } = await startRun(at);
      const [running = ''] = ids;
      await aWorker(at, BY.worker);
      const claim = await claimBy(at, running);
      await at.farm.cancel.cancelRun(run.run_id);
      // The worker was about to commit when it read the cancel.
      return () => endBy(at, run, running, { judged: 1 }, claim);
    },
  },
  {
    duty: 'cancel-abandoned-sessions',
    async arrange(at) {
      const { ids } = await startRun(at, { kind: 'session', group_size: 2 });
      for (const rollout_id of ids)
        await at.farm.sessions.create({ session_id: newId(), rollout_id, lease_ms: -60_000 });
    },
  },
  {
    duty: 'queue-refills',
    async arrange(at) {
      const { run, ids } = await startRun(at, { refills: 2, group_size: 2 });
      for (const id of ids) await endBy(at, run, id, { failed: 'sandbox_lost' });
    },
  },
  {
    duty: 'pause-failing-runs',
    async arrange(at) {
      const { run, ids } = await startRun(at, { group_size: 21 }, false);
      await Promise.all(ids.slice(1).map((id) => endBy(at, run, id, { failed: 'engine_unreachable' })));
      return () => resumeRun(at.farm, run.run_id);
    },
  },
  {
    duty: 'give-up-rollouts',
    async arrange(at) {
      const { ids } = await startRun(at, { group_size: 2, refills: 1 });
      for (const worker of ['d1', 'd2', 'd3'])
        for (const id of ids) await at.farm.journal.claim(id, { worker, node: 'n' });
    },
  },
  {
    duty: 'requeue-lost-jobs',
    async arrange(at) {
      const lost = await startRun(at, { group_size: 2 }, false);
      const done = await startRun(at, { group_size: 1 });
      for (const id of done.ids) await endBy(at, done.run, id, { judged: 0 });
      return async () => {
        await endBy(at, lost.run, lost.ids[0] ?? '', { judged: 1 });
        await at.farm.groups.add(done.run.run_id, GROUP, 1);
      };
    },
  },
  {
    duty: 'report-dead-workers',
    async arrange(at, prefix) {
      await startRun(at);
      for (const worker of ['d1', 'd2', 'alive']) await aWorker(at, worker);
      for (const worker of ['d1', 'd2']) await forget(`{${prefix}}:worker:${worker}`);
    },
  },
  {
    duty: 'remove-ownerless-artifacts',
    async arrange(at) {
      const { run, ids } = await startRun(at, { group_size: 2 });
      const [won = '', open = ''] = ids;
      const winner = await claimBy(at, won);
      await endBy(at, run, won, { judged: 1 }, winner);
      for (const [id, attempt] of [
        [won, winner],
        [won, { attempt: 1, claim: 'lost' }],
        [won, { attempt: 3, claim: 'late' }],
        [open, { attempt: 1, claim: 'runs' }],
      ] as const)
        await at.farm.artifacts.put(id, attempt, Buffer.from('x'));
    },
  },
];

/** Deletes a key, as if it had expired. */
async function forget(key: string): Promise<void> {
  const { hostname, port, password } = new URL(redisUrl());
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(`AUTH ${password}\r\nDEL ${key}\r\nQUIT\r\n`);
  const answer = await text(socket);
  if (!answer.includes(':1')) throw new Error(`${key} was not there: ${answer}`);
}

/** Everything that is visible from outside, with runs by the size of their groups in place of their ids. */
export async function stateOf({ farm }: Scene): Promise<unknown> {
  const { runs: unfinished } = await farm.groups.unfinishedRuns();
  const records = await farm.runs.list();
  const runIds = records.sort((a, b) => a.group_size - b.group_size).map(({ run_id }) => run_id);
  const runs = await Promise.all(
    runIds.map(async (id) => {
      const open = await farm.groups.open(id);
      const { results } = await farm.results.read(id, '0');
      return {
        // A duplicate in this sorted list shows a rollout that was counted twice.
        results: results
          .map(({ result: { rollout_id, outcome, reward_row, worker, failure } }) =>
            [rollout_id, outcome, reward_row, worker, failure?.class ?? ''].join(' '),
          )
          .sort(),
        open,
        withoutJob: await farm.jobs.missing(open),
        unfinished: unfinished.some(({ run_id }) => run_id === id),
        groups: [...(await farm.results.groups(id))],
        counts: await farm.results.counts(id),
        marks: [...(await farm.cancel.isCancelled(await farm.groups.rollouts(id)))],
        paused: (await farm.groups.paused(id))?.reason ?? null,
        artifacts: (await Array.fromAsync(farm.artifacts.runParts(id)))
          .flat()
          .map(({ rollout_id, attempt }) => `${rollout_id} ${attempt}`)
          .sort(),
      };
    }),
  );
  const state = {
    runs,
    totals: [...(await farm.results.totals())],
    artifacts: (await farm.artifacts.usage()).used_bytes,
    sessions: (await farm.sessions.live()).length,
    calls: await farm.calls.count(),
    workers: (await farm.registry.list()).map(({ worker }) => worker).sort(),
    lost: await farm.registry.lost(),
  };
  const named = runIds.reduce((json, id, at) => json.replaceAll(id, `run-${at}`), JSON.stringify(state));
  return JSON.parse(named);
}
