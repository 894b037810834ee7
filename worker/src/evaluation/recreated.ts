/**
 * An agent's sandbox may lack files of the clean tree that reveal the solution. If the agent creates a file at such a path, that file is
 * not part of the agent's work, and a patch that adds it would not apply to the clean tree.
 */
import { isNew, pathOf, readDiff } from '@swefarm/grading';
import type { Container, ExecResult } from '@swefarm/sandbox';
import { type InstanceEnvironment, RolloutFailure } from '@swefarm/shared';

/** Prints which of the paths on stdin exist. Tens of thousands of paths are too long for a command line. */
const LIST = `while IFS= read -r -d '' path; do if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\\0' "$path"; fi; done`;
const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 16 * 1024 * 1024;

/** Returns whether the agent's tree may lack files of the clean tree. */
export const mayLackFiles = (environment: InstanceEnvironment | undefined): boolean =>
  environment !== undefined &&
  (environment.hidden.length > 0 || environment.setup.some(({ roles }) => !roles.includes('evaluation')));

/**
 * Returns the patch without the added files that the clean tree already has; the whole patch if it cannot be split. Throws RolloutFailure
 * `evaluation_lost` when the files of the clean tree cannot be listed.
 */
export async function withoutRecreated(
  container: Container,
  patch: string,
  signal: AbortSignal,
): Promise<string> {
  const sections = sectionsOf(patch);
  const added = sections.map(addedPath);
  const paths = added.filter((path) => path !== null);
  if (paths.length === 0) return patch;
  const result = await container.exec(['/bin/bash', '-c', LIST], {
    cwd: container.workdir,
    stdin: Buffer.from(paths.map((path) => `${path}\0`).join('')),
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: OUTPUT_BYTES,
    signal,
  });
  if (result.exitCode !== 0 || result.truncated)
    throw new RolloutFailure('evaluation_lost', `listing new files of the clean tree: ${howItEnded(result)}`);
  const existing = new Set(result.output.toString('utf8').split('\0'));
  return sections.filter((_, at) => !added[at] || !existing.has(added[at])).join('');
}

const howItEnded = ({ timedOut, exitCode, truncated }: ExecResult): string =>
  timedOut ? `no answer in ${TIMEOUT_MS / 1000} s` : truncated ? 'too much output' : `exit code ${exitCode}`;

const sectionsOf = (patch: string): string[] => patch.split(/^(?=diff --git )/m);

export const addedPaths = (patch: string): string[] =>
  sectionsOf(patch)
    .map(addedPath)
    .filter((path) => path !== null);

function addedPath(section: string): string | null {
  try {
    const [file, ...others] = readDiff(section);
    return file && others.length === 0 && isNew(file) ? pathOf(file) : null;
  } catch {
    // A patch that this parser refuses may still apply.
    return null;
  }
}
