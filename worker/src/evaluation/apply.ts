/** Applies the model patch to the clean tree with the commands of the harness, in the same order. */

import type { Container, ExecResult } from '@swefarm/sandbox';
import { type InstancePlan, RolloutFailure } from '@swefarm/shared';
import { addedPaths } from './recreated.ts';

const APPLY_TIMEOUT_MS = 120_000;
const APPLY_OUTPUT_BYTES = 1024 * 1024;

/**
 * Returns the commands for a patch that is the difference of two trees. The first command leaves white space unchanged, which some
 * harnesses let git change. The program `patch` is omitted, because it reverts changes that it finds applied.
 */
const exactAttempts = ({
  apply,
  patch_path,
}: Pick<InstancePlan, 'apply' | 'patch_path'>): InstancePlan['apply'] => {
  const argv = ['git', 'apply', '--verbose', '--whitespace=nowarn', patch_path];
  const others = apply.filter(({ argv: [program] }) => program !== 'patch');
  return apply.length === 0 ? apply : [{ name: 'git apply --verbose', argv }, ...others];
};

/**
 * Reads the paths of new files from stdin. Removes untracked files at the path of a new file or of one of its folders: the agent removed
 * those files in its sandbox, but a patch does not name files that git ignores.
 */
const MAKE_WAY = `while IFS= read -r -d '' path; do
  if [ -d "$path" ] && [ ! -L "$path" ]; then printf '%s\\0' "$path"; fi
  while [ "$path" != "\${path%/*}" ]; do
    path=\${path%/*}
    if [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then printf '%s\\0' "$path"; fi
  done
done | xargs -0 -r git --literal-pathspecs clean -ffdxq --`;

export type Applied = { applied: boolean; applied_with: string | null; output: string };

/**
 * Applies the patch at the plan's `patch_path`. If the plan has no commands for this, its script applies the patch.
 *
 * @param taken the patch, if the worker took it from the agent's tree
 * @throws RolloutFailure `evaluation_lost` when the container is gone
 */
export async function applyPatch(
  container: Container,
  plan: Pick<InstancePlan, 'apply' | 'patch_path' | 'reset_between' | 'already_applied'>,
  { taken, signal }: { taken: string | null; signal: AbortSignal },
): Promise<Applied> {
  const run = (argv: readonly string[], stdin?: Uint8Array): Promise<ExecResult> =>
    container.exec(argv, {
      ...(stdin ? { stdin } : {}),
      cwd: container.workdir,
      timeoutMs: APPLY_TIMEOUT_MS,
      maxOutputBytes: APPLY_OUTPUT_BYTES,
      standing: 'clean',
      signal,
    });
  let output = '';
  if (plan.apply.length === 0) return { applied: true, applied_with: null, output };
  const added = taken === null ? [] : addedPaths(taken);
  if (added.length > 0)
    await run(['/bin/bash', '-c', MAKE_WAY], Buffer.from(added.map((path) => `${path}\0`).join('')));
  for (const [index, attempt] of (taken === null ? plan.apply : exactAttempts(plan)).entries()) {
    if (index > 0) for (const argv of plan.reset_between) await run(argv);
    const result = await run(attempt.argv);
    output += result.output.toString('utf8');
    if (result.exitCode === 0) return { applied: true, applied_with: attempt.name, output };
    if ((await container.state()) !== 'running') {
      throw new RolloutFailure(
        'evaluation_lost',
        'the evaluation container ended while the patch was applied',
      );
    }
  }
  if (plan.already_applied) {
    const result = await run(plan.already_applied);
    if (result.exitCode === 0) return { applied: true, applied_with: 'already applied', output };
  }
  return { applied: false, applied_with: null, output };
}
