/** Finds the frames of zstd streams (RFC 8878), because Node's decoder ignores what follows a frame in the same chunk. */
import { Transform } from 'node:stream';

/** First bytes, in hexadecimal, of a frame and of a skippable frame. */
const FRAME = '28b52ffd';
const SKIPPABLE = /^5.2a4d18$/;

/** Returns whether content begins with a frame of any kind. @param magic the first four bytes in hexadecimal */
export const isZstd = (magic: string): boolean => magic === FRAME || SKIPPABLE.test(magic);

/** Returns a stream that passes its input in chunks of which none has bytes of two frames. Other input passes as it is. */
export function cutFrames(): Transform {
  const find = frameEnds();
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let start = 0;
      for (const end of find(chunk)) {
        this.push(chunk.subarray(start, end));
        start = end;
      }
      if (start < chunk.length) this.push(chunk.subarray(start));
      done();
    },
  });
}

type Step = { bytes: number; next: (read: Buffer) => Step | 'end' };

/** Returns a function that receives consecutive chunks and returns the positions in each chunk at which frames end. */
function frameEnds(): (chunk: Buffer) => number[] {
  let step: Step = MAGIC;
  let read: Buffer[] = [];
  let missing = step.bytes;
  return (chunk) => {
    const ends: number[] = [];
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + missing);
      at += part.length;
      missing -= part.length;
      // Only short fields are interpreted.
      if (step.bytes <= LONGEST_FIELD) read.push(part);
      while (missing === 0) {
        const next = step.next(Buffer.concat(read));
        if (next === 'end') ends.push(at);
        step = next === 'end' ? MAGIC : next;
        missing = step.bytes;
        read = [];
      }
    }
    return ends;
  };
}

const LONGEST_FIELD = 4;
const skip = (bytes: number, next: Step | 'end'): Step => ({ bytes, next: () => next });

const MAGIC: Step = {
  bytes: 4,
  next: (read) => {
    const magic = read.toString('hex');
    if (magic === FRAME) return HEADER;
    if (SKIPPABLE.test(magic)) return { bytes: 4, next: (size) => skip(size.readUInt32LE(), 'end') };
    // The decoder reports what is no frame.
    return skip(Number.POSITIVE_INFINITY, 'end');
  },
};

const HEADER: Step = {
  bytes: 1,
  next: (read) => {
    const descriptor = read.readUInt8();
    const isSingle = (descriptor & 0x20) !== 0;
    const window = isSingle ? 0 : 1;
    const dictionary = [0, 1, 2, 4][descriptor & 3] as number;
    const size = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] as number;
    return skip(window + dictionary + size, blockOf((descriptor & 4) !== 0));
  },
};

function blockOf(hasChecksum: boolean): Step {
  const block: Step = {
    bytes: 3,
    next: (read) => {
      const header = read.readUIntLE(0, 3);
      const isRepeated = ((header >> 1) & 3) === 1;
      const last = hasChecksum ? skip(4, 'end') : 'end';
      const after = (header & 1) === 1 ? last : block;
      // A repeated byte is stored once.
      return skip(isRepeated ? 1 : header >> 3, after);
    },
  };
  return block;
}
