/** Projects of SWE-smith in Go and JavaScript: packages of Debian and npm without the bug, and the tools that their tests need. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { cached } from '../examples/cache.ts';
import { run } from '../examples/run.ts';
import { writeTree } from '../repository.ts';

/** Parts of an example of one project. */
export type SmithProjectParts = {
  /** SWE-smith's name of the project. */
  project: string;
  /** Writes the tree without the bug to `tree`, and the content of the image's `/tools` to `tools`. */
  fill(tree: string, tools: string): Promise<void>;
  /** The image's PATH. */
  path: string;
  /** The text in a file that the bug replaces, and its replacement. */
  bug: { file: string; good: string; bad: string };
  /** The files of FAIL_TO_PASS. */
  failing: string[];
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  problem_statement: string;
};

const SYSTEM = '/usr/local/bin:/usr/bin:/bin';
const CHI = '/usr/share/gocode/src/github.com/go-chi/chi';

/** Copies Debian's golang, at the places that its own links name. Throws when the packages are not installed. */
async function copyDebianGo(tools: string): Promise<void> {
  if (!existsSync('/usr/lib/go/bin/go')) {
    throw new Error("Debian's golang is not here: bash testkit/setup/setup.sh golang");
  }
  const real = execFileSync('readlink', ['-f', '/usr/lib/go'], { encoding: 'utf8' }).trim();
  const shared = real.replace('/usr/lib/', '/usr/share/');
  for (const folder of [real, ...['src', 'pkg', 'misc', 'api'].map((name) => `${shared}/${name}`)]) {
    if (!existsSync(folder)) continue;
    await mkdir(dirname(join(tools, folder)), { recursive: true });
    await cp(folder, join(tools, folder), { recursive: true, verbatimSymlinks: true });
  }
  await mkdir(join(tools, 'bin'), { recursive: true });
  for (const name of ['go', 'gofmt']) {
    execFileSync('ln', ['-s', `/tools${real}/bin/${name}`, join(tools, 'bin', name)]);
  }
}

/** Returns Debian's folder with the sources and tests of chi. Throws when the package is not installed. */
function chiSources(): string {
  const found = [CHI, `${CHI}/v5`].find((folder) => existsSync(join(folder, 'middleware/url_format.go')));
  if (found === undefined) throw new Error('chi is not here: bash testkit/setup/setup.sh golang');
  return found;
}

/** The router chi with its own tests, without those that depend on the clock or use a core for seconds. */
const go: SmithProjectParts = {
  project: 'go-chi__chi.23c395f8',
  async fill(tree, tools) {
    await copyDebianGo(tools);
    await cp(chiSources(), tree, { recursive: true });
    for (const name of ['middleware/throttle_test.go', 'mux_test.go', 'tree_test.go'])
      await rm(join(tree, name));
  },
  path: `/tools/bin:${SYSTEM}`,
  bug: {
    file: 'middleware/url_format.go',
    good: 'rctx.RoutePath = path[:idx]',
    bad: 'rctx.RoutePath = path[:idx+1]',
  },
  failing: ['middleware/url_format_test.go'],
  FAIL_TO_PASS: ['TestURLFormat'],
  PASS_TO_PASS: [
    ...['TestCompressor', 'TestContentType', 'TestGetHead', 'TestRecoverer', 'TestStripSlashes'],
    ...['TestXRealIP', 'TestRoutePattern'],
  ],
  problem_statement: 'Behind URLFormat a route is looked for with the dot of the format.',
};

const MARKED = {
  version: '4.3.0',
  sha256: 'bc795399d6e7c096521080d66ce6ca96a00875b4bb0df36e0f041815484f633b',
};

/** Returns a folder with npm's package marked. Throws when its checksum differs. */
async function fetchMarked(): Promise<string> {
  const cache = resolve(import.meta.dirname, '../../../.swefarm/cache/examples/npm');
  return cached(join(cache, `marked-${MARKED.version}`), async (draft) => {
    await mkdir(draft, { recursive: true });
    const signal = AbortSignal.timeout(300_000);
    await run(['npm', 'pack', '--silent', `marked@${MARKED.version}`], { cwd: draft, signal });
    const archive = join(draft, `marked-${MARKED.version}.tgz`);
    const sha256 = createHash('sha256')
      .update(await readFile(archive))
      .digest('hex');
    if (sha256 !== MARKED.sha256) throw new Error(`marked ${MARKED.version}: sha256 ${sha256}`);
    await run(['tar', '-xzf', archive, '-C', draft, '--strip-components=1', '--no-same-owner'], { signal });
  });
}

/** Tests for marked, because the package has none. */
const MARKED_TESTS = {
  'test/unit/entities.test.js': `import assert from 'node:assert';
import { describe, it } from 'node:test';
import { unescape } from '../../src/helpers.js';

describe('entities', () => {
  it('reads hexadecimal entities', () => assert.strictEqual(unescape('&#x41;&#x7a;'), 'Az'));
});
`,
  'test/unit/marked.test.js': `import assert from 'node:assert';
import { it } from 'node:test';
import { unescape } from '../../src/helpers.js';
import { marked } from '../../src/marked.js';

const parse = (text) => marked.parse(text, { mangle: false, headerIds: false });
it('reads decimal entities', () => assert.strictEqual(unescape('&#65;'), 'A'));
it('writes a heading', () => assert.strictEqual(parse('# A'), '<h1>A</h1>\\n'));
it('writes a list', () => assert.strictEqual(parse('- a'), '<ul>\\n<li>a</li>\\n</ul>\\n'));
`,
};

/** The Markdown compiler marked without built files. Its tests run with Node's test runner. */
const javascript: SmithProjectParts = {
  project: 'markedjs__marked.dbf29d91',
  async fill(tree, tools) {
    const sources = await fetchMarked();
    await mkdir(tree, { recursive: true });
    for (const name of ['package.json', 'src', 'bin', 'LICENSE.md', 'README.md']) {
      await cp(join(sources, name), join(tree, name), { recursive: true });
    }
    await writeTree(tree, MARKED_TESTS);
    await mkdir(join(tools, 'bin'), { recursive: true });
    await copyFile(process.execPath, join(tools, 'bin/node'));
  },
  path: `/tools/bin:${SYSTEM}`,
  bug: { file: 'src/helpers.js', good: 'parseInt(n.substring(2), 16)', bad: 'parseInt(n.substring(2), 10)' },
  failing: ['test/unit/entities.test.js'],
  FAIL_TO_PASS: ['reads hexadecimal entities'],
  PASS_TO_PASS: ['reads decimal entities', 'writes a heading', 'writes a list'],
  problem_statement: 'The entity &#x41; is not read as A.',
};

export const SMITH_PROJECTS = { Go: go, JavaScript: javascript };
