/**
 * Attempts at instances with their own environment and plan, on real sandboxes: the repository is in another folder, a setup step adds the
 * bug, tests are hidden, the history is one commit, and the verdict follows the plan.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Runtime } from '@swefarm/sandbox';
import { dockerRuntime } from '@swefarm/sandbox';
import {
  AgentConfig,
  InstanceEnvironment,
  InstancePlan,
  newId,
  PolicyConfig,
  type Result,
} from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  commitTree,
  conversation,
  importTree,
  minimalImage,
  running,
  startScriptedPolicy,
  writeTree,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { openNode, submitOne } from './attempts.ts';
import { rootfsIn, socketPath } from './evaluation/evaluator.ts';
import { scene } from './maintenance/farm.ts';

const WORKDIR = '/srv/depot';
const CRATE = 'def most():\n    return 10\n';
const BUG = `diff --git a/crate.py b/crate.py
--- a/crate.py
+++ b/crate.py
@@ -1,2 +1,2 @@
 def most():
-    return 10
+    return 9
`;
const GOLD = BUG.replace('-    return 10\n+    return 9', '-    return 9\n+    return 10');

/** Prints pytest's output for two tests. */
const TESTS = `import crate
for name, right in (('test_most', crate.most() == 10), ('test_any', crate.most() > 0)):
    print('PASSED' if right else 'FAILED', f'tests/test_crate.py::{name}')
print('=== 2 passed in 0.01s ===' if crate.most() == 10 else '=== 1 failed, 1 passed in 0.01s ===')
`;

const APPLY_BUG = { name: 'put the bug in', script: `git apply - <<'BUG'\n${BUG}BUG` };
const environment = (changes: Partial<InstanceEnvironment> = {}) =>
  InstanceEnvironment.parse({
    workdir: WORKDIR,
    activate: 'CRATES=1; export CRATES',
    env: { DEPOT: 'north' },
    setup: [APPLY_BUG],
    hidden: [`${WORKDIR}/tests`, '/answers'],
    history: 'replaced',
    ...changes,
  });
const LOOK = 'test "$DEPOT" = north && test -s /tmp/model.diff -o -e /tmp/model.diff';
const plan = (changes: Partial<InstancePlan> = {}) =>
  InstancePlan.parse({
    grader: 'quay-1.0',
    before: [{ name: 'look', script: LOOK }],
    patch_path: '/tmp/model.diff',
    apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/model.diff'] }],
    after: [{ name: 'answers', script: 'test -e /answers/crate.txt' }],
    script: `set -x\ncd ${WORKDIR}\n: '>>>>> Start Test Output'\npython3 -B tests/test_crate.py\n: '>>>>> End Test Output'\n`,
    outcomes: { from: 'log', dialect: '4.1.0', parser: 'pytest' },
    verdict: { rule: 'swebench' },
    ...changes,
  });

let folder: string;
let threads: Threads;
const images: Record<string, string> = {};

beforeAll(async () => {
  folder = temporaryFolder('instances');
  const minimal = await minimalImage();
  const tree = join(folder, 'tree');
  execFileSync('cp', ['-a', minimal.tree, tree]);
  const work = join(tree, WORKDIR);
  const tests = `import sys\nsys.path.insert(0, '.')\n${TESTS}`;
  await writeTree(work, { 'crate.py': CRATE, 'tests/test_crate.py': tests });
  await writeTree(tree, { 'answers/crate.txt': 'the answer is 10\n' });
  commitTree(work, 'return 10, which is the answer');
  images.rootfs = `dir:${tree}`;
  images.docker = `swefarm-test/instances:${newId()}`;
  await importTree(socketPath, tree, images.docker);
  threads = startThreads(1);
});
afterAll(async () => {
  await threads[Symbol.asyncDispose]();
  execFileSync('docker', ['rmi', '-f', images.docker ?? '']);
});

