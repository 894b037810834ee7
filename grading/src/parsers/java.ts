/** Reads Maven and Gradle. Maven lists no passing tests, so each test runs in a separate build, whose result is the outcome. */
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { strippedLines } from '../text/pythontext.ts';
import { reading, STATUS } from './reader.ts';

const NO_TEST = '---NO TEST NAME FOUND YET---';
const LAST_OPTION = py`^.*-Dtest=(\S+)`;
const BUILD = py`BUILD (SUCCESS|FAILURE)$`;

/**
 * Assigns the result of a build to the last test command before the result. swebench 5.0.2 assigns results to commands in order; a result
 * that precedes its command is assigned at the end.
 */
export const maven = reading((log, found, { dialect }) => {
  const names: string[] = [];
  const early: string[] = [];
  let next = 0;
  const storeNext = (status: string): boolean => {
    const name = names[next];
    if (name === undefined) return false;
    found.set(name, status);
    next++;
    return true;
  };
  for (const line of strippedLines(log)) {
    const name = LAST_OPTION.exec(line)?.[1];
    if (name !== undefined) names.push(name);
    const status = STATUS[BUILD.exec(line)?.[1] ?? ''];
    if (status === undefined) continue;
    if (dialect !== '5.0.2') found.set(names.at(-1) ?? NO_TEST, status);
    else if (!storeNext(status)) early.push(status);
  }
  for (const status of early) storeNext(status);
});

const TEST = py`^([^>].+)\s(PASSED|FAILED)$`;
const OPEN_TEST = py`^(?!>)\S+\s+>\s+\S+$`;
/** The time after the status, which only SWE-rebench V2 allows. */
const SECONDS = ending`\s+\(\d+(?:\.\d+)?s\)`;

/** Reads `Suite > name PASSED`. Ignores lines that begin with `>`. */
export const gradle = reading((log, found, { dialect }) => {
  let pending: string | null = null;
  for (const stripped of strippedLines(log)) {
    const line = dialect === 'swe-rebench-v2' ? withoutEnd(stripped, SECONDS) : stripped;
    const [, name, status] = TEST.exec(line) ?? [];
    if (name !== undefined && status !== undefined) {
      found.set(name, status);
      pending = null;
    } else if (dialect === '5.0.2') {
      // In logs of swebench 5.0.2, the name and the status of a test may be on separate lines.
      if (OPEN_TEST.test(line)) pending = line;
      else if (pending !== null && (line === 'PASSED' || line === 'FAILED')) {
        found.set(pending, line);
        pending = null;
      }
    }
  }
});
