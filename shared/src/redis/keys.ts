/**
 * Names of keys. The prefix is a hash tag, so that scripts can use several keys of a cluster. docs/redis-keys.md is generated from the
 * comments of the keys, which have three parts: type | life time | content.
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
    /** Sorted set | none; an ended run leaves | runs by the end of their submitter's lease (ms). */
    runLeases: key('run-leases'),
    /** Set | none; maintenance removes ended runs | runs that may have rollouts without a result. */
    unfinished: key('unfinished'),
    /** Hash | none; `swefarm drain NODE --undo` removes a node | drained node → since when (ms). */
    drained: key('drained'),
    /** Integer | none | grows with each cancel. */
    cancelEpoch: key('cancel-epoch'),
    /** Sorted set | none; a lost worker is counted and removed | worker ids by the lapse (ms) of their record. */
    workers: key('workers'),
    /** String | 15 s after the last heartbeat | record of a worker. */
    worker: (id: string) => key('worker', id),
    /** Set | 60 s after the last change | rollouts with a seat. */
    seats: (worker: string) => key('seats', worker),
    /** Sorted set | 6 h after the last change | images of the node, by their lapse (ms). */
    homes: (worker: string) => key('homes', worker),
    /** List | 30 s after the last entry | forwarded jobs. */
    handed: (worker: string) => key('handed', worker),
    /** String | `policy_api_key_ttl_seconds` | API key of a policy, and its origins. */
    secret: (name: string) => key('secret', name),
    /** String | 10 s (maintenance), 60 s (evaluations for several rollouts), renewed | holder of a lease. */
    lease: (name: string) => key('lease', name),
    /** Hash | 7 days after the last finding | tree → finding of its control evaluation (JSON). */
    control: (conditions: string) => key('control', conditions),
    /** String | 10 min after a problem, else 24 h | finding of a probe of endpoints (JSON). */
    probe: (name: string) => key('probe', name),
    /** Set | 30 days after the last change of a policy | names of policies. */
    policies: key('policies'),
    /** Hash | 30 days after its last change | record of one policy: version, endpoints, state. */
    policy: (name: string) => key('policy', name),
    policyReports: policyReportKeys(key),
    admission: admissionKeys(key),
    live: liveKeys(key),
    ...totalKeys(key),
    /** BullMQ | as BullMQ removes it | BullMQ's own keys of one queue. */
    queue: (name: string, part: string) => key(name, part),
    run: (id: string) => runKeys(key, id),
    /** Sorted set | none; an ended session leaves | sessions by the end of their lease (ms). */
    sessions: key('sessions'),
    session: (id: string) => sessionKeys(key, id),
    /** List | 60 s after the last entry | sessions with a new command. */
    sessionNotifications: (worker: string) => key('session-wakes', worker),
    /** Hash | 30 days after the last change | run id → rollouts of a caller in this run. */
    quota: (caller: string) => key('quota', caller),
    calls: callKeys(key),
    ...memoryKeys(key),
    ...artifactKeys(key),
  };
}

type Key = (...parts: string[]) => string;

const totalKeys = (key: Key) => ({
  /** Hash | none | counters over all runs of a kind. */
  totals: (kind: string) => key('totals', kind),
  /** Sorted set | ttl of the last run to commit; the newest 8 | policy versions by last commit (ms). */
  versions: (kind: string) => key('versions', kind),
  /** Hash | ttl of the last run to commit | counters of one policy version. */
  versionTotals: (kind: string, version: string) => key('versions', kind, version),
});

const memoryKeys = (key: Key) => ({
  /** Hash | 30 days after the last judged rollout of AGENT | `family/instance`, `family/*`, `*` → running means of seconds, tokens and turns. */
  history: (agent: string) => key('history', agent),
  /** Hash | 90 days after the last commit | instance → JSON of version, usable and passed rollouts, for its newest 4 policy versions. */
  passes: (policy: string, family: string) => key('passes', policy, family),
});

const artifactKeys = (key: Key) => ({
  /** String | `artifact_ttl_seconds` | one artifact, compressed. */
  artifact: (name: string) => key('artifact', name),
  /** Hash | none; a lapsed artifact leaves at the next write | artifact → bytes. */
  artifactBytes: key('artifacts', 'bytes'),
  /** Sorted set | none; the same | artifacts by lapse (ms). */
  artifactExpiry: key('artifacts', 'expiry'),
  /** Integer | none | bytes of all artifacts. */
  artifactUsed: key('artifacts', 'used'),
});

const policyReportKeys = (key: Key) => ({
  /** Hash | 60 s after the last report | worker → its view of endpoints. */
  views: key('policy-reports', 'views'),
  /** Sorted set | 60 s after the last report | workers by the time (ms) at which their report expires. */
  lapses: key('policy-reports', 'lapses'),
  /** Hash | 60 s after the last report | endpoint → bound rollouts. */
  loads: key('policy-reports', 'loads'),
});

