/** Checks the direction of imports, and which files may import heavy packages or read the environment. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ROOMS } from './rooms.fixture.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PACKAGES: readonly string[] = [
  ...JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).workspaces,
  'bench',
];

const LIBRARIES = [
  'shared',
  'policy',
  'agents',
  'recorder',
  'sandbox',
  'grading',
  'datasets',
  'runs',
  'trajectories',
  'gateway',
];
/** Allowed imports between packages. Tests and bench may also import the testkit. */
const MAY: Record<string, readonly string[]> = {
  shared: [],
  policy: ['shared'],
  agents: ['shared'],
  recorder: ['shared', 'policy'],
  sandbox: ['shared'],
  grading: ['shared'],
  datasets: ['shared', 'grading'],
  runs: ['shared', 'policy', 'agents', 'grading', 'datasets'],
  trajectories: ['shared', 'policy', 'grading', 'datasets'],
  gateway: ['shared', 'policy', 'grading', 'datasets', 'runs', 'trajectories'],
  producer: ['shared', 'policy', 'agents', 'grading', 'datasets', 'runs', 'trajectories', 'gateway'],
  worker: ['shared', 'policy', 'agents', 'recorder', 'sandbox', 'grading'],
  testkit: ['shared', 'grading'],
  bench: [...LIBRARIES, 'worker', 'producer', 'testkit'],
};

/** External packages, and the only files that may import each of them. */
const ONLY: Record<string, RegExp> = {
  bullmq: /^(shared\/src\/redis\/|worker\/src\/pull\/queue\.ts$)/,
  ioredis: /^shared\/src\/redis\//,
  dockerode: /^sandbox\/src\//,
  openai: /^policy\/src\/endpoint\//,
  undici: /^(policy\/src\/endpoint|sandbox\/src\/registry)\//,
};

type Source = { path: string; text: string; isTest: boolean; imports: string[] };

const sources: Source[] = PACKAGES.flatMap((name) => filesOf(join(ROOT, name))).map((file) => {
  const path = relative(ROOT, file);
  const text = readFileSync(file, 'utf8');
  const isTest = /\.(test|fixture)\.ts$|^\w+\/test\/|^(testkit|bench)\//.test(path);
  return { path, text, isTest, imports: importsOf(text) };
});

function filesOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (/^(node_modules|dist|data|fixtures)$/.test(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesOf(path);
    return /\.m?ts$/.test(entry.name) ? [path] : [];
  });
}

/** Returns the names of static, re-exporting and dynamic imports with a literal name. */
function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '');
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s[^;'"]*?from\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;
  return [...code.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

const packageOf = (path: string): string => path.split('/')[0] ?? '';

function offenders(find: (source: Source) => string[]): string[] {
  return sources.flatMap((source) => find(source).map((what) => `${source.path}: ${what}`));
}

test('the scan sees the sources', () => {
  expect(sources.length).toBeGreaterThan(50);
  expect(
    importsOf("import {\n  a,\n} from 'x';\nexport * from 'y';\nawait import('z');\nimport 'w';"),
  ).toEqual(['x', 'y', 'z', 'w']);
});

/** Exports of packages besides the index. A browser can load them. */
const FOR_BROWSERS = [
  '@swefarm/shared/success',
  '@swefarm/trajectories/renderreward',
  '@swefarm/trajectories/tally',
  '@swefarm/trajectories/terminalsafe',
];

describe('imports', () => {
  test('between packages follow MAY, and use package names', () => {
    const wrong = offenders(({ path, imports, isTest }) =>
      imports.flatMap((name) => {
        const target = /^@swefarm\/([\w-]+)(\/.*)?$/.exec(name);
        if (!target) return [];
        const [, to = '', deep] = target;
        const allowed =
          to === packageOf(path) || MAY[packageOf(path)]?.includes(to) || (isTest && to === 'testkit');
        const isFront = !deep || FOR_BROWSERS.includes(name) || (isTest && deep.startsWith('/test/'));
        return !isFront || !allowed ? [`imports ${name}`] : [];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('do not reach into another package by path', () => {
    const wrong = offenders(({ path, imports }) =>
      imports.filter((name) => {
        if (!name.startsWith('.')) return false;
        return packageOf(relative(ROOT, join(ROOT, path, '..', name))) !== packageOf(path);
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('between the folders of a package follow ROOMS', () => {
    const rooms = Object.keys(ROOMS);
    const upward = rooms.flatMap((room, at) =>
      (ROOMS[room] ?? []).filter((other) => !rooms.slice(0, at).includes(other)),
    );
    expect(upward).toEqual([]);
    const wrong = offenders(({ path, imports, isTest }) => {
      const allowed = ROOMS[dirname(path)];
      // The index may import all folders.
      if (!allowed || isTest || path.endsWith('/src/index.ts')) return [];
      return imports.filter((name) => {
        const target = dirname(join(dirname(path), name));
        return /^\..*\.ts$/.test(name) && target !== dirname(path) && !allowed.includes(target);
      });
    });
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(ONLY))('of %s are in few files', (name, where) => {
    const wrong = offenders(({ path, imports, isTest }) =>
      imports.filter(
        (from) => (from === name || from.startsWith(`${name}/`)) && !where.test(path) && !isTest,
      ),
    );
    expect(wrong).toEqual([]);
  });
});

test('threads are started from files named thread.ts, which compile/pieces.mjs compiles', () => {
  const wrong = offenders(({ text }) =>
    [...text.matchAll(/new Worker\(\s*(new URL\([^)]*\))/g)]
      .map(([, url = '']) => url)
      .filter((url) => !/^new URL\('\.\/(\w+\.)?thread\.ts', import\.meta\.url\)$/.test(url)),
  );
  expect(wrong).toEqual([]);
});

test('process.env is read in shared/src/config only', () => {
  const wrong = offenders(({ path, text, isTest }) =>
    !isTest &&
    !path.startsWith('shared/src/config/') &&
    /\bprocess\s*\.\s*env\b|\bprocess\[['"]env/.test(text)
      ? ['process.env']
      : [],
  );
  expect(wrong).toEqual([]);
});

test('tests are skipped by skip(why) only, which `npm test` reports', () => {
  const wrong = offenders(({ text }) =>
    [...text.matchAll(/\b(?:describe|test|it)\.(?:runIf|skipIf|skip|todo)\b/g)].map(([call]) => call),
  );
  expect(wrong).toEqual([]);
});

test('sources have no default exports and no folders such as utils', () => {
  const wrong = offenders(({ path, text }) => [
    ...(/^export default /m.test(text) ? ['export default'] : []),
    ...(/(^|\/)(utils?|helpers?|types|common)(\.ts$|\/)/.test(path) ? ['a name that says nothing'] : []),
  ]);
  expect(wrong).toEqual([]);
});
