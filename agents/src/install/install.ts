/** Installs the bundle of a card, by the kind of its lock file or from a folder. */
import { createHash } from 'node:crypto';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { type AgentCard, tryParseJson, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { type Bundle, mountPath } from '../bundle.ts';
import { lockPath, readCard } from '../card/readcard.ts';
import { installBundle } from '../store/store.ts';
import { type BuildContext, describeIssue, LockFrame, type RelockOptions } from './builder.ts';
import { lockPython } from './lockpython.ts';
import { buildNpm, lockNpm, NpmLock } from './npm.ts';
import { buildPython } from './python.ts';
import { PythonLock } from './pythonlock.ts';

/** A lock file that was read. */
type Lock = {
  build: (folder: string, context: BuildContext) => Promise<void>;
  /** Resolves the lock again for a version of the agent. */
  relock: (options: RelockOptions) => Promise<object>;
};
/** Reads the contents of a lock file. Throws ZodError. */
type ReadLock = (value: unknown) => Lock;

const kind =
  <Contents>(
    schema: z.ZodType<Contents>,
    build: (lock: Contents, folder: string, context: BuildContext) => Promise<void>,
    relock: (lock: Contents, options: RelockOptions) => Promise<object>,
  ): ReadLock =>
  (value) => {
    const lock = schema.parse(value);
    return {
      build: (folder, context) => build(lock, folder, context),
      relock: (options) => relock(lock, options),
    };
  };

const KINDS: Readonly<Record<string, ReadLock>> = {
  npm: kind(NpmLock, buildNpm, lockNpm),
  python: kind(PythonLock, buildPython, (lock, { version, source, signal }) =>
    lockPython(lock, version, source, signal),
  ),
};

export type InstallOptions = {
  /** Folder with the source of the agent, or, for a card without a lock, the folder that becomes the bundle; null: none. */
  source: string | null;
  /** Builds again although the bundle is installed. */
  again: boolean;
  signal: AbortSignal;
  log: (line: string) => void;
};

/**
 * Installs the bundle of the card at a path.
 *
 * @throws UsageError for a bad card or lock, or contents that differ from the lock; UnusableError for registry and disk
 */
export async function installCard(
  dir: string,
  cardPath: string,
  { source, again, signal, log }: InstallOptions,
): Promise<{ card: AgentCard; bundle: Bundle; isNew: boolean }> {
  const card = readCard(cardPath);
  const { name } = card.bundle;
  const context = { mount: mountPath(name), source, signal, log };
  const path = lockPath(cardPath);
  if (path === null) {
    if (source === null)
      throw new UsageError(
        `card ${cardPath} has no lock.json beside it: give the folder of its programs (--source FOLDER)`,
      );
    const build = (folder: string) => cp(source, folder, { recursive: true, verbatimSymlinks: true });
    const done = await installBundle(dir, { name, lock: '', version: card.version, build }, signal);
    return { card, ...done };
  }
  const { text, version, build } = await readLock(path);
  const lock = createHash('sha256').update(text).digest('hex');
  const building = (folder: string) => build(folder, context);
  const done = await installBundle(dir, { name, lock, version, build: building, again }, signal);
  return { card, ...done };
}

/** Throws UsageError with file, field and expectation. */
async function readLock(path: string): Promise<Lock & { text: string; version: string }> {
  const text = await readFile(path, 'utf8');
  try {
    const value = tryParseJson(text);
    const { kind, version } = LockFrame.parse(value);
    const read = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
    if (read) return { text, version, ...read(value) };
    throw new UsageError(`${path}: kind: expected ${Object.keys(KINDS).join(' or ')}, got "${kind}"`);
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    throw new UsageError(`${path}: ${describeIssue(error)}`, { cause: error });
  }
}

/**
 * Resolves the lock file beside a card again and writes it. With a version, the card gets it too.
 *
 * @throws UsageError without a lock file; UnusableError for the registry
 */
export async function relockCard(
  cardPath: string,
  { version, ...options }: Omit<RelockOptions, 'version'> & { version: string | null },
): Promise<string> {
  const path = lockPath(cardPath);
  if (path === null) throw new UsageError(`card ${cardPath} has no lock.json beside it`);
  const read = await readLock(path);
  const wanted = version ?? read.version;
  const lock = await read.relock({ ...options, version: wanted });
  await writeFile(path, `${JSON.stringify(lock, null, 2)}\n`);
  const card = await readFile(cardPath, 'utf8');
  await writeFile(cardPath, card.replace(/^version: .*$/m, `version: ${wanted}`));
  return path;
}
