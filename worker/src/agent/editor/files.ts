/**
 * Files of a sandbox for the editor, read and written by commands of the sandbox's own shell: with the rights, links and mounts of the
 * model's commands, and so that a replay of the calls has the same effects. Needs bash, head, find and sort in the image, nothing else.
 */

import type { CommandResult } from '@swefarm/sandbox';
import { shellQuoted } from '@swefarm/shared';

/** Most bytes of a file that the editor reads or writes: the text is handled in the worker's own thread, and is a part of a command. */
export const MOST_BYTES = 2 * 1024 ** 2;

export type Encoding = 'utf8' | 'latin1';

export type Looked =
  | { kind: 'file'; text: string; encoding: Encoding }
  /** `entries`: paths of two levels, one a line, without hidden ones. */
  | { kind: 'folder'; entries: CommandResult }
  | { kind: 'missing'; hasParent: boolean }
  | { kind: 'too_large' | 'special' | 'unreadable' };

/** Runs a script in the sandbox, with at most so many bytes of output. Throws {@link Interrupted} if the script did not end by itself. */
export type RunScript = (script: string, maxOutputBytes: number) => Promise<CommandResult>;

/** A script of the editor timed out, was killed, or broke the shell. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly result: CommandResult;
  constructor(result: CommandResult) {
    super('a script of the editor was interrupted');
    this.result = result;
  }
}

const EXITS = { folder: 41, special: 42, missing: 43, orphan: 44, unreadable: 45 } as const;

/** Looks at a path. `mostEntries`: most characters of the list of a folder. */
export async function look(run: RunScript, path: string, mostEntries: number): Promise<Looked> {
  const parent = path.slice(0, path.lastIndexOf('/')) || '/';
  const script = [
    `p=${shellQuoted(path)}`,
    // A name that begins with a slash is no option.
    `if [ -d "$p" ]; then find "$p" -maxdepth 2 ! -path '*/.*' 2>/dev/null | LC_ALL=C sort; exit ${EXITS.folder}; fi`,
    `if [ -f "$p" ]; then [ -r "$p" ] || exit ${EXITS.unreadable}; exec head -c ${MOST_BYTES + 1} < "$p"; fi`,
    `[ -e "$p" ] && exit ${EXITS.special}`,
    `[ -d ${shellQuoted(parent)} ] && exit ${EXITS.missing}`,
    `exit ${EXITS.orphan}`,
  ].join('\n');
  const result = await run(script, Math.max(MOST_BYTES + 1, mostEntries * 4));
  const { exitCode, head, tail, outputBytes } = result;
  if (exitCode === EXITS.folder) return { kind: 'folder', entries: result };
  if (exitCode === EXITS.missing || exitCode === EXITS.orphan)
    return { kind: 'missing', hasParent: exitCode === EXITS.missing };
  if (exitCode === EXITS.special) return { kind: 'special' };
  if (exitCode !== 0) return { kind: 'unreadable' };
  if (tail !== null || outputBytes > MOST_BYTES) return { kind: 'too_large' };
  return { kind: 'file', ...decoded(head) };
}

/** Python's order: UTF-8, and Latin-1 for bytes that are not UTF-8. */
function decoded(bytes: Buffer): { text: string; encoding: Encoding } {
  try {
    return {
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
      encoding: 'utf8',
    };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { text: bytes.toString('latin1'), encoding: 'latin1' };
  }
}

/** Writes a file in place: owner, mode and links stay. Returns why the file could not be written; null: the file has the text. */
export async function write(
  run: RunScript,
  path: string,
  text: string,
  encoding: Encoding,
): Promise<string | null> {
  if (Buffer.byteLength(text) > MOST_BYTES) return `the text has more than ${MOST_BYTES} bytes`;
  if (encoding === 'latin1' && /[^\0-\xff]/.test(text))
    return 'the file is not UTF-8, and the new text has characters that Latin-1 lacks';
  // `%b` reads backslashes, so that a NUL and bytes that are not UTF-8 can be written as octal numbers.
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replace(
      encoding === 'latin1' ? /[\0\x80-\xff]/g : /\0/g,
      (one) => `\\0${one.charCodeAt(0).toString(8).padStart(3, '0')}`,
    );
  const script = `printf %b ${shellQuoted(escaped)} >| ${shellQuoted(path)} || exit 1`;
  const { exitCode, head } = await run(script, 4096);
  if (exitCode === 0) return null;
  return head.toString('utf8').split(': ').at(-1)?.trim() || `exit code ${exitCode}`;
}