const admissionKeys = (key: Key) => ({
  /** Sorted set | 24 h after the last exchange | pools by their last exchange (ms). */
  pools: key('admission', 'pools'),
  /** Hash | 24 h after the last exchange | `state`: AdmissionState as JSON; `refused`: 429 and 503 answers. */
  pool: (policy: string) => key('admission', 'pool', policy),
  /** Sorted set | as the pool | rollouts that may play, by the order of their admission. */
  playing: (policy: string) => key('admission', 'playing', policy),
  /** Sorted set | as the pool | rollouts that wait, by class and arrival (ms). */
  waiting: (policy: string) => key('admission', 'waiting', policy),
  /** Sorted set | as the pool | rollouts by the lapse (ms) of their lease. */
  lapses: (policy: string) => key('admission', 'lapses', policy),
});

const liveKeys = (key: Key) => ({
  /** Hash | 1 h after the last write | rollout id → its stage on this worker. */
  worker: (id: string) => key('live', 'worker', id),
  /** Stream | 1 h after the last turn, 60 s after the end | latest turns, one field `t`. */
  turns: (rolloutId: string) => key('live', 'turns', rolloutId),
});

const runKeys = (key: Key, id: string) => ({
  /** String | `--ttl` | the RunRecord as JSON. */
  record: key('run', id),
  /** Hash | as RUN | instance id → gzip of its JSON. */
  instances: key('run', id, 'instances'),
  /** Hash | as RUN | reference → gzip of a patch, or of the turns that a branch continues. */
  patches: key('run', id, 'patches'),
  /** Hash | as RUN | rollout id → JSON array of attempts. */
  journal: key('run', id, 'journal'),
  /** Hash | as RUN | rollout id → `attempt outcome stream-id worker TAB claim`. */
  committed: key('run', id, 'committed'),
  /** Stream | as RUN | results, one field `r`. */
  results: key('run', id, 'results'),
  /** Hash | as RUN | `instance left`, `usable`, `size`, `refilled`, `results` → count; `low`, `high`, `sum` of rewards; `passed`; `sequence` in the queue; `image`; `ended`. */
  groups: key('run', id, 'groups'),
  /** Stream | as RUN | ended groups, one field `g`. */
  ends: key('run', id, 'ends'),
  /** List | as RUN | of a run with `until`: its planned draws (JSON) in order. */
  draws: key('run', id, 'draws'),
  /** Hash | as RUN | counters of the run; `drawn` and `selected` groups, and `drawn_rollouts` after the start, of a run with `until`. */
  counts: key('run', id, 'counts'),
  /** Hash | as RUN | rollout id, `group instance` or `*` for all → reason of the cancellation. */
  cancelled: key('run', id, 'cancelled'),
  /** String | as RUN | RunPause as JSON. */
  paused: key('run', id, 'paused'),
  /** Hash | as RUN | stream id of an unreadable result → the reason. */
  skipped: key('run', id, 'skipped'),
  /** Set | `artifact_ttl_seconds` after the last artifact | `rollout/claim/attempt`: artifacts of this run in Redis. */
  artifacts: key('run', id, 'artifacts'),
  /** Hash | as RUN | hash of patch and conditions → rollout that was graded with it, and its artifact (JSON). */
  verdicts: key('run', id, 'verdicts'),
  /** Hash | as RUN | of an open run: `instance is` → fingerprint of the appended row; `*` → rollouts opened in all. */
  appended: key('run', id, 'appended'),
});

const sessionKeys = (key: Key, id: string) => ({
  /** Hash | 6 h after the last call, 1 h after the end | rollout, lease, sequence numbers. */
  record: key('session', id),
  /** Stream | as RUN | commands of the driver, ids `number-0`. */
  commands: key('session', id, 'commands'),
  /** Hash | as RUN | number → answer. */
  answers: key('session', id, 'answers'),
  /** Hash | as RUN | `in:number` → bytes of a file to write; `out:number` → bytes of the last answer. */
  contents: key('session', id, 'contents'),
});

const callKeys = (key: Key) => ({
  /** Hash | the longest `max_hold_seconds`; a named call 1 h after its answer | call id → call, of equal requests. */
  alike: (fingerprint: string) => key('calls', 'alike', fingerprint),
  /** Sorted set | 30 days after the last call | call ids by the end (ms) of their grace; connected: infinity. */
  open: key('calls', 'open'),
  /** Hash | 30 days after the last beat | gateway → last beat (ms). */
  gateways: key('calls', 'gateways'),
  /** Hash | 30 days after the last start of a gateway | address → gateway. */
  addresses: key('calls', 'addresses'),
  /** String | 24 h | run id of a caller's open run. */
  openRun: (name: string) => key('calls', 'run', name),
});

/** Returns all keys of a run. */
export const allRunKeys = (keys: Keys, runId: string): string[] => Object.values(keys.run(runId));
