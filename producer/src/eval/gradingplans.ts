/** Makes the grading plans of rows. An ungradable row has no plan. */
import { type GraderChoice, planEvaluation } from '@swefarm/grading';
import { type Instance, type InstancePlan, SwefarmError } from '@swefarm/shared';

export type GradingPlans = {
  of(instanceId: string): InstancePlan | null;
  /** Grader whose format the run report has: the grader of all rows or, if they have several or none, SWE-bench 4.1.0. */
  grader: string;
};

export function planGrading(instances: readonly Instance[], choice: GraderChoice): GradingPlans {
  const plans = new Map<string, InstancePlan>();
  for (const instance of instances) {
    try {
      plans.set(instance.instance_id, planEvaluation(instance, choice));
    } catch (error) {
      // The worker reports why it cannot grade the row.
      if (!(error instanceof SwefarmError)) throw error;
    }
  }
  const graders = new Set([...plans.values()].map(({ grader }) => grader));
  const [only] = graders;
  return {
    of: (instanceId) => plans.get(instanceId) ?? null,
    grader: graders.size === 1 && only ? only : 'swebench-4.1.0',
  };
}
