/** Reads the source tree with the TypeScript compiler: files, imports, lengths of functions, and written words. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import {
  isArrowFunction,
  isExportDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isImportDeclaration,
  isMethodDeclaration,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast';
import { API, type Program } from 'typescript/unstable/sync';
import { type Written, writtenIn } from './words.ts';

export type Import = {
  /** Path of the imported file, from the root of the tree. */
  to: string;
  /** Whether the import has only types, which do not exist at run time. */
  typesOnly: boolean;
  /** Names that are imported; empty for `export *` and imports of a whole module. */
  names: string[];
};
export type Func = { name: string; line: number; lines: number };
export type TreeFile = {
  /** From the root of the tree. */
  path: string;
  /** Whether the file is a test, a fixture, or part of testkit or bench. */
  isTest: boolean;
  text: string;
  lines: number;
  imports: Import[];
  functions: Func[];
  written: Written[];
};

export const ROOT = resolve(import.meta.dirname, '../..');
/** Folders of our packages, from the root, in the order in which they may import one another. */
export const WORKSPACES: readonly string[] = JSON.parse(
  readFileSync(resolve(ROOT, 'package.json'), 'utf8'),
).workspaces;
const TESTS = /\.(test|fixture)\.tsx?$|^\w+\/test\/|^(testkit|bench)\//;

export const readRepository = (): TreeFile[] =>
  readTree(
    ROOT,
    [...WORKSPACES, 'gateway/page']
      .map((name) => `${name}/tsconfig.json`)
      .filter((path) => existsSync(resolve(ROOT, path))),
  );

/**
 * Reads the sources of a tree.
 *
 * @param root folder of the tree
 * @param configs its tsconfig.json files, from the root; what several include is read once
 */
export function readTree(root: string, configs: readonly string[]): TreeFile[] {
  const api = new API({ cwd: root });
  try {
    const openProjects = configs.map((config) => resolve(root, config));
    const files = new Map<string, TreeFile>();
    for (const { program } of api.updateSnapshot({ openProjects }).getProjects()) {
      const own = program
        .getSourceFileNames()
        .filter((name) => name.startsWith(`${root}/`) && !name.includes('/node_modules/'));
      const known = new Set(own);
      for (const name of own) {
        if (!files.has(name)) files.set(name, readOne(root, name, program, known));
      }
    }
    return [...files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  } finally {
    api.close();
  }
}

function readOne(root: string, name: string, program: Program, known: ReadonlySet<string>): TreeFile {
  const source = program.getSourceFile(name);
  if (!source) throw new Error(`${name}: the compiler lists it and does not know it`);
  const path = relative(root, name);
  const text = readFileSync(name, 'utf8');
  return {
    path,
    isTest: TESTS.test(path),
    text,
    lines: text.split('\n').length - 1,
    imports: importsOf(source, (specifier) => {
      const to = resolved(root, name, specifier, known);
      return to === null ? null : relative(root, to);
    }),
    functions: functionsOf(source, text),
    written: writtenIn(source, text),
  };
}

/** Returns the path of the imported file; null if it is not in the tree. An import of our package resolves by its `exports`. */
function resolved(root: string, from: string, specifier: string, known: ReadonlySet<string>): string | null {
  const [, own, part] = /^@swefarm\/([\w-]+)(\/[\w-]+)?$/.exec(specifier) ?? [];
  const path = own
    ? resolve(root, own, exportsOf(root, own)[`.${part ?? ''}`] ?? '')
    : specifier.startsWith('.')
      ? resolve(dirname(from), specifier)
      : '';
  return known.has(path) || own ? path : null;
}

const exportsOf = (root: string, own: string): Record<string, string> =>
  JSON.parse(readFileSync(resolve(root, own, 'package.json'), 'utf8')).exports ?? {};

function importsOf(source: SourceFile, find: (specifier: string) => string | null): Import[] {
  const found: Import[] = [];
  for (const statement of source.statements) {
    if (!isImportDeclaration(statement) && !isExportDeclaration(statement)) continue;
    const text = statement.getText(source);
    const to = find(/['"]([^'"]+)['"]\s*;?$/.exec(text)?.[1] ?? '');
    if (to === null) continue;
    const braces = /\{([\s\S]*)\}/.exec(text)?.[1] ?? '';
    const parts = braces
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean);
    const outside = text.replace(/\{[\s\S]*\}/, '{}');
    const allTypes = parts.length > 0 && parts.every((part) => part.startsWith('type '));
    found.push({
      to,
      typesOnly:
        /^(import|export)\s+type\b/.test(text) || (allTypes && /^(import|export)\s*\{\}/.test(outside)),
      names: parts.map((part) => part.replace(/^type\s+/, '').replace(/\s+as\s+.*$/, '')),
    });
  }
  return found;
}

function functionsOf(source: SourceFile, text: string): Func[] {
  const found: Func[] = [];
  const visit = (node: Node): undefined => {
    if (
      (isFunctionDeclaration(node) ||
        isFunctionExpression(node) ||
        isArrowFunction(node) ||
        isMethodDeclaration(node)) &&
      node.body
    ) {
      const start = node.getStart(source);
      const line = lineAt(text, start);
      found.push({ name: nameOf(node, source), line, lines: lineAt(text, node.end) - line + 1 });
    }
    node.forEachChild(visit);
  };
  source.forEachChild(visit);
  return found;
}

/** Returns the name of a function, or of the constant or property to which it is assigned. */
function nameOf(node: Node & { name?: Node | undefined }, source: SourceFile): string {
  const named = node.name ?? (node.parent as Node & { name?: Node }).name;
  return named?.getText(source) ?? '(without a name)';
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;
