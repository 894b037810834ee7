/** How soon the farm recovers from a cancel, a drain, a kill -9 of a worker, and an outage of Redis or of the gateway. */
import { queueSettings, type RuntimeName } from '@swefarm/shared';
import { table } from './print.ts';
import { type CancelTimes, measureCancel } from './recovery/cancel.ts';
import { type HandoverTimes, measureHandover } from './recovery/handover.ts';
import { type GatewayTimes, measureRedis, measureRestart } from './recovery/outage.ts';
import { openScene } from './recovery/scene.ts';
import { tryRuntime } from './sandbox.ts';
import type { Skipped } from './shell.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

/** All samples in milliseconds. */
export type RecoveryPart = {
  cancel: Partial<Record<RuntimeName, CancelTimes>>;
  drain: HandoverTimes | null;
  kill: HandoverTimes | null;
  lock_ms: number;
  stalled_interval_ms: number;
  redis: number[];
  gateway: GatewayTimes | null;
  skipped: Skipped[];
};

/** Longer than any measurement, so that a held request ends only by the event that is measured. */
const HELD_MS = 600_000;
const SHORT_MS = { redis: 800, gateway: 2_500 };

export async function measureRecovery(subject: Subject, reps: number): Promise<RecoveryPart> {
  const part: RecoveryPart = {
    cancel: {},
    ...{ drain: null, kill: null, redis: [], gateway: null, skipped: [] },
    lock_ms: queueSettings.lockDuration,
    stalled_interval_ms: queueSettings.stalledInterval,
  };
  const usable = new Set<RuntimeName>();
  for (const name of ['docker', 'rootfs'] as const) {
    const opened = await tryRuntime(name);
    if (typeof opened === 'string') part.skipped.push({ what: name, why: opened });
    else {
      usable.add(name);
      await opened[Symbol.asyncDispose]();
    }
  }
  {
    await using scene = await openScene(subject, HELD_MS);
    for (const name of usable) {
      part.cancel[name] = await measureCancel(scene, name, reps);
      console.error(`  cancel on ${name}: done`);
    }
    if (!usable.has('rootfs')) return part;
    part.drain = await measureHandover(scene, 'SIGTERM', reps);
    console.error('  drain: done');
    part.kill = await measureHandover(scene, 'SIGKILL', reps);
    console.error('  kill: done');
  }
  {
    await using scene = await openScene(subject, SHORT_MS.redis);
    part.redis = await measureRedis(scene, reps);
    console.error('  Redis: done');
  }
  await using scene = await openScene(subject, SHORT_MS.gateway);
  part.gateway = await measureRestart(scene, reps);
  return part;
}

export function printRecovery(part: RecoveryPart): string {
  const row = (what: string, until: string, aim: string, samples: readonly number[] = []) => [
    what,
    until,
    ...[median(samples), Math.max(...samples)].map((ms) => rounded(ms / 1000, 2)),
    samples.length,
    aim,
  ];
  const stall = `lock ${part.lock_ms / 1000} s, looked for each ${part.stalled_interval_ms / 1000} s`;
  const cancels = Object.entries(part.cancel).flatMap(([name, times]) => [
    row(`cancel (${name})`, 'policy request closed', '2 s', times.policy_request_closed),
    row('', 'slot free', '2 s', times.slot_free),
    row('', 'container gone', '2 s', times.container_gone),
  ]);
  const { drain, kill, gateway } = part;
  const handovers = drain &&
    kill && [
      row('drain', 'handed back, claimed elsewhere', '2 s', drain.claimed_elsewhere),
      row('', 'SIGTERM, all running elsewhere', '1 s of grace first', drain.all_running_elsewhere),
      row('', 'SIGTERM, exit', 'grace 5 s', drain.exit),
      row('kill -9', 'claimed elsewhere', stall, kill.claimed_elsewhere),
      row('', 'all running elsewhere', '', kill.all_running_elsewhere),
    ];
  const outages = gateway && [
    row('Redis', 'started, first commit', '', part.redis),
    row('gateway', 'started, takes calls', '', gateway.ready),
    row('', 'started, held call answered', '', gateway.answered),
  ];
  const rows = [...cancels, ...(handovers ?? []), ...(outages ?? [])];
  return [
    'Seconds until the farm is itself again',
    table([['after', 'until', 'p50', 'worst', 'n', 'aim or bound'], ...rows]),
    ...part.skipped.map(({ what, why }) => `not measured: ${what} (${why})`),
  ].join('\n');
}
