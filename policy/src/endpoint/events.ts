/** Parses server-sent events incrementally. Each byte is scanned once, and the length of a line is bounded. */
import { AnswerError } from './errors.ts';

/** Maximum length of a line: ten times the size of a million prompt ids. */
const MOST_LINE_BYTES = 64 * 1024 ** 2;
const [LINE_FEED, RETURN, BLANK] = [0x0a, 0x0d, 0x20];
const DATA = Buffer.from('data:');

/**
 * Creates a reader of one stream. It takes bytes in pieces of any size, passes the value of each `data:` line to `onData`, and skips other
 * lines, such as the comments by which proxies avoid timeouts.
 *
 * @throws AnswerError `garbage` for an unfinished line above the limit, and errors of `onData`
 */
export function createEventReader(
  onData: (data: Buffer) => void,
  mostBytes = MOST_LINE_BYTES,
): (bytes: Uint8Array) => void {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  const line = (bytes: Buffer): void => {
    if (bytes.length < DATA.length || bytes.compare(DATA, 0, DATA.length, 0, DATA.length) !== 0) return;
    const from = bytes[DATA.length] === BLANK ? DATA.length + 1 : DATA.length;
    const to = bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
    onData(bytes.subarray(from, to));
  };
  return (bytes) => {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      const rest = chunk.subarray(from, end);
      from = end + 1;
      if (pending.length === 0) line(rest);
      else {
        const whole = Buffer.concat([...pending, rest]);
        pending = [];
        pendingBytes = 0;
        line(whole);
      }
    }
    if (from === chunk.length) return;
    pending.push(chunk.subarray(from));
    pendingBytes += chunk.length - from;
    if (pendingBytes > mostBytes)
      throw new AnswerError('garbage', `a line of the stream has over ${mostBytes} bytes`);
  };
}

/** Returns whether the bytes are an event stream. The content type of an answer is not reliable. */
export const isEventStream = (body: Buffer): boolean =>
  /^\s*(data|event|id|retry)?:/.test(body.toString('latin1', 0, 64));
