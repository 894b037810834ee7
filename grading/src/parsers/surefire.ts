/** Reads the console output of Maven and Kotlin, by class, as SWE-rebench V2 does. */
import { py } from '../text/pattern.ts';
import { strip, strippedLines, stripStart } from '../text/pythontext.ts';
import { maven } from './java.ts';
import { byStrippedLine, reading } from './reader.ts';
import { junitText } from './xmllogs.ts';

const W = '[\\p{L}\\p{N}_$]';
const COUNTS = py`Tests run:\s*(\d+),\s*Failures:\s*(\d+),\s*Errors:\s*(\d+),\s*Skipped:\s*(\d+)`;
const FAILED_METHOD = py`^\[ERROR\]\s+(${W}[\w$.]*)`;
const RUNNING = py`^(?:\[INFO\]\s+)?Running\s+(\S+)`;

function statusOf(line: string): string | null {
  const counts = COUNTS.exec(line);
  if (!counts) return null;
  if (Number(counts[2]) + Number(counts[3]) > 0) return 'FAILED';
  return Number(counts[4]) > 0 ? 'SKIPPED' : 'PASSED';
}

/** Reads failed methods and the counts of classes. XML and single tests in the log add the names that are missing. */
export const javaMaven = reading((log, found, context) => {
  const running: string[] = [];
  for (const line of strippedLines(log)) {
    addFailedMethod(found, line);
    const begun = RUNNING.exec(line)?.[1];
    if (begun !== undefined) running.push(begun);
    const status = statusOf(line);
    const name = status === null ? undefined : (classIn(line) ?? running.at(-1));
    if (status !== null && name !== undefined && !found.has(name)) found.set(name, status);
  }
  for (const more of [junitText(log, context), maven(log, context)]) {
    for (const [name, status] of more) if (!found.has(name)) found.set(name, status);
  }
  if (found.size === 0) for (const name of running) found.set(name, 'PASSED');
});

function addFailedMethod(found: Map<string, string>, line: string): void {
  const name = FAILED_METHOD.exec(line)?.[1]?.replace(/\.{1,64}$/, '');
  const dot = name?.lastIndexOf('.') ?? -1;
  if (name === undefined || dot <= 0) return;
  const raised = line.includes('Exception') && !line.includes('AssertionError');
  found.set(name, raised ? 'ERROR' : 'FAILED');
  found.set(name.slice(0, dot), 'FAILED');
}

/** Returns the class in `… in com.acme.Test` at the end of a line of counts. */
function classIn(line: string): string | undefined {
  const at = line.lastIndexOf(' in ');
  const name = at < 0 ? '' : strip(line.slice(at + 4));
  return name === '' ? undefined : name;
}

const MODULE_END = py`\s\.\.+\s+(SUCCESS|FAILURE|SKIPPED)`;
const MODULES: Record<string, string> = { SUCCESS: 'PASSED', FAILURE: 'FAILED', SKIPPED: 'SKIPPED' };

/** Reads the modules of the reactor's summary. The first line of counts is stored as `__suite__`. */
export const javaReactor = byStrippedLine((line, found) => {
  const status = statusOf(line);
  if (status !== null && !found.has('__suite__')) found.set('__suite__', status);
  const rest = line.startsWith('[INFO]') ? line.slice('[INFO]'.length) : '';
  const end = MODULE_END.exec(rest);
  const name = end ? strip(rest.slice(0, end.index)) : '';
  if (name !== '' && stripStart(rest) !== rest) found.set(name, MODULES[end?.[1] ?? ''] ?? '');
});

const KOTLIN_RUNNING = py`^Running\s+(.+)$`;

export const kotlin = reading((log, found) => {
  let name: string | null = null;
  for (const line of strippedLines(log)) {
    const begun = KOTLIN_RUNNING.exec(line)?.[1];
    if (begun !== undefined) name = begun;
    const status = name !== null && line.startsWith('Tests run:') ? statusOf(line) : null;
    if (name !== null && status !== null) {
      found.set(name, status);
      name = null;
    }
  }
});
