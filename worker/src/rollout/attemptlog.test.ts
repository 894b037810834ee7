import type { JournalEntry, Seconds, Trajectory } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { type Ended, summaryOf } from './attemptlog.ts';
import { Trace } from './context.ts';

const SECONDS = { total: 12.34 } as Seconds;
const entry = (name: string | null): JournalEntry => ({
  ...{ attempt: 1, claim: 'c', worker: 'w', node: 'n', claimed_at: 0, ended_at: null },
  end: name === null ? null : { stage: 'policy', class: 'policy_silent', cause: null },
});
const trajectory = {
  exit_status: 'submitted',
  turns: [
    { usage: { prompt_tokens: 10, completion_tokens: 2 }, policy_version: { start: 'v1', end: 'v1' } },
    { usage: null, policy_version: { start: 'v1', end: 'v2' } },
  ],
} as unknown as Trajectory;

const ended = (change: Partial<Ended>): Ended => ({
  won: true,
  previous: [],
  seconds: SECONDS,
  trace: { ...new Trace(), trajectory },
  ...change,
});

test('the log line of a judged rollout has verdict, reward, turns, seconds and earlier attempts', () => {
  const facts = { patch_state: 'applied', evaluation: 'completed', trust: 'clean' } as never;
  const judged = { facts, reward: 1, row: 'judged', resolved: true };
  const previous = [entry(null), entry('policy_silent')];
  const { fields, sentence } = summaryOf({ outcome: 'judged', judged }, ended({ previous }));
  expect(sentence).toBe(
    'judged; resolved, reward 1 (judged); 2 turns, submitted; 12.3 s; after lost, policy_silent',
  );
  expect(fields).toMatchObject({
    ...{ resolved: true, reward: 1, turns: 2, tokens: { prompt: 10, completion: 2 } },
    ...{ policy_version: 'v2', patch_state: 'applied', evaluation: 'completed', trust: 'clean' },
    ...{ before: ['lost', 'policy_silent'], failure: null, seconds: SECONDS },
  });
});

test('the log line of a failed rollout has its cause, that of a late one says so', () => {
  const failure = { stage: 'image', class: 'image_pull', message: 'no such host', attempts: 3 } as const;
  const failed = summaryOf({ outcome: 'failed', failure }, ended({ trace: new Trace() }));
  expect(failed.sentence).toBe('failed; no such host; no turns; 12.3 s');
  expect(failed.fields).toMatchObject({ failure: 'image/image_pull', where: 'anywhere' });
  const late = summaryOf({ outcome: 'cancelled', cancelReason: 'stale' }, ended({ won: false }));
  expect(late.sentence).toContain('too late');
});
