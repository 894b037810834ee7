/** A run with fabricated results, for tests and benchmarks of code that reads results. The same seed makes the same run. */
import {
  encodeArtifact,
  type Farm,
  type Instance,
  newId,
  Result,
  RunRecord,
  rolloutId,
  type Trajectory,
} from '@swefarm/shared';
import { unit } from '../policy/random.ts';
import { bareInstance, bareRun } from './bare.ts';
import { madeTrajectory } from './trajectory.ts';

export type MadeRunOptions = {
  instances: number;
  groupSize: number;
  /** Number of rollouts, in order, that have a result. */
  committed?: number;
  /** Turns of each trajectory; artifacts are written for the first `artifacts` rollouts. */
  turns?: number;
  artifacts?: number;
  /** Text that is added to the first observation of the first rollout. */
  hostile?: string;
  /** Returns policy version and end time of the rollout at an index. */
  ends?: (at: number) => Pick<Result, 'policy_version' | 'finished_at'>;
};

export type MadeRun = {
  record: RunRecord;
  rollouts: string[];
  /** Commits the rollout at this index, as a worker would. */
  commit(at: number): Promise<Result>;
};

const REPOS = ['astropy/astropy', 'django/django', 'matplotlib/matplotlib', 'pallets/flask', 'sympy/sympy'];
const BATCH = 200;
const PASSES = Array.from({ length: 60 }, (_, test) => `tests/test_core.py::test_${test}`);

export const GOLD = `diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -10,3 +10,5 @@ def merge(left, right):
     result = dict(left)
-    result.update(right)
+    for key, value in right.items():
+        if value is not None:
+            result[key] = value
     return result
`;

const OWN = `diff --git a/pkg/core.py b/pkg/core.py
--- a/pkg/core.py
+++ b/pkg/core.py
@@ -10,3 +10,3 @@ def merge(left, right):
     result = dict(left)
-    result.update(right)
+    result.update({k: v for k, v in right.items() if v is not None})
     return result
diff --git a/reproduce.py b/reproduce.py
new file mode 100644
--- /dev/null
+++ b/reproduce.py
@@ -0,0 +1,2 @@
+from pkg.core import merge
+print(merge({'a': 1}, {'a': None}))
`;

/** Writes run, instances and results. Queues nothing. */
export async function makeRun(farm: Farm, options: MadeRunOptions): Promise<MadeRun> {
  const { instances: count, groupSize, turns = 12, artifacts = 0, hostile = '' } = options;
  const instances = Array.from({ length: count }, (_, at) => instanceOf(at));
  const record = recordOf(instances.length, groupSize);
  await farm.runs.create(record, instances);
  const rollouts = instances.flatMap(({ instance_id }) =>
    Array.from({ length: groupSize }, (_, index) => rolloutId(record.run_id, instance_id, index)),
  );
  const commit = async (at: number): Promise<Result> => {
    const instance = instances[Math.floor(at / groupSize)];
    if (!instance) throw new RangeError(`the run has no rollout ${at}`);
    const result = resultOf(record, instance.instance_id, at, groupSize);
    const trajectory = at < artifacts ? madeTrajectory(turns, at, at === 0 ? hostile : '') : null;
    const stored = trajectory && (await storeArtifact(farm, result, trajectory));
    const whole = { ...result, ...options.ends?.(at), artifact: stored };
    await farm.commit(record, whole);
    return whole;
  };
  const committed = options.committed ?? rollouts.length;
  for (let at = 0; at < committed; at += BATCH) {
    const part = Math.min(BATCH, committed - at);
    await Promise.all(Array.from({ length: part }, (_, more) => commit(at + more)));
  }
  return { record, rollouts, commit };
}

function instanceOf(at: number): Instance {
  const repo = REPOS[at % REPOS.length] ?? '';
  return bareInstance({
    instance_id: `${repo.replace('/', '__')}-${10_000 + at}`,
    repo,
    base_commit: 'c0ffee',
    problem_statement: `merge() overwrites values with None\n\nSteps to reproduce (${at}): merge({'a': 1}, {'a': None}).`,
    patch: GOLD,
    FAIL_TO_PASS: ['tests/test_core.py::test_merge_none'],
    PASS_TO_PASS: [...PASSES],
  });
}

