/**
 * Tool calls out of sampled text: the `<tool_call>` forms of Hermes and Qwen (JSON inside) and of Qwen3-Coder
 * (`<function=…>` inside). The text is hostile: it is walked once, by searches for fixed words.
 */

export type SampledCall = { name: string; arguments: string };

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';

/** Null when a call cannot be read: then, as at servers, the whole text is text. */
export function splitToolCalls(text: string): { content: string; calls: SampledCall[] } | null {
  const first = text.indexOf(OPEN);
  if (first === -1) return { content: text, calls: [] };
  const calls: SampledCall[] = [];
  for (let at = first; at !== -1; at = text.indexOf(OPEN, at)) {
    const close = text.indexOf(CLOSE, at);
    if (close === -1) return null;
    const inner = text.slice(at + OPEN.length, close).trim();
    const call = inner.startsWith('<function=') ? readTagged(inner) : readJsonCall(inner);
    if (call === null) return null;
    calls.push(call);
    at = close + CLOSE.length;
  }
  return { content: text.slice(0, first).trimEnd(), calls };
}

function readJsonCall(inner: string): SampledCall | null {
  let value: unknown;
  try {
    value = JSON.parse(inner);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { name, arguments: args } = value as Record<string, unknown>;
  if (typeof name !== 'string') return null;
  return { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) };
}

/** `<function=NAME>` with `<parameter=KEY>` VALUE `</parameter>`; values are texts, a line break at each end is markup. */
function readTagged(inner: string): SampledCall | null {
  const nameEnd = inner.indexOf('>');
  if (nameEnd === -1 || !inner.includes('</function>')) return null;
  const name = inner.slice('<function='.length, nameEnd).trim();
  const values: Record<string, string> = {};
  const opening = '<parameter=';
  const closing = '</parameter>';
  for (let at = inner.indexOf(opening, nameEnd); at !== -1; at = inner.indexOf(opening, at)) {
    const keyEnd = inner.indexOf('>', at);
    const end = keyEnd === -1 ? -1 : inner.indexOf(closing, keyEnd);
    if (end === -1) return null;
    const key = inner.slice(at + opening.length, keyEnd).trim();
    values[key] = inner.slice(keyEnd + 1, end).replace(/^\n|\n$/g, '');
    at = end + closing.length;
  }
  return name === '' ? null : { name, arguments: JSON.stringify(values) };
}
