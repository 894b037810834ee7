/**
 * A worker process that commits results of rollouts without a sandbox, for tests of the producer's own processes:
 * `--mode ok` resolves even indices, `fail` fails index 0, `slow` takes 300 ms for each rollout, `broken` cannot start,
 * `crash` dies after each third rollout, `examine` gives gold of flask-1 and the untouched tree of flask-2 a wrong verdict once.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, openFarm, parseRolloutId, type Report, type Result } from '@swefarm/shared';
import { bareFacts } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { aFailure, aReport } from '@swefarm/trajectories/test/result.ts';

const END_MS = 2_000;

const args = process.argv.slice(2);
const values = Object.fromEntries(
  args.flatMap((arg, at) => (arg.startsWith('--') ? [[arg.slice(2), args[at + 1] ?? '']] : [])),
);
const mode = values.mode ?? 'ok';
if (mode === 'broken') {
  console.error('swefarm-worker: no container engine answers at /var/run/nothing.sock');
  process.exit(12);
}
let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
  // An ending producer, or the kernel after its death, sends SIGTERM. Redis may be gone then, and a worker waits for Redis forever.
  setTimeout(() => process.exit(0), END_MS).unref();
});

const flags = Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name.replaceAll('-', '_'), value]),
);
delete flags.mode;
const config = loadConfig('worker', { flags });
await using farm = await openFarm(config, 'worker');
let committed = 0;
while (!stopping) {
  await farm.registry.beat({
    worker: 'fake',
    node: 'here',
    runtime: 'host',
    slots: 4,
    active: 1,
    started_at: Date.now(),
    metrics: null,
    paused: null,
  });
  const [job] = await farm.queue().getJobs(['prioritized'], 0, 0, true);
  if (!job?.id) {
    await sleep(50);
    continue;
  }
  const { runId, instanceId, index } = parseRolloutId(job.id);
  const record = await farm.runs.get(runId);
  if (mode === 'slow') await sleep(300);
  const instance = record && (await farm.runs.getInstance(runId, instanceId));
  const over = { ...outcome(index), ...(instance ? { family: instance.family } : {}) };
  // Only an evaluation of a patch has a report.
  const report =
    record?.agent.type === 'patch' && over.outcome !== 'failed'
      ? aReport({ instance_id: instanceId, ...(mode === 'examine' ? examined(instanceId, index) : {}) })
      : null;
  const facts = report && mode !== 'examine' ? bareFacts({ resolved: over.resolved ?? true }) : null;
  if (record) await commitRollout(farm, record, job.id, { ...over, ...(facts ? { facts } : {}) }, report);
  await job.remove();
  committed += 1;
  if (mode === 'crash' && committed === 3) process.exit(1);
}
await farm.registry.leave('fake');
process.exit(0);

function outcome(index: number): Partial<Result> {
  if (mode === 'fail' && index === 0) {
    const { outcome: failed, resolved, reward, reward_row, exit_status, turns, failure } = aFailure();
    return { outcome: failed, resolved, reward, reward_row, exit_status, turns, failure };
  }
  return index % 2 === 0 ? {} : { resolved: false, reward: 0, reward_row: 'unresolved' };
}

/** Returns the verdict of an index: indices 0 to 2 evaluate gold, 3 to 5 the untouched tree. */
function examined(instanceId: string, index: number): Partial<Report> {
  const wrong = (instanceId.endsWith('-1') && index === 1) || (instanceId.endsWith('-2') && index === 4);
  const resolved = index < 3 !== wrong;
  const nothing = { success: [], failure: [] };
  const bucket = resolved ? { success: ['t'], failure: [] } : { success: [], failure: ['t'] };
  const tests_status = {
    FAIL_TO_PASS: bucket,
    PASS_TO_PASS: nothing,
    FAIL_TO_FAIL: nothing,
    PASS_TO_FAIL: nothing,
  };
  return { resolved, image_digest: 'sha256:a', tests_status };
}
