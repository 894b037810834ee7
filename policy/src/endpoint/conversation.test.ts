import type { Message } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { encodeConversation } from './conversation.ts';
import { wireMessage } from './parts.ts';

const plain = (messages: readonly Message[]): string =>
  `{"messages":${JSON.stringify(messages.map(wireMessage))}`.slice(0, -1);

const messagesOf = (at: number): Message[] => [
  {
    role: 'assistant',
    content: at % 3 === 0 ? null : `say ${at} "ünï" 😀 \ud800`,
    tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'bash', arguments: '{"a":"\u2028"}' } }],
  },
  { role: 'tool', tool_call_id: `c${at}`, content: 'x\n\u0000'.repeat(40 * at) },
];
const FIRST: Message[] = [
  { role: 'system', content: 'rules' },
  {
    role: 'user',
    content: 'problem',
    pictures: [{ address: 'a', file: { media_type: 'image/png', data: 'AAAA', sha256: 'x', bytes: 3 } }],
  } as unknown as Message,
];

test('a growing conversation has the bytes of all messages encoded together', () => {
  const encoded = encodeConversation();
  const messages = [...FIRST];
  for (let at = 0; at < 60; at++) {
    expect(encoded.opening(messages).toString('utf8')).toBe(plain(messages));
    // A repeated request.
    expect(encoded.opening(messages).toString('utf8')).toBe(plain(messages));
    messages.push(...messagesOf(at));
  }
});

test('a later call does not change returned bytes', () => {
  const encoded = encodeConversation();
  const messages = [...FIRST];
  const sent: { bytes: Buffer; text: string }[] = [];
  for (let at = 0; at < 30; at++) {
    sent.push({ bytes: encoded.opening(messages), text: plain(messages) });
    messages.push(...messagesOf(at));
  }
  for (const { bytes, text } of sent) expect(bytes.toString('utf8')).toBe(text);
});

test('a conversation that does not continue the previous one is encoded again', () => {
  const encoded = encodeConversation();
  encoded.opening([...FIRST, ...messagesOf(1)]);
  expect(encoded.opening(FIRST).toString('utf8')).toBe(plain(FIRST));
  const other = [...FIRST, ...messagesOf(2), ...messagesOf(3)];
  expect(encoded.opening(other).toString('utf8')).toBe(plain(other));
  expect(encoded.opening([]).toString('utf8')).toBe('{"messages":[');
  expect(encoded.opening(other).toString('utf8')).toBe(plain(other));
});
