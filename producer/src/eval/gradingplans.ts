/** How each row is graded: its plan by the chosen grader, or nothing for a row that cannot be graded at all. */
import { type EvaluationPlan, type GraderChoice, type GraderName, planEvaluation } from '@swefarm/grading';
import { type Instance, SwefarmError } from '@swefarm/shared';

export type GradingPlans = {
  of(instanceId: string): EvaluationPlan | null;
  /** Whose shape the run report has: 5.0.2's when all rows are its own, else 4.1.0's. */
  grader: GraderName;
};

export function planGrading(instances: readonly Instance[], choice: GraderChoice): GradingPlans {
  const plans = new Map<string, EvaluationPlan>();
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

/** The worker says of such a row why it cannot be graded; here it only has no plan. */
function tryPlan(instance: Instance, choice: GraderChoice): EvaluationPlan | null {
  try {
    return planEvaluation(instance, choice);
  } catch (error) {
    if (error instanceof SwefarmError) return null;
    throw error;
  }
}
