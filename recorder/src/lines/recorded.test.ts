/** The recorded requests of real agents: into which lines they fall, and that no token is lost whatever happens to them. */
import type { Dialect, Line } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { card, recorderOptions } from '../../test/options.ts';
import { type Recorded, readRecorded, recordedRuns } from '../../test/requests/recorded.ts';
import { createScriptedPolicy, says } from '../../test/scriptedpolicy.ts';
import { expectAllRecorded } from '../../test/wholelines.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { Recording } from '../endpoint/recording.ts';
import { createSigns } from '../endpoint/sign.ts';
import { composeLines } from './compose.ts';

const CARD = card(
  { malformed: 'raw' },
  { branches: { subagent: [{ header: 'x-claude-code-agent-id' }, { header: 'x-parent-session-id' }] } },
);

const dialectOf = ({ path }: Recorded): Dialect =>
  path.includes('/messages') ? 'messages' : path.includes('/responses') ? 'responses' : 'chat';

const RUNS = new Map(
  recordedRuns().map((run) => {
    const signOf = createSigns(CARD);
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
  await using recording = new Recording(recorderOptions(policy, { card: CARD }));
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

const summary = ({ id, kind, from, turns }: Line): string =>
  [id, kind, ...(from ? [`after ${from.line}+${from.turns}`] : []), turns.length].join(' ');

/** The lines of each run: kind, origin and number of turns. */
const LINES: Record<string, string[]> = {
  'claude-code-bare': ['L1 main 6'],
  'claude-code-compaction': ['L1 main 9', 'L2 summary after L1+8 1', 'L3 main 6'],
  'claude-code-subagent': ['L1 main 4', 'L2 subagent 3', 'L3 subagent 3', 'L4 subagent 3'],
  'claude-code': ['L1 main 6'],
  'codex-additional-tools': ['L1 main 3'],
  'codex-free-text': ['L1 main 3'],
  'codex-compaction': ['L1 main 5', 'L2 summary 1', 'L3 main 5', 'L4 summary 1', 'L5 main 5'],
  'codex-subagent': ['L1 main 4', 'L2 subagent 3'],
  codex: ['L1 main 6'],
  'mini-swe-agent': ['L1 main 4', 'L2 abandoned after L1+3 1', 'L3 abandoned after L1+3 1'],
  'opencode-chat': ['L1 main 6'],
  'opencode-messages': ['L1 main 6'],
  'opencode-responses': ['L1 main 6'],
  'opencode-subagent': ['L1 main 3', 'L2 subagent 3'],
  'openhands-condenser': ['L1 main 8', 'L2 summary 1', 'L3 main 5', 'L4 summary 1', 'L5 main 2'],
  openhands: ['L1 main 6'],
  'qwen-code-compaction': ['L1 main 9', 'L2 summary 1', 'L3 main 1', 'L4 main 6'],
  'qwen-code-subagent': [
    'L1 main 5',
    'L2 subagent 4',
    'L3 subagent 4',
    'L4 subagent 4',
    'L5 subagent 4',
    'L6 subagent 4',
  ],
  'qwen-code': ['L1 main 6', 'L2 abandoned after L1+3 1'],
  'terminus-2': ['L1 main 5'],
};

test.each(recordedRuns())('the lines of %s', async (run) => {
  const { lines, policy } = await play(run, [UNHARMED]);
  expect(lines.map(summary)).toEqual(LINES[run]);
  expectAllRecorded(lines, policy.samples);
});

test('no token is lost when requests are repeated, lost, left undelivered or sent side by side', async () => {
  const fates = fc.array(Fate, { minLength: 30, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...recordedRuns()), fates, async (run, all) => {
      const { lines, policy } = await play(run, all);
      expectAllRecorded(lines, policy.samples);
    }),
    { numRuns: 30 },
  );
});
