/** Parses calls between special tokens: of Kimi K2, whose calls contain their ids, and of DeepSeek V3, R1 and V3.1. */
import {
  between,
  type CallParser,
  catchUnreadable,
  type ParsedCalls,
  requireName,
  type SampledCall,
  unreadable,
} from './callparser.ts';

type Tokens = {
  section: string;
  open: string;
  /** Token between the head of a call and its arguments. */
  middle: string;
  close: string;
  call: (head: string, body: string) => SampledCall;
};

const sections = (tokens: Tokens): CallParser => ({
  markers: [tokens.section, tokens.open],
  parse: (text) =>
    text.includes(tokens.section) || text.includes(tokens.open)
      ? catchUnreadable(() => readSections(text, tokens))
      : null,
});

function readSections(text: string, { section, open, middle, close, call }: Tokens): ParsedCalls {
  const begin = text.indexOf(section);
  const content = text.slice(0, begin === -1 ? text.indexOf(open) : begin).trimEnd();
  const readCall = (inner: string): SampledCall => {
    const cut = inner.indexOf(middle);
    if (cut === -1) unreadable(`it has no ${middle} before its arguments`);
    return call(inner.slice(0, cut).trim(), inner.slice(cut + middle.length));
  };
  const calls = between(text, open, close).map(readCall).toArray();
  return calls.length > 0 ? { content, calls } : unreadable(`it contains no ${open}`);
}

export const kimi = sections({
  section: '<|tool_calls_section_begin|>',
  open: '<|tool_call_begin|>',
  middle: '<|tool_call_argument_begin|>',
  close: '<|tool_call_end|>',
  call(head, body) {
    const name = head.replace(/^functions\./, '').replace(/:\d+$/, '');
    if (/^\d*$/.test(name)) unreadable('its id names no function (functions.NAME:NUMBER)');
    return { name, arguments: body.trim(), id: head };
  },
});

/** Parses calls of DeepSeek. V3 and R1 write `function`, the name, and a fenced block of JSON; V3.1 writes only name and arguments. */
export const deepseek = sections({
  section: '<｜tool▁calls▁begin｜>',
  open: '<｜tool▁call▁begin｜>',
  middle: '<｜tool▁sep｜>',
  close: '<｜tool▁call▁end｜>',
  call(head, body) {
    const fence = body.indexOf('\n```json\n');
    if (fence === -1) return { name: requireName(head), arguments: body.trim() };
    const end = body.lastIndexOf('\n```');
    const from = fence + '\n```json\n'.length;
    if (end < from) unreadable('its block of JSON is not closed');
    return { name: requireName(body.slice(0, fence)), arguments: body.slice(from, end).trim() };
  },
});
