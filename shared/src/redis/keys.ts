/**
 * Names of keys. The prefix is a hash tag, so that scripts may use several keys on a cluster. Comments of keys have three parts, type |
 * life time | content, from which docs/redis-keys.md is generated.
 */

export type Keys = ReturnType<typeof keysFor>;

export function keysFor(prefix: string) {
  const key: Key = (...parts) => [prefix, ...parts].join(':');
  return {
    prefix,
    /** String | none | id of this farm. */
    farmId: key('farm-id'),
    /** Sorted set | none; a run leaves when its record lapses | run ids by time of creation. */
    runs: key('runs'),
    /** Set | none; maintenance removes ended runs | runs that may have rollouts without a result. */
    unfinished: key('unfinished'),
    /** Hash | none; `swefarm drain NODE --undo` removes a node | drained node → since when (ms). */
    drained: key('drained'),
    /** Integer | none | grows with each cancel; workers read it with their heartbeat. */
    cancelEpoch: key('cancel-epoch'),
    /** Sorted set | none; a lost worker is counted and removed | worker ids by the time (ms) at which their record lapses. */
    workers: key('workers'),
    /** String | 15 s after the last heartbeat | record of a worker, as JSON. */
    worker: (id: string) => key('worker', id),
    /** Set | 60 s after the last change | rollouts that have a seat with this worker. */
    seats: (worker: string) => key('seats', worker),
    /** Sorted set | 6 h after the last change | images of the node of a worker, by the time (ms) at which each entry lapses. */
    homes: (worker: string) => key('homes', worker),
    /** List | 30 s after the last entry | jobs that other workers forwarded to this worker. */
    handed: (worker: string) => key('handed', worker),
    /** String | `policy_api_key_ttl_seconds` | JSON: API key of a policy, and the origins that may get it. */
    secret: (name: string) => key('secret', name),
    /** String | 10 s (maintenance), 60 s (control evaluation), renewed | holder of a lease. */
    lease: (name: string) => key('lease', name),
    /** Hash | 7 days after the last finding | tree → finding of its control evaluation (JSON); by instance, plan, image and limits. */
    control: (conditions: string) => key('control', conditions),
    /** String | 10 min while the probe runs or after a problem, else 24 h | finding of a probe of endpoints (JSON), empty while it runs. */
    probe: (name: string) => key('probe', name),
    /** Set | 30 days after the last change of a policy | names of policies. */
    policies: key('policies'),
    /** Hash | 30 days after its last change | record of one policy: version, endpoints, state. */
    policy: (name: string) => key('policy', name),
    policyReports: policyReportKeys(key),
    live: liveKeys(key),
    /** Hash | none | counters over all runs of a kind; `workers` counts lost workers, `results` unreadable results. */
    totals: (kind: string) => key('totals', kind),
    /** Sorted set | none; the newest 8 versions | policy versions by the time (ms) of their last commit. */
    versions: (kind: string) => key('versions', kind),
    /** Hash | none; removed with its version | counters of one policy version. */
    versionTotals: (kind: string, version: string) => key('versions', kind, version),
    /** BullMQ | as BullMQ removes it | BullMQ's own keys of one queue: `prioritized`, `active` and so on, or a job by its id. */
    queue: (name: string, part: string) => key(name, part),
    run: (id: string) => runKeys(key, id),
    /** Sorted set | none; an ended session leaves | sessions that have not ended, by the end of their lease (ms). */
    sessions: key('sessions'),
    session: (id: string) => sessionKeys(key, id),
    /** List | 60 s after the last entry | sessions with a new command, for the worker that runs them. */
    sessionNotifications: (worker: string) => key('session-wakes', worker),
    /** Hash | 30 days after the last change | run id → rollouts of a caller in this run; 0: an open run, which counts them itself. */
    quota: (caller: string) => key('quota', caller),
    calls: callKeys(key),
    ...artifactKeys(key),
  };
}

type Key = (...parts: string[]) => string;

