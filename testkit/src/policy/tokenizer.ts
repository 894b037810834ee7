/**
 * The tokenizer of the scripted model: real ids, cached per piece of text together with their JSON, so that a prompt of
 * 60,000 tokens that grew by one message costs only that message.
 */
import { readFileSync } from 'node:fs';
import { Tokenizer as HuggingFace } from '@huggingface/tokenizers';
import { errorMessage, UsageError } from '@swefarm/shared';
import { type Lru, openLru } from './lru.ts';

/** A run of token ids; `json` is their list without brackets. */
export type Tokens = { readonly ids: Int32Array; readonly json: string };

/** One token as it appears in the log-probabilities of an answer. */
export type Piece = { text: string; bytes: Uint8Array };

export type Tokenizer = {
  encode(text: string): Tokens;
  /** Returns exactly the encoded text; ids cut in the middle of a character give U+FFFD. */
  decode(ids: Iterable<number>, options?: { skipControl?: boolean }): string;
  piece(id: number): Piece;
  /** Id of a token by its text; throws UsageError when the vocabulary lacks it. */
  idOf(text: string): number;
  readonly vocabularySize: number;
};

const OURS = new URL('../../fixtures/tokenizer/tokenizer.json', import.meta.url);
/** Size of the cache in token ids; about 80 MB at most. */
const CACHED_IDS = 8_000_000;

/** Reads a tokenizer.json of byte-level BPE (ours when no path is given). Throws UsageError `tokenizer`. */
export function loadTokenizer(path: string | URL = OURS): Tokenizer {
  let json: TokenizerJson;
  let inner: HuggingFace;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
    inner = new HuggingFace(json, {});
  } catch (error) {
    throw new UsageError(`tokenizer ${path}: ${errorMessage(error)}`, { cause: error, code: 'tokenizer' });
  }
  const pieces = openPieces(json);
  const cache: Lru<Tokens> = openLru(CACHED_IDS, ({ ids }) => ids.length + 16);
  const control = new Set(json.added_tokens.filter((token) => token.special).map((token) => token.id));
  return {
    encode(text) {
      const known = cache.get(text);
      if (known) return known;
      const tokens = tokensOf(inner.encode(text, { add_special_tokens: false }).ids);
      cache.set(text, tokens);
      return tokens;
    },
    decode(ids, { skipControl = false } = {}) {
      const bytes: Uint8Array[] = [];
      for (const id of ids) if (!skipControl || !control.has(id)) bytes.push(pieces.of(id).bytes);
      return Buffer.concat(bytes).toString('utf8');
    },
    piece: pieces.of,
    idOf(text) {
      const id = inner.token_to_id(text);
      if (id === undefined)
        throw new UsageError(`tokenizer ${path} has no token ${text}`, { code: 'tokenizer' });
      return id;
    },
    vocabularySize: pieces.size,
  };
}

export function tokensOf(ids: ArrayLike<number>): Tokens {
  const copy = Int32Array.from(ids);
  return { ids: copy, json: copy.join(',') };
}

type TokenizerJson = {
  model: { vocab: Record<string, number> };
  added_tokens: { id: number; content: string; special: boolean }[];
};

/** Bytes of every token; byte-level BPE writes each byte as one printable character. */
function openPieces({ model, added_tokens }: TokenizerJson) {
  const byteOf = byteAlphabet();
  const pieces: Piece[] = [];
  for (const [token, id] of Object.entries(model.vocab)) {
    const bytes = Uint8Array.from(token, (character) => byteOf.get(character) ?? 0x3f);
    pieces[id] = { text: Buffer.from(bytes).toString('utf8'), bytes };
  }
  for (const { id, content } of added_tokens) pieces[id] = { text: content, bytes: Buffer.from(content) };
  const unknown: Piece = { text: '', bytes: new Uint8Array(0) };
  return { of: (id: number): Piece => pieces[id] ?? unknown, size: pieces.length };
}

/** Printable Latin-1 bytes map to themselves; the other 68 bytes map to U+0100 and up, in order. */
function byteAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return alphabet;
}
