/**
 * What ran in the evaluation can change the tools that it is judged by: pytest, python, bash, the script that bash is still
 * reading, what git does when it resets the tests. Which of them are not as the image has them is looked up from outside, when
 * every process of the container has ended; `trust` makes of it what it may.
 */
import { posix } from 'node:path';
import { decidesOutcomes, type EvaluationFacts, isPathFile } from '@swefarm/grading';
import { errorMessage, SwefarmError } from '@swefarm/shared';
import type { FileChanges } from '../sandbox/filechanges.ts';
import type { Container } from '../sandbox/runtime.ts';

/** Where the eval script is put. */
export const EVAL_PATH = '/eval.sh';
const TESTBED = '/testbed';
const TIMEOUT_MS = 120_000;
/** More than any installation replaces: who makes so many wants one of them not to be found. */
const MOST_PATHS = 1_000;
const START_BYTES = 4096;
const CONFIG_BYTES = 256 * 1024;
const ROOTS = /^\/(?:usr|opt|s?bin|lib[^/]*|etc|root|testbed)(?:\/|$)/;
/** Python writes the first as it imports, installations write the others. */
const PRUNED = /\/(?:__pycache__|[^/]*\.(?:dist|egg)-info)(?:\/|$)/;
/** Of the work tree only what git itself goes by, of root's home only what stands in it: the rest is a project's own. */
const INNER =
  /^\/testbed\/(?!\.git(?:\/(?:hooks|info)(?:\/|$)|\/[^/]*$|$))|^\/root\/(?!\.config\/git(?:\/|$))[^/]+\//;
const GIT_CONFIGS = new Set([
  '/testbed/.git/config',
  '/testbed/.git/config.worktree',
  '/etc/gitconfig',
  '/root/.gitconfig',
  '/root/.config/git/config',
]);
/** By which git alters files or runs programs. */
const GIT_SETTING = /^\s*(?:\[(?:filter|include)|(?:hookspath|attributesfile|fsmonitor|worktree)\b)/i;

/** The eval script as it was handed over. */
export type Seal = { path: string; content: Buffer; stamp: string | null };

export async function sealScript(
  container: Container,
  script: { path: string; content: Buffer },
): Promise<Seal> {
  return { ...script, stamp: (await container.fileStamp?.(script.path)) ?? null };
}

/** Ends the container. Of one whose files are not its own nothing is known. */
export async function whatChanged(
  container: Container,
  seal: Seal,
  signal: AbortSignal,
): Promise<Pick<EvaluationFacts, 'changed_files' | 'changes_unknown'>> {
  if (!container.end) return {};
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const remains = atTestbed(await container.end(limit), container.workdir);
    const touched = await touchedPaths(remains, limit);
    const files = await changedTools(remains, touched, limit);
    for (const path of touched.configs) files.push(...(await gitSettings(remains, path, limit)));
    if (!(await holds(container, remains, seal, limit))) files.push(seal.path);
    return { changed_files: files };
  } catch (error) {
    // The tests have ended and their log is here: a container that is lost now takes no verdict with it.
    signal.throwIfAborted();
    const why = limit.aborted ? `no answer in ${TIMEOUT_MS / 1000} s` : errorMessage(error);
    return { changes_unknown: why.slice(0, 200) };
  }
}

/** The same with the work tree at /testbed, wherever it is. */
function atTestbed(remains: FileChanges, workdir: string): FileChanges {
  if (workdir === TESTBED) return remains;
  const moved = (from: string, to: string) => (path: string) =>
    path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
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
  };
}

type Touched = {
  /** What decides outcomes if it is no folder, with whether it is gone. */
  tools: Map<string, boolean>;
  /** Folders among them: something in them has changed, and is there. */
  folders: Set<string>;
  /** Files of git's configuration. */
  configs: Set<string>;
};

/** Throws when it is more than can be listed. */
async function touchedPaths(remains: FileChanges, signal: AbortSignal): Promise<Touched> {
  const found: Touched = { tools: new Map(), folders: new Set(), configs: new Set() };
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
    if (found.tools.size > MOST_PATHS || found.folders.size > MOST_PATHS)
      throw new Error(`more than ${MOST_PATHS} files that decide outcomes were written`);
  };
  await remains.changes({ entersFolder, visit }, signal);
  return found;
}

/** A folder is listed when something in it has changed: whether a path is one is asked where that does not show. */
async function changedTools(
  remains: FileChanges,
  { tools, folders }: Touched,
  signal: AbortSignal,
): Promise<string[]> {
  const files: string[] = [];
  for (const [path, removed] of tools) {
    if (folders.has(path)) continue;
    if (removed || (await remains.kindOf(path)) !== 'folder') files.push(path);
    if (isPathFile(path)) files.push(...(await startLines(remains, path, signal)));
  }
  return files;
}

/** Of what Python reads at start: `path:`, and `path:line` of each line; nothing where there is no file that can be read. */
async function startLines(remains: FileChanges, path: string, signal: AbortSignal): Promise<string[]> {
  const content = await contentOf(remains, path, START_BYTES, signal);
  if (content === null) return [];
  const lines = content.toString('utf8').replace(/\n$/, '').split('\n');
  return [`${path}:`, ...lines.map((line) => `${path}:${line}`)];
}

/** Null when it is no regular file, or a larger one. */
async function contentOf(
  remains: FileChanges,
  path: string,
  most: number,
  signal: AbortSignal,
): Promise<Buffer | null> {
  return remains.getFile(path, most, signal).catch((error: unknown) => {
    if (error instanceof SwefarmError && error.code === 'file_too_large') return null;
    throw error;
  });
}

/** `path:line` of each setting. */
async function gitSettings(remains: FileChanges, path: string, signal: AbortSignal): Promise<string[]> {
  const content = await contentOf(remains, path, CONFIG_BYTES, signal);
  if (content === null) return [`${path}:what is there cannot be read`];
  const lines = content.toString('utf8').split('\n');
  return lines.filter((line) => GIT_SETTING.test(line)).map((line) => `${path}:${line.slice(0, 200)}`);
}

/** Whether bash has read what it was given. The stamp tells of a script that was put back as it had been, too. */
async function holds(
  container: Container,
  remains: FileChanges,
  seal: Seal,
  signal: AbortSignal,
): Promise<boolean> {
  if (seal.stamp !== null) return (await container.fileStamp?.(seal.path)) === seal.stamp;
  const content = await contentOf(remains, seal.path, 2 * seal.content.length, signal);
  return content?.equals(seal.content) ?? false;
}
