/** Reads the JSON of a request. A command of the model may send any bytes, so size and number of values are limited. */
import type { IncomingMessage } from 'node:http';
import { tryParseJson } from '@swefarm/shared';
import { BadRequest } from '../dialects/dialect.ts';

const MIB = 1024 ** 2;
const MOST_BYTES = 64 * MIB;
/** Most bytes of all bodies of a rollout that are being read. */
const MOST_BUFFERED = 128 * MIB;
/** Bodies above this size may have at most {@link MOST_VALUES}; more would fill the worker's memory. */
const COUNTED_BYTES = MIB;
const MOST_VALUES = 500_000;

export type BodyReader = (request: IncomingMessage) => Promise<unknown>;

/** Returns a function that reads the bodies of one rollout. It throws BadRequest for a body that cannot be read. */
export function createBodyReader(): BodyReader {
  let buffered = 0;
  return async (request) => {
    if (Number(request.headers['content-length'] ?? 0) > MOST_BYTES)
      throw new BadRequest('the body has too many bytes');
    const pieces: Buffer[] = [];
    let bytes = 0;
    try {
      // A destroyed request would destroy the connection, and the agent would not get the refusal.
      for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += piece.length;
        buffered += piece.length;
        if (bytes > MOST_BYTES || buffered > MOST_BUFFERED)
          throw new BadRequest('the body has too many bytes');
        pieces.push(piece);
      }
    } finally {
      buffered -= bytes;
    }
    return parseBody(Buffer.concat(pieces));
  };
}

function parseBody(body: Buffer): unknown {
  if (body.length > COUNTED_BYTES && hasMoreValues(body, MOST_VALUES))
    throw new BadRequest('the body has too many values');
  const value = tryParseJson(body.toString('utf8'));
  if (value === undefined) throw new BadRequest('the body is not JSON');
  return value;
}

const [COMMA, BRACE, BRACKET] = [0x2c, 0x7b, 0x5b];

/** Returns whether the bytes may have more JSON values than `most`. Commas and brackets inside of texts are counted too. */
function hasMoreValues(body: Buffer, most: number): boolean {
  let count = 0;
  for (const byte of body) if (byte === COMMA || byte === BRACE || byte === BRACKET) count++;
  return count > most;
}
