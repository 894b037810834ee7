import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installCard, relockCard } from '../src/index.ts';

const CARD = {
  ...{ card: 1, name: 'toy', version: '1.0.0', description: 'a toy', bundle: { name: 'toy' } },
  ...{ needs: { libc: 'none' }, api: { dialects: ['chat'] }, command: ['{bundle}/x'] },
  ends: [{ exit: 'any', status: 'submitted' }],
};

let folder = '';
let server: Server;
let asked: string[] = [];
const archives = new Map<string, Buffer>();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'swefarm-npm-'));
  asked = [];
  archives.clear();
  server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').replace(/\?.*/, '');
    asked.push(path);
    const archive = archives.get(path);
    if (archive) return void response.end(archive);
    const document = packument(path.slice(1));
    if (document === null) response.statusCode = 404;
    response.end(JSON.stringify(document ?? { error: 'not found' }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  vi.stubEnv('npm_config_registry', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  vi.stubEnv('npm_config_cache', join(folder, 'cache'));
  vi.stubEnv('npm_config_fetch_retries', '0');
});
afterEach(() => {
  vi.unstubAllEnvs();
  server.close();
  rmSync(folder, { recursive: true });
});

const integrityOf = (archive: Buffer): string =>
  `sha512-${createHash('sha512').update(archive).digest('base64')}`;

/** Adds a package to the registry. Paths of `files` are below the folder of the package. */
function publish(name: string, version: string, files: Record<string, string>, more: object = {}): void {
  const source = join(folder, `source-${archives.size}`, 'package');
  const all = { ...files, 'package.json': JSON.stringify({ name, version, ...more }) };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(join(source, path, '..'), { recursive: true });
    writeFileSync(join(source, path), text, { mode: path.startsWith('bin/') ? 0o755 : 0o644 });
  }
  archives.set(
    `/${name}/-/${version}.tgz`,
    execFileSync('tar', ['-cz', '-C', join(source, '..'), 'package']),
  );
}

function packument(name: string): object | null {
  const { port } = server.address() as AddressInfo;
  const own = [...archives].filter(([path]) => path.startsWith(`/${name}/-/`));
  if (own.length === 0) return null;
  const versions = own.map(([path, archive]) => {
    const manifest = execFileSync('tar', ['-xzO', 'package/package.json'], {
      input: archive,
      encoding: 'utf8',
    });
    const dist = { tarball: `http://127.0.0.1:${port}${path}`, integrity: integrityOf(archive) };
    return { ...JSON.parse(manifest), dist };
  });
  const listed = versions.map((one) => [one.version, one]);
  return { name, 'dist-tags': { latest: versions.at(-1)?.version }, versions: Object.fromEntries(listed) };
}

function cardWith(lock: object): string {
  writeFileSync(join(folder, 'card.yaml'), `version: 1.0.0\n`);
  const { version: _version, ...others } = CARD;
  const text = Object.entries(others).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  writeFileSync(join(folder, 'card.yaml'), `version: 1.0.0\n${text.join('\n')}\n`);
  writeFileSync(
    join(folder, 'lock.json'),
    JSON.stringify({ kind: 'npm', version: '1.0.0', packages: [], ...lock }),
  );
  return join(folder, 'card.yaml');
}

const signal = new AbortController().signal;
const install = (path: string) =>
  installCard(join(folder, 'agents'), path, { source: null, again: false, signal, log: () => undefined });
const relock = (path: string, version: string | null = null) =>
  relockCard(path, { version, source: null, signal });

test('a lock is made from requests, and its packages are installed', async () => {
  publish(
    '@toy/agent',
    '1.0.0',
    { 'bin/run': '#!/bin/sh', 'data.txt': 'x', 'docs/a.md': 'long' },
    { dependencies: { part: '^2.0.0' } },
  );
  publish(
    'part',
    '2.1.0',
    { 'index.js': '1', tool: '#!/bin/sh' },
    { optionalDependencies: { gone: '1.0.0' } },
  );
  const path = cardWith({
    requests: { '@toy/agent': '1.0.0' },
    drop: ['node_modules/@toy/agent/docs'],
    executable: ['node_modules/part/tool'],
  });
  await relock(path);
  const lock = JSON.parse(readFileSync(join(folder, 'lock.json'), 'utf8'));
  expect(lock.packages).toEqual([
    {
      ...{ path: 'node_modules/@toy/agent', name: '@toy/agent', version: '1.0.0' },
      integrity: integrityOf(archives.get('/@toy/agent/-/1.0.0.tgz') as Buffer),
    },
    {
      ...{ path: 'node_modules/part', name: 'part', version: '2.1.0' },
      integrity: integrityOf(archives.get('/part/-/2.1.0.tgz') as Buffer),
    },
  ]);
  const { bundle, card } = await install(path);
  expect(card.bundle.lock).toBe(bundle.manifest.lock);
  const agent = join(bundle.folder, 'node_modules/@toy/agent');
  expect(readdirSync(agent).sort()).toEqual(['bin', 'data.txt', 'package.json']);
  expect(statSync(join(agent, 'bin/run')).mode & 0o777).toBe(0o755);
  expect(statSync(join(bundle.folder, 'node_modules/part/tool')).mode & 0o777).toBe(0o755);
  expect(statSync(join(agent, 'data.txt')).mode & 0o777).toBe(0o644);
  asked = [];
  expect((await install(path)).isNew).toBe(false);
  expect(asked).toEqual([]);
});