const recordOf = (instances: number, group_size: number): RunRecord =>
  RunRecord.parse({
    ...bareRun(),
    created_at: new Date().toISOString(),
    kind: 'training',
    dataset: { path: '/data/made-up.jsonl', sha256: 'aa', instances },
    group_size,
    policy: { urls: ['http://policy:8000/v1'], model: 'scripted-7b', version: 'step-41' },
    reward: { table: 'swefarm-reward-1', hash: '00' },
  });

const FAILURES = [
  ['image', 'image_pull', 'the registry answered 503 after 4 tries: received unexpected HTTP status'],
  ['policy', 'policy_unreachable', 'connect ECONNREFUSED 10.0.0.7:8000'],
  ['sandbox', 'engine_unreachable', 'the engine does not answer: /var/run/docker.sock'],
] as const;

function resultOf(record: RunRecord, instance_id: string, at: number, groupSize: number): Result {
  let drawn = 0;
  const random = (): number => unit(at + 1, drawn++);
  const kind = random();
  const hard = unit(Math.floor(at / groupSize) + 1_000_003, 0);
  const outcome = kind < 0.03 ? 'failed' : kind < 0.04 ? 'cancelled' : 'judged';
  const judged = outcome === 'judged';
  const resolved = judged ? random() > hard : null;
  const turns = judged ? 4 + Math.floor(random() * 40) : 0;
  const cause = FAILURES[at % FAILURES.length];
  const model = turns * (1 + random() * 3);
  const command = turns * random();
  const evaluation = judged ? 5 + random() * 60 : 0;
  const limit = judged && random() < 0.1;
  return Result.parse({
    format: 'swefarm-result-1',
    run_id: record.run_id,
    rollout_id: rolloutId(record.run_id, instance_id, at % groupSize),
    instance_id,
    rollout_index: at % groupSize,
    attempt: kind > 0.97 ? 2 : 1,
    worker: `w${at % 4}`,
    node: `node-${at % 4}`,
    runtime: 'rootfs',
    outcome,
    resolved,
    reward: judged ? Number(resolved) : null,
    reward_row: judged ? (resolved ? 'resolved' : 'unresolved') : outcome,
    reward_table: 'swefarm-reward-1:00',
    turns,
    exit_status: judged ? (limit ? 'turn_limit' : 'submitted') : null,
    failure:
      outcome === 'failed' && cause
        ? { stage: cause[0], class: cause[1], message: cause[2], attempts: 4 }
        : null,
    facts: null,
    tokens: { prompt: turns * 2900, completion: turns * 180 },
    policy_version: 'step-41',
    seconds: {
      ...{ queued: random() * 20, image: random() * 2, sandbox: 0.3, patch: 0.1, model, command },
      ...{ agent: model + command + 1, evaluation, evaluation_start: 0.4, tests: evaluation * 0.9 },
      total: model + command + evaluation + 3,
    },
    artifact: null,
    finished_at: Date.now() - 1000,
  });
}

async function storeArtifact(farm: Farm, result: Result, trajectory: Trajectory): Promise<string> {
  const { rollout_id, attempt, instance_id, resolved } = result;
  const target = 'tests/test_core.py::test_merge_none';
  const status = resolved ? 'PASSED' : 'FAILED';
  const blob = await encodeArtifact({
    format: 'swefarm-artifact-1',
    ...{ rollout_id, attempt, instance_id, trajectory },
    patch: OWN,
    report: {
      format: 'swefarm-report-1',
      instance_id,
      patch_state: 'applied',
      evaluation: 'completed',
      resolved,
      tests_status: {
        FAIL_TO_PASS: { success: resolved ? [target] : [], failure: resolved ? [] : [target] },
        PASS_TO_PASS: { success: [...PASSES], failure: [] },
        FAIL_TO_FAIL: { success: [], failure: [] },
        PASS_TO_FAIL: { success: [], failure: [] },
      },
      status_map: { [target]: status, ...Object.fromEntries(PASSES.map((name) => [name, 'PASSED'])) },
      applied_with: 'git apply --verbose',
      test_exit_code: resolved ? 0 : 1,
      grader: 'swebench-4.1.0',
      parser: 'pytest',
      image_digest: null,
      trust: { level: 'clean', reasons: [] },
    },
    test_log: `${PASSES.map((name) => `PASSED ${name}`).join('\n')}\n${status} ${target}\n`,
    eval_script: null,
    failure_detail: null,
  });
  return await farm.artifacts.put(rollout_id, { attempt, claim: newId() }, blob);
}
