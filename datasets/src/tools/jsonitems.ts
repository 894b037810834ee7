/** Splits one JSON text (a list of rows, or an object with ids as keys) into the texts of its rows, so that no number loses a digit. */
import { UsageError } from '@swefarm/shared';

export type JsonItem = {
  /** Key of the row in the object; null for an item of a list. */
  key: string | null;
  /** JSON text of the row without white space between tokens. */
  text: string;
};

/** Yields the rows of `json`, which must be valid JSON. @throws UsageError if `json` is neither a list nor an object */
export function* splitJson(path: string, json: string): Generator<JsonItem> {
  const scan = new Scanner(json);
  const open = scan.next();
  if (open !== '[' && open !== '{') {
    throw new UsageError(`${path}: expected a list or an object of rows, found ${open || 'nothing'}`);
  }
  const close = open === '[' ? ']' : '}';
  for (let token = scan.next(); token !== close && token !== ''; token = scan.next()) {
    if (token === ',') continue;
    let key: string | null = null;
    if (open === '{') {
      key = JSON.parse(token) as string;
      scan.next(); // the colon
      token = scan.next();
    }
    yield { key, text: scan.rest(token) };
  }
}

/** Reads the tokens of a valid JSON text. */
class Scanner {
  readonly #json: string;
  readonly #token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gsu;

  constructor(json: string) {
    this.#json = json;
  }

  /** Returns the next token; '' at the end of the text. */
  next(): string {
    return this.#token.exec(this.#json)?.[0] ?? '';
  }

  /** Returns the text of the value that begins with the token `first`. */
  rest(first: string): string {
    if (first !== '{' && first !== '[') return first;
    const parts = [first];
    for (let depth = 1; depth > 0; ) {
      const token = this.next();
      if (token === '') break;
      if (token === '{' || token === '[') depth += 1;
      else if (token === '}' || token === ']') depth -= 1;
      parts.push(token);
    }
    return parts.join('');
  }
}
