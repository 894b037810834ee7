/**
 * Parses calls as JSON after a marker: a list (older Mistral models, Nemotron Nano 2), one object per line (MiniMax M1), or objects (Llama
 * 3). Current Mistral models write a name followed by JSON. Kimi K2, whose calls contain their ids, and DeepSeek V3, R1 and V3.1 write
 * calls between special tokens.
 */
import {
  between,
  type CallParser,
  callFromJson,
  catchUnreadable,
  endOfJson,
  jsonValues,
  marked,
  type ParsedCalls,
  requireJson,
  requireName,
  type SampledCall,
  unreadable,
} from './callparser.ts';

/** Parses all JSON values from index `at` on as calls. Lists are flattened. */
function callsFrom(text: string, at: number): SampledCall[] {
  const calls = jsonValues(text.slice(at)).flat().map(callFromJson);
  return calls.length > 0 ? calls : unreadable('it is not JSON');
}

export const nemotron = marked('<TOOLCALL>', callsFrom);
export const minimaxLines = marked('<tool_calls>', callsFrom);

const llamaTagged = marked('<|python_tag|>', callsFrom);

/** Parses calls after `<|python_tag|>`, or an answer that is only calls. Without a marker, a call looks like any JSON text. */
export const llama: CallParser = {
  markers: llamaTagged.markers,
  parse(text) {
    const tagged = llamaTagged.parse(text);
    const bare = text.trimStart();
    if (tagged !== null || !bare.startsWith('{')) return tagged;
    return catchUnreadable(() => ({ content: '', calls: callsFrom(bare, 0) }));
  },
};

const MISTRAL = '[TOOL_CALLS]';

/** Parses repetitions of `[TOOL_CALLS]` NAME, `[CALL_ID]` ID if the model has ids, `[ARGS]` and JSON; or one list of all calls. */
export const mistral = marked(MISTRAL, (text, first) => {
  if (text.slice(first).trimStart().startsWith('[')) return callsFrom(text, first);
  const calls: SampledCall[] = [];
  for (let from = first; ; ) {
    const brace = text.indexOf('{', from);
    const end = brace === -1 ? -1 : endOfJson(text, brace);
    if (end === -1) unreadable('a name without a whole JSON object behind it');
    const [head = '', id] = text
      .slice(from, brace)
      .replace(/\[ARGS\]\s*$/, '')
      .split('[CALL_ID]', 2);
    const args = text.slice(brace, end);
    requireJson(args);
    calls.push({ name: requireName(head), arguments: args, ...(id === undefined ? {} : { id: id.trim() }) });
    const next = text.indexOf(MISTRAL, end);
    if (next === -1) return calls;
    from = next + MISTRAL.length;
  }
});

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
