import type { Line, Trajectory } from '@swefarm/shared';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { card, recorderOptions } from '../../test/options.ts';
import { createScriptedPolicy, type Sample, type Scripted, says } from '../../test/scriptedpolicy.ts';
import { Answer, SimulatedAgent, Step } from '../../test/simulatedagent.ts';
import { lineFactsOf } from '../endpoint/facts.ts';
import { Recording } from '../endpoint/recording.ts';
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

/** Returns prompt and generation of each turn of a line, rebuilt from the stored ids of the line and those before it. */
function wholeIds(line: Line, lines: readonly Line[]): { prompt: number[]; generation: number[] }[] {
  const before = line.from && lines.find(({ id }) => id === line.from?.line);
  const last = before && wholeIds(before, lines)[(line.from?.turns ?? 0) - 1];
  let seen = last ? [...last.prompt, ...last.generation] : [];
  return line.turns.map(({ tokens }) => {
    const prompt = [...seen.slice(0, tokens?.prefix_length), ...(tokens?.prompt_suffix ?? [])];
    const generation = Array.from(tokens?.generation ?? []);
    seen = [...prompt, ...generation];
    return { prompt, generation };
  });
}

function expectAllRecorded(lines: readonly Line[], samples: readonly Sample[]): void {
  const asked = new Map(
    samples.map(({ prompt, generation }) => [
      generation[0],
      { prompt: Array.from(prompt), generation: Array.from(generation) },
    ]),
  );
  const recorded = lines.flatMap((line) => wholeIds(line, lines));
  // Each sampled token has an id of its own, so equal turns are the same turn.
  expect(recorded).toHaveLength(samples.length);
  for (const turn of recorded) expect(turn).toEqual(asked.get(turn.generation[0]));
  for (const { turns, messages, from, id } of lines) {
    for (const { message } of turns) expect(messages[message]?.role).toBe('assistant');
    if (from) expect(Number(from.line.slice(1))).toBeLessThan(Number(id.slice(1)));
    for (const { tokens } of from ? [] : turns.slice(0, 1)) expect(tokens?.prefix_length).toBe(0);
  }
}

test('each sampled token is in exactly one line, whose ids are those that the policy was asked', async () => {
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
    { numRuns: 500 },
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
      const whole = { ...policy, openLine: () => policy.openLine() };
      const rendering = {
        ...whole,
        openLine: () => ({
          complete: (request: Parameters<ReturnType<typeof policy.openLine>['complete']>[0]) =>
            policy.openLine().complete(request),
        }),
      };
      const { lines } = await play(steps, answers, rendering, false);
      expectAllRecorded(lines, policy.samples);
      expect(lines).toHaveLength(policy.samples.length);
    }),
    { numRuns: 100 },
  );
});
