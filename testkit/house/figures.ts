/** Computes figures of a source tree: files, folders and imports between them, cycles, and long or short files and functions. */
import { dirname } from 'node:path';
import { circlesOf } from './circles.ts';
import { repeatedPassages } from './passages.ts';
import { type Func, type TreeFile, WORKSPACES } from './tree.ts';

export const LONG_FUNCTION = 60;
export const LONG_FILE = 300;
export const CRUMB = 30;
/** Packages whose files directly in `src/`, outside any folder, are counted. */
const HALLS = WORKSPACES.filter((name) => name !== 'testkit');

export type Figures = {
  product: { files: number; lines: number; folders: number };
  tests: { files: number; lines: number };
  /** Number of pairs of product folders of which one imports the other. */
  folderArrows: number;
  folderImports: number;
  fileCircles: string[][];
  /** The cycles that remain without imports of types only. */
  fileCirclesAtRunTime: string[][];
  folderCircles: string[][];
  looseFiles: Record<string, number>;
  longFunctions: (Func & { path: string })[];
  longFiles: { path: string; lines: number }[];
  crumbs: number;
  importedOnce: number;
  /** Names of `shared` that other packages import: their number, and those that only the producer or the worker uses. */
  sharedNames: { all: number; producerOnly: string[]; workerOnly: string[] };
  repeatedPassages: { at: string[]; lines: number }[];
};

export function figuresOf(tree: readonly TreeFile[]): Figures {
  const product = tree.filter((file) => !file.isTest);
  const known = new Set(product.map((file) => file.path));
  const imports = product.flatMap((file) =>
    file.imports.filter(({ to }) => known.has(to)).map((one) => ({ from: file.path, ...one })),
  );
  const arrows = imports
    // The index of a package re-exports files of all its folders, so its imports are no cycles of folders.
    .map(({ from, to }) => ({
      from: dirname(from),
      to: dirname(to),
      isFront: from.endsWith('/src/index.ts'),
    }))
    .filter(({ from, to }) => from !== to);
  const atRunTime = imports.filter(({ typesOnly }) => !typesOnly);
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of imports) importers.set(to, new Set([...(importers.get(to) ?? []), from]));
  return {
    product: { ...sizeOf(product), folders: new Set(product.map(({ path }) => dirname(path))).size },
    tests: sizeOf(tree.filter((file) => file.isTest)),
    folderArrows: new Set(arrows.map(({ from, to }) => `${from} ${to}`)).size,
    folderImports: arrows.length,
    fileCircles: circlesOf(imports),
    fileCirclesAtRunTime: circlesOf(atRunTime),
    folderCircles: circlesOf(arrows.filter(({ isFront }) => !isFront)),
    looseFiles: Object.fromEntries(
      HALLS.map((hall) => [hall, product.filter(({ path }) => dirname(path) === `${hall}/src`).length]),
    ),
    longFunctions: product
      .flatMap(({ path, functions }) => functions.map((one) => ({ path, ...one })))
      .filter(({ lines }) => lines > LONG_FUNCTION)
      .toSorted((a, b) => b.lines - a.lines),
    // JSON files are data, so their length is no flaw.
    longFiles: tree
      .filter(({ path, lines }) => lines > LONG_FILE && !path.endsWith('.json'))
      .map(({ path, lines }) => ({ path, lines }))
      .toSorted((a, b) => b.lines - a.lines),
    crumbs: product.filter(({ lines }) => lines < CRUMB).length,
    importedOnce: [...importers.values()].filter((from) => from.size === 1).length,
    sharedNames: sharedNames(product),
    repeatedPassages: repeatedPassages(product),
  };
}

const sizeOf = (files: readonly TreeFile[]): { files: number; lines: number } => ({
  files: files.length,
  lines: files.reduce((sum, { lines }) => sum + lines, 0),
});

function sharedNames(product: readonly TreeFile[]): Figures['sharedNames'] {
  const users = new Map<string, Set<string>>();
  for (const { path, imports } of product) {
    for (const { to, names } of imports) {
      if (to !== 'shared/src/index.ts' || path.startsWith('shared/')) continue;
      for (const name of names) users.set(name, (users.get(name) ?? new Set()).add(path.split('/')[0] ?? ''));
    }
  }
  const only = (side: string): string[] =>
    [...users]
      .filter(([, sides]) => sides.size === 1 && sides.has(side))
      .map(([name]) => name)
      .toSorted();
  return { all: users.size, producerOnly: only('producer'), workerOnly: only('worker') };
}
