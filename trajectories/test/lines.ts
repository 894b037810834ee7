/** Trajectories of several lines for tests. Each sampled token id occurs once in a rollout; ids of prompts are negative. */
import type { Line, LineKind, Message, Trajectory, Turn } from '@swefarm/shared';
import { bareTrajectory, bareTurn } from '@swefarm/testkit';
import fc from 'fast-check';

/** One turn: number of new tokens of the prompt, and of sampled tokens. `cut`: tokens that the prompt drops from the history. */
export type TurnPlan = { suffix: number; sampled: number; cut?: number };
export type LinePlan = {
  kind: LineKind;
  /** Index of the line that is continued, and the number of its turns; null: a prompt of its own. */
  from: { line: number; turns: number } | null;
  turns: TurnPlan[];
};

type State = { length: number };

/** Builds a trajectory from plans; the first plan is the main line. */
export function trajectoryOfLines([main, ...others]: readonly LinePlan[]): Trajectory {
  let next = 1;
  const turnOf = (plan: TurnPlan, state: State, message: number): Turn => {
    const prefix = Math.max(0, state.length - (plan.cut ?? 0));
    const generation = Int32Array.from({ length: plan.sampled }, () => next++);
    const turn = bareTurn(message, {
      usage: { prompt_tokens: prefix + plan.suffix, completion_tokens: plan.sampled },
      policy_version: { start: 'w1', end: 'w1' },
      request: { dialect: 'chat', matched: prefix === 0 ? 'first' : 'continued', delivered: true },
      tokens: {
        prefix_length: prefix,
        prompt_suffix: Int32Array.from({ length: plan.suffix }, (_, at) => -1 - at),
        generation,
        log_probs: Float32Array.from(generation, (id) => -id / 8),
      },
    });
    state.length = prefix + plan.suffix + plan.sampled;
    return turn;
  };
  /** Number of tokens after each turn of a line, by line. */
  const lengths: number[][] = [];
  const built = [main, ...others].map((plan, at) => {
    const { kind = 'main', from = null, turns = [] } = plan ?? {};
    const parent = from === null ? null : (lengths[from.line] ?? []);
    const start = parent === null || from === null || from.turns === 0 ? 0 : (parent[from.turns - 1] ?? 0);
    const state = { length: start };
    const messages: Message[] = from === null ? [{ role: 'system', content: `You are L${at + 1}.` }] : [];
    const own = turns.map((one, index) => {
      messages.push({ role: 'user', content: `ask ${at + 1}.${index + 1}` });
      const message = messages.push({ role: 'assistant', content: `say ${at + 1}.${index + 1}` }) - 1;
      const turn = turnOf(one, state, message);
      lengths[at] = [...(lengths[at] ?? []), state.length];
      return turn;
    });
    return { id: `L${at + 1}`, kind, from, messages, turns: own };
  });
  const [first, ...rest] = built;
  const lines = rest.map(
    ({ from, ...line }): Line => ({
      ...line,
      from: from && {
        line: `L${from.line + 1}`,
        turns: from.turns,
        // A root begins with a system message.
        messages: 2 * from.turns + (built[from.line]?.from === null && from.turns > 0 ? 1 : 0),
      },
      masked: MASKED.has(line.kind) ? (line.kind as Line['masked']) : null,
    }),
  );
  return bareTrajectory({
    ...{ token_mode: 'token-in', endpoint: 'http://p' },
    ...{ messages: first?.messages ?? [], turns: first?.turns ?? [] },
    ...(lines.length === 0 ? {} : { lines }),
  });
}

const MASKED: ReadonlySet<LineKind> = new Set(['side', 'abandoned', 'foreign']);

const turnPlan = fc.record({
  suffix: fc.integer({ min: 0, max: 4 }),
  sampled: fc.integer({ min: 1, max: 4 }),
  cut: fc.constantFrom(0, 0, 0, 1, 3),
});

/** Any tree of lines. A line continues an earlier line after some of its turns, or has a prompt of its own. */
export const anyLines: fc.Arbitrary<LinePlan[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom<LineKind>('main', 'subagent', 'summary', 'side', 'abandoned', 'foreign'),
      from: fc.option(fc.record({ line: fc.nat(), turns: fc.nat() })),
      turns: fc.array(turnPlan, { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((plans) =>
    plans.map(({ kind, from, turns }, at): LinePlan => {
      if (at === 0) return { kind: 'main', from: null, turns };
      if (from === null) return { kind, from: null, turns };
      const line = from.line % at;
      const length = plans[line]?.turns.length ?? 0;
      return { kind, turns, from: { line, turns: from.turns % (length + 1) } };
    }),
  );

/** A main line with a sub-agent, a summary, the compacted main line after it, an abandoned answer and a fork of the sub-agent. */
export const BRANCHED: readonly LinePlan[] = [
  {
    kind: 'main',
    from: null,
    turns: [
      { suffix: 3, sampled: 2 },
      { suffix: 2, sampled: 3 },
    ],
  },
  {
    kind: 'subagent',
    from: null,
    turns: [
      { suffix: 2, sampled: 2 },
      { suffix: 1, sampled: 1 },
    ],
  },
  { kind: 'summary', from: null, turns: [{ suffix: 4, sampled: 4 }] },
  { kind: 'main', from: null, turns: [{ suffix: 5, sampled: 2 }] },
  { kind: 'abandoned', from: { line: 0, turns: 1 }, turns: [{ suffix: 2, sampled: 5 }] },
  { kind: 'subagent', from: { line: 1, turns: 1 }, turns: [{ suffix: 3, sampled: 3 }] },
];
