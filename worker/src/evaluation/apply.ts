/** Applies the model patch to the clean tree as the chosen harness does: the same commands in the same order. */
import type { EvaluationPlan } from '@swefarm/grading';
import { RolloutFailure } from '@swefarm/shared';
import type { Container, ExecResult } from '../sandbox/runtime.ts';

/** Where the plan's commands expect the patch. */
export const PATCH_PATH = '/tmp/patch.diff';
const APPLY_TIMEOUT_MS = 120_000;
const APPLY_OUTPUT_BYTES = 1024 * 1024;

export type Applied = { applied_with: string | null; output: string };

/** Expects the patch at PATCH_PATH. `applied_with` is null when every attempt failed. Throws RolloutFailure `evaluation_lost` when the container is gone. */
export async function applyPatch(
  container: Container,
  plan: EvaluationPlan,
  signal: AbortSignal,
): Promise<Applied> {
  const run = (argv: readonly string[]): Promise<ExecResult> =>
    container.exec(argv, {
      cwd: container.workdir,
      timeoutMs: APPLY_TIMEOUT_MS,
      maxOutputBytes: APPLY_OUTPUT_BYTES,
      signal,
    });
  let output = '';
  for (const argv of plan.prepare ?? []) output += (await run(argv)).output.toString('utf8');
  for (const [index, attempt] of plan.apply.entries()) {
    if (index > 0) for (const argv of plan.resetBetween) await run(argv);
    const result = await run(attempt.argv);
    output += result.output.toString('utf8');
    if (result.exitCode === 0) return { applied_with: attempt.name, output };
    if ((await container.state()) !== 'running') {
      throw new RolloutFailure(
        'evaluation_lost',
        'the evaluation container ended while the patch was applied',
      );
    }
  }
  if (plan.alreadyApplied) {
    const result = await run(plan.alreadyApplied);
    if (result.exitCode === 0) return { applied_with: 'already applied', output };
  }
  return { applied_with: null, output };
}
