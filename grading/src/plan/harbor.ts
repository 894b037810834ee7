/** Plans the evaluation of a Harbor task, whose verifier shares the agent's container (Harbor 0.25.0). The worker copies the tests. */
import { type HarborTask, type InstancePlan, shellExports } from '@swefarm/shared';

/** Folder to which the verifier writes the rewards. */
const VERIFIER_LOGS = '/logs/verifier';

/** Returns the plan. The patch is the text of `solve.sh` for the solution, and empty for the work of an agent. */
export const harborPlan = (task: HarborTask): InstancePlan => ({
  grader: 'harbor-0.25.0',
  before: [],
  patch_path: '/solution/solve.sh',
  apply: [],
  reset_between: [],
  unapplied: 'ends',
  blank: 'tests_run',
  after: [],
  script: `${shellExports(task.verifier.env)}(/tests/test.sh)\n`,
  timeout: task.verifier.timeout,
  files: [`${VERIFIER_LOGS}/reward.json`, `${VERIFIER_LOGS}/reward.txt`],
  outcomes: {
    from: 'rewards',
    folder: VERIFIER_LOGS,
    ...(task.reward_key === undefined ? {} : { key: task.reward_key }),
  },
  verdict: { rule: 'reward' },
});
