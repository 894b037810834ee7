/** Tests pictures of issues: fetched to a folder, probed at an endpoint, shown in commands and exports; with servers on loopback. */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetchPictures, openPictureFolder, PICTURE_LIST } from '@swefarm/datasets';
import { probePictures } from '@swefarm/runs';
import type { Instance, Trajectory } from '@swefarm/shared';
import { bareInstance, startScriptedPolicy, words } from '@swefarm/testkit';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { exited, linesOf, run } from './cli.ts';
import { storedRollouts, toolTrajectory } from './stored.ts';

const PNG = Buffer.from('\x89PNG\r\n\x1a\n one', 'latin1');
const GIF = Buffer.from('GIF89a two', 'latin1');
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const showing = (...addresses: string[]): Instance =>
  bareInstance({ pictures: addresses.map((address) => ({ address })) });

const fetchTo = (folder: string, instances: Instance[]) =>
  fetchPictures({ instances, folder, signal: new AbortController().signal, onNote: () => undefined });

test('pictures are fetched once, under names of their own, and what is no picture is named', async () => {
  const asked: string[] = [];
  let busy = true;
  const server = await listening((request, response) => {
    asked.push(String(request.url));
    if (request.url === '/moved') response.writeHead(302, { location: '/../../one.png' }).end();
    else if (request.url === '/busy.gif' && busy) {
      busy = false;
      response.writeHead(503).end();
    } else if (request.url === '/busy.gif') response.end(GIF);
    else if (request.url === '/one.png') response.end(PNG);
    else if (request.url === '/drawing.svg') response.end('<svg onload="alert(1)"/>');
    else if (request.url === '/huge.png') response.end(Buffer.concat([PNG, Buffer.alloc(10 * 1000 ** 2)]));
    else response.writeHead(404).end();
  });
  const folder = join(temporaryFolder('pictures'), 'new');
  const good = [`${server}/moved`, `${server}/busy.gif`];
  const bad = ['/drawing.svg', '/huge.png', '/gone.png'].map((path) => server + path);
  const instances = [showing(...good, ...bad), showing(...good, 'file:///etc/passwd'), bareInstance()];
  const first = await fetchTo(folder, instances);
  expect(first).toMatchObject({ fetched: 2, present: 0 });
  expect(first.missing).toEqual([
    { address: bad[0], problem: expect.stringMatching(/^is an SVG; expected image\/png/) },
    { address: bad[1], problem: expect.stringMatching(/^has more than the \d+ bytes/) },
    { address: bad[2], problem: 'the server answers 404' },
    { address: 'file:///etc/passwd', problem: 'is no http address' },
  ]);
  const names = [`${sha256(PNG)}.png`, `${sha256(GIF)}.gif`, PICTURE_LIST].toSorted();
  expect((await readdir(folder)).toSorted()).toEqual(names);
  expect(openPictureFolder(folder).find(good[1] ?? '').file).toMatchObject({ media_type: 'image/gif' });

  asked.length = 0;
  await rm(join(folder, `${sha256(GIF)}.gif`));
  expect(await fetchTo(folder, [showing(...good)])).toMatchObject({ fetched: 1, present: 1, missing: [] });
  expect(asked).toEqual(['/busy.gif']);
});

test.each([
  [true, 'ok', /takes them/],
  [false, 'fail', /refuses a picture: HTTP 400 At most 0 image/],
] as const)('an endpoint that takes pictures: %s', async (pictures, status, detail) => {
  await using policy = await startScriptedPolicy({
    script: { model: 'm', conversations: [{ variants: [[{ text: 'white' }]] }] },
    pictures,
  });
  const options = { apiKey: null, signal: new AbortController().signal };
  expect(await probePictures(policy.url, 'm', options)).toMatchObject({
    ...{ status, subject: 'pictures', detail: expect.stringMatching(detail) },
    remedy: pictures ? null : expect.stringContaining('--pictures drop'),
  });
});

test('an endpoint that nobody serves is not said to refuse pictures', async () => {
  const url = await listening((_request, response) => void response.writeHead(500).end());
  const options = { apiKey: null, signal: new AbortController().signal };
  expect(await probePictures(`${url}/v1`, 'm', options)).toMatchObject({ status: 'warn' });
});

