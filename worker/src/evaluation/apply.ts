/** Applies the model patch to the clean tree with the commands of the harness; a patch taken from the agent's tree is applied exactly. */
import { isNew, pathOf, readDiff } from '@swefarm/grading';
import type { Container, ExecResult } from '@swefarm/sandbox';
import { type InstanceEnvironment, type InstancePlan, RolloutFailure } from '@swefarm/shared';

const APPLY_TIMEOUT_MS = 120_000;
const APPLY_OUTPUT_BYTES = 1024 * 1024;

/**
 * Returns the commands for a patch that is the difference of two trees. The first command leaves white space unchanged, which some
 * harnesses let git change. The program `patch` is omitted, because it reverts changes that it finds applied.
 */
const exactAttempts = ({ apply, patch_path }: InstancePlan): InstancePlan['apply'] => {
  const argv = ['git', 'apply', '--verbose', '--whitespace=nowarn', patch_path];
  const others = apply.filter(({ argv: [program] }) => program !== 'patch');
  return apply.length === 0 ? apply : [{ name: 'git apply --verbose', argv }, ...others];
};

/**
 * Reads the paths of new files from stdin. Removes an untracked folder at such a path, and untracked files and links at the paths of its
 * folders: the agent removed them in its sandbox, but a patch does not name files that git ignores.
 */
const MAKE_WAY = `while IFS= read -r -d '' path; do
  if [ -d "$path" ] && [ ! -L "$path" ]; then printf '%s\\0' "$path"; fi
  while [ "$path" != "\${path%/*}" ]; do
    path=\${path%/*}
    if [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then printf '%s\\0' "$path"; fi
  done
done | xargs -0 -r git --literal-pathspecs clean -ffdxq --`;

/**
 * Applies the patch at the plan's `patch_path`. If the plan has no commands for this, its script applies the patch. `taken`: the patch, if
 * the worker took it from the agent's tree. Throws RolloutFailure `evaluation_lost` when the container is gone.
 */
export async function applyPatch(
  container: Container,
  plan: InstancePlan,
  { taken, signal }: { taken: string | null; signal: AbortSignal },
): Promise<{ applied: boolean; applied_with: string | null; output: string }> {
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
  const added = taken === null ? [] : pathsOf(sectionsOf(taken).map(addedPath));
  if (added.length > 0) await run(['/bin/bash', '-c', MAKE_WAY], zeroEnded(added));
  for (const [index, attempt] of (taken === null ? plan.apply : exactAttempts(plan)).entries()) {
    if (index > 0) for (const argv of plan.reset_between) await run(argv);
    const result = await run(attempt.argv);
    output += result.output.toString('utf8');
    if (result.exitCode === 0) return { applied: true, applied_with: attempt.name, output };
    if ((await container.state()) !== 'running') {
      const why = 'the evaluation container ended while the patch was applied';
      throw new RolloutFailure('evaluation_lost', why);
    }
  }
  if (plan.already_applied) {
    const result = await run(plan.already_applied);
    if (result.exitCode === 0) return { applied: true, applied_with: 'already applied', output };
  }
  return { applied: false, applied_with: null, output };
}

/** Prints which of the paths on stdin exist. Tens of thousands of paths are too long for a command line. */
const LIST = `while IFS= read -r -d '' path; do if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\\0' "$path"; fi; done`;
const LIST_TIMEOUT_MS = 60_000;
const LIST_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Returns whether the agent's tree may lack files of the clean tree, for example those that reveal the solution. */
export const mayLackFiles = (environment: InstanceEnvironment | undefined): boolean =>
  environment !== undefined &&
  (environment.hidden.length > 0 || environment.setup.some(({ roles }) => !roles.includes('evaluation')));

/**
 * Returns the patch without the added files that the clean tree already has; keeps parts that cannot be parsed. If the agent creates a
 * file that only its own tree lacks, that file is not part of its work, and a patch that adds it would not apply to the clean tree. Throws
 * RolloutFailure `evaluation_lost` when the files of the clean tree cannot be listed.
 */
export async function withoutRecreated(
  container: Container,
  patch: string,
  signal: AbortSignal,
): Promise<string> {
  const sections = sectionsOf(patch);
  const added = sections.map(addedPath);
  const paths = pathsOf(added);
  if (paths.length === 0) return patch;
  const result = await container.exec(['/bin/bash', '-c', LIST], {
    cwd: container.workdir,
    stdin: zeroEnded(paths),
    timeoutMs: LIST_TIMEOUT_MS,
    maxOutputBytes: LIST_OUTPUT_BYTES,
    signal,
  });
  if (result.exitCode !== 0 || result.truncated)
    throw new RolloutFailure('evaluation_lost', `listing new files of the clean tree: ${howItEnded(result)}`);
  const existing = new Set(result.output.toString('utf8').split('\0'));
  return sections.filter((_, at) => !added[at] || !existing.has(added[at])).join('');
}

const howItEnded = ({ timedOut, exitCode, truncated }: ExecResult): string =>
  timedOut
    ? `no answer in ${LIST_TIMEOUT_MS / 1000} s`
    : truncated
      ? 'too much output'
      : `exit code ${exitCode}`;

const sectionsOf = (patch: string): string[] => patch.split(/^(?=diff --git )/m);

const pathsOf = (added: readonly (string | null)[]): string[] => added.filter((path) => path !== null);

/** Returns the paths as input for a script; each path ends with a zero byte. */
const zeroEnded = (paths: readonly string[]): Buffer =>
  Buffer.from(paths.map((path) => `${path}\0`).join(''));

function addedPath(section: string): string | null {
  try {
    const [file, ...others] = readDiff(section);
    return file && others.length === 0 && isNew(file) ? pathOf(file) : null;
  } catch {
    // A patch that this parser refuses may still apply.
    return null;
  }
}
