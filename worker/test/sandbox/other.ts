/** Being somebody without root, for the tests of what that changes. */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** One for each test process: limits on processes count all that a user has. */
export const USER = 50_000 + (process.pid % 10_000);
const LINE = ['--reuid', String(USER), '--regid', String(USER), '--clear-groups'];

/** Only root can become somebody else, who must be able to read this checkout and may have user namespaces. */
export function canBeAnother(program: string): boolean {
  if (process.getuid?.() !== 0) return false;
  const read = `require('fs').accessSync(${JSON.stringify(program)})`;
  const probe = spawnSync('setpriv', [...LINE, process.execPath, '-e', read]);
  const namespaces = spawnSync('setpriv', [
    ...LINE,
    'unshare',
    '--user',
    '--map-root-user',
    '--mount',
    'true',
  ]);
  return probe.status === 0 && namespaces.status === 0;
}

/** Runs a program of ours as that user; its last line, which is JSON. */
export async function runAsUser(program: string, args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await run('setpriv', [...LINE, process.execPath, program, ...args]);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}
