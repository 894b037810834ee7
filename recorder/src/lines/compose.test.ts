import type { Trajectory } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { card, recorderOptions } from '../../test/options.ts';
import { createScriptedPolicy, type Scripted, says } from '../../test/scriptedpolicy.ts';
import { Answer, SimulatedAgent, Step } from '../../test/simulatedagent.ts';
import { expectAllRecorded } from '../../test/wholelines.ts';
import { lineFactsOf } from '../endpoint/facts.ts';
import { Recording } from '../endpoint/recording.ts';
import type { PolicyLine } from '../recorder.ts';
import { composeLines } from './compose.ts';

const STEPS = fc.array(Step, { minLength: 1, maxLength: 40 });
const ANSWERS = fc.array(Answer, { minLength: 40, maxLength: 40 });

async function play(steps: Step[], answers: Scripted[], policy = scripted(answers), requireTokens = true) {
  const options = recorderOptions(policy, {
    card: card({ malformed: steps[0]?.isReversed ? 'raw' : 'text' }),
    policy: { requireTokens, experts: 'drop', tokenMode: 'token-in' },
  });
  await using recording = new Recording(options);
  await new SimulatedAgent(recording).play(steps);
  return { recording, policy, lines: composeLines(recording.tree.answers, 'all') };
}

/** Answers after a moment, so that requests beside each other end in the order of their lengths. */
const scripted = (answers: readonly Scripted[]) =>
  createScriptedPolicy(async ({ messages }, number) => {
    for (let tick = messages.length % 5; tick > 0; tick--) await Promise.resolve();
    return answers[number % answers.length] ?? says('x');
  });

test('each sampled token is in exactly one line, with the ids of the policy', async () => {
  await fc.assert(
    fc.asyncProperty(STEPS, ANSWERS, async (steps, answers) => {
      const { lines, policy, recording } = await play(steps, answers);
      expectAllRecorded(lines, policy.samples);
      const { masked, lines: count } = lineFactsOf(lines, recording.tree.answers);
      const trained = lines.filter((line) => line.masked === null).flatMap(({ turns }) => turns).length;
      const maskedTurns = Object.values(masked).reduce((sum, turns) => sum + turns, 0);
      expect(trained + maskedTurns).toBe(policy.samples.length);
      expect(count).toBe(new Set(lines.map(({ id }) => id)).size);
    }),
    { numRuns: 300 },
  );
});

test('the trajectory has the main line, and all other lines beside it', async () => {
  await fc.assert(
    fc.asyncProperty(STEPS, ANSWERS, async (steps, answers) => {
      const { lines, recording } = await play(steps, answers);
      const trajectory: Trajectory = recording.trajectory();
      const main = lines.find(({ id }) => id === (trajectory.line ?? 'L1'));
      expect(trajectory.messages).toEqual(main?.messages);
      expect(trajectory.lines ?? []).toEqual(lines.filter((line) => line !== main));
      expect(main?.from).toBe(null);
    }),
    { numRuns: 100 },
  );
});

test('ids that do not continue cut the line, and no token is lost', async () => {
  await fc.assert(
    fc.asyncProperty(STEPS, ANSWERS, async (steps, answers) => {
      const policy = scripted(answers);
      // A server that renders every history whole, as in mode text.
      const openLine = (): PolicyLine => ({ complete: (request) => policy.openLine().complete(request) });
      const { lines } = await play(steps, answers, { ...policy, openLine }, false);
      expectAllRecorded(lines, policy.samples);
      expect(lines).toHaveLength(policy.samples.length);
    }),
    { numRuns: 100 },
  );
});
