import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { Secret } from '@swefarm/shared';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test, vi } from 'vitest';
import { FETCH_RECORD, fetchDataset } from '../src/hub/fetch.ts';
import { readGymDatasets } from '../src/hub/gymregistry.ts';
import { type HubAddress, parseDatasetName } from '../src/hub/hub.ts';

const COMMIT = 'c'.repeat(40);
const ROWS = Buffer.from(Array.from({ length: 20_000 }, (_, at) => `{"instance_id":"i-${at}"}\n`).join(''));
const CARD = Buffer.from('# A dataset\n');
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const gitHash = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

/** Faults of the hub, and of the store that serves the large files of the hub. */
type Faults = {
  /** True: the fault wrote the answer. */
  api?: (request: IncomingMessage, response: ServerResponse) => boolean;
  store?: (request: IncomingMessage, response: ServerResponse, from: number) => boolean;
  checksum?: string;
  commit?: string;
  path?: string;
};

async function openHub(faults: Faults = {}) {
  const requests: {
    at: 'hub' | 'store';
    url: string;
    token: string | undefined;
    range: string | undefined;
  }[] = [];
  const note = (at: 'hub' | 'store', request: IncomingMessage) =>
    requests.push({
      at,
      url: String(request.url),
      token: request.headers.authorization,
      range: request.headers.range,
    });
  const send = (request: IncomingMessage, response: ServerResponse, bytes: Buffer): void => {
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    if (faults.store?.(request, response, from)) return;
    if (from > 0) response.setHeader('content-range', `bytes ${from}-${bytes.length - 1}/${bytes.length}`);
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': bytes.length - from });
    response.end(bytes.subarray(from));
  };
  const store = await listening((request, response) => {
    note('store', request);
    send(request, response, ROWS);
  });
  const hub = await listening((request, response) => {
    note('hub', request);
    const { pathname } = new URL(String(request.url), 'http://hub');
    response.setHeader('x-repo-commit', faults.commit ?? COMMIT);
    if (faults.api?.(request, response)) return;
    const json = (value: unknown): void => void response.end(JSON.stringify(value));
    const lfs = { oid: faults.checksum ?? sha256(ROWS), size: ROWS.length };
    if (pathname === '/api/datasets/o/n/revision/main') json({ sha: COMMIT });
    else if (pathname === `/api/datasets/o/n/tree/${COMMIT}` && !String(request.url).includes('cursor')) {
      response.setHeader('link', `<${String(request.url)}&cursor=2>; rel="next"`);
      json([
        { type: 'directory', path: 'data', size: 0, oid: 'd' },
        { type: 'file', path: 'README.md', size: CARD.length, oid: gitHash(CARD) },
      ]);
    } else if (pathname === `/api/datasets/o/n/tree/${COMMIT}`) {
      json([{ type: 'file', path: faults.path ?? 'data/train.jsonl', size: 130, oid: 'p'.repeat(40), lfs }]);
    } else if (pathname === `/datasets/o/n/resolve/${COMMIT}/README.md`) response.end(CARD);
    else if (pathname.startsWith(`/datasets/o/n/resolve/${COMMIT}/`)) {
      response.writeHead(302, { location: `${store}/blob?signature=x` }).end();
    } else response.writeHead(404).end();
  });
  return { hub, requests };
}

async function fetched(
  faults: Faults = {},
  over: { token?: string; folder?: string; files?: string[] } = {},
) {
  const { hub, requests } = await openHub(faults);
  const folder = over.folder ?? temporaryFolder('hub');
  const address: HubAddress = { url: hub, token: over.token === undefined ? null : new Secret(over.token) };
  const notes: string[] = [];
  const run = () =>
    fetchDataset({
      hub: address,
      dataset: parseDatasetName('o/n'),
      folder,
      files: over.files ?? [],
      signal: AbortSignal.timeout(60_000),
      onNote: (text) => notes.push(text),
    });
  return { folder, requests, notes, run, file: join(folder, 'data/train.jsonl') };
}

