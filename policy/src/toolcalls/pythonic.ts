/** Parses calls in Python syntax, `[bash(command="ls")]`, of Llama 3.2 and 4 and Olmo. LFM2 writes special tokens around such calls. */
import { type CallParser, catchUnreadable, marked, type SampledCall, unreadable } from './callparser.ts';

/** Position in a text. Every method first skips white space. */
class Cursor {
  readonly text: string;
  at: number;
  constructor(text: string, at: number) {
    this.text = text;
    this.at = at;
  }
  skip(): void {
    while (' \t\r\n'.includes(this.text[this.at] ?? 'x')) this.at++;
  }
  sees(word: string): boolean {
    this.skip();
    return this.text.startsWith(word, this.at);
  }
  takes(word: string): boolean {
    const there = this.sees(word);
    if (there) this.at += word.length;
    return there;
  }
  wants(word: string): void {
    if (!this.takes(word)) unreadable(`${word} is missing at character ${this.at}`);
  }
  word(): string {
    this.skip();
    const from = this.at;
    while (/[\w.]/.test(this.text[this.at] ?? '')) this.at++;
    return this.at > from
      ? this.text.slice(from, this.at)
      : unreadable(`a name is missing at character ${from}`);
  }
}

const LITERALS: Record<string, unknown> = {
  True: true,
  False: false,
  None: null,
  true: true,
  false: false,
  null: null,
};
const DEEPEST = 100;

function value(cursor: Cursor, depth = 0): unknown {
  if (depth > DEEPEST) unreadable('its values are nested too deeply');
  if (cursor.sees('"') || cursor.sees("'")) return string(cursor);
  if (cursor.takes('[')) return items(cursor, ']', () => value(cursor, depth + 1));
  if (cursor.takes('{')) {
    const entries = items(cursor, '}', () => {
      const key = string(cursor);
      cursor.wants(':');
      return [key, value(cursor, depth + 1)] as const;
    });
    return Object.fromEntries(entries);
  }
  cursor.skip();
  const number = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
  number.lastIndex = cursor.at;
  const found = number.exec(cursor.text)?.[0];
  if (found !== undefined) {
    cursor.at += found.length;
    return Number(found);
  }
  const word = cursor.word();
  return Object.hasOwn(LITERALS, word) ? LITERALS[word] : unreadable(`${word.slice(0, 40)} is no value`);
}

function items<T>(cursor: Cursor, close: string, item: () => T): T[] {
  const found: T[] = [];
  while (!cursor.takes(close)) {
    found.push(item());
    if (!cursor.takes(',') && !cursor.sees(close))
      unreadable(`${close} is missing at character ${cursor.at}`);
  }
  return found;
}

const ESCAPES: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
};
const CODES: Record<string, number> = { x: 2, u: 4, U: 8 };
const OCTAL = /^[0-7]{1,3}/;

/** Reads a string with Python's escapes. Only a triple-quoted string may span lines. */
function string(cursor: Cursor): string {
  const { text } = cursor;
  const long = ['"""', "'''"].find((quotes) => cursor.takes(quotes));
  const short = long ?? ['"', "'"].find((one) => cursor.takes(one));
  const quote = short ?? unreadable(`a string is missing at character ${cursor.at}`);
  const pieces: string[] = [];
  for (let from = cursor.at; ; ) {
    const character = text[cursor.at];
    if (character === undefined) return unreadable('a string is not closed');
    if (character === '\n' && long === undefined)
      return unreadable('a line break stands as it is inside a string; write it as \\n');
    if (text.startsWith(quote, cursor.at)) {
      pieces.push(text.slice(from, cursor.at));
      cursor.at += quote.length;
      return pieces.join('');
    }
    if (character !== '\\') {
      cursor.at++;
      continue;
    }
    pieces.push(text.slice(from, cursor.at), escaped(cursor));
    from = cursor.at;
  }
}

/** Resolves a backslash escape. An unknown letter keeps its backslash. */
function escaped(cursor: Cursor): string {
  const octal = OCTAL.exec(cursor.text.slice(cursor.at + 1, cursor.at + 4))?.[0];
  if (octal !== undefined) {
    cursor.at += 1 + octal.length;
    return String.fromCharCode(Number.parseInt(octal, 8));
  }
  const letter = cursor.text[cursor.at + 1] ?? '';
  const digits = CODES[letter];
  if (digits === undefined) {
    cursor.at += 2;
    return ESCAPES[letter] ?? `\\${letter}`;
  }
  const code = cursor.text.slice(cursor.at + 2, cursor.at + 2 + digits);
  const point = /^[\da-fA-F]+$/.test(code) && code.length === digits ? Number.parseInt(code, 16) : -1;
  if (point < 0 || point > 0x10ffff) unreadable(`\\${letter} wants ${digits} digits`);
  cursor.at += 2 + digits;
  return String.fromCodePoint(point);
}

function callsAt(text: string, at: number): SampledCall[] {
  const cursor = new Cursor(text, at);
  cursor.wants('[');
  const calls = items(cursor, ']', () => {
    const name = cursor.word();
    cursor.wants('(');
    const entries = items(cursor, ')', () => {
      const key = cursor.word();
      cursor.wants('=');
      return [key, value(cursor)] as const;
    });
    return { name, arguments: JSON.stringify(Object.fromEntries(entries)) };
  });
  return calls.length > 0 ? calls : unreadable('it calls nothing');
}

export const lfm = marked('<|tool_call_start|>', callsAt);

const llama4 = marked('<|python_start|>', callsAt);

/** Parses an answer that is only calls, or calls after `<|python_start|>`. */
export const pythonic: CallParser = {
  markers: llama4.markers,
  parse(text) {
    const isBare = /^\s*\[\s*[A-Za-z_][\w.]*\s*\(/.test(text.slice(0, 300));
    const tagged = llama4.parse(text);
    if (tagged !== null || !isBare) return tagged;
    return catchUnreadable(() => ({ content: '', calls: callsAt(text, 0) }));
  },
};
