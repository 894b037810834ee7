import { open } from 'node:fs/promises';

const ERROR_LEVEL = 50;
const TAIL_BYTES = 64 * 1024;
const CRASH_LINES = 40;

/** Returns the last error in a worker's log; null: the log has no error. For an unreadable log, returns why it cannot be read. */
export async function readLastError(path: string): Promise<string | null> {
  let text: string;
  try {
    text = await readTail(path);
  } catch (error) {
    return `its log cannot be read: ${(error as Error).message}`;
  }
  const lines = text.split('\n').map((line) => line.trim());
  // A crash prints its error first and many other lines after it.
  const thrown = lines
    .slice(-CRASH_LINES)
    .findLast((line) => /^(Uncaught )?\w*Error( \[\w+\])?: /.test(line));
  const last = thrown ?? lines.map(errorIn).findLast((found) => found !== null) ?? null;
  return last !== null && last.length > 300 ? `${last.slice(0, 299)}…` : last;
}

async function readTail(path: string): Promise<string> {
  await using file = await open(path);
  const { size } = await file.stat();
  const start = Math.max(0, size - TAIL_BYTES);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Returns the message of an error in the log's JSON format, or a plain line that is not part of a stack trace; else null. */
function errorIn(line: string): string | null {
  if (line === '') return null;
  if (!line.startsWith('{')) return /^(at |Node\.js v|\^|\})/.test(line) ? null : line;
  try {
    const entry = JSON.parse(line) as { level?: number; msg?: string; err?: { message?: string } };
    if ((entry.level ?? 0) < ERROR_LEVEL) return null;
    return [entry.msg, entry.err?.message].filter(Boolean).join(': ') || null;
  } catch {
    // The line is incomplete: the worker died while it wrote the line.
    return null;
  }
}
