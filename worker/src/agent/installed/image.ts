/** Examines whether the program of an agent can run in an image, and finds the search path of the activated environment. */
import type { Container } from '@swefarm/sandbox';
import { type AgentCard, RolloutFailure } from '@swefarm/shared';

const TIMEOUT_MS = 120_000;
const MOST_BYTES = 256 * 1024;

/**
 * Runs text $1, which activates the environment, and removes it from the arguments. The text sees no arguments: conda's `activate` would
 * take them for the name of an environment.
 */
export const ACTIVATE = `
swefarm_activate=$1; shift
swefarm_words=("$@"); set --
eval "$swefarm_activate" </dev/null >/dev/null 2>&1
set -- "\${swefarm_words[@]}"; unset swefarm_activate swefarm_words`;

/** Runs text $1 as the shell of the mini agent does, and prints the path, the C library and the missing commands between null bytes. */
const SCRIPT = `
${ACTIVATE}
printf '\\0path=%s' "$PATH"
printf '\\0libc=%s' "$(getconf GNU_LIBC_VERSION 2>/dev/null || ldd --version 2>&1)"
for name; do type -P -- "$name" >/dev/null || printf '\\0lacks=%s' "$name"; done
printf '\\0end='
`;

/** The image of a sandbox: the search path after the activation. */
export type ExaminedImage = { path: string };

/** Throws RolloutFailure `agent_unfit` if the image lacks a command or has an older C library, `sandbox_lost` if it cannot be examined. */
export async function examineImage(
  container: Container,
  { name, needs }: Pick<AgentCard, 'name' | 'needs'>,
  activate: string,
  signal: AbortSignal,
): Promise<ExaminedImage> {
  const line = ['bash', '--noprofile', '--norc', '-c', SCRIPT, 'bash', activate, ...needs.commands];
  const options = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MOST_BYTES, signal };
  const { output, exitCode } = await container.exec(line, options);
  const found = output
    .toString('utf8')
    .split('\0')
    .map((field) => [field.slice(0, field.indexOf('=')), field.slice(field.indexOf('=') + 1)] as const);
  const valuesOf = (key: string): string[] => found.filter(([one]) => one === key).map(([, value]) => value);
  const [path] = valuesOf('path');
  if (path === undefined || valuesOf('end').length === 0) {
    const how = exitCode === null ? 'did not end' : `ended with exit code ${exitCode}`;
    throw new RolloutFailure('sandbox_lost', `the examination of the image for agent ${name} ${how}`);
  }
  const lacks = [...valuesOf('lacks'), ...olderLibrary(needs.libc, valuesOf('libc')[0] ?? '')];
  if (lacks.length > 0)
    throw new RolloutFailure(
      'agent_unfit',
      `agent ${name} cannot run in the image, which lacks ${lacks.join(', ')}`,
    );
  return { path };
}

/** Returns what is needed and not there. `shown`: what the image tells about its C library. */
function olderLibrary(needed: string, shown: string): string[] {
  const wanted = versionIn(needed);
  if (wanted === null) return [];
  const here = /musl/i.test(shown) ? null : versionIn(shown.split('\n')[0] ?? '');
  if (here === null) return [`${needed} (it has another C library)`];
  const isOlder = here.major < wanted.major || (here.major === wanted.major && here.minor < wanted.minor);
  return isOlder ? [`${needed} (it has ${here.major}.${here.minor})`] : [];
}

/** Returns the last version in a text, as `ldd (Debian GLIBC 2.36-9) 2.36` names the library last. */
function versionIn(text: string): { major: number; minor: number } | null {
  const last = [...text.matchAll(/(\d+)\.(\d+)/g)].at(-1);
  return last ? { major: Number(last[1]), minor: Number(last[2]) } : null;
}
