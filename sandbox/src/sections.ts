/** Reads and writes git's formats for a patch: its parts, attributes of binary files, lists of ignored files. */

const HEADER = Buffer.from('diff --git ');

/** Returns the parts in order. Each begins with a `diff --git` line; no other line of a patch begins like that. */
export function patchSections(patch: Buffer): Buffer[] {
  const starts: number[] = [];
  for (let at = 0; at >= 0 && at < patch.length; ) {
    if (patch.subarray(at, at + HEADER.length).equals(HEADER)) starts.push(at);
    const newline = patch.indexOf(0x0a, at);
    at = newline < 0 ? -1 : newline + 1;
  }
  return starts.map((start, i) => patch.subarray(start, starts[i + 1] ?? patch.length));
}

const REPOSITORY = /^(?:(?:new|deleted) file mode|old mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 160000$/m;
const REMOVED_REPOSITORY = /^(?:deleted file mode|old mode) 160000$/m;
const HEAD_BYTES = 16 * 1024;

/**
 * Returns the patch without other repositories in the tree, because their commits are no files. If the agent removed the `.git` of an
 * existing repository, the clean tree already has the repository's files, so the patch omits them.
 */
export function withoutRepositories(patch: Buffer): Buffer {
  if (!patch.includes(' 160000\n')) return patch;
  const sections = patchSections(patch).map((section) => {
    const [head = ''] = section
      .subarray(0, HEAD_BYTES)
      .toString('latin1')
      .split(/^(?:@@ |--- |GIT binary)/m, 1);
    return { section, head };
  });
  const removed = sections.flatMap(({ head }) => (REMOVED_REPOSITORY.test(head) ? (pathIn(head) ?? []) : []));
  const isBelow = below(removed);
  const isInside = (head: string): boolean => {
    const path = pathIn(head);
    return path !== null && isBelow(path);
  };
  return Buffer.concat(
    sections.filter(({ head }) => !REPOSITORY.test(head) && !isInside(head)).map(({ section }) => section),
  );
}

/**
 * Returns a function that tests whether a path is below one of the folders. The function uses a binary search, because code that
 * replaces git can name hundreds of thousands of folders.
 */
function below(folders: readonly string[]): (path: string) => boolean {
  const outer: string[] = [];
  for (const folder of folders.map((path) => `${path}/`).sort())
    if (!outer.length || !folder.startsWith(outer.at(-1) ?? '')) outer.push(folder);
  return (path) => {
    // No folder is below another, so the only candidate is the last one that sorts before the path.
    let [from, to] = [0, outer.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((outer[middle] ?? '') <= path) from = middle + 1;
      else to = middle;
    }
    const last = outer[from - 1];
    return last !== undefined && path.startsWith(last);
  };
}

/** Returns the path of a part, as git quotes it. Both names in the head are equal, because a rename is a deletion and an addition. */
function pathIn(head: string): string | null {
  const [line = ''] = head.split('\n', 1);
  const names = line.slice(HEADER.length);
  const half = names.slice(0, (names.length - 1) / 2);
  return /^"?a\//.test(half) ? half.replace(/^"?a\//, '').replace(/"$/, '') : null;
}

/** Returns `"/path" -diff` with the two layers of quoting of gitattributes: pattern characters, then a C string for odd bytes. */
export function attributeLine(path: Buffer): string {
  let pattern = '/';
  for (const byte of path) {
    const char = String.fromCharCode(byte);
    if ('*?[]'.includes(char)) pattern += `\\\\${char}`;
    else if (char === '\\') pattern += '\\\\\\\\';
    else if (char === '"') pattern += '\\"';
    else if (byte < 0x20 || byte > 0x7e) pattern += `\\${byte.toString(8).padStart(3, '0')}`;
    else pattern += char;
  }
  return `"${pattern}" -diff\n`;
}

/**
 * Returns the names, each ended by NUL, of files that git ignored at the start of a rollout, shows at its end (because the agent changed
 * the ignore rules), and the patch omits: files that were ignored individually, and unchanged files in folders that were ignored as a
 * whole. The clean tree already has these files. Other files are the agent's work.
 * @param output three lists of names that each end in NUL, separated by empty names: the ignored paths at the start, folders with a slash;
 * the ignored files that git shows now; those of them that are unchanged since the start
 */
export function leftAsTheyWere(output: Buffer): Buffer {
  const lists: string[][] = [[]];
  for (const name of output.toString('latin1').split('\0')) {
    if (name === '' && lists.length < 3) lists.push([]);
    else if (name !== '') lists.at(-1)?.push(name);
  }
  const [ignored = [], shown = [], old = []] = lists;
  const files = new Set(ignored.filter((path) => !path.endsWith('/')));
  const untouched = new Set(old.map((path) => path.slice('./'.length)));
  const left = shown.filter((path) => untouched.has(path) || files.has(path));
  return Buffer.from(left.map((path) => `${path}\0`).join(''), 'latin1');
}
