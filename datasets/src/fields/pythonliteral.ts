/**
 * Reads a list of texts that a dataset stores in Python syntax; some copies contain JSON. SWE-bench Pro calls `eval` on these columns. This
 * reader executes no code: it reads the text in one pass without recursion.
 */
import { isTextList } from './fields.ts';

const MOST_CHARACTERS = 64 * 1024 ** 2;

/** Thrown for text that is no list of texts; `at` is the index of the wrong character. */
export class LiteralError extends Error {
  override readonly name = 'LiteralError';
  constructor(message: string, at: number) {
    super(`${message} at character ${at + 1}`);
  }
}

/** Parses `["a", "b"]` as JSON, or `['a', "b"]` as Python. @throws LiteralError for any other text */
export function parseTextList(text: string): string[] {
  if (text.length > MOST_CHARACTERS) throw new LiteralError('over 64 million characters', MOST_CHARACTERS);
  try {
    const json: unknown = JSON.parse(text);
    if (isTextList(json)) return json;
  } catch {
    // The text is not JSON, so it may be Python.
  }
  return new LiteralReader(text).list();
}

const ESCAPES: Record<string, string> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
const HEX_DIGITS: Record<string, number> = { x: 2, u: 4, U: 8 };

class LiteralReader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  /** Reads the whole source as a list. A comma may follow the last text. */
  list(): string[] {
    this.#expect('[');
    const found: string[] = [];
    while (!this.#next(']')) {
      if (found.length > 0) {
        this.#expect(',');
        if (this.#next(']')) break;
      }
      found.push(this.#text());
    }
    this.#expect(']');
    this.#blanks();
    if (this.#at < this.#source.length) throw new LiteralError('expected the end', this.#at);
    return found;
  }

  #expect(char: string): void {
    if (!this.#next(char)) throw new LiteralError(`expected "${char}"`, this.#at);
    this.#at++;
  }

  /** Reads one text, or several adjacent texts, which Python joins. */
  #text(): string {
    let joined = this.#quoted();
    while (this.#next("'") || this.#next('"')) joined += this.#quoted();
    return joined;
  }

  #quoted(): string {
    this.#blanks();
    const quote = this.#source[this.#at] ?? '';
    if (quote !== "'" && quote !== '"') throw new LiteralError('expected a text in quotes', this.#at);
    const pieces: string[] = [];
    let from = ++this.#at;
    for (;;) {
      const char = this.#source[this.#at];
      if (char === undefined || char === '\n') throw new LiteralError('a text without its end', this.#at);
      if (char === quote || char === '\\') {
        pieces.push(this.#source.slice(from, this.#at));
        this.#at++;
        if (char === quote) return pieces.join('');
        pieces.push(this.#escape());
        from = this.#at;
      } else this.#at++;
    }
  }

  /** Reads the escape after a backslash. Python leaves unknown escapes unchanged. */
  #escape(): string {
    const char = this.#source[this.#at++] ?? '';
    const plain = ESCAPES[char];
    if (plain !== undefined) return plain;
    const digits = HEX_DIGITS[char];
    if (digits !== undefined) return this.#codePoint(this.#source.slice(this.#at, this.#at + digits), digits);
    if (char >= '0' && char <= '7') {
      const octal = /^[0-7]{1,3}/.exec(this.#source.slice(this.#at - 1, this.#at + 2))?.[0] ?? char;
      this.#at += octal.length - 1;
      return String.fromCodePoint(Number.parseInt(octal, 8));
    }
    if (char === 'N') throw new LiteralError('a character by its name is not supported', this.#at);
    return `\\${char}`;
  }

  #codePoint(hex: string, digits: number): string {
    const code = /^[0-9a-fA-F]+$/.test(hex) && hex.length === digits ? Number.parseInt(hex, 16) : Number.NaN;
    if (!(code <= 0x10ffff)) throw new LiteralError('a damaged escape', this.#at);
    this.#at += digits;
    return String.fromCodePoint(code);
  }

  #next(char: string): boolean {
    this.#blanks();
    return this.#source[this.#at] === char;
  }

  #blanks(): void {
    while (/^[ \t\r\n\f]$/.test(this.#source[this.#at] ?? '')) this.#at++;
  }
}
