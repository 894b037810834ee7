/** Renders the output of a command for the model, and detects the submit sentinel. */
import type { CommandResult } from '@swefarm/sandbox';
import { SENTINEL } from '@swefarm/shared';
import type { Prompts } from './prompts.ts';

/** Maximum bytes of a UTF-8 character. */
const BYTES_PER_CHARACTER = 4;
/** Maximum captured bytes of a submission. Patches over 10 MB earn nothing, and the shell must capture more than that to detect them. */
/** Captured bytes for a template that shortens the output itself; it sees the head and the tail of a longer one. */
const TEMPLATE_BYTES = 1024 ** 2;
const SUBMISSION_BYTES = 11 * 1024 ** 2;
const SENTINELS = [SENTINEL, 'MINI_SWE_AGENT_FINAL_OUTPUT'];

/** Returns how many bytes of output a shell must capture: enough for {@link renderObservation}, and for a patch that is the submission. */
export function outputCap(
  observationLimit: number,
  patchSource: 'tree' | 'submission',
  { shortens }: Pick<Prompts, 'shortens'>,
): number {
  const shown = Math.max(observationLimit * BYTES_PER_CHARACTER, shortens ? TEMPLATE_BYTES : 0);
  return patchSource === 'submission' ? Math.max(shown, SUBMISSION_BYTES) : shown;
}

/** Renders the observation of one command. `repeats`: how often the command ran in a row; 0 if no warning is needed. */
export function renderObservation(
  result: CommandResult,
  options: { prompts: Prompts; limit: number; timeoutSeconds: number; repeats: number },
): string {
  const { prompts } = options;
  const notes: string[] = [];
  if (result.note === 'timed_out') {
    notes.push(prompts.render('timed_out', { seconds: Math.round(options.timeoutSeconds * 10) / 10 }));
  } else if (result.note !== null) notes.push(prompts.render(result.note));
  if (options.repeats > 0) notes.push(prompts.render('collapse', { count: options.repeats }));
  const elision = (left: string) => prompts.render('elision', { left_out: left });
  if (prompts.shortens) {
    const { head, tail } = result;
    const output = Buffer.concat([head, tail ?? Buffer.alloc(0)]).toString('utf8');
    const values = { returncode: result.exitCode ?? -1, output, notes: notes.join('\n') };
    const shown = Buffer.from(prompts.render('observation', values));
    return headAndTail({ head: shown, tail: null, outputBytes: shown.length }, 2 * options.limit, elision);
  }
  const text = prompts.render('observation', {
    returncode: result.exitCode ?? -1,
    output: headAndTail(result, options.limit, elision),
    notes: notes.map((note) => `\n${note}`).join(''),
  });
  return detached(text);
}

/**
 * Decodes invalid bytes to replacement characters and returns at most `limit` UTF-16 units of the output, half of them from its end.
 * `elision` renders the notice between the halves from a phrase such as "1200 characters".
 */
export function headAndTail(
  result: Pick<CommandResult, 'head' | 'tail' | 'outputBytes'>,
  limit: number,
  elision: (leftOut: string) => string,
): string {
  const { head, tail } = result;
  const half = Math.floor(limit / 2);
  let first: string;
  let last: string;
  let leftOut: string;
  if (tail === null && head.length <= limit * BYTES_PER_CHARACTER) {
    const text = head.toString('utf8');
    if (text.length <= limit) return withoutFinalNewline(text);
    first = startOf(text, limit - half);
    last = endOf(text, half);
    leftOut = `${text.length - first.length - last.length} characters`;
  } else {
    first = startOf(decodeStart(head, (limit - half) * BYTES_PER_CHARACTER), limit - half);
    last = endOf(decodeEnd(tail ?? head, half * BYTES_PER_CHARACTER), half);
    const shown = Buffer.byteLength(first) + Buffer.byteLength(last);
    leftOut = `about ${Math.max(1, result.outputBytes - shown)} bytes`;
  }
  return `${first}\n${elision(leftOut)}\n${withoutFinalNewline(last)}`;
}

/**
 * Returns the text after the sentinel if the command exited with 0 and the first line that is not blank is the sentinel; null: no
 * submission. `text` is null when the patch is taken from the tree and the output was longer than the shell captured.
 */
export function parseSubmission(
  result: CommandResult,
  patchSource: 'tree' | 'submission',
): { text: string | null } | null {
  if (result.exitCode !== 0) return null;
  const { head, tail } = result;
  let at = 0;
  while (at < head.length && isSpace(head[at])) at++;
  const newline = head.indexOf(0x0a, at);
  const end = newline === -1 ? head.length : newline;
  if (end - at > 200 || !SENTINELS.includes(head.toString('latin1', at, end).trim())) return null;
  const rest = newline === -1 ? '' : head.toString('utf8', newline + 1);
  if (tail === null) return { text: rest };
  return { text: patchSource === 'submission' ? rest + tail.toString('utf8') : null };
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);

const withoutFinalNewline = (text: string): string => (text.endsWith('\n') ? text.slice(0, -1) : text);

/** Returns at most the first `count` UTF-16 units of decoded text, without half of a character. */
const startOf = (text: string, count: number): string => text.slice(0, count).replace(/[\ud800-\udbff]$/, '');
const endOf = (text: string, count: number): string =>
  text.slice(Math.max(0, text.length - count)).replace(/^[\udc00-\udfff]/, '');

/** Decodes the first `count` bytes. The stream decoder omits a character that the cut splits. */
const decodeStart = (bytes: Buffer, count: number): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, count), { stream: true });

function decodeEnd(bytes: Buffer, count: number): string {
  let from = Math.max(0, bytes.length - count);
  const last = from + BYTES_PER_CHARACTER - 1;
  // Skips the continuation bytes of a character that the cut splits.
  while (from < last && ((bytes[from] ?? 0) & 0xc0) === 0x80) from++;
  return bytes.toString('utf8', from);
}

/** Returns an independent copy: a slice would reference the whole output as long as the history exists. */
const detached = (text: string): string => Buffer.from(text, 'utf8').toString('utf8');