const rowOf = (address: string) => ({
  ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'c', image: 'a/b:1' },
  ...{ problem_statement: 'See below.', FAIL_TO_PASS: ['t'], PASS_TO_PASS: [], test_cmd: 'true' },
  image_assets: JSON.stringify({ problem_statement: [address], patch: [], test_patch: [] }),
});

test('a run with pictures is refused before it starts, until an option decides about them', async () => {
  const server = await listening((_request, response) => void response.end(PNG));
  const folder = temporaryFolder('pictures');
  const dataset = join(folder, 'rows.jsonl');
  await writeFile(dataset, `${JSON.stringify(rowOf(`${server}/a.png`))}\n`);
  const pictures = join(folder, 'pictures');
  // No server listens at these addresses: a refused run connects neither to Redis nor to a policy.
  const submit = (...more: string[]) =>
    run(words`
      submit --dataset ${dataset} --redis-url redis://127.0.0.1:1 --redis-patience-seconds 0
      --model m --policy-url http://127.0.0.1:1/v1 ${more}`);
  const bare = await submit();
  expect(bare).toMatchObject(
    exited(2, /1 of 1 instances show pictures, and those of 1 cannot be sent:\n {2}a__b-1: http/),
  );

  const fetched = await run(['dataset', 'pictures', '--dataset', dataset, '--output-dir', pictures]);
  expect(fetched).toMatchObject({ code: 0, stdout: expect.stringContaining('"fetched":1') });
  const refused = await submit('--picture-files', pictures, '--token-mode', 'token-in');
  expect(refused).toMatchObject(
    exited(2, /1 of 1 instances show pictures \(a__b-1\), and token mode token-in/),
  );

  // With the pictures, or with an explicit --pictures drop, the command fails only because Redis is missing.
  for (const request of [
    ['--picture-files', pictures],
    ['--pictures', 'drop', '--token-mode', 'token-in'],
  ])
    expect(await submit(...request)).toMatchObject({ code: 12 });
}, 120_000);

function seeing(): Trajectory {
  const trajectory = toolTrajectory();
  const file = { media_type: 'image/png' as const, sha256: sha256(PNG), bytes: PNG.length };
  const picture = { address: 'https://x.example/a.png', file: { ...file, data: PNG.toString('base64') } };
  const messages = trajectory.messages.map((message) =>
    message.role === 'user' ? { ...message, pictures: [picture] } : message,
  );
  return { ...trajectory, messages };
}

const URL_OF_PNG = `data:image/png;base64,${PNG.toString('base64')}`;
const PARTS = [
  { type: 'text', text: 'Fix x.' },
  { type: 'image_url', image_url: { url: URL_OF_PNG } },
];

test('exports carry pictures as parts, or say that they leave a rollout out', async () => {
  const { exported } = await storedRollouts([{ trajectory: seeing() }]);
  for (const format of ['sft-messages', 'verifier']) {
    const { path, code } = await exported(format, `${format}.jsonl`);
    expect(code).toBe(0);
    const [line] = await linesOf(path);
    expect((line?.messages as unknown[] | undefined)?.[1]).toEqual({ role: 'user', content: PARTS });
  }
  const hands = await exported('openhands', 'output.jsonl');
  const [output] = await linesOf(hands.path);
  expect((output?.history as unknown[] | undefined)?.[1]).toMatchObject({
    args: { content: 'Fix x.', image_urls: [URL_OF_PNG] },
  });
  const agent = await exported('swe-agent', 'agent');
  const traj = JSON.parse(await readFile(join(agent.path, 'a__b-1', 'a__b-1.traj'), 'utf8'));
  expect(traj.trajectory.at(-1).query[1]).toMatchObject({ content: PARTS });
  const atif = await exported('atif', 'atif');
  const [file = ''] = await readdir(atif.path);
  expect(await readFile(join(atif.path, file), 'utf8')).toContain(
    '[picture image/png, 12 bytes: https://x.example/a.png]',
  );
  for (const format of ['swesmith-xml', 'tokens']) {
    const { stderr } = await exported(format, `out-${format}`);
    expect(stderr).toContain('1 its prompt shows pictures, which this format does not have');
  }
}, 120_000);
