/** Reads `cargo test`, including doc tests: `test path::name ... ok`. */
import { strip } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: Python's splitlines() ends a line at these
const LINE_END = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/g;

function* allLines(text: string): Generator<string> {
  let from = 0;
  for (const end of text.matchAll(LINE_END)) {
    yield text.slice(from, end.index);
    from = end.index + end[0].length;
  }
  if (from < text.length) yield text.slice(from);
}

export const cargoTest: Reader = (log) => {
  const found = statuses();
  for (const raw of allLines(log)) {
    const line = raw.startsWith('test ') ? raw.slice('test '.length) : raw;
    const status = line.includes('... ok') ? 'PASSED' : line.includes('... FAILED') ? 'FAILED' : null;
    if (status === null) continue;
    const dots = line.lastIndexOf(' ... ');
    found.set(strip(dots < 0 ? line : line.slice(0, dots)), status);
  }
  return found;
};
