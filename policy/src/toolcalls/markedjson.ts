/**
 * Parses calls as JSON after a marker: a list (older Mistral models, Nemotron Nano 2), one object per line (MiniMax M1), or objects (Llama
 * 3). Current Mistral models write a name followed by JSON.
 */
import {
  type CallParser,
  callFromJson,
  catchUnreadable,
  endOfJson,
  jsonValues,
  marked,
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
