/** Shared functions of the parsers of tool calls. Sampled text is untrusted, so parsers scan it once and search only for fixed texts. */

import { tryParseJson } from '@swefarm/shared';
/** Tool call in sampled text. `id`: sampled by the model, if the call format has ids. */
export type SampledCall = { name: string; arguments: string; id?: string };

/** `content`: the text before the calls. `unread`: why a call is unreadable; the whole answer then counts as text. */
export type ParsedCalls = { content: string; calls: SampledCall[] } | { unread: string };

export type CallParser = {
  /** Texts that open a call; empty if the call format has no marker. */
  readonly markers: readonly string[];
  parse(text: string): ParsedCalls | null;
};

/** Thrown by parsers for a broken call, and caught by {@link catchUnreadable}. */
export class UnreadableCall extends Error {
  override readonly name = 'UnreadableCall';
}

export function unreadable(reason: string): never {
  throw new UnreadableCall(reason);
}

/** Runs a parser. Returns `unread` for an UnreadableCall, and for values that are nested too deeply for JSON.stringify(). */
export function catchUnreadable(read: () => ParsedCalls | null): ParsedCalls | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableCall) return { unread: error.message };
    if (error instanceof RangeError) return { unread: 'its values are nested too deeply' };
    throw error;
  }
}

/** Creates a parser of calls after a marker. `read` returns the calls from index `from` on, which is the end of the first marker. */
export const marked = (marker: string, read: (text: string, from: number) => SampledCall[]): CallParser => ({
  markers: [marker],
  parse(text) {
    const at = text.indexOf(marker);
    if (at === -1) return null;
    return catchUnreadable(() => ({
      content: text.slice(0, at).trimEnd(),
      calls: read(text, at + marker.length),
    }));
  },
});

/**
 * Yields the texts between two tags. `mayStayOpen`: whether the last text may lack its closing tag.
 *
 * @throws UnreadableCall for any other text without a closing tag
 */
export function* between(
  text: string,
  open: string,
  close: string,
  mayStayOpen = (_rest: string): boolean => false,
): Generator<string, void> {
  for (let at = text.indexOf(open); at !== -1; at = text.indexOf(open, at)) {
    const end = text.indexOf(close, at);
    const inner = text.slice(at + open.length, end === -1 ? undefined : end);
    if (end === -1 && !mayStayOpen(inner)) unreadable(`it is not closed by ${close}`);
    yield inner;
    if (end === -1) return;
    at = end + close.length;
  }
}

/**
 * Returns the texts between marks that follow each other from index `from` on, and the index after the last mark.
 *
 * @throws UnreadableCall with `problem` if a mark is missing
 */
export function fieldsAt(
  text: string,
  from: number,
  marks: readonly string[],
  problem: string,
): { fields: string[]; end: number } {
  const fields: string[] = [];
  let end = from;
  for (const mark of marks) {
    const at = text.indexOf(mark, end);
    if (at === -1) unreadable(problem);
    fields.push(text.slice(end, at));
    end = at + mark.length;
  }
  return { fields: fields.slice(1), end };
}

/** Yields the fields at each occurrence of the first mark. Throws the error of {@link fieldsAt}. */
export function* fieldsIn(text: string, marks: readonly [string, ...string[]], problem: string) {
  for (let from = text.indexOf(marks[0]); from !== -1; ) {
    const { fields, end } = fieldsAt(text, from, marks, problem);
    yield fields;
    from = text.indexOf(marks[0], end);
  }
}

/** Returns a name that servers accept. Throws UnreadableCall for any other value, such as prose after a marker. */
export function requireName(value: unknown): string {
  const name = typeof value === 'string' ? value.trim() : '';
  return /^[\w.:-]{1,64}$/.test(name) ? name : unreadable('it names no function');
}

/** Parses JSON. Throws UnreadableCall with a message that tells the model what to change. */
export function requireJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (text.trim() === '') return unreadable('it is empty');
    if (tryParseJson(blankControls(text)) !== undefined)
      return unreadable('a line break or tab stands as it is inside a JSON string; write it as \\n or \\t');
    return unreadable(`it is not valid JSON: ${error.message.slice(0, 120)}`);
  }
}

/** Replaces control characters inside strings with spaces. If the result is valid JSON, these characters are the only mistake. */
function blankControls(text: string): string {
  const pieces: string[] = [];
  let inside = false;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inside && character === '\\') at++;
    else if (character === '"') inside = !inside;
    else if (inside && text.charCodeAt(at) < 0x20) {
      pieces.push(text.slice(from, at), ' ');
      from = at + 1;
    }
  }
  return pieces.join('') + text.slice(from);
}

/** Reads `{"name": …, "arguments": …}`, as most model families write calls. Llama writes `parameters` instead of `arguments`. */
export function callFromJson(value: unknown): SampledCall {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return unreadable('it is not a JSON object with "name" and "arguments"');
  const { name, id, arguments: args, parameters } = value as Record<string, unknown>;
  const given = args ?? parameters ?? {};
  return {
    name: requireName(name),
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

/** Returns the index after the JSON object or list that begins at `at`; -1 if the value has no end. */
export function endOfJson(text: string, at: number): number {
  let depth = 0;
  for (let index = at; index < text.length; index++) {
    const character = text[index];
    if (character === '"') {
      index = endOfString(text, index);
      if (index === -1) return -1;
    } else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return index + 1;
    }
  }
  return -1;
}

function endOfString(text: string, at: number): number {
  for (let index = at + 1; index < text.length; index++) {
    if (text[index] === '\\') index++;
    else if (text[index] === '"') return index;
  }
  return -1;
}

/** Parses consecutive JSON values, separated by white space, commas and semicolons. Ignores the text after them. */
export function jsonValues(text: string): unknown[] {
  const values: unknown[] = [];
  for (let at = 0; ; ) {
    while (at < text.length && ' \t\r\n,;'.includes(text[at] ?? '')) at++;
    if (text[at] !== '{' && text[at] !== '[') return values;
    const end = endOfJson(text, at);
    values.push(requireJson(text.slice(at, end === -1 ? undefined : end)));
    at = end === -1 ? text.length : end;
  }
}

/** Strips one line break at each end of a value between tags, because these line breaks belong to the markup. */
export const withoutBreaks = (value: string): string => value.replace(/^\n|\n$/g, '');
