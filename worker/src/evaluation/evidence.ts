/**
 * Reads what an evaluation left. Code that runs in the evaluation can change the tools that decide the verdict: pytest, python, bash, git's
 * configuration, or the script that bash is still reading. After all processes of the container have ended, this module lists from outside
 * which of these files differ from the image; `trust` derives its findings from the list.
 */
import { posix } from 'node:path';
import { decidesOutcomes, type EvaluationFacts, isPathFile } from '@swefarm/grading';
import type { Container, FileChanges } from '@swefarm/sandbox';
import { errorMessage, type InstancePlan, RolloutFailure, SwefarmError } from '@swefarm/shared';

/** Path of the eval script in the container. */
export const EVAL_PATH = '/eval.sh';
/** Folder of the repository in scripts and lists of files. */
export const TESTBED = '/testbed';
const TIMEOUT_MS = 120_000;
/** Maximum number of changed paths; no installation replaces more. */
const MOST_PATHS = 1_000;
const TOO_MANY = `more than ${MOST_PATHS} files that decide outcomes were written`;
const START_BYTES = 4096;
const CONFIG_BYTES = 256 * 1024;
const ROOTS = /^\/(?:usr|opt|s?bin|lib[^/]*|etc|root|testbed)(?:\/|$)/;
/** Folders to skip: Python writes `__pycache__` when it imports, and installations write the others. */
const PRUNED = /\/(?:__pycache__|[^/]*\.(?:dist|egg)-info)(?:\/|$)/;
/** Paths of the project, which are skipped: the work tree except git's own files, and folders in root's home except git's configuration. */
const INNER =
  /^\/testbed\/(?!\.git(?:\/(?:hooks|info)(?:\/|$)|\/[^/]*$|$))|^\/root\/(?!\.config\/git(?:\/|$))[^/]+\//;
const GIT_CONFIGS = new Set([
  '/testbed/.git/config',
  '/testbed/.git/config.worktree',
  '/etc/gitconfig',
  '/root/.gitconfig',
  '/root/.config/git/config',
]);
/** Git settings that change files or run programs. */
const GIT_SETTING = /^\s*(?:\[(?:filter|include)|(?:hookspath|attributesfile|fsmonitor|worktree)\b)/i;

/** The eval script as it was written to the container; `stamp` identifies that version of the file. */
export type Seal = { path: string; content: Buffer; stamp: string | null };

export async function sealScript(container: Container, script: Omit<Seal, 'stamp'>): Promise<Seal> {
  return { ...script, stamp: (await container.fileStamp?.(script.path)) ?? null };
}

/**
 * Returns the files of the plan that the script left, by path. A file over `logLimit` bytes counts as absent. Ends the container first, so
 * that no process changes the files. Throws RolloutFailure `sandbox_lost` when a file cannot be read.
 */
export async function filesLeft(
  container: Container,
  { files, outcomes }: InstancePlan,
  { logLimit, signal }: { logLimit: number; signal: AbortSignal },
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const paths = new Set([...files, ...('file' in outcomes ? [outcomes.file] : [])]);
  if (paths.size === 0) return found;
  const remains = await container.end?.(signal);
  for (const path of paths) {
    const reading = remains
      ? remains.getLinkedFile(path, logLimit, signal)
      : container.getFile(path, logLimit, signal);
    const content = await nullIfTooLarge(reading).catch((error: unknown) => {
      signal.throwIfAborted();
      if (error instanceof RolloutFailure) throw error;
      throw new RolloutFailure('sandbox_lost', `reading ${path}: ${errorMessage(error)}`, { cause: error });
    });
    if (content) found[path] = content.toString('utf8');
  }
  return found;
}

type Changed = Pick<EvaluationFacts, 'changed_files' | 'changes_unknown'>;

/**
 * Ends the container. Returns the changed files, or the reason why they are unknown. Returns `{}` if the runtime does not isolate files.
 * @param before result of an earlier check. Its files are added, because a changed program may have removed itself since the check.
 */
export async function whatChanged(
  container: Container,
  seal: Seal | null,
  signal: AbortSignal,
  before: Changed = {},
): Promise<Changed> {
  if (!container.end) return {};
  const now = await changesIn(container, (limit) => container.end?.(limit), seal, signal);
  const files = [before, now].flatMap(({ changed_files }) => changed_files ?? []);
  return {
    ...{ ...before, ...now },
    ...(now.changed_files ? { changed_files: [...new Set(files)] } : {}),
  };
}

/**
 * Returns the changed files of a running container, in the form of {@link whatChanged}. The caller has killed the container's processes
 * and has not run a program of the container since then, because a changed program can remove itself.
 */
export async function changedSoFar(container: Container, signal: AbortSignal): Promise<Changed> {
  if (!container.changes) return {};
  return changesIn(container, () => container.changes?.(), null, signal);
}

async function changesIn(
  container: Container,
  read: (limit: AbortSignal) => Promise<FileChanges> | undefined,
  seal: Seal | null,
  signal: AbortSignal,
): Promise<Changed> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const changes = await read(limit);
    if (!changes) return {};
    const remains = atTestbed(changes, container.workdir);
    const touched = await touchedPaths(remains, limit);
    const files = await changedTools(remains, touched, container.workdir, limit);
    for (const path of touched.configs) files.push(...(await gitSettings(remains, path, limit)));
    if (seal && !(await isUnchanged(container, remains, seal, limit))) files.push(seal.path);
    return { changed_files: files, ...(touched.isCut ? { changes_unknown: TOO_MANY } : {}) };
  } catch (error) {
    // The log of the tests is already here, so the loss of the container does not lose the verdict.
    signal.throwIfAborted();
    const why = limit.aborted ? `no answer in ${TIMEOUT_MS / 1000} s` : errorMessage(error);
    return { changes_unknown: why.slice(0, 200) };
  }
}

