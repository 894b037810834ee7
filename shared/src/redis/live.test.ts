import { expect, test } from 'vitest';
import { encodeLiveTurn, LiveTurn } from './live.ts';

const turn = (content: string, count = 1): LiveTurn => ({
  attempt: 1,
  turn: 3,
  at: 1,
  messages: Array.from({ length: count }, () => ({ role: 'tool' as const, content })),
  answer: 0,
  finish_reason: 'stop',
  model_seconds: 1,
  usage: null,
  policy_version: { start: null, end: null },
  commands: [],
});

test('a short turn is stored unchanged', () => {
  expect(JSON.parse(encodeLiveTurn(turn('ls')))).toEqual(turn('ls'));
});

test('a long text loses its middle, with the number of characters', () => {
  const text = encodeLiveTurn(turn(`first${'x'.repeat(1_000_000)}last`));
  expect(text.length).toBeLessThan(16 * 1024);
  const [message] = LiveTurn.parse(JSON.parse(text)).messages;
  expect(message?.content).toMatch(/^firstx+\n\[… \d+ characters, the result will have them …\]\nx+last$/);
});

test('an entry with many texts is bounded and readable', () => {
  const text = encodeLiveTurn(turn('y'.repeat(10_000), 5_000));
  expect(text.length).toBeLessThan(16 * 1024);
  expect(LiveTurn.parse(JSON.parse(text))).toMatchObject({ turn: 3, messages: [] });
});
