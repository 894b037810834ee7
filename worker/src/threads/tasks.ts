/** Tasks that run in a thread, because they parse text that the model or its code wrote. */
import { type EvaluationFacts, gradeEvaluation, signsOf, withoutTestHooks } from '@swefarm/grading';
import type { Instance, InstancePlan, Report } from '@swefarm/shared';

/** The log is passed as bytes and decoded in the thread, because decoding it would block the event loop. */
export type GradeInput = {
  instance: Instance;
  plan: InstancePlan;
  patch: string;
  facts: Omit<EvaluationFacts, 'log'>;
  log: Uint8Array | null;
};

const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : new TextDecoder('utf-8').decode(bytes);

export const TASKS = {
  grade: (input: GradeInput): Report =>
    gradeEvaluation(input.instance, input.plan, { ...input.facts, log: text(input.log) }, input.patch),
  inspect: ({ patch, instance }: Pick<GradeInput, 'instance' | 'patch'>) => ({
    ...signsOf(patch, instance),
    rest: withoutTestHooks(patch, instance),
  }),
} as const;

export type TaskName = keyof typeof TASKS;
export type TaskInput<N extends TaskName> = Parameters<(typeof TASKS)[N]>[0];
export type TaskOutput<N extends TaskName> = Awaited<ReturnType<(typeof TASKS)[N]>>;
