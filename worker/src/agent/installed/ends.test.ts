import type { Container } from '@swefarm/sandbox';
import { type AgentCard, SwefarmError } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { statusOf } from './ends.ts';

const open = new AbortController().signal;
const ENDS: AgentCard['ends'] = [
  { exit: 53, status: 'turn_limit' },
  {
    exit: 0,
    field: { file: '/out/end.json', path: 'info.state', is: ['done', 'true'] },
    status: 'submitted',
  },
  { exit: 'any', field: { file: '/out/end.json', path: 'full', is: ['true'] }, status: 'context_limit' },
  { exit: 'any', status: 'agent_error' },
];
/** A sandbox with one file. */
const holding = (text: string | null | SwefarmError) =>
  ({
    async getFile() {
      if (text instanceof SwefarmError) throw text;
      return text === null ? null : Buffer.from(text);
    },
  }) as unknown as Container;

test.each<[string, number | null, string | null | SwefarmError, string]>([
  ['the exit code alone', 53, null, 'turn_limit'],
  ['exit code and field', 0, '{"info":{"state":"done"}}', 'submitted'],
  ['a field that is no text', 0, '{"info":{"state":true}}', 'submitted'],
  ['any exit code and a field', 2, '{"full":true}', 'context_limit'],
  ['a missing file', 0, null, 'agent_error'],
  ['a file that is no JSON', 0, '{"info":', 'agent_error'],
  ['a file that is too large', 0, new SwefarmError('file_too_large', 'x'), 'agent_error'],
  ['an inherited field', 0, '{"info":{"__proto__":{"state":"done"}}}', 'agent_error'],
  ['a killed program', null, null, 'agent_error'],
])('the end by %s', async (_what, exitCode, text, status) => {
  expect(await statusOf(holding(text), ENDS, exitCode, open)).toBe(status);
});

test('the end of an agent without a rule that fits is an error', async () => {
  expect(await statusOf(holding(null), [{ exit: 0, status: 'submitted' }], 1, open)).toBe('agent_error');
});
