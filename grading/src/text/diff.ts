/** Parses a unified diff as strictly as unidiff, the harness's parser. If unidiff raises an exception, there is no eval script. */

export type DiffFile = {
  /** Path with the prefix of the diff (`a/path`), or `/dev/null`. */
  source: string;
  target: string;
  binary: boolean;
  /** Text of the added lines, without the plus sign. */
  added: string[];
  removed: number;
};

export class DiffError extends Error {
  override readonly name = 'DiffError';
}

const DEV_NULL = '/dev/null';
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const BINARY = /^Binary files? /;

type State = {
  files: DiffFile[];
  current: DiffFile | null;
  /** Whether the parser is in the header below a `diff --git` line, where `---` and `+++` repeat the paths of that line. */
  inHeader: boolean;
  /** Path of a `---` line until the parser reads the next `+++` line. */
  pending: string | null;
};

/** Returns null for a patch that the parser rejects: the evaluation decides whether such a patch applies. */
export function readDiffOrNull(patch: string): DiffFile[] | null {
  try {
    return readDiff(patch);
  } catch {
    return null;
  }
}

/** @throws DiffError where unidiff raises an exception */
export function readDiff(patch: string): DiffFile[] {
  const state: State = { files: [], current: null, inHeader: false, pending: null };
  const lines = patch.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const hunk = HUNK.exec(line);
    if (hunk && !isHeader(line)) {
      if (!state.current) throw new DiffError(`line ${at + 1}: a hunk without a file`);
      state.inHeader = false;
      at = readHunk(lines, at, Number(hunk[1] ?? 1), Number(hunk[2] ?? 1), state.current);
    } else {
      readHeaderLine(line, at, state);
    }
  }
  return state.files;
}

const isHeader = (line: string): boolean => line.startsWith('diff --git ');

function readHeaderLine(line: string, at: number, state: State): void {
  const git = gitHeader(line);
  if (git) {
    open(state, git.source, git.target);
    state.inHeader = true;
  } else if (/^(?:new|deleted) file mode \d+$/.test(line)) {
    const word = line.split(' ', 1)[0];
    if (!state.current || !state.inHeader)
      throw new DiffError(`line ${at + 1}: ${word} file without a diff line`);
    state.current[word === 'new' ? 'source' : 'target'] = DEV_NULL;
  } else if (line.startsWith('--- ')) {
    state.pending = fileName(line);
    if (!state.inHeader) state.current = null;
  } else if (line.startsWith('+++ ')) {
    readTarget(fileName(line), at, state);
  } else {
    readOther(line, at, state);
  }
}

function readTarget(target: string, at: number, state: State): void {
  if (state.current) {
    if (state.current.target !== target) throw new DiffError(`line ${at + 1}: a target without its source`);
    return;
  }
  if (state.pending === null) throw new DiffError(`line ${at + 1}: a target without its source`);
  open(state, state.pending, target);
  state.pending = null;
}

function readOther(line: string, at: number, state: State): void {
  if (line.startsWith('\\ No newline')) {
    if (!state.current) throw new DiffError(`line ${at + 1}: a marker without a file`);
    return;
  }
  if (line === '') return;
  const binary = line === 'GIT binary patch' || BINARY.test(line);
  if (binary && state.current) {
    state.current.binary = true;
    state.current = null;
    state.inHeader = false;
    return;
  }
  if (binary && line === 'GIT binary patch')
    throw new DiffError(`line ${at + 1}: binary data without a file`);
  if (!state.inHeader) state.current = null;
}

function open(state: State, source: string, target: string): void {
  state.current = { source, target, binary: false, added: [], removed: 0 };
  state.inHeader = false;
  state.files.push(state.current);
}

/** Parses `diff --git a/x b/x`. The last ` b/` divides the names, because names may contain blanks. */
function gitHeader(line: string): { source: string; target: string } | null {
  if (!line.startsWith('diff --git ')) return null;
  const rest = line.slice('diff --git '.length).split('\t', 1)[0] ?? '';
  const divide = Math.max(rest.lastIndexOf(' b/'), rest.lastIndexOf(' "b/'));
  const at = divide > 0 ? divide : rest.lastIndexOf(' ');
  return at > 0 ? { source: rest.slice(0, at), target: rest.slice(at + 1) } : null;
}

/** Returns the path of a `---` or `+++` line, without the time stamp that some tools append. */
const fileName = (line: string): string => line.slice(4).split('\t', 1)[0] ?? '';

/** Reads the body of a hunk and returns the index of the last line of the hunk. */
function readHunk(lines: string[], at: number, sources: number, targets: number, file: DiffFile): number {
  let source = 0;
  let target = 0;
  let index = at;
  while (source < sources || target < targets) {
    index++;
    const line = lines[index];
    if (line === undefined) throw new DiffError(`line ${at + 1}: the hunk is shorter than its header`);
    const kind = line === '' || line === '\r' ? ' ' : line[0];
    if (kind === '+') file.added.push(line.slice(1));
    else if (kind === '-') file.removed++;
    else if (kind !== ' ' && kind !== '\\') throw new DiffError(`line ${index + 1}: no line of a hunk`);
    if (kind === ' ' || kind === '-') source++;
    if (kind === ' ' || kind === '+') target++;
    if (source > sources || target > targets) {
      throw new DiffError(`line ${at + 1}: the hunk is longer than its header`);
    }
  }
  return index;
}

/** Returns the path after the change, or before a deletion, without the prefix `a/` or `b/`. */
export function pathOf(file: DiffFile): string {
  const path = file.target !== DEV_NULL ? file.target : file.source;
  return path.replace(/^"(.*)"$/, '$1').replace(/^[ab]\//, '');
}

export const isNew = (file: DiffFile): boolean => file.source === DEV_NULL;
export const isDeleted = (file: DiffFile): boolean => file.target === DEV_NULL;
/** Whether the patch renames or copies the file. */
export const isMoved = (file: DiffFile): boolean =>
  !isNew(file) && !isDeleted(file) && file.source.slice(2) !== file.target.slice(2);
