/**
 * Agents that come as programs, over the recorder and the worker's policy, against a real vLLM in mode token-in: each line is compared with
 * the log of the server. usage: agents.ts [--folder FOLDER] [--only CHECK]... Ends with one line: N passed, N failed.
 */
import { parseArgs } from 'node:util';
import { recordedRuns } from '@swefarm/recorder/test/requests/recorded.ts';
import { Answer, openRecording, SimulatedAgent, Step } from '@swefarm/recorder/test/simulatedagent.ts';
import { errorMessage } from '@swefarm/shared';
import fc from 'fast-check';
import { compareLines, type LineCounts, textOfCounts } from './comparelines.ts';
import { openGuide } from './guide.ts';
import { playLong } from './longagent.ts';
import { must } from './play.ts';
import { openRollout } from './recordedrollout.ts';
import { type Played, replay } from './replay.ts';
import { sampledText } from './sampledtext.ts';
import { startVllm } from './server.ts';

const TURNS = 200;
const CONTEXT = 131_072;
const SIMULATED = 20;
const STEPS = 30;

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '.swefarm/cache/vllm' },
    only: { type: 'string', multiple: true },
  },
});
await using server = await startVllm(values.folder, {
  blocks: CONTEXT / 32 + 1,
  context: CONTEXT,
  logIds: true,
});
await using guide = await openGuide(server.url);
const countsOf = ({ trajectory, answers }: Played): LineCounts =>
  compareLines(trajectory, answers, server.prompts());

async function long(): Promise<string> {
  const counts = countsOf(await playLong(guide, TURNS));
  must(counts.turns === TURNS, `${counts.turns} turns`);
  return textOfCounts([counts]);
}

/** Simulated agents that repeat, condense, fork, rewrite and drop what they get, also side by side. */
async function simulated(): Promise<string> {
  const plans = fc.sample(fc.array(Step, { minLength: STEPS, maxLength: STEPS }), {
    numRuns: SIMULATED,
    seed: 28,
  });
  const scripted = fc.sample(Answer, { numRuns: 500, seed: 28 });
  const all: LineCounts[] = [];
  let answered = 0;
  for (const plan of plans) {
    using rollout = openRollout(guide, () => {
      const made = scripted[answered++ % scripted.length];
      return made && 'message' in made && typeof made.message === 'object'
        ? { text: sampledText(made.message) }
        : null;
    });
    await using recording = openRecording(rollout.options);
    await new SimulatedAgent(recording).play(plan);
    all.push(countsOf({ trajectory: recording.trajectory(), answers: rollout.answers }));
  }
  return textOfCounts(all);
}

const runs = Object.fromEntries(
  recordedRuns().map((run) => [run, async () => textOfCounts([countsOf(await replay(guide, run))])]),
);
const CHECKS: Record<string, () => Promise<string>> = { long, simulated, ...runs };
const chosen = Object.entries(CHECKS).filter(([name]) => values.only?.includes(name) ?? true);
let failed = 0;
for (const [name, check] of chosen) {
  const from = performance.now();
  const [mark, output] = await check().then(
    (outcome) => ['ok  ', outcome] as const,
    (error: unknown) => ['FAIL', errorMessage(error)] as const,
  );
  if (mark === 'FAIL') failed++;
  console.log(`${mark} ${name}: ${output} (${((performance.now() - from) / 1000).toFixed(0)} s)`);
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
