/** Starts the program of an agent in its sandbox, and ends it with everything that it started. */
import { posix } from 'node:path';
import type { AgentStart } from '@swefarm/agents';
import type { Container, ExecResult } from '@swefarm/sandbox';
import { RolloutFailure, shellExports, waitAtMost } from '@swefarm/shared';
import { ACTIVATE } from './image.ts';

/** Folder of the agent in its sandbox, outside of the repository. */
const FOLDER = '/tmp/swefarm-agent';
export const HOME = `${FOLDER}/home`;
export const OUT = `${FOLDER}/out`;
const TEMPORARY = `${FOLDER}/tmp`;

/** Maximum bytes of the program's output that are stored: the head and the tail. */
const MOST_OUTPUT_BYTES = 2 * 1024 ** 2;
/** The longest timer; the agent's own deadline ends the program. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const PREPARE_MS = 60_000;
const AFTER_KILL_MS = 15_000;

/** Variables that would send the requests of the agent to a proxy, which the sandbox cannot reach. */
const PROXIES = ['http_proxy', 'https_proxy', 'ftp_proxy', 'all_proxy', 'no_proxy'];

/** Activates the environment ($1), sets $2 variables, which follow, and becomes the command, which follows them. */
const LAUNCH = `
${ACTIVATE}
n=$1; shift
unset ${PROXIES.flatMap((name) => [name, name.toUpperCase()]).join(' ')}
for ((; n > 0; n--)); do export "$1"; shift; done
exec "$@" </dev/null
`;

const OWN_ENVIRONMENT = {
  HOME,
  TMPDIR: TEMPORARY,
  XDG_CACHE_HOME: `${HOME}/.cache`,
  XDG_CONFIG_HOME: `${HOME}/.config`,
  XDG_DATA_HOME: `${HOME}/.local/share`,
  XDG_STATE_HOME: `${HOME}/.local/state`,
  no_proxy: '127.0.0.1,localhost',
  NO_PROXY: '127.0.0.1,localhost',
};

export type Program = {
  /** Resolves when the program has ended. Rejects with RolloutFailure of the sandbox. */
  readonly ended: Promise<ExecResult>;
  /** Kills the program and all that it started. Afterwards `ended` has resolved or rejected. Throws RolloutFailure `engine_unreachable`. */
  kill(): Promise<void>;
};

/**
 * Writes the files of the agent and starts its command. `path`: the search path of the activated environment. Throws RolloutFailure of
 * the sandbox.
 */
export async function startProgram(
  container: Container,
  { argv, env, files }: Pick<AgentStart, 'argv' | 'env' | 'files'>,
  { activate, path }: { activate: string; path: string },
  signal: AbortSignal,
): Promise<Program> {
  await writeFiles(container, [profileOf(env.PATH ?? path), ...files], signal);
  const variables = Object.entries({ ...OWN_ENVIRONMENT, ...env }).map(([name, value]) => `${name}=${value}`);
  const words = [activate, String(variables.length), ...variables, ...argv];
  const line = ['bash', '--noprofile', '--norc', '-c', LAUNCH, 'bash', ...words];
  const stop = new AbortController();
  const ended = container.exec(line, {
    cwd: container.workdir,
    timeoutMs: NO_TIMEOUT_MS,
    maxOutputBytes: MOST_OUTPUT_BYTES,
    signal: AbortSignal.any([signal, stop.signal]),
  });
  const over = ended.catch(() => undefined);
  return {
    ended,
    async kill() {
      // An aborted exec would lose the output of the program.
      await container.killProcesses();
      const { by } = await waitAtMost(over, AFTER_KILL_MS);
      if (by === 'itself') return;
      stop.abort(
        new RolloutFailure('sandbox_lost', 'the program of the agent did not end when it was killed'),
      );
      await over;
    },
  };
}

/** Login shells, in which some agents run commands, read the system's profile, which replaces the search path, and then this one. */
const profileOf = (path: string): AgentStart['files'][number] => ({
  path: `${HOME}/.profile`,
  content: shellExports({ PATH: path }),
});

async function writeFiles(
  container: Container,
  files: AgentStart['files'],
  signal: AbortSignal,
): Promise<void> {
  const folders = [HOME, OUT, TEMPORARY, ...files.map(({ path }) => posix.dirname(path))];
  const options = { timeoutMs: PREPARE_MS, maxOutputBytes: 4096, signal };
  // The folders and files belong to the user of the sandbox, or can be written by that user.
  const made = await container.exec(['mkdir', '-p', '--', ...new Set(folders)], options);
  if (made.exitCode !== 0)
    throw new RolloutFailure(
      'agent_unfit',
      `no folder for the agent in the image: ${made.output.toString().slice(0, 200)}`,
    );
  const encoded = files.map(({ path, content }) => ({ path, content: Buffer.from(content), mode: 0o666 }));
  if (encoded.length > 0) await container.putFiles(encoded, signal);
}