const once = () => {
  let done = false;
  return (): boolean => {
    const first = !done;
    done = true;
    return first;
  };
};

test('a fetch reads all pages, checks each file, and records commit and checksums', async () => {
  const { run, file, folder, requests, notes } = await fetched();
  const record = await run();
  expect(await readFile(file)).toEqual(ROWS);
  expect(record).toMatchObject({ name: 'o/n', revision: 'main', commit: COMMIT });
  expect(record.files).toEqual([
    { path: 'README.md', size: CARD.length, sha256: sha256(CARD) },
    { path: 'data/train.jsonl', size: ROWS.length, sha256: sha256(ROWS) },
  ]);
  expect(JSON.parse(await readFile(join(folder, FETCH_RECORD), 'utf8'))).toMatchObject({
    files: record.files,
  });
  const before = requests.length;
  await run();
  expect(
    requests
      .slice(before)
      .map(({ url }) => url)
      .filter((url) => !url.startsWith('/api/')),
  ).toEqual([]);
  expect(notes.at(-1)).toBe('data/train.jsonl: is there already');
});

test('the token goes to the hub and never to the host of a redirect', async () => {
  const { run, requests } = await fetched({}, { token: 'hf_secret' });
  await run();
  expect(new Set(requests.filter(({ at }) => at === 'hub').map(({ token }) => token))).toEqual(
    new Set(['Bearer hf_secret']),
  );
  expect(requests.filter(({ at }) => at === 'store').map(({ token }) => token)).toEqual([undefined]);
});

const partSize = (file: string): number => {
  const part = readdirSync(dirname(file)).find((name) => name.endsWith('.part'));
  return part === undefined ? 0 : statSync(join(dirname(file), part)).size;
};

test('an interrupted download resumes at its byte', async () => {
  const first = once();
  const { run, file, requests } = await fetched({
    store: (_request, response) => {
      if (!first()) return false;
      response.writeHead(200, { 'content-length': ROWS.length });
      response.write(ROWS.subarray(0, 100_000));
      // A reset discards unread bytes, so the server resets the connection after the first byte is on disk.
      void vi
        .waitFor(() => expect(partSize(file)).toBeGreaterThan(0), 100_000)
        .then(() => response.destroy());
      return true;
    },
  });
  await run();
  expect(await readFile(file)).toEqual(ROWS);
  const ranges = requests.filter(({ at }) => at === 'store').map(({ range }) => range);
  expect(ranges).toHaveLength(2);
  expect(ranges[1]).toMatch(/^bytes=[1-9]\d*-$/);
});

test('a store that ignores the range is read from the start', async () => {
  const first = once();
  const { run, file } = await fetched({
    store: (_request, response) => {
      response.writeHead(200, { 'content-length': ROWS.length });
      if (first()) response.write(ROWS.subarray(0, 1000), () => response.destroy());
      else response.end(ROWS);
      return true;
    },
  });
  await run();
  expect(await readFile(file)).toEqual(ROWS);
});

test('429 waits for the time of Retry-After', async () => {
  const first = once();
  const { run, requests } = await fetched({
    api: (_request, response) => {
      if (!first()) return false;
      response.writeHead(429, { 'retry-after': '1' }).end();
      return true;
    },
  });
  const begun = performance.now();
  await run();
  expect(performance.now() - begun).toBeGreaterThanOrEqual(990);
  expect(requests[0]?.url).toBe(requests[1]?.url);
});

test.each([
  [undefined, /private or gated: set hub_token/],
  ['hf_bad', /the token is not accepted/],
])('401 with the token %s is an error with a remedy', async (token, message) => {
  const { run } = await fetched(
    {
      api: (_request, response) => {
        response.writeHead(401).end();
        return true;
      },
    },
    token === undefined ? {} : { token },
  );
  await expect(run()).rejects.toThrow(message);
  await expect(run()).rejects.not.toThrow(/hf_bad/);
});