const moved = (from: string, to: string) => (path: string) =>
  path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;

/** Returns the same changes, with paths of the work tree moved to /testbed. */
function atTestbed(remains: FileChanges, workdir: string): FileChanges {
  if (workdir === TESTBED) return remains;
  const [shown, real] = [moved(workdir, TESTBED), moved(TESTBED, workdir)];
  return {
    changes: ({ entersFolder, visit }, signal) =>
      remains.changes(
        {
          entersFolder: (path) => entersFolder(shown(path)),
          visit: ({ path, removed }) => visit({ path: shown(path), removed }),
        },
        signal,
      ),
    kindOf: (path) => remains.kindOf(real(path)),
    getFile: (path, ...rest) => remains.getFile(real(path), ...rest),
    getLinkedFile: (path, ...rest) => remains.getLinkedFile(real(path), ...rest),
  };
}

type Touched = {
  /** Changed paths that decide outcomes unless they are folders; the value is true if the path was removed. */
  tools: Map<string, boolean>;
  /** Folders that decide outcomes and contain a changed path. */
  folders: Set<string>;
  configs: Set<string>;
  /** True if more than {@link MOST_PATHS} paths changed. The remaining changes were not read. */
  isCut: boolean;
};

async function touchedPaths(remains: FileChanges, signal: AbortSignal): Promise<Touched> {
  const found: Touched = { tools: new Map(), folders: new Set(), configs: new Set(), isCut: false };
  const entersFolder = (path: string): boolean => ROOTS.test(path) && !PRUNED.test(path) && !INNER.test(path);
  let parent = '';
  const visit = ({ path, removed }: { path: string; removed: boolean }): void => {
    const folder = posix.dirname(path);
    if (!removed && folder !== parent) {
      parent = folder;
      if (decidesOutcomes(folder, false)) found.folders.add(folder);
    }
    if (path === EVAL_PATH) return;
    if (GIT_CONFIGS.has(path) && !removed) found.configs.add(path);
    else if (entersFolder(path) && decidesOutcomes(path, removed)) found.tools.set(path, removed);
    if (found.tools.size > MOST_PATHS || found.folders.size > MOST_PATHS) throw new Error(TOO_MANY);
  };
  await remains.changes({ entersFolder, visit }, signal).catch((error: unknown) => {
    found.isCut = found.tools.size > MOST_PATHS || found.folders.size > MOST_PATHS;
    if (!found.isCut) throw error;
  });
  return found;
}

/** Returns the changed tools that are files, with the lines of {@link startLines}. `tools` also contains folders with changes. */
async function changedTools(
  remains: FileChanges,
  { tools, folders }: Touched,
  workdir: string,
  signal: AbortSignal,
): Promise<string[]> {
  const files: string[] = [];
  for (const [path, removed] of tools) {
    if (folders.has(path)) continue;
    if (removed || (await remains.kindOf(path)) !== 'folder') files.push(path);
    if (isPathFile(path)) files.push(...(await startLines(remains, path, workdir, signal)));
  }
  return files;
}

/**
 * Returns a file that Python reads at start as `path:` and `path:line` for each line; nothing if the file is unreadable. Paths of the work
 * tree are moved to /testbed.
 */
async function startLines(remains: FileChanges, path: string, workdir: string, signal: AbortSignal) {
  const content = await nullIfTooLarge(remains.getFile(path, START_BYTES, signal));
  if (content === null) return [];
  const lines = content.toString('utf8').replace(/\n$/, '').split('\n');
  return [`${path}:`, ...lines.map((line) => `${path}:${moved(workdir, TESTBED)(line)}`)];
}

/** Resolves to null for a file over the limit, and passes on null when the path is not a regular file. */
const nullIfTooLarge = (reading: Promise<Buffer | null>): Promise<Buffer | null> =>
  reading.catch((error: unknown) => {
    if (error instanceof SwefarmError && error.code === 'file_too_large') return null;
    throw error;
  });

/** Returns `path:line` for each line of a configuration file that matches {@link GIT_SETTING}; one entry if the file is unreadable. */
async function gitSettings(remains: FileChanges, path: string, signal: AbortSignal): Promise<string[]> {
  const content = await nullIfTooLarge(remains.getFile(path, CONFIG_BYTES, signal));
  if (content === null) return [`${path}:what is there cannot be read`];
  const lines = content.toString('utf8').split('\n');
  return lines.filter((line) => GIT_SETTING.test(line)).map((line) => `${path}:${line.slice(0, 200)}`);
}

/** Returns whether bash has read the script as it was written. The stamp also detects a script that was changed and then restored. */
async function isUnchanged(container: Container, remains: FileChanges, seal: Seal, signal: AbortSignal) {
  if (seal.stamp !== null) return (await container.fileStamp?.(seal.path)) === seal.stamp;
  const content = await nullIfTooLarge(remains.getFile(seal.path, 2 * seal.content.length, signal));
  return content?.equals(seal.content) ?? false;
}