type Given = {
  agent?: 'mini' | 'patch' | 'noop' | 'golden';
  patch?: string;
  commands?: string[];
  environment?: Partial<InstanceEnvironment>;
  plan?: Partial<InstancePlan>;
  nodeMemory?: number;
};

const OPEN: Record<string, () => Promise<Runtime>> = {
  docker: () => dockerRuntime({ socketPath }),
  rootfs: () => rootfsIn(folder),
};

describe.each(['docker', 'rootfs'])('instances with an environment and a plan on %s', (name) => {
  let runtime: Runtime;
  beforeAll(async () => {
    runtime = (await (OPEN[name] ?? OPEN.docker)?.()) as Runtime;
  });
  afterAll(() => runtime[Symbol.asyncDispose]());

  /** Runs one rollout until it has its result; also returns the output of the agent's commands. */
  async function rollout(given: Given) {
    const { farm } = await scene();
    const { agent = 'mini', commands = [] } = given;
    const policy = await startScriptedPolicy({ script: conversation(running(...commands)) });
    onTestFinished(() => policy[Symbol.asyncDispose]());
    const run = bareRun({
      group_size: 1,
      agent: AgentConfig.parse({ type: agent }),
      policy: agent === 'mini' ? PolicyConfig.parse({ urls: [policy.url], model: 'scripted' }) : null,
      sandbox: { ...bareRun().sandbox, activate: 'exit 9', memory_bytes: 256 * 1024 ** 2 },
    });
    const instance = bareInstance({
      ...{ instance_id: 'own__depot-1', base_commit: 'HEAD', family: 'scale-swe', image: images[name] ?? '' },
      FAIL_TO_PASS: ['tests/test_crate.py::test_most'],
      PASS_TO_PASS: ['tests/test_crate.py::test_any'],
      ...{ patch: GOLD, environment: environment(given.environment), plan: plan(given.plan) },
    });
    const one = await submitOne(farm, run, instance, given.patch);
    const memory = given.nodeMemory === undefined ? {} : { node_memory_bytes: given.nodeMemory };
    const node = openNode({ farm, runtime, threads, flags: { worker_id: `own-${newId()}`, ...memory } });
    while ((await one.attempt(node)).next === 'later');
    node.policies[Symbol.dispose]();
    await node.removals.finished();
    const [result] = (await one.results()) as [Result];
    const content = result.artifact === null ? null : await farm.artifacts.read(result.artifact);
    const messages = content?.trajectory?.messages.filter(({ role }) => role !== 'assistant') ?? [];
    const attempts = (await farm.journal.read(one.id)).map(({ end }) => end?.class);
    return { result, seen: messages.map((message) => String(message.content)).join('\n'), attempts };
  }

  test.each([
    ['gold', { agent: 'golden' }, { resolved: true, reward: 1 }],
    ['nothing', { agent: 'noop' }, { resolved: false, reward: 0 }],
    [
      'another patch',
      { agent: 'patch', patch: GOLD.replace('+    return 10', '+    return 11') },
      { resolved: false, reward: 0 },
    ],
    [
      'a broken patch',
      { agent: 'patch', patch: GOLD.replace('return 9', 'return 7') },
      { resolved: false, reward: 0, reward_row: 'patch_not_applied' },
    ],
  ] as const)('%s has the verdict of the plan', async (_what, given, expected) => {
    const { result, attempts } = await rollout(given);
    expect(result).toMatchObject({ outcome: 'judged', ...expected });
    expect(attempts).toEqual(['done']);
  });

  test('an agent sees the bug and its environment, no solution, and its fix is resolved', async () => {
    const look = `pwd; echo "$DEPOT $CRATES"; cat crate.py; ls; ls /answers; git log --oneline --all; git status --short
      git show HEAD:tests/test_crate.py; git cat-file --batch-all-objects --batch-check; for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done; grep -ras 'answer is' / --include='*.txt' --exclude-dir=proc --exclude-dir=sys | head -3`;
    // The agent makes the tests again at the path of the hidden ones.
    const mend = `sed -i s/9/10/ crate.py; mkdir -p tests; echo 'print("mine")' >tests/test_crate.py; echo note >tests/note.txt`;
    const { result, seen } = await rollout({ commands: [look, mend] });
    expect(seen).toContain(`${WORKDIR}\nnorth 1\n`);
    expect(seen).toContain('return 9');
    expect(seen).not.toMatch(/return 10|test_most|the answer/);
    expect(seen).toMatch(/^[0-9a-f]{7} Initial commit$/m);
    expect(result).toMatchObject({ outcome: 'judged', resolved: true, reward: 1, failure: null });
  });

  test('a failed setup is the instance’s fault, retried once, and never a reward', async () => {
    const setup = [{ ...APPLY_BUG, name: 'put in the wrong bug', script: 'echo no such bug; exit 4' }];
    const { result, attempts } = await rollout({ environment: { setup } as never });
    expect(attempts).toEqual(['setup_failed', 'setup_failed']);
    const why = 'setup step "put in the wrong bug" in the agent sandbox ended with exit code 4: no such bug';
    const failure = { stage: 'instance', class: 'setup_failed', message: expect.stringContaining(why) };
    expect(result).toMatchObject({ outcome: 'failed', reward: null, failure });
  });

  test('a setup that fails or hangs in the clean container alone keeps the agent’s work', async () => {
    const setup = [APPLY_BUG, { name: 'serve', script: 'sleep 600', timeout: 1, roles: ['evaluation'] }];
    const commands = ['echo mended >new.txt'];
    const { result, attempts } = await rollout({ commands, environment: { setup } as never });
    expect(attempts).toEqual(['setup_failed', 'setup_failed']);
    expect(result.failure?.message).toContain('step "serve" in the evaluation sandbox did not end in 1 s');
  });

  test('a failed step before the patch fails the instance, one after it fails the verdict', async () => {
    const step = { name: 'fails', script: 'exit 2', may_fail: false, timeout: 20 };
    const before = await rollout({ agent: 'golden', plan: { before: [step] } });
    const message = expect.stringContaining('before step "fails"');
    expect(before.result.failure).toMatchObject({ class: 'setup_failed', message });
    const after = await rollout({ agent: 'golden', plan: { after: [step] } });
    expect(after.result.failure).toMatchObject({ class: 'tests_cannot_start' });
    const may = [{ ...step, may_fail: true }];
    const passes = await rollout({ agent: 'golden', plan: { before: may, after: may } });
    expect(passes.result).toMatchObject({ resolved: true });
  });

  test('a sandbox has the memory of the instance if that is more than the run’s', async () => {
    const read =
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; python3 -c "x = bytearray(300 << 20); print(len(x))"';
    const environment = { memory_bytes: 512 * 1024 ** 2 };
    const { seen, result } = await rollout({ commands: [read], environment });
    expect(seen).toContain(String(300 << 20));
    expect(result.outcome).toBe('judged');
  });

  test('a node with less memory than that gives no verdict on tests killed for memory', async () => {
    const given = {
      agent: 'golden' as const,
      environment: { memory_bytes: 1024 ** 4 },
      nodeMemory: 320 * 1024 ** 2,
    };
    expect((await rollout(given)).result).toMatchObject({ outcome: 'judged', resolved: true });
    const hungry = `python3 -c "x = bytearray(500 << 20); import time; time.sleep(60)"\n${plan().script}`;
    const { result, attempts } = await rollout({ ...given, plan: { script: hungry } });
    expect(new Set(attempts)).toEqual(new Set(['node_memory']));
    expect(result).toMatchObject({ outcome: 'failed', resolved: null, reward: null });
    const why = 'its tests were killed for memory: 0.3 GiB here, 1024.0 GiB by its harness';
    expect(result.failure?.message).toContain(why);
  });
});
