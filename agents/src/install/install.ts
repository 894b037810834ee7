/** Installs the bundle of a card, by the kind of its lock file or from a folder. */
import { createHash } from 'node:crypto';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { type AgentCard, tryParseJson, UsageError } from '@swefarm/shared';
import type { z } from 'zod';
import { type Bundle, mountPath } from '../bundle.ts';
import { lockPath, readCard } from '../card/readcard.ts';
import { installBundle } from '../store/store.ts';
import { type BuildContext, LockFrame, type RelockOptions } from './builder.ts';
import { lockPython } from './lockpython.ts';
import { buildNpm, lockNpm, NpmLock } from './npm.ts';
import { buildPython } from './python.ts';
import { PythonLock } from './pythonlock.ts';

type Kind = {
  build: (lock: unknown, folder: string, context: BuildContext) => Promise<void>;
  /** Resolves the lock again for a version of the agent. */
  relock: (lock: unknown, options: RelockOptions) => Promise<object>;
};

const kind = <Lock>(
  schema: z.ZodType<Lock>,
  build: (lock: Lock, folder: string, context: BuildContext) => Promise<void>,
  relock: (lock: Lock, options: RelockOptions) => Promise<object>,
): Kind => ({
  build: (lock, folder, context) => build(schema.parse(lock), folder, context),
  relock: (lock, options) => relock(schema.parse(lock), options),
});

const KINDS: Readonly<Record<string, Kind>> = {
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
  const { text, frame, kind } = await readLock(path);
  const lock = createHash('sha256').update(text).digest('hex');
  const build = async (folder: string) =>
    await named(path, () => kind.build(JSON.parse(text), folder, context));
  const done = await installBundle(dir, { name, lock, version: frame.version, build, again }, signal);
  return { card, ...done };
}

async function readLock(
  path: string,
): Promise<{ text: string; frame: z.infer<typeof LockFrame>; kind: Kind }> {
  const text = await readFile(path, 'utf8');
  const frame = LockFrame.safeParse(tryParseJson(text));
  if (!frame.success) throw new UsageError(`${path}: ${describeIssue(frame.error)}`);
  const kind = Object.hasOwn(KINDS, frame.data.kind) ? KINDS[frame.data.kind] : undefined;
  if (kind) return { text, frame: frame.data, kind };
  throw new UsageError(
    `${path}: kind: expected ${Object.keys(KINDS).join(' or ')}, got "${frame.data.kind}"`,
  );
}

/** Adds the path of a lock to the errors of its schema. */
async function named<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ZodError') throw error;
    throw new UsageError(`${path}: ${describeIssue(error as z.ZodError)}`, { cause: error });
  }
}

const describeIssue = ({ issues: [issue] }: z.ZodError): string =>
  `${issue?.path.join('.') || 'the file'}: ${issue?.message}`;

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
  const { text, frame, kind } = await readLock(path);
  const wanted = version ?? frame.version;
  const lock = await named(path, () => kind.relock(JSON.parse(text), { ...options, version: wanted }));
  await writeFile(path, `${JSON.stringify(lock, null, 2)}\n`);
  const card = await readFile(cardPath, 'utf8');
  await writeFile(cardPath, card.replace(/^version: .*$/m, `version: ${wanted}`));
  return path;
}
