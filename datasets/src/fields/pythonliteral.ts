/**
 * Reads the columns in which a dataset stores a list or a map of texts as Python prints it (SWE-bench Pro calls `eval` on them; some
 * copies hold JSON). Nothing is evaluated: what is no list or map of texts is refused. One pass, no recursion.
 */

const MOST_CHARACTERS = 64 * 1024 ** 2;

/** Thrown for text that is neither JSON nor a Python literal of the expected form; `at` is the index of the character. */
export class LiteralError extends Error {
  override readonly name = 'LiteralError';
  readonly at: number;
  constructor(message: string, at: number) {
    super(`${message} at character ${at + 1}`);
    this.at = at;
  }
}

/**
 * `["a", "b"]` as JSON, or `['a', "b"]` as Python.
 *
 * @throws LiteralError when it is something else
 */
export function parseTextList(text: string): string[] {
  const json = jsonOf(text);
  if (Array.isArray(json) && json.every((item) => typeof item === 'string')) return json;
  const read = new LiteralReader(text);
  const list = read.items('[', ']', () => read.text());
  read.end();
  return list;
}

/**
 * `{"a": "b"}` as JSON, or `{'a': 'b'}` as Python; the last value of a key counts. A Map, because the keys may be any text.
 *
 * @throws LiteralError when it is something else
 */
export function parseTextMap(text: string): Map<string, string> {
  const json = jsonOf(text);
  if (json !== null && typeof json === 'object' && !Array.isArray(json)) {
    const entries = Object.entries(json);
    if (entries.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
      return new Map(entries);
  }
  const read = new LiteralReader(text);
  const entries = read.items('{', '}', (): [string, string] => {
    const key = read.text();
    read.expect(':');
    return [key, read.text()];
  });
  read.end();
  return new Map(entries);
}

function jsonOf(text: string): unknown {
  if (text.length > MOST_CHARACTERS) throw new LiteralError('over 64 million characters', MOST_CHARACTERS);
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
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

  /** The items between two brackets, with a comma between them and perhaps one behind the last. */
  items<Item>(open: string, close: string, item: () => Item): Item[] {
    this.expect(open);
    const found: Item[] = [];
    while (!this.#next(close)) {
      if (found.length > 0) {
        this.expect(',');
        if (this.#next(close)) break;
      }
      found.push(item());
    }
    this.expect(close);
    return found;
  }

  expect(char: string): void {
    if (!this.#next(char)) throw new LiteralError(`expected "${char}"`, this.#at);
    this.#at++;
  }

  end(): void {
    this.#blanks();
    if (this.#at < this.#source.length) throw new LiteralError('expected the end', this.#at);
  }

  /** One text, or several that stand beside one another, which Python joins. */
  text(): string {
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

  /** What follows a backslash; Python leaves one that it does not know as it is. */
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
