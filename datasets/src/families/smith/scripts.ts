/** Makes the shell scripts of SWE-smith instances, which create the tree with the bug, and hide and restore the tests. */

import { readFileSync } from 'node:fs';
import type { TestFiles } from '@swefarm/grading';
import { shellQuoted } from '@swefarm/shared';

/** Reads a script without its comments, because each row contains a copy of the script. */
const text = (name: string): string =>
  readFileSync(new URL(`./${name}`, import.meta.url), 'utf8').replace(/^ *#.*\n/gm, '');
const START = text('start.sh');
const FILES = text('files.sh');
const HIDDEN = text('hidden.sh');
const HIDE = text('hide.sh');
const ROOM = text('room.sh');
const RESTORE = text('restore.sh');
/** Shell functions that find test files in the tree, by rule. */
const SEARCH: Record<TestFiles['rule'], string> = {
  files: '',
  go: text('go.sh'),
  java: text('java.sh'),
  javascript: text('javascript.sh'),
  php: text('php.sh'),
  rust: text('rust.sh'),
};

export type SmithTree = {
  instanceId: string;
  folder: string;
  /** Patch of the row, which introduces the bug. */
  bug: string;
  /** Files that `bug` changes. */
  changed: readonly string[];
};

/** Returns a shell function `name` that prints `value`. */
const printing = (name: string, value: string): string =>
  `${name}() {\nbase64 -d <<'END'\n${(
    Buffer.from(value, 'utf8')
      .toString('base64')
      .match(/.{1,76}/g) ?? []
  ).join('\n')}\nEND\n}`;

const lines = (values: readonly string[]): string =>
  values
    .filter((value) => value !== '' && !value.includes('\n'))
    .map((value) => `${value}\n`)
    .join('');

const heading = ({ instanceId, folder }: SmithTree): string =>
  `id=${shellQuoted(instanceId)}\nfolder=${shellQuoted(folder)}`;

const searching = (tree: SmithTree, tests: TestFiles): string[] => [
  heading(tree),
  `rule=${tests.rule}`,
  printing('names', lines(tests.rule === 'files' ? tests.files : tests.names)),
  printing('changed', lines(tree.changed)),
  SEARCH[tests.rule],
  FILES,
];

/** Returns a script that checks out the bug with all tests: the branch of the instance, or else `main` with the patch. */
export const startScript = (tree: SmithTree): string =>
  [heading(tree), printing('bug', tree.bug), START].join('\n');

/** Returns a script that removes the files of `tests`, and files that the branch of the instance removed. */
export const hideScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), HIDDEN, HIDE].join('\n');

/** Returns a script that resets the files of the patch at `path` and removes hidden test files that the patch creates. */
export const roomScript = (tree: SmithTree, tests: TestFiles, path: string): string =>
  [...searching(tree, tests), `patch=${shellQuoted(path)}`, HIDDEN, ROOM].join('\n');

/** Returns a script that restores the files of `tests` from the start commit. */
export const restoreScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), RESTORE].join('\n');
