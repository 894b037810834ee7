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
  /** The object in place of the runtime. */
  runtime?: (runtime: Runtime) => Runtime;
  threads?: (threads: Threads) => Threads;
  /** The artifact store accepts nothing. */
  store?: true;
};

const WORKS = 'touch /tmp/began; sleep 6';
const LOST = patchOf('exit 1');
const SLOW = patchOf('sleep 5');
const policy = (name: string, failureClass: FailureClass, kind: FaultRuleInput['kind']): Fault => ({
  ...{ name: `the endpoint ${name}`, class: failureClass, policy: { kind } },
});

export const FAULTS: readonly Fault[] = [
  // The agent's sandbox
  {
    name: 'the engine does not answer',
    class: 'engine_unreachable',
    runtime: notStarting('agent', 'engine_unreachable'),
  },
  {
    name: "the agent's sandbox does not start",
    class: 'sandbox_start',
    runtime: notStarting('agent', 'sandbox_start'),
  },
  {
    name: 'the node has no memory for a sandbox',
    class: 'node_memory',
    runtime: notStarting('agent', 'node_memory'),
  },
  {
    name: 'the node has no disk for a sandbox',
    class: 'node_disk',
    runtime: notStarting('agent', 'node_disk'),
  },
  {
    name: "the agent's sandbox is killed from outside",
    class: 'sandbox_lost',
    command: WORKS,
    runtime: underShell(killed),
  },
  {
    name: "the agent's sandbox is removed by somebody",
    class: 'sandbox_lost',
    command: WORKS,
    runtime: underShell(removed),
  },
  {
    name: 'the engine stops while the patch is taken',
    class: 'engine_unreachable',
    runtime: engineAway('agent', isTaking),
  },
  {
    name: 'the patch is not taken, and no other sandbox starts',
    class: 'sandbox_lost',
    runtime: noControl(failing('agent', isTaking, 'sandbox_lost')),
  },
  {
    name: 'git fails in the sandbox, and no other sandbox starts',
    class: 'patch_take',
    runtime: noControl(failing('agent', isTaking, 'patch_take')),
  },
  {
    name: 'the node has no memory as the patch is taken',
    class: 'node_memory',
    runtime: failing('agent', isTaking, 'node_memory'),
  },
  {
    name: 'another sandbox fills the disk while the agent works',
    class: 'node_disk',
    command: 'sleep 4',
    runtime: filledForAWhile,
  },
  {
    name: 'another sandbox fills the disk while the patch is taken',
    class: 'node_disk',
    runtime: filledDisk('agent', isTaking),
  },
  // The evaluation
  {
    name: 'the engine does not answer for the evaluation',
    class: 'engine_unreachable',
    runtime: notStarting('evaluation', 'engine_unreachable'),
    patch: LOST,
  },
  {
    name: "the evaluation's sandbox does not start",
    class: 'sandbox_start',
    runtime: notStarting('evaluation', 'sandbox_start'),
    patch: LOST,
  },
  {
    name: 'the node has no memory for the evaluation',
    class: 'node_memory',
    runtime: notStarting('evaluation', 'node_memory'),
    patch: LOST,
  },
  {
    name: 'the node has no disk for the evaluation',
    class: 'node_disk',
    runtime: notStarting('evaluation', 'node_disk'),
    patch: LOST,
  },
  {
    name: 'the tests are killed from outside',
    class: 'evaluation_lost',
    patch: SLOW,
    runtime: underTests(killed),
  },
  {
    name: "the tests' sandbox is removed by somebody",
    class: 'evaluation_lost',
    patch: SLOW,
    runtime: underTests(removed),
  },
  {
    name: 'the engine stops before the tests',
    class: 'engine_unreachable',
    patch: SLOW,
    runtime: engineAway('evaluation', isTests),
  },
  {
    name: 'the engine stops while the patch is applied',
    class: 'engine_unreachable',
    patch: SLOW,
    runtime: engineAway('evaluation', (argv) => argv.includes('apply')),
  },
  {
    name: "the tests' output is lost with their sandbox",
    class: 'evaluation_lost',
    patch: SLOW,
    runtime: ending(isTests, 'killed'),
  },
  {
    name: "the tests' sandbox is gone",
    class: 'evaluation_lost',
    patch: SLOW,
    runtime: ending(isTests, 'gone'),
  },
  {
    name: "the tests' stream breaks, and no other sandbox starts",
    class: 'evaluation_lost',
    patch: SLOW,
    runtime: noControl(failing('evaluation', isTests, 'evaluation_lost')),
  },
  {
    name: 'memory of the node kills the tests',
    class: 'node_memory',
    patch: patchOf('exit 137'),
    runtime: byOthersMemory,
  },
  {
    name: 'another sandbox fills the disk during the tests',
    class: 'node_disk',
    patch: LOST,
    runtime: filledDisk('evaluation', isTests),
  },
  {
    name: 'no control evaluation can be made',
    class: 'evaluation_lost',
    patch: LOST,
    runtime: noControl((runtime) => runtime),
  },
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
  {
    name: 'the image is not pulled',
    class: 'image_pull',
    runtime: (runtime) => replacing(runtime, { ensureImage: rejecting('image_pull') }),
  },
  {
    name: 'the disk is full as the image is unpacked',
    class: 'node_disk',
    runtime: (runtime) => replacing(runtime, { ensureImage: rejecting('node_disk') }),
  },
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
  {
    name: 'an unforeseen error',
    class: 'bug',
    runtime: (runtime) => replacing(runtime, { start: () => Promise.reject(new TypeError('made')) }),
  },
  { name: 'the store takes no artifact', class: 'artifact_store', store: true },
];

export const STORE_REFUSES = (): Promise<never> =>
  Promise.reject(new SwefarmError('artifact_store', 'made: the store takes nothing'));
