/** The recorded requests of real agents: into which lines they fall, and that no token is lost whatever happens to them. */
import type { Dialect } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recorderOptions } from '../../test/options.ts';
import { type Recorded, readRecorded, recordedRuns } from '../../test/requests/recorded.ts';
import { RECORDED_CARD, RECORDED_LINES, summaryOf } from '../../test/requests/recordedlines.ts';
import { createScriptedPolicy, says } from '../../test/scriptedpolicy.ts';
import { expectAllRecorded } from '../../test/wholelines.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { Recording } from '../endpoint/recording.ts';
import { createSigns } from '../endpoint/sign.ts';
import { composeLines } from './compose.ts';

const dialectOf = ({ path }: Recorded): Dialect =>
  path.includes('/messages') ? 'messages' : path.includes('/responses') ? 'responses' : 'chat';

const RUNS = new Map(
  recordedRuns().map((run) => {
    const signOf = createSigns(RECORDED_CARD);
    const requests = readRecorded(run).map((recorded) => {
      const dialect = dialectOf(recorded);
      const request = DIALECTS[dialect].read(recorded.body);
      return { request, sign: signOf(recorded.headers, dialect), answer: recorded.answer };
    });
    return [run, requests];
  }),
);

/** What happens to one request on its way. */
const Fate = fc.record({
  times: fc.constantFrom(1, 1, 1, 2, 0),
  isDelivered: fc.constantFrom(true, true, false),
  isBeside: fc.constantFrom(false, false, true),
});
const UNHARMED = { times: 1, isDelivered: true, isBeside: false };

async function play(run: string, fates: (typeof UNHARMED)[]) {
  let next = says('nothing');
  const policy = createScriptedPolicy(() => next);
  await using recording = new Recording(recorderOptions(policy, { card: RECORDED_CARD }));
  let inFlight: Promise<unknown>[] = [];
  for (const [index, { request, sign, answer }] of (RUNS.get(run) ?? []).entries()) {
    const { times, isDelivered, isBeside } = fates[index % fates.length] ?? UNHARMED;
    if (answer) next = { message: answer.message, finish: answer.finish };
    for (let time = 0; time < times; time++) {
      const asking = recording.ask(request, sign);
      inFlight.push(asking.outcome.then(() => isDelivered && asking.delivered()));
    }
    if (isBeside) continue;
    await Promise.all(inFlight);
    inFlight = [];
  }
  await Promise.all(inFlight);
  return { lines: composeLines(recording.tree.answers, 'all'), policy };
}

test.each(recordedRuns())('the lines of %s', async (run) => {
  const { lines, policy } = await play(run, [UNHARMED]);
  expect(lines.map(summaryOf)).toEqual(RECORDED_LINES[run]);
  expectAllRecorded(lines, policy.samples);
});

test('no token is lost if requests are repeated, lost, undelivered or concurrent', async () => {
  const fates = fc.array(Fate, { minLength: 30, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...recordedRuns()), fates, async (run, all) => {
      const { lines, policy } = await play(run, all);
      expectAllRecorded(lines, policy.samples);
    }),
    { numRuns: 30 },
  );
});
