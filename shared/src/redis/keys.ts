/** Every key name in one place. The prefix is a hash tag, so that scripts may touch several keys on a cluster too. */

export type Keys = ReturnType<typeof keysFor>;

export function keysFor(prefix: string) {
  const key: Key = (...parts) => [prefix, ...parts].join(':');
  return {
    prefix,
    /** String: id of this farm. */
    farmId: key('farm-id'),
    /** Sorted set of run ids by time of creation. */
    runs: key('runs'),
    /** Set of ids of runs that may have rollouts without a result. */
    unfinished: key('unfinished'),
    /** Hash: node that is to be emptied → since when (ms). */
    drained: key('drained'),
    /** Integer that grows with each cancel. */
    cancelEpoch: key('cancel-epoch'),
    /** Sorted set of worker ids by the time (ms) at which their record lapses. */
    workers: key('workers'),
    worker: (id: string) => key('worker', id),
    /** Set of the rollouts that have a seat with this worker; list of what other workers handed to it. */
    seats: (worker: string) => key('seats', worker),
    /** Sorted set of the images that a worker's node has, by the time (ms) at which that is forgotten. */
    homes: (worker: string) => key('homes', worker),
    handed: (worker: string) => key('handed', worker),
    /** JSON: a policy's key, and the origins that may receive it. */
    secret: (name: string) => key('secret', name),
    lease: (name: string) => key('lease', name),
    /** Hash: tree → what its evaluation showed, as JSON; by a hash of instance, plan, image and limits. */
    control: (conditions: string) => key('control', conditions),
    /** String: what a probe of endpoints found (JSON), empty while it runs. */
    probe: (name: string) => key('probe', name),
    /** Set of the names of policies; hash of one policy's record. */
    policies: key('policies'),
    policy: (name: string) => key('policy', name),
    policyReports: policyReportKeys(key),
    live: liveKeys(key),
    /** Hash of counters over all runs of a kind; `workers` counts those that were lost, `results` what nobody could read. */
    totals: (kind: string) => key('totals', kind),
    /** Sorted set of the policy versions that committed last, by time (ms), and per version a hash of counters. */
    versions: (kind: string) => key('versions', kind),
    versionTotals: (kind: string, version: string) => key('versions', kind, version),
    /** BullMQ's own keys of one queue: `prioritized`, `active` and so on, or a job by its id. */
    queue: (name: string, part: string) => key(name, part),
    run: (id: string) => runKeys(key, id),
    /** Sorted set of sessions that have not ended, by the time (ms) at which their lease runs out. */
    sessions: key('sessions'),
    session: (id: string) => sessionKeys(key, id),
    /** List of the sessions that have a new command, for the worker that holds them. */
    sessionNotifications: (worker: string) => key('session-wakes', worker),
    /** Hash of a caller: run id → its rollouts in all; 0: an open run, which counts them itself. */
    quota: (caller: string) => key('quota', caller),
    calls: callKeys(key),
    artifact: (name: string) => key('artifact', name),
    /** Hash: artifact → bytes; sorted set: artifact by time (ms) of lapse; integer: bytes in all. */
    artifactBytes: key('artifacts', 'bytes'),
    artifactExpiry: key('artifacts', 'expiry'),
    artifactUsed: key('artifacts', 'used'),
  };
}

type Key = (...parts: string[]) => string;

const policyReportKeys = (key: Key) => ({
  /** Hash: worker → what it sees of endpoints, as JSON; sorted set: worker by the time (ms) at which that lapses. */
  views: key('policy-reports', 'views'),
  lapses: key('policy-reports', 'lapses'),
  /** Hash: endpoint → rollouts that all of these workers have bound to it. */
  loads: key('policy-reports', 'loads'),
});

const liveKeys = (key: Key) => ({
  /** Hash: rollout id → where it is on this worker, as JSON. */
  worker: (id: string) => key('live', 'worker', id),
  /** Stream of a running rollout's latest turns, one field `t`. */
  turns: (rolloutId: string) => key('live', 'turns', rolloutId),
});

const runKeys = (key: Key, id: string) => ({
  /** String: the RunRecord as JSON. */
  record: key('run', id),
  /** Hash: instance id → gzip of its JSON. */
  instances: key('run', id, 'instances'),
  /** Hash: ref → gzip of a patch. */
  patches: key('run', id, 'patches'),
  /** Hash: rollout id → JSON array of attempts. */
  journal: key('run', id, 'journal'),
  /** Hash: rollout id → `attempt outcome stream-id worker TAB claim`. */
  committed: key('run', id, 'committed'),
  /** Stream of results, one field `r`. */
  results: key('run', id, 'results'),
  /** Hash: `instance left`, `usable`, `size`, `refilled` → count; `instance sequence` → its place in the queue, `instance image`. */
  groups: key('run', id, 'groups'),
  /** Hash of counters. */
  counts: key('run', id, 'counts'),
  /** Hash: rollout id, `group instance` or `*` for all → the reason it was cancelled for. */
  cancelled: key('run', id, 'cancelled'),
  /** String: RunPause as JSON. */
  paused: key('run', id, 'paused'),
  /** Hash: stream id of a result that somebody could not read → what was wrong with it. */
  skipped: key('run', id, 'skipped'),
  /** Set of `rollout/claim/attempt`: artifacts of this run in Redis. */
  artifacts: key('run', id, 'artifacts'),
  /** Hash of an open run: `instance is` → fingerprint of what was appended; `*` → rollouts opened in all. */
  appended: key('run', id, 'appended'),
});

const sessionKeys = (key: Key, id: string) => ({
  /** Hash: rollout, lease, and how far driver and worker are. */
  record: key('session', id),
  /** Stream of what the driver said, ids `number-0`. */
  commands: key('session', id, 'commands'),
  /** Hash: number → answer. */
  answers: key('session', id, 'answers'),
});

const callKeys = (key: Key) => ({
  /** Hash: call id → call as JSON, of the requests that are alike. */
  alike: (fingerprint: string) => key('calls', 'alike', fingerprint),
  /** Sorted set: call ids by the time (ms) until which an orphan is kept; held ones at infinity. */
  open: key('calls', 'open'),
  /** Hash: gateway → last beat (ms); hash: address → gateway. */
  gateways: key('calls', 'gateways'),
  addresses: key('calls', 'addresses'),
  /** String: the open run of a caller's settings. */
  openRun: (name: string) => key('calls', 'run', name),
});

/** All keys of one run, for life times and removal. */
export const allRunKeys = (keys: Keys, runId: string): string[] => Object.values(keys.run(runId));
