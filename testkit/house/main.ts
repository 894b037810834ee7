/** `npm run house`: prints figures of the source tree, to compare before and after code is moved. `--json` prints all figures. */
import { CRUMB, type Figures, figuresOf, LONG_FILE, LONG_FUNCTION } from './figures.ts';
import { PASSAGE_LINES } from './passages.ts';
import { readRepository } from './tree.ts';

function lines(figures: Figures): string[] {
  const { product, tests, sharedNames } = figures;
  const rows: [string, string | number][] = [
    ['product', `${product.files} files in ${product.folders} folders, ${product.lines} lines`],
    ['tests, testkit and bench', `${tests.files} files, ${tests.lines} lines`],
    ['folders that import another', `${figures.folderArrows} pairs, ${figures.folderImports} imports`],
    [
      'circles of files',
      `${figures.fileCircles.length}, ${figures.fileCirclesAtRunTime.length} of them at run time`,
    ],
    ['circles of folders', figures.folderCircles.length],
    [
      'files outside any room',
      Object.entries(figures.looseFiles)
        .map(([hall, count]) => `${hall} ${count}`)
        .join(', '),
    ],
    [`functions over ${LONG_FUNCTION} lines`, figures.longFunctions.length],
    [`files over ${LONG_FILE} lines, tests too`, figures.longFiles.length],
    [`files under ${CRUMB} lines`, figures.crumbs],
    ['files with one importer', figures.importedOnce],
    [
      'names of shared that are used outside',
      `${sharedNames.all}: ${sharedNames.producerOnly.length} by the producer alone, ${sharedNames.workerOnly.length} by the worker alone`,
    ],
    [`passages of ${PASSAGE_LINES} lines that occur twice`, figures.repeatedPassages.length],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    ...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`),
    ...listed(
      'circles of files',
      figures.fileCircles.map((circle) => circle.join(' ↔ ')),
    ),
    ...listed(
      'circles of folders',
      figures.folderCircles.map((circle) => circle.join(' ↔ ')),
    ),
    ...listed(
      `functions over ${LONG_FUNCTION} lines`,
      figures.longFunctions.map(({ path, line, name, lines: long }) => `${path}:${line} ${name}: ${long}`),
    ),
    ...listed(
      `files over ${LONG_FILE} lines`,
      figures.longFiles.map(({ path, lines: long }) => `${path}: ${long}`),
    ),
    ...listed(
      'passages that stand twice',
      figures.repeatedPassages.map(({ at, lines: long }) => `${at.join(' = ')}: ${long} lines`),
    ),
  ];
}

const listed = (title: string, entries: readonly string[]): string[] =>
  entries.length === 0 ? [] : ['', `${title}:`, ...entries.map((entry) => `  ${entry}`)];

const figures = figuresOf(readRepository());
process.stdout.write(
  process.argv.includes('--json')
    ? `${JSON.stringify(figures, null, 2)}\n`
    : `${lines(figures).join('\n')}\n`,
);
