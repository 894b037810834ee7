/** Reads OCaml's alcotest and dune as SWE-rebench V2 does. */
import { py } from '../text/pattern.ts';
import { fields, strippedLines } from '../text/pythontext.ts';
import { byStrippedLine, reading, STATUS, setWorst } from './reader.ts';

/** The first number with text on both sides divides suite and name. */
const ALCOTEST = py`^\[(?:(OK|PASS|PASSED|FAIL|FAILED|SKIP|TODO)|[A-Z]+)\]\s+(\S(?:.*?\S)??)\s+(\d+)\s+(.+)$`;

/** Reads `[OK]  suite  0  name` and stores `suite 0 name`. An unknown word is an error. */
export const alcotest = byStrippedLine((line, found) => {
  const match = ALCOTEST.exec(line);
  if (!match) return;
  const test = match.slice(2).join(' ');
  const status = STATUS[match[1] ?? 'ERROR'] ?? '';
  if (status !== 'PASSED' || !found.has(test)) found.set(test, status);
});

const RUNNING = /^Running\[(\p{Nd}+)\]:/u;
const OUTPUT = /^Output\[(\p{Nd}+)\]:/u;
const BROKEN = /fail|error|exception|crash|fatal/i;

/** Reads dune. Each program that ran is a test; words such as `fail` in the output of the program decide the status. */
export const dune = reading((log, found) => {
  const programs = new Map<string, string>();
  let current: string | null = null;
  for (const line of strippedLines(log)) {
    const running = RUNNING.exec(line)?.[1];
    const output = OUTPUT.exec(line)?.[1];
    if (running !== undefined) {
      current = null;
      const program = fields(line)
        .map((word) => word.replace(/[()]/g, ''))
        .find((word) => word.startsWith('./') && word.endsWith('.exe'));
      if (program !== undefined) programs.set(running, program.slice(program.lastIndexOf('/') + 1));
    } else if (output !== undefined) {
      current = programs.get(output) ?? null;
      if (current !== null) setWorst(found, current, 'PASSED');
    } else if (current !== null) {
      if (BROKEN.test(line)) setWorst(found, current, 'FAILED');
      else if (/skip/i.test(line)) setWorst(found, current, 'SKIPPED');
    }
  }
});
