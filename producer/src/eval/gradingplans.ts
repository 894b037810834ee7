/** The grading plan of each row by the chosen grader; a row that cannot be graded has none. */
import { type GraderChoice, planEvaluation } from '@swefarm/grading';
import { type Instance, type InstancePlan, SwefarmError } from '@swefarm/shared';

export type GradingPlans = {
  of(instanceId: string): InstancePlan | null;
  /** The grader whose run report form is used: the only grader of all rows, else 4.1.0. */
  grader: string;
};

export function planGrading(instances: readonly Instance[], choice: GraderChoice): GradingPlans {
  const plans = new Map<string, InstancePlan>();
  for (const instance of instances) {
    const plan = tryPlan(instance, choice);
    if (plan) plans.set(instance.instance_id, plan);
  }
  const graders = new Set([...plans.values()].map(({ grader }) => grader));
  const [only] = graders;
  return {
    of: (instanceId) => plans.get(instanceId) ?? null,
    grader: graders.size === 1 && only ? only : 'swebench-4.1.0',
  };
}

/** A row that cannot be graded has no plan here; the worker reports why. */
function tryPlan(instance: Instance, choice: GraderChoice): InstancePlan | null {
  try {
    return planEvaluation(instance, choice);
  } catch (error) {
    if (error instanceof SwefarmError) return null;
    throw error;
  }
}
