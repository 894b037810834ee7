/** The shell of SWE-smith's instances: how the tree with the bug is made, and its tests are hidden and brought back. */
import { readFileSync } from 'node:fs';
import type { TestFiles } from '@swefarm/grading';

/** Without its comments: each row carries a copy. */
const text = (name: string): string =>
  readFileSync(new URL(`./${name}`, import.meta.url), 'utf8').replace(/^ *#.*\n/gm, '');
const START = text('start.sh');
const FILES = text('files.sh');
const HIDDEN = text('hidden.sh');
const HIDE = text('hide.sh');
const ROOM = text('room.sh');
const RESTORE = text('restore.sh');
/** How the tree is searched; a list of files needs no search. */
const SEARCH: Record<TestFiles['rule'], string> = {
  files: '',
  go: text('go.sh'),
  java: text('java.sh'),
  javascript: text('javascript.sh'),
  php: text('php.sh'),
  rust: text('rust.sh'),
};

/** What the scripts need to know of an instance. */
export type SmithTree = {
  instanceId: string;
  folder: string;
  /** The row's patch, which makes the bug. */
  bug: string;
  /** The files that it changes. */
  changed: readonly string[];
};

const quote = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;

/** A shell function that prints a text, whatever is in it. */
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
  `id=${quote(instanceId)}\nfolder=${quote(folder)}`;

const searching = (tree: SmithTree, tests: TestFiles): string[] => [
  heading(tree),
  `rule=${tests.rule}`,
  printing('names', lines(tests.rule === 'files' ? tests.files : tests.names)),
  printing('changed', lines(tree.changed)),
  SEARCH[tests.rule],
  FILES,
];

/** The commit with the bug and all tests: the instance's branch where the image has it, else its patch on `main`. */
export const startScript = (tree: SmithTree): string =>
  [heading(tree), printing('bug', tree.bug), START].join('\n');

/** Removes the files of these tests, and of those that the instance's branch removed. */
export const hideScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), HIDDEN, HIDE].join('\n');

/** Resets the files of the patch at `path`, and removes those of these tests that it would make anew, for they are hidden from agents. */
export const roomScript = (tree: SmithTree, tests: TestFiles, path: string): string =>
  [...searching(tree, tests), `patch=${quote(path)}`, HIDDEN, ROOM].join('\n');

/** Brings the files of these tests back as the start commit has them. */
export const restoreScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), RESTORE].join('\n');
