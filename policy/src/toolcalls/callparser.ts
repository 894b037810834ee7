/** What the parsers of tool calls share. Sampled text is hostile, so parsers scan it once, for fixed texts. */

/** `id`: as the model sampled it, where its form has one. */
export type SampledCall = { name: string; arguments: string; id?: string };

/** `content`: the text before the calls. `unread`: why a call that began could not be read; the whole answer is text then. */
export type ParsedCalls = { content: string; calls: SampledCall[] } | { unread: string };

/** The parser of one family's call format. */
export type CallParser = {
  /** Texts that open a call; empty where calls are plain text. */
  readonly markers: readonly string[];
  /** `text` holds a marker unless the form has none. Null when it holds no call. */
  parse(text: string): ParsedCalls | null;
};

/** Parsers throw it and {@link catchUnreadable} catches it: after a broken call the rest of the answer is not read. */
export class UnreadableCall extends Error {
  override readonly name = 'UnreadableCall';
}

export function unreadable(reason: string): never {
  throw new UnreadableCall(reason);
}

/** Runs a parser and returns its UnreadableCall, or values too deep to be written again, as `unread`. */
export function catchUnreadable(read: () => ParsedCalls | null): ParsedCalls | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableCall) return { unread: error.message };
    // Of JSON.stringify(): the model can nest values as it likes.
    if (error instanceof RangeError) return { unread: 'its values are nested too deeply' };
    throw error;
  }
}

/** Accepts only names that servers accept: prose that follows a marker is not a call. */
export function requireName(value: unknown): string {
  const name = typeof value === 'string' ? value.trim() : '';
  return /^[\w.:-]{1,64}$/.test(name) ? name : unreadable('it names no function');
}

/** Parses JSON; throws with a reason that the model can act on. */
export function requireJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (text.trim() === '') return unreadable('it is empty');
    if (isJson(blankControls(text)))
      return unreadable('a line break or tab stands as it is inside a JSON string; write it as \\n or \\t');
    return unreadable(`it is not valid JSON: ${error.message.slice(0, 120)}`);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Blanks control characters inside strings: if the text is JSON then, nothing else was wrong with it. */
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

/** `{"name": …, "arguments": …}` in most families; Llama writes `parameters`. */
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

/** Where the JSON object or list that begins at `at` ends; -1 when it has no end. */
export function endOfJson(text: string, at: number): number {
  let depth = 0;
  for (let place = at; place < text.length; place++) {
    const character = text[place];
    if (character === '"') {
      place = endOfString(text, place);
      if (place === -1) return -1;
    } else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return place + 1;
    }
  }
  return -1;
}

/** Where the quote is that closes the one at `at`. */
function endOfString(text: string, at: number): number {
  for (let place = at + 1; place < text.length; place++) {
    if (text[place] === '\\') place++;
    else if (text[place] === '"') return place;
  }
  return -1;
}

/** Consecutive JSON values, separated by white space, commas and semicolons; ignores what follows them. */
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

/** Strips one line break at each end of a value between tags: it belongs to the markup. */
export const withoutBreaks = (value: string): string => value.replace(/^\n|\n$/g, '');
