/**
 * Calls as JSON after a marker: a list (Mistral's older models, Nemotron Nano 2), one object a line (MiniMax M1), or objects
 * only (Llama 3); and Mistral's current form, a name followed by JSON.
 */
import {
  type CallParser,
  callFromJson,
  catchUnreadable,
  endOfJson,
  jsonValues,
  type ParsedCalls,
  requireJson,
  requireName,
  type SampledCall,
  unreadable,
} from './callparser.ts';

/** All JSON values after the marker, with lists flattened. */
function callsAfter(text: string, at: number): SampledCall[] {
  const calls = jsonValues(text.slice(at)).flat().map(callFromJson);
  return calls.length > 0 ? calls : unreadable('it is not JSON');
}

const marked = (marker: string): CallParser => ({
  markers: [marker],
  parse(text) {
    const at = text.indexOf(marker);
    if (at === -1) return null;
    return catchUnreadable(() => ({
      content: text.slice(0, at).trimEnd(),
      calls: callsAfter(text, at + marker.length),
    }));
  },
});

export const nemotron = marked('<TOOLCALL>');
export const minimaxLines = marked('<tool_calls>');

const PYTHON_TAG = '<|python_tag|>';
const llamaTagged = marked(PYTHON_TAG);

/** Calls after the tag, or an answer that is only calls: without a marker a call looks like any JSON text. */
export const llama: CallParser = {
  markers: [PYTHON_TAG],
  parse(text) {
    if (text.includes(PYTHON_TAG)) return llamaTagged.parse(text);
    const bare = text.trimStart();
    return bare.startsWith('{') ? catchUnreadable(() => ({ content: '', calls: callsAfter(bare, 0) })) : null;
  },
};

const MISTRAL = '[TOOL_CALLS]';

export const mistral: CallParser = {
  markers: [MISTRAL],
  parse(text) {
    const at = text.indexOf(MISTRAL);
    return at === -1 ? null : catchUnreadable(() => readMistral(text, at));
  },
};

/** Repetitions of `[TOOL_CALLS]` NAME, `[CALL_ID]` ID where the model has ids, `[ARGS]` and JSON; or one list of all calls. */
function readMistral(text: string, first: number): ParsedCalls {
  const content = text.slice(0, first).trimEnd();
  if (
    text
      .slice(first + MISTRAL.length)
      .trimStart()
      .startsWith('[')
  )
    return { content, calls: callsAfter(text, first + MISTRAL.length) };
  const calls: SampledCall[] = [];
  for (let at = first; at !== -1; ) {
    const from = at + MISTRAL.length;
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
    at = text.indexOf(MISTRAL, end);
  }
  return { content, calls };
}
