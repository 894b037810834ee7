/**
 * Faults of infrastructure in every attempt at a rollout that would earn 0. None gets a verdict: the rollout is retried as the class of the
 * fault allows, and then fails with that class.
 */

import type { Runtime } from '@swefarm/sandbox';
import { type FailureClass, SwefarmError } from '@swefarm/shared';
import type { FaultRuleInput } from '@swefarm/testkit';
import type { Threads } from '../../src/threads/pool.ts';
import { patchOf, type RunGiven, replacing } from './scene.ts';
import {
  byOthersMemory,
  ending,
  engineAway,
  failing,
  filledDisk,
  filledForAWhile,
  isTaking,
  isTests,
  killed,
  noControl,
  notStarting,
  rejecting,
  removed,
  underShell,
  underTests,
} from './strikes.ts';

export type Fault = {
  name: string;
  class: FailureClass;
  /** Absent: an agent whose work earns 0. */
  patch?: string;
  command?: string;
  policy?: FaultRuleInput;
  given?: Partial<RunGiven>;
  /** Returns a runtime with the fault. */
  runtime?: (runtime: Runtime) => Runtime;
  threads?: (threads: Threads) => Threads;
  /** The artifact store accepts nothing. */
  store?: true;
};

const WORKS = 'touch /tmp/began; sleep 6';
const LOST = patchOf('exit 1');
const SLOW = patchOf('sleep 5');
type Change = NonNullable<Fault['runtime']>;
/** A fault while an agent works or its patch is taken. */
const inAgent = (name: string, failureClass: FailureClass, runtime: Change, command = 'true'): Fault => ({
  ...{ name, class: failureClass, runtime, command },
});
/** A fault while a patch is evaluated. */
const inTests = (name: string, failureClass: FailureClass, runtime: Change, patch = LOST): Fault => ({
  ...{ name, class: failureClass, runtime, patch },
});
const policy = (name: string, failureClass: FailureClass, kind: FaultRuleInput['kind']): Fault => ({
  ...{ name: `the endpoint ${name}`, class: failureClass, policy: { kind } },
});