test('a wrong checksum removes the download', async () => {
  const { run, folder } = await fetched({ checksum: 'f'.repeat(64) });
  await expect(run()).rejects.toMatchObject({ code: 'hub_checksum' });
  expect(await readdir(join(folder, 'data'))).toEqual([]);
});

test('more bytes than announced, another commit, and a path out of the folder are refused', async () => {
  const long = await fetched({
    store: (_request, response) => {
      response.end(Buffer.concat([ROWS, ROWS]));
      return true;
    },
  });
  await expect(long.run()).rejects.toMatchObject({ code: 'hub_size' });
  const changed = await fetched({ commit: 'd'.repeat(40) });
  await expect(changed.run()).rejects.toMatchObject({ code: 'hub_changed' });
  for (const path of ['../../etc/x.jsonl', '/etc/x.jsonl', 'a//x.jsonl', 'a\\..\\x.jsonl']) {
    const hostile = await fetched({ path });
    await expect(hostile.run(), path).rejects.toThrow(/is outside of the folder/);
  }
});

test('a part of another version is not resumed, and a changed file is fetched again', async () => {
  const { run, file, folder } = await fetched();
  await run();
  await writeFile(file, 'edited');
  await writeFile(join(folder, 'data', `.train.jsonl.${'0'.repeat(16)}.part`), 'of another version');
  await run();
  expect(await readFile(file)).toEqual(ROWS);
});

test('the error for a missing file lists the existing files', async () => {
  const { run } = await fetched({}, { files: ['test.parquet', '**/*.jsonl'] });
  await expect(run()).rejects.toThrow(/has no file test\.parquet; it has README\.md, data\/train\.jsonl/);
});

test('the error without a network lists the files to copy', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  const task = {
    hub: { url: `http://127.0.0.1:${port}`, token: null },
    dataset: parseDatasetName('SWE-Gym/SWE-Gym@v1'),
    folder: '/data/gym',
    files: ['data/*.parquet'],
    signal: AbortSignal.timeout(100_000),
    onNote: () => undefined,
  };
  await expect(fetchDataset(task)).rejects.toMatchObject({
    code: 'hub_unreachable',
    message: expect.stringMatching(
      /swefarm dataset fetch SWE-Gym\/SWE-Gym@v1 --output-dir DIR --file 'data\/\*\.parquet'.*copy them to \/data\/gym.*hub_url/s,
    ),
  });
});

test("NeMo Gym's datasets are found in a configuration, with a reason for unfetchable ones", async () => {
  const folder = temporaryFolder('gym');
  const path = join(folder, 'gym.yaml');
  await writeFile(
    path,
    `agent:
  responses_api_agents:
    swe:
      datasets:
      - {name: train, type: train, jsonl_fpath: data/train.jsonl, huggingface_identifier: {repo_id: o/n, artifact_fpath: data/train.jsonl}}
      - {name: old, type: train, jsonl_fpath: data/old.jsonl, gitlab_identifier: {dataset_name: x, version: 0.0.1, artifact_fpath: t.jsonl}}
      - {name: example, type: example, jsonl_fpath: data/example.jsonl}
`,
  );
  expect(readGymDatasets(path)).toEqual([
    {
      name: 'train',
      path: 'data/train.jsonl',
      source: { repository: 'o/n', file: 'data/train.jsonl' },
      why: '',
    },
    expect.objectContaining({
      name: 'old',
      source: null,
      why: expect.stringMatching(/ng_download_dataset_from_gitlab/),
    }),
    expect.objectContaining({ name: 'example', source: null, why: expect.stringMatching(/comes with Gym/) }),
  ]);
});

test.each(['', 'a/b/c', '../x', 'a/..', 'a@', 'a b'])('"%s" is no name of a dataset', (name) => {
  expect(() => parseDatasetName(name)).toThrow(/expected OWNER\/NAME/);
});
