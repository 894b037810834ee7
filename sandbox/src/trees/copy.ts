/** Copies files and folders out of a sandbox and into another one, with modes, empty folders and links. */
import { readFileSync } from 'node:fs';
import { RolloutFailure, SwefarmError } from '@swefarm/shared';
import { type Container, DEFAULT_PATH, type SandboxFile } from '../runtime.ts';
import { readTree, type Tree, type TreeLimits } from './tree.ts';

const script = (name: string): string =>
  readFileSync(new URL(name, import.meta.url), 'utf8').replaceAll(/^ *#.*\n/gm, '');
const OUT = script('./out.sh');
const IN = script('./in.sh');
/** Time limit of a script that writes folders and links; 10,000 links take about 20 s on a busy node. */
const WRITE_MS = 300_000;
const NEW_FOLDER = 0o755;
/** Bytes of an archive for each entry beside its content: headers, also of long names, and padding. */
const ENTRY_BYTES = 3_072;
/** Bytes at the end of an archive, which tar fills up to a whole record. */
const RECORD_BYTES = 20_480;
const NOTHING = 40;
const NO_TAR = 41;

/** Environment of the scripts. The scripts do not inherit variables of the agent's shell. */
const ENV = { LC_ALL: 'C', PATH: DEFAULT_PATH };

/**
 * Reads a file or a folder by one exec of the sandbox's `sh`, `tar` and `head`. Code in the sandbox can forge the result, within the limits.
 * Returns null if nothing has this path. Throws SwefarmError `no_tar`, `late`, `unreadable` or
 * `file_too_large`, and errors of the runtime.
 * @param exclude patterns of `tar --exclude`
 */
export async function copyOut(
  container: Pick<Container, 'exec'>,
  { path, exclude }: { path: string; exclude: readonly string[] },
  limits: TreeLimits & { timeoutMs: number },
  signal: AbortSignal,
): Promise<Tree | null> {
  const most = limits.bytes + (limits.entries + 1) * ENTRY_BYTES + RECORD_BYTES;
  const options = exclude.map((pattern) => `--exclude=${pattern}`);
  const { exitCode, output, outputBytes } = await container.exec(
    ['/bin/sh', '-c', OUT, 'out', path, String(most + 1), ...options],
    { user: 'root', env: ENV, cwd: '/', timeoutMs: limits.timeoutMs, maxOutputBytes: most, signal },
  );
  if (exitCode === null) throw new SwefarmError('late', 'the copy exceeded its time limit');
  if (exitCode === NOTHING) return null;
  if (exitCode === NO_TAR) throw new SwefarmError('no_tar', 'the container has no tar');
  if (outputBytes > most)
    throw new SwefarmError(
      'file_too_large',
      `more than ${limits.bytes} bytes or ${limits.entries} files and folders`,
    );
  const tree = await readTree(output, limits).catch((error: unknown) => {
    if (error instanceof SwefarmError) throw error;
    throw new SwefarmError('unreadable', 'the archive is damaged', { cause: error });
  });
  if (tree === null) throw new SwefarmError('unreadable', `no archive (exit code ${exitCode})`);
  return tree;
}

/**
 * Writes a tree to `path` of a sandbox in which no untrusted code has run. Replaces everything at this path. Needs bash, mkdir, rm, chmod
 * and ln in the image. Throws RolloutFailure `sandbox_lost`, `sandbox_start` if the sandbox is too slow, and the errors of
 * {@link Container.putFiles}.
 */
export async function copyIn(
  container: Pick<Container, 'exec' | 'putFiles'>,
  path: string,
  { folder, entries }: Pick<Tree, 'folder' | 'entries'>,
  signal: AbortSignal,
): Promise<void> {
  const run = (part: 'folder' | 'file' | 'modes', given: readonly string[]) =>
    runIn(container, path, { part, given }, signal);
  const others = entries.filter(({ content }) => content === undefined);
  await run(
    folder ? 'folder' : 'file',
    others.flatMap(({ path: at, link = '' }) => [at, link]),
  );
  const files = entries.flatMap(({ path: at, content, mode = 0o644 }): SandboxFile[] =>
    content ? [{ path: folder ? `${path}/${at}` : path, content, mode }] : [],
  );
  if (files.length > 0) await container.putFiles(files, signal);
  // The modes come last and from the deepest folder on, because they may forbid access.
  const modes = others
    .toReversed()
    .flatMap(({ path: at, link, mode = NEW_FOLDER }) =>
      link !== undefined || mode === NEW_FOLDER ? [] : [at, mode.toString(8)],
    );
  if (modes.length > 0) await run('modes', modes);
}

/** Runs a part of the script. Only code of this module runs in the sandbox, so the node is the cause if the time limit is exceeded. */
async function runIn(
  container: Pick<Container, 'exec'>,
  path: string,
  { part, given }: { part: string; given: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const { exitCode, output } = await container.exec(['/bin/bash', '--norc', '-c', IN, 'in', path, part], {
    ...{ user: 'root', env: ENV, cwd: '/', timeoutMs: WRITE_MS, maxOutputBytes: 4_096, signal },
    stdin: Buffer.from(given.map((text) => `${text}\0`).join('')),
  });
  if (exitCode === null)
    throw new RolloutFailure(
      'sandbox_start',
      `writing ${path} into a sandbox takes over ${WRITE_MS / 1000} s`,
    );
  if (exitCode === 0) return;
  const why = output.toString('utf8', 0, 200).trim() || `exit code ${exitCode}`;
  throw new RolloutFailure('sandbox_lost', `writing ${path} into a sandbox: ${why}`);
}
