/**
 * Parses an answer of gpt-oss, which contains messages of several channels: `analysis` is thinking, `final` is the answer. A message with a
 * recipient is a tool call in any channel. Sampled text may lack `<|start|>assistant`, which the chat template writes.
 */
import { type CallParser, catchUnreadable, type SampledCall, unreadable } from './callparser.ts';

const CHANNEL = '<|channel|>';
const MESSAGE = '<|message|>';
const START = '<|start|>';
const ENDS = ['<|end|>', '<|call|>', '<|return|>'];

export type HarmonyAnswer = { reasoning: string | null; content: string; calls: SampledCall[] };

export const isHarmony = (text: string): boolean =>
  /^\s*(?:<\|start\|>assistant\s*)?(?:to=\S{1,100}\s*)?<\|channel\|>/.test(text.slice(0, 300));

export function readHarmony(text: string): HarmonyAnswer | { unread: string } | null {
  if (!isHarmony(text)) return null;
  const texts: Record<'analysis' | 'content', string[]> = { analysis: [], content: [] };
  const calls: SampledCall[] = [];
  const read = catchUnreadable(() => {
    for (const message of text.split(START)) {
      if (message.trim() === '') continue;
      const cut = message.indexOf(MESSAGE);
      if (cut === -1) unreadable(`a message has no ${MESSAGE}`);
      const head = message.slice(0, cut);
      const body = bodyOf(message.slice(cut + MESSAGE.length));
      const recipient = /\bto=([^\s<]+)/.exec(head.slice(0, 500))?.[1];
      if (recipient !== undefined)
        calls.push({ name: recipient.replace(/^functions\./, ''), arguments: body.trim() });
      else texts[channelOf(head) === 'analysis' ? 'analysis' : 'content'].push(body);
    }
    return null;
  });
  if (read !== null && 'unread' in read) return read;
  return { reasoning: texts.analysis.join('\n').trim() || null, content: texts.content.join('\n'), calls };
}

const channelOf = (head: string): string =>
  /^\w*/.exec(head.slice(head.indexOf(CHANNEL) + CHANNEL.length))?.[0] ?? '';

function bodyOf(text: string): string {
  const ends = ENDS.map((end) => text.indexOf(end)).filter((at) => at !== -1);
  return ends.length > 0 ? text.slice(0, Math.min(...ends)) : text;
}

export const harmony: CallParser = {
  markers: [CHANNEL],
  parse(text) {
    const answer = readHarmony(text);
    if (answer === null || 'unread' in answer) return answer;
    return answer.calls.length > 0 ? { content: answer.content, calls: answer.calls } : null;
  },
};
