/** Tests `swefarm score`, `select` and `report` on a real output, with a scripted verifier. */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { lines } from '@swefarm/datasets/test/rows.ts';
import { words } from '@swefarm/testkit';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { expect, test } from 'vitest';
import { exited, fakeWorker, linesOf, run } from './cli.ts';
import { flaskRows } from './scene.ts';

type Asked = { path: string; body: Record<string, unknown>; token: string | undefined };

/** Starts a verifier that answers yes with the probability that `yes` returns. Null: neither yes nor no; `busy`, `refuse`: 503, 400. */
async function openVerifier(yes: (asked: Asked, number: number) => number | null | 'busy' | 'refuse') {
  const asked: Asked[] = [];
  const url = await listening(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString()) as Record<
      string,
      unknown
    >;
    const one = { path: String(request.url), body, token: request.headers.authorization };
    asked.push(one);
    const share = yes(one, asked.length - 1);
    if (share === 'busy' || share === 'refuse') {
      response.writeHead(share === 'busy' ? 503 : 400).end('no room for so many tokens');
      return;
    }
    const top = share === null ? { Perhaps: -0.1 } : { ' YES': Math.log(share), no: Math.log(1 - share) };
    const list = Object.entries(top).map(([token, logprob]) => ({ token, logprob }));
    const answers: Record<string, unknown> = {
      '/v1/chat/completions': { choices: [{ logprobs: { content: [{ top_logprobs: list }] } }] },
      '/v1/completions': { choices: [{ logprobs: { top_logprobs: [top] } }] },
      '/rate': { score: share },
    };
    response.end(JSON.stringify(answers[one.path]));
  });
  return { url, asked };
}

async function collected() {
  const { at, dataset, output, state } = await flaskRows(2);
  const ran = await run(words`
    rollout --dataset ${dataset} --output ${output} --state-dir ${state}
    --agent noop --group-size 2 --worker-command ${fakeWorker('ok')}`);
  expect(ran.code).toBe(0);
  return { at, output, scores: at('out.scores.jsonl') };
}
const scoring = (output: string, url: string, ...more: string[]) =>
  words`score ${output} --verifier-url ${url} ${more}`;

test('the verifier gets each rollout once, also after its errors and an interrupted scoring', async () => {
  const { output, scores } = await collected();
  const verifier = await openVerifier((_asked, number) =>
    number === 0 ? 'busy' : number === 2 ? 'refuse' : 0.75,
  );
  const args = words`
    score ${output} --verifier-url ${verifier.url}/v1/ --model judge --concurrency 1 --api-key-env KEY`;
  const first = await run(args, { KEY: 'sk-x' });
  expect(first).toMatchObject(
    exited(10, /3 rollouts scored by chat judge.*1 without a score: it answers 400: no room/s),
  );
  const [question] = verifier.asked;
  expect(question).toMatchObject({
    token: 'Bearer sk-x',
    body: { model: 'judge', max_tokens: 1, logprobs: true, temperature: 0 },
  });
  expect(JSON.stringify(question?.body.messages)).toMatch(/Fix it\..*YES or NO/s);
  await appendFile(scores, '{"rollout_id":"torn');
  const before = verifier.asked.length;
  expect(await run(args, { KEY: 'sk-x' })).toMatchObject(exited(0, /1 rollouts scored.*3 had a score/s));
  expect(verifier.asked.length - before).toBe(1);
  const found = await linesOf(scores);
  expect(new Set(found.map(({ rollout_id: id }) => id)).size).toBe(4);
  for (const { score } of found) expect(score).toBeCloseTo(0.75);
  const other = await run(scoring(output, `${verifier.url}/v1`, '--model', 'another'));
  expect(other).toMatchObject(exited(2, /has scores of chat judge, not of chat another/));
});

test('all forms of a verifier; one that says neither yes nor no gives no score', async () => {
  const { at, output } = await collected();
  const verifier = await openVerifier(() => 0.25);
  for (const [form, url] of [
    ['completions', '/v1'],
    ['http', '/rate'],
  ] as const) {
    const file = at(`${form}.jsonl`);
    const more = ['--verifier-form', form, '--model', 'm', '--output', file];
    expect(await run(scoring(output, verifier.url + url, ...more))).toMatchObject({ code: 0 });
    for (const { score } of await linesOf(file)) expect(score).toBeCloseTo(0.25);
  }
  expect(verifier.asked.at(-1)?.body).toMatchObject({
    messages: expect.any(Array),
    rollout_id: expect.any(String),
  });
  const mute = await openVerifier(() => null);
  const ran = await run(scoring(output, `${mute.url}/v1`, '--model', 'm', '--output', at('mute.jsonl')));
  expect(ran).toMatchObject(exited(12, /4 without a score: neither yes nor no.*"Perhaps"/s));
});

test('the best of two is chosen, and the report has pass@k, best@k and the gap counted by hand', async () => {
  const { at, output, scores } = await collected();
  // Index 0 resolves. The verifier rates index 0 highest at the first instance, and index 1 at the second.
  const found = await linesOf(output);
  const scoreOf = (id: string): number => (id.endsWith('flask-0.0') || id.endsWith('flask-1.1') ? 0.9 : 0.1);
  const line = ({ rollout_id, instance_id }: (typeof found)[number]) => ({
    rollout_id,
    instance_id,
    score: scoreOf(rollout_id),
    verifier: 'v',
  });
  await writeFile(scores, lines(...found.map(line)));
  const best = at('best.jsonl');
  expect(await run(['select', output, '--output', best])).toMatchObject({ code: 0 });
  expect(
    (await linesOf(best))
      .map(({ rollout_id: id, verifier_score }) => [id.slice(-9), verifier_score])
      .toSorted(),
  ).toEqual([
    ['flask-0.0', 0.9],
    ['flask-1.1', 0.9],
  ]);
  const report = JSON.parse((await run(['report', output, '--scores', scores, '--json'])).stdout);
  expect(report.pass_at).toEqual({ 1: 0.5, 2: 1 });
  expect(report.scaling).toMatchObject([
    { k: 1, instances: 2, pass: { value: 0.5 }, best: { value: 0.5 }, gap: { value: 0 } },
    { k: 2, instances: 2, pass: { value: 1 }, best: { value: 0.5 }, gap: { value: 0.5 } },
  ]);
  const markdown = await run(['report', output, '--scores', scores, '--format', 'markdown']);
  expect(markdown.stdout).toMatch(/\| 2 \| 2 \| 100\.0 % \(100\.0–100\.0\) \| 50\.0 %/);
  const page = at('report.html');
  expect((await run(['report', output, '--scores', scores, '--format', 'html', '--output', page])).code).toBe(
    0,
  );
  const html = await readFile(page, 'utf8');
  expect(html).toMatch(/<svg/);
  expect(html).not.toMatch(/(?:src|href)="?http|<script|@import|url\(/);
  await writeFile(scores, lines(...found.slice(1).map(line)));
  expect(await run(['select', output, '--output', at('part.jsonl')])).toMatchObject(
    exited(10, /1 judged rollouts have no score: .*part\.jsonl/),
  );
});