test('a lock is made for a new version of the agent, which the card gets too', async () => {
  publish('agent', '1.0.0-linux', { a: '1' });
  publish('agent', '1.1.0-linux', { a: '2' });
  const path = cardWith({ requests: { agent: '1.0.0-linux' } });
  await relock(path, '1.1.0');
  const { card, bundle } = await install(path);
  expect([card.version, bundle.manifest.version]).toEqual(['1.1.0', '1.1.0']);
  expect(readFileSync(join(bundle.folder, 'node_modules/agent/a'), 'utf8')).toBe('2');
});

test('contents that differ from the lock are refused, and nothing is installed', async () => {
  publish('agent', '1.0.0', { a: '1' });
  const path = cardWith({ requests: { agent: '1.0.0' } });
  await relock(path);
  archives.clear();
  publish('agent', '1.0.0', { a: 'changed' });
  await expect(install(path)).rejects.toMatchObject({
    code: 'integrity',
    message: expect.stringMatching(/^agent 1\.0\.0: the registry has other contents than the lock/),
  });
  expect(readdirSync(join(folder, 'agents/toy'))).toEqual(['.lock']);
});

test('a package that the registry lacks is named', async () => {
  const integrity = integrityOf(Buffer.from('x'));
  const path = cardWith({
    requests: {},
    packages: [{ path: 'node_modules/agent', name: 'agent', version: '1.0.0', integrity }],
  });
  await expect(install(path)).rejects.toMatchObject({
    code: 'registry',
    message: expect.stringMatching(/npm pack agent@1\.0\.0 .*404/s),
  });
});

test('a bad lock file is named with its field', async () => {
  const bad = (change: object) => install(cardWith({ requests: {}, ...change }));
  await expect(bad({ kind: 'deb' })).rejects.toThrow(/lock\.json: kind: expected npm or python, got "deb"/);
  await expect(bad({ packages: [{ path: '../x' }] })).rejects.toThrow(
    /lock\.json: packages\.0\.path: expected a path below the bundle/,
  );
  await expect(bad({ drop: ['a/../../b'] })).rejects.toThrow(/lock\.json: drop\.0: expected a path below/);
});

test('an answer of npm that cannot be used is not a mistake of the lock', async () => {
  const npm = join(folder, 'bin/npm');
  mkdirSync(join(folder, 'bin'));
  writeFileSync(npm, '#!/bin/sh\necho "[]"', { mode: 0o755 });
  vi.stubEnv('PATH', `${join(folder, 'bin')}:${process.env.PATH}`);
  const one = { path: 'x', name: 'agent', version: '1.0.0', integrity: integrityOf(Buffer.from('x')) };
  await expect(install(cardWith({ requests: {}, packages: [one] }))).rejects.toMatchObject({
    code: 'build_step',
    message: expect.stringMatching(/^npm pack answered in another form than expected \(\S+ ?\S*: /),
  });
});

test('a card without a lock takes a folder', async () => {
  const path = cardWith({});
  rmSync(join(folder, 'lock.json'));
  await expect(install(path)).rejects.toThrow(/has no lock\.json beside it: give the folder of its programs/);
  mkdirSync(join(folder, 'programs'));
  writeFileSync(join(folder, 'programs/x'), '#!/bin/sh\necho 1', { mode: 0o755 });
  const options = { source: join(folder, 'programs'), again: false, signal, log: () => undefined };
  const { bundle } = await installCard(join(folder, 'agents'), path, options);
  expect(bundle.manifest).toMatchObject({ lock: '', version: '1.0.0' });
  cpSync(bundle.folder, join(folder, 'copy'), { recursive: true });
  expect(readFileSync(join(folder, 'copy/x'), 'utf8')).toBe('#!/bin/sh\necho 1');
});
