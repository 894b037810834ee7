/** Reads and writes the recorded requests of real agents in `recorder/fixtures/`. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { AgentAnswer } from '../../src/dialects/dialect.ts';

/** One request of an agent, and the answer that it got; texts are scrubbed. */
export type Recorded = {
  path: string;
  headers: Record<string, string>;
  body: unknown;
  answer?: AgentAnswer;
};

const folder = new URL('../../fixtures/', import.meta.url);
const ENDING = '.jsonl.br';

/** Names of all recorded runs, such as `claude-code-subagent`. */
export const recordedRuns = (): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length));

/** Returns the requests of a run in the order in which they came. */
export const readRecorded = (run: string): Recorded[] =>
  brotliDecompressSync(readFileSync(new URL(run + ENDING, folder)))
    .toString('utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);

/** Writes a run. Requests repeat each other, so the window of the compression must contain several of them. */
export function writeRecorded(run: string, requests: readonly Recorded[]): void {
  const text = requests.map((request) => `${JSON.stringify(request)}\n`).join('');
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 11 };
  writeFileSync(new URL(run + ENDING, folder), brotliCompressSync(text, { params }));
}