const artifactKeys = (key: Key) => ({
  /** String | `artifact_ttl_seconds` | one artifact, compressed. */
  artifact: (name: string) => key('artifact', name),
  /** Hash | none; a lapsed artifact leaves at the next write | artifact → bytes. */
  artifactBytes: key('artifacts', 'bytes'),
  /** Sorted set | none; the same | artifacts by the time (ms) at which they lapse. */
  artifactExpiry: key('artifacts', 'expiry'),
  /** Integer | none | bytes of all artifacts. */
  artifactUsed: key('artifacts', 'used'),
});

const policyReportKeys = (key: Key) => ({
  /** Hash | 60 s after the last report | worker → its view of endpoints, as JSON. */
  views: key('policy-reports', 'views'),
  /** Sorted set | 60 s after the last report | workers by the time (ms) at which their report lapses. */
  lapses: key('policy-reports', 'lapses'),
  /** Hash | 60 s after the last report | endpoint → rollouts that all workers bind to it. */
  loads: key('policy-reports', 'loads'),
});

const liveKeys = (key: Key) => ({
  /** Hash | 1 h after the last write | rollout id → its stage on this worker, as JSON. */
  worker: (id: string) => key('live', 'worker', id),
  /** Stream | 1 h after the last turn, 60 s after the end | latest turns of a running rollout, one field `t`. */
  turns: (rolloutId: string) => key('live', 'turns', rolloutId),
});

const runKeys = (key: Key, id: string) => ({
  /** String | ttl of the run, renewed by claims and commits | the RunRecord as JSON. */
  record: key('run', id),
  /** Hash | as the record | instance id → gzip of its JSON. */
  instances: key('run', id, 'instances'),
  /** Hash | as the record | reference → gzip of a patch. */
  patches: key('run', id, 'patches'),
  /** Hash | as the record | rollout id → JSON array of attempts. */
  journal: key('run', id, 'journal'),
  /** Hash | as the record | rollout id → `attempt outcome stream-id worker TAB claim`. */
  committed: key('run', id, 'committed'),
  /** Stream | as the record | results, one field `r`. */
  results: key('run', id, 'results'),
  /** Hash | as the record | `instance left`, `usable`, `size`, `refilled` → count; `instance sequence` → its number in the queue, `instance image`. */
  groups: key('run', id, 'groups'),
  /** Hash | as the record | counters of the run. */
  counts: key('run', id, 'counts'),
  /** Hash | as the record | rollout id, `group instance` or `*` for all → reason of the cancellation. */
  cancelled: key('run', id, 'cancelled'),
  /** String | as the record | RunPause as JSON. */
  paused: key('run', id, 'paused'),
  /** Hash | as the record | stream id of an unreadable result → the reason. */
  skipped: key('run', id, 'skipped'),
  /** Set | `artifact_ttl_seconds` after the last artifact | `rollout/claim/attempt`: artifacts of this run in Redis. */
  artifacts: key('run', id, 'artifacts'),
  /** Hash | as the record | of an open run: `instance is` → fingerprint of the appended row; `*` → rollouts opened in all. */
  appended: key('run', id, 'appended'),
});

const sessionKeys = (key: Key, id: string) => ({
  /** Hash | 6 h after the last call, 1 h after the end | rollout, lease, and the numbers that driver and worker reached. */
  record: key('session', id),
  /** Stream | as the record | commands of the driver, ids `number-0`. */
  commands: key('session', id, 'commands'),
  /** Hash | as the record | number → answer. */
  answers: key('session', id, 'answers'),
});

const callKeys = (key: Key) => ({
  /** Hash | the longest `max_hold_seconds`; a named call 1 h after its answer | call id → call as JSON, of the requests that are alike. */
  alike: (fingerprint: string) => key('calls', 'alike', fingerprint),
  /** Sorted set | 30 days after the last call | call ids by the end (ms) of their grace as an orphan; connected calls at infinity. */
  open: key('calls', 'open'),
  /** Hash | 30 days after the last beat | gateway → last beat (ms). */
  gateways: key('calls', 'gateways'),
  /** Hash | 30 days after the last start of a gateway | address → gateway. */
  addresses: key('calls', 'addresses'),
  /** String | 24 h | run id of the open run of a caller's settings. */
  openRun: (name: string) => key('calls', 'run', name),
});

/** Returns all keys of a run. */
export const allRunKeys = (keys: Keys, runId: string): string[] => Object.values(keys.run(runId));