export const FAULTS: readonly Fault[] = [
  // The agent's sandbox
  inAgent('the engine does not answer', 'engine_unreachable', notStarting('agent', 'engine_unreachable')),
  inAgent("the agent's sandbox does not start", 'sandbox_start', notStarting('agent', 'sandbox_start')),
  inAgent('the node has no memory for a sandbox', 'node_memory', notStarting('agent', 'node_memory')),
  inAgent('the node has no disk for a sandbox', 'node_disk', notStarting('agent', 'node_disk')),
  inAgent("the agent's sandbox is killed from outside", 'sandbox_lost', underShell(killed), WORKS),
  inAgent("the agent's sandbox is removed by somebody", 'sandbox_lost', underShell(removed), WORKS),
  inAgent('the engine stops while the patch is taken', 'engine_unreachable', engineAway('agent', isTaking)),
  inAgent(
    'the patch is not taken, and no other sandbox starts',
    'sandbox_lost',
    noControl(failing('agent', isTaking, 'sandbox_lost')),
  ),
  inAgent(
    'git fails in the sandbox, and no other sandbox starts',
    'patch_take',
    noControl(failing('agent', isTaking, 'patch_take')),
  ),
  inAgent(
    'the node has no memory as the patch is taken',
    'node_memory',
    failing('agent', isTaking, 'node_memory'),
  ),
  inAgent('another sandbox fills the disk while the agent works', 'node_disk', filledForAWhile, 'sleep 4'),
  inAgent(
    'another sandbox fills the disk while the patch is taken',
    'node_disk',
    filledDisk('agent', isTaking),
  ),
  // The evaluation
  inTests(
    'the engine does not answer for the evaluation',
    'engine_unreachable',
    notStarting('evaluation', 'engine_unreachable'),
  ),
  inTests(
    "the evaluation's sandbox does not start",
    'sandbox_start',
    notStarting('evaluation', 'sandbox_start'),
  ),
  inTests(
    'the node has no memory for the evaluation',
    'node_memory',
    notStarting('evaluation', 'node_memory'),
  ),
  inTests('the node has no disk for the evaluation', 'node_disk', notStarting('evaluation', 'node_disk')),
  inTests('the tests are killed from outside', 'evaluation_lost', underTests(killed), SLOW),
  inTests("the tests' sandbox is removed by somebody", 'evaluation_lost', underTests(removed), SLOW),
  inTests('the engine stops before the tests', 'engine_unreachable', engineAway('evaluation', isTests), SLOW),
  inTests(
    'the engine stops while the patch is applied',
    'engine_unreachable',
    engineAway('evaluation', (argv) => argv.includes('apply')),
    SLOW,
  ),
  inTests("the tests' output is lost with their sandbox", 'evaluation_lost', ending(isTests, 'killed'), SLOW),
  inTests("the tests' sandbox is gone", 'evaluation_lost', ending(isTests, 'gone'), SLOW),
  inTests(
    "the tests' stream breaks, and no other sandbox starts",
    'evaluation_lost',
    noControl(failing('evaluation', isTests, 'evaluation_lost')),
    SLOW,
  ),
  inTests('memory of the node kills the tests', 'node_memory', byOthersMemory, patchOf('exit 137')),
  inTests('another sandbox fills the disk during the tests', 'node_disk', filledDisk('evaluation', isTests)),
  inTests(
    'no control evaluation can be made',
    'evaluation_lost',
    noControl((runtime) => runtime),
  ),
  {
    name: 'the outcomes of no log are read in time',
    class: 'parse_timeout',
    patch: LOST,
    threads: (threads) =>
      replacing(threads, { run: () => Promise.reject(new SwefarmError('thread_timeout', 'made')) }),
  },
  // The image
  {
    name: 'the image does not exist',
    class: 'image_not_found',
    given: { machine: { image: 'dir:/nowhere/at/all' } },
  },
  inAgent('the image is not pulled', 'image_pull', (runtime) =>
    replacing(runtime, { ensureImage: rejecting('image_pull') }),
  ),
  inAgent('the disk is full as the image is unpacked', 'node_disk', (runtime) =>
    replacing(runtime, { ensureImage: rejecting('node_disk') }),
  ),
  // The endpoint
  policy('refuses the key', 'policy_unauthorized', 'unauthorized'),
  policy('does not know the model', 'policy_model_unknown', 'model_unknown'),
  policy('answers 500', 'policy_server_error', 'server_error'),
  policy('answers 429', 'policy_server_error', 'rate_limited'),
  policy('resets connections', 'policy_unreachable', 'reset'),
  policy('cuts its answers', 'policy_unreachable', 'cut'),
  policy('answers no JSON', 'policy_garbage', 'garbage'),
  policy('answers without a choice', 'policy_garbage', 'no_choices'),
  policy('never answers', 'policy_silent', 'silence'),
  policy('has no room for the first prompt', 'policy_context', 'context_overflow'),
  // The instance, the run and the worker
  { name: 'there is no work tree', class: 'no_worktree', given: { sandbox: { workdir: '/usr' } } },
  {
    name: 'the tests start with no patch',
    class: 'tests_cannot_start',
    patch: LOST,
    given: {
      instance: {
        eval_script:
          "#!/bin/bash\nset -x\n: '>>>>> Start Test Output'\nno-such-program\n: '>>>>> End Test Output'\n",
      },
    },
  },
  {
    name: 'the run asks for more than the worker gives',
    class: 'sandbox_refused',
    given: { sandbox: { pids: 4_000_000 } },
  },
  inAgent('an unforeseen error', 'bug', (runtime) =>
    replacing(runtime, { start: () => Promise.reject(new TypeError('made')) }),
  ),
  { name: 'the store takes no artifact', class: 'artifact_store', store: true },
];

export const STORE_REFUSES = (): Promise<never> =>
  Promise.reject(new SwefarmError('artifact_store', 'made: the store takes nothing'));
