/** Index of the positions of lines in a result file, because the file may be too large for memory. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { errorMessage, UsageError } from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';

const NEWLINE = 0x0a;

export type LineIndex = {
  /** Returns the line of a rollout. Throws UsageError `rollout_unknown`. */
  read(rolloutId: string): Promise<OutputLine>;
};

/** Calls `onLine` with each line. Throws UsageError if the file is unreadable or is no output of swefarm. */
export async function indexLines(path: string, onLine: (line: OutputLine) => void): Promise<LineIndex> {
  const positions = new Map<string, { at: number; length: number }>();
  try {
    for await (const { at, bytes } of splitLines(createReadStream(path))) {
      const line = lineIn(bytes);
      if (typeof line.rollout_id !== 'string') throw new Error('its lines are not results');
      positions.set(line.rollout_id, { at, length: bytes.length });
      onLine(line);
    }
  } catch (error) {
    throw new UsageError(`${path}: not a readable output of swefarm: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  return {
    async read(rolloutId) {
      const position = positions.get(rolloutId);
      if (!position) throw new UsageError(`${path}: no rollout ${rolloutId}`, { code: 'rollout_unknown' });
      await using file = await open(path);
      const bytes = Buffer.alloc(position.length);
      await file.read(bytes, 0, position.length, position.at);
      return lineIn(bytes);
    },
  };
}

/** Parses a line. A row in Gym's form contains the line under the key `swefarm`. */
function lineIn(bytes: Buffer): OutputLine {
  const row = JSON.parse(bytes.toString('utf8')) as OutputLine & { swefarm?: OutputLine };
  return row.swefarm ?? row;
}

/** Yields each line that is not empty, and the position `at` of its first byte. Omits an incomplete last line. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<{ at: number; bytes: Buffer }> {
  let pending: Buffer[] = [];
  let at = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const bytes = Buffer.concat([...pending, chunk.subarray(start, end)]);
      if (bytes.length > 0) yield { at, bytes };
      at += bytes.length + 1;
      pending = [];
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
}
