/** Starts the program of a bundle in an environment with the system's libraries only, at the path of a sandbox. */
import { existsSync } from 'node:fs';
import { type AgentCard, errorMessage } from '@swefarm/shared';
import { type Bundle, mountPath } from '../bundle.ts';
import { fillText } from '../card/template.ts';
import { runProgram } from './run.ts';

export type StartCheck =
  | { state: 'starts'; output: string; ms: number }
  | { state: 'fails'; why: string }
  /** The card names no command, or this machine has no bubblewrap. */
  | { state: 'unknown'; why: string };

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc/ld.so.cache', '/etc/alternatives'];
const ISOLATION = [
  ...['--unshare-all', '--die-with-parent', '--new-session', '--chdir', '/tmp', '--clearenv'],
  ...[
    '--setenv',
    'PATH',
    '/usr/local/bin:/usr/bin:/bin',
    '--setenv',
    'HOME',
    '/tmp',
    '--setenv',
    'LANG',
    'C.UTF-8',
  ],
];
const TIMEOUT_MS = 120_000;

/**
 * Runs `check` of the card with bubblewrap, without a network.
 *
 * @param options.bare true: no file of this machine is in the root, as in an image without a C library and without a shell
 * @throws the reason of the signal
 */
export async function checkStart(
  card: AgentCard,
  bundle: Bundle,
  { signal, bare = false }: { signal: AbortSignal; bare?: boolean },
): Promise<StartCheck> {
  if (card.check.length === 0) return { state: 'unknown', why: 'the card has no "check" command' };
  const mount = mountPath(bundle.manifest.name);
  const system = SYSTEM.filter((path) => !bare && existsSync(path)).flatMap((path) => [
    '--ro-bind',
    path,
    path,
  ]);
  const mounts = [
    ...system,
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--ro-bind',
    bundle.folder,
    mount,
  ];
  const argv = card.check.map((text) => fillText(text, (name) => (name === 'bundle' ? mount : `{${name}}`)));
  const from = performance.now();
  try {
    const output = await runProgram('bwrap', [...ISOLATION, ...mounts, '--', ...argv], {
      signal,
      timeoutMs: TIMEOUT_MS,
    });
    return { state: 'starts', output: output.trim().split('\n')[0] ?? '', ms: performance.now() - from };
  } catch (error) {
    signal.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      return { state: 'unknown', why: 'bubblewrap (bwrap) is missing on this machine' };
    return { state: 'fails', why: errorMessage(error) };
  }
}
