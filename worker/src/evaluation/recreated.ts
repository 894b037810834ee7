/**
 * What an agent writes where its sandbox lacks a file of the clean tree is no part of its work: such a file was hidden from it, or its
 * setup took it away, because it answers the task. A patch that makes it anew would not apply to the clean tree.
 */
import { isNew, pathOf, readDiff } from '@swefarm/grading';
import type { InstanceEnvironment } from '@swefarm/shared';
import type { Container } from '../sandbox/runtime.ts';

const LIST = `for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\\0' "$path"; fi; done`;
const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 16 * 1024 * 1024;

/** Whether the agent's tree may lack files that the clean one has. */
export const mayLackFiles = (environment: InstanceEnvironment | undefined): boolean =>
  environment !== undefined &&
  (environment.hidden.length > 0 || environment.setup.some(({ roles }) => !roles.includes('evaluation')));

/** The patch without the files that it adds and the clean tree has; as it is when it cannot be split. */
export async function withoutRecreated(
  container: Container,
  patch: string,
  signal: AbortSignal,
): Promise<string> {
  const sections = patch.split(/^(?=diff --git )/m);
  const added = sections.map(addedPath);
  const paths = added.filter((path) => path !== null);
  if (paths.length === 0) return patch;
  const result = await container.exec(['/bin/sh', '-c', LIST, 'swefarm', ...paths], {
    cwd: container.workdir,
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: OUTPUT_BYTES,
    standing: 'clean',
    signal,
  });
  const there = new Set(result.output.toString('utf8').split('\0'));
  const isKept = (path: string | null | undefined): boolean =>
    path === null || path === undefined || !there.has(path);
  return sections.filter((_, at) => isKept(added[at])).join('');
}

function addedPath(section: string): string | null {
  try {
    const [file, ...others] = readDiff(section);
    return file && others.length === 0 && isNew(file) ? pathOf(file) : null;
  } catch {
    // Whether a patch that this parser refuses applies is decided where it is applied.
    return null;
  }
}
