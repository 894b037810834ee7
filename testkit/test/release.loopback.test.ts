/** Tests what `npm run release` refuses, in clones of HEAD. testkit/release/install.sh tests builds and publications. */
import { appendFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { run } from '../src/launchers/run.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const identity = ['-c', 'user.name=test', '-c', 'user.email=test@localhost'];

let clone = '';
let head = '';
const git = (...args: string[]) => run('git', ['-C', clone, ...identity, ...args]);
beforeAll(async () => {
  clone = join(temporaryFolder('release'), 'clone');
  await run('git', ['clone', '--quiet', '--no-local', ROOT, clone]);
  await symlink(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  await appendFile(join(clone, '.git/info/exclude'), 'node_modules\n');
  await change('CHANGELOG.md', /^## \[0\.1\.0\].*$/m, '## Before').catch(() => undefined);
  await git('commit', '--quiet', '--all', '--allow-empty', '--message', 'No section of this version');
  head = (await git('rev-parse', 'HEAD')).stdout.trim();
});
beforeEach(async () => {
  await git('reset', '--quiet', '--hard', head);
  await git('clean', '--quiet', '--force');
});

async function change(path: string, from: string | RegExp, to: string): Promise<void> {
  const text = await readFile(join(clone, path), 'utf8');
  expect(text).toMatch(from);
  await writeFile(join(clone, path), text.replace(from, to));
}

const commit = () => git('commit', '--quiet', '--all', '--message', 'A change');

/** Runs a release that must be refused, and returns its message. */
async function refusal(...args: string[]): Promise<string> {
  const ended = await run(process.execPath, ['release/main.mjs', ...args], { cwd: clone }).catch(
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  expect(ended).toMatchObject({ code: 2, stdout: '' });
  return ended.stderr;
}

test('a version without a section of the changelog is refused', async () => {
  expect(await refusal()).toContain('CHANGELOG.md: expected a section "## [0.1.0]" with text');
});

test('a section of the changelog without text is refused', async () => {
  await change('CHANGELOG.md', '## [Unreleased]', '## [0.1.0] - 2000-01-01\n\n## [Unreleased]');
  await commit();
  expect(await refusal()).toContain('CHANGELOG.md: expected a section "## [0.1.0]" with text');
});

test('changed and new files are refused', async () => {
  await writeFile(join(clone, 'new'), '');
  await appendFile(join(clone, 'README.md'), '\n');
  expect(await refusal()).toMatch(/2 changed or new files, such as .*: commit or remove them/);
});

test.each([
  ['helm/swefarm/Chart.yaml', 'version', /(?<=^version: ).*$/m],
  ['helm/swefarm/Chart.yaml', 'appVersion', /(?<=^appVersion: ).*$/m],
  ['producer/python/pyproject.toml', 'version', /(?<=^version = ")[^"]*/m],
  ['sandbox/package.json', 'version', /(?<="version": ")[^"]*/],
])('a release is refused if %s has another %s', async (path, field, version) => {
  await change(path, version, '0.1.1');
  await commit();
  expect(await refusal()).toContain(`${path} ${field}: expected 0.1.0 as in package.json, found 0.1.1`);
});

test('registries without --publish, and --publish without registries, are wrong usage', async () => {
  expect(await refusal('--npm', 'http://127.0.0.1:1')).toContain('--npm publishes nothing without --publish');
  expect(await refusal('--publish')).toContain('--publish needs a registry');
});

test('assets have names of their own in one folder, with checksums', async () => {
  const out = join(temporaryFolder('assets'), 'out');
  const files = [
    'npm/swefarm-1.0.0.tgz',
    'chart/swefarm-1.0.0.tgz',
    'images/worker.tar',
    'python/a.whl',
    'NOTES.md',
  ];
  for (const file of files) {
    await mkdir(dirname(join(out, file)), { recursive: true });
    await writeFile(join(out, file), file);
  }
  const script = `import { writeAssets } from ${JSON.stringify(join(ROOT, 'release/artefacts.mjs'))};
    await writeAssets(${JSON.stringify(out)}, '1.0.0');`;
  await run(process.execPath, ['--input-type=module', '--eval', script]);
  const assets = join(out, 'assets');
  expect((await readdir(assets)).sort()).toEqual(
    [
      'SHA256SUMS',
      'a.whl',
      'swefarm-1.0.0.tgz',
      'swefarm-chart-1.0.0.tgz',
      'swefarm-worker-1.0.0.tar',
    ].sort(),
  );
  const checked = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: assets });
  expect(checked.stdout.match(/: OK/g)).toHaveLength(4);
});
