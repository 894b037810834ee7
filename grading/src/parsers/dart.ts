/** Reads Dart's reporters (JSON, melos, expanded) as SWE-rebench V2 does. */
import { py } from '../text/pattern.ts';
import { linesOf, strip } from '../text/pythontext.ts';
import { byStrippedLine, forms, reading, setUnlessFailed, statusOf } from './reader.ts';

const RESULTS = statusOf({ success: 'PASSED', failure: 'FAILED', error: 'ERROR' });

/** Each line contains one event or a list of events. */
export const dartJson = reading((log, found) => {
  const names = new Map<unknown, string>();
  for (const raw of linesOf(log)) {
    for (const event of eventsOf(strip(raw))) readEvent(event, names, found);
  }
});

type Event = {
  type?: unknown;
  test?: { id?: unknown; name?: unknown } | null;
  testID?: unknown;
  result?: unknown;
  hidden?: unknown;
};

function eventsOf(line: string): Event[] {
  if (!line.startsWith('{') && !line.startsWith('[')) return [];
  try {
    const value: unknown = JSON.parse(line);
    const list = Array.isArray(value) ? value : [value];
    return list.filter((event): event is Event => typeof event === 'object' && event !== null);
  } catch {
    return [];
  }
}

function readEvent(event: Event, names: Map<unknown, string>, found: Map<string, string>): void {
  if (event.type === 'testStart' && typeof event.test?.name === 'string') {
    names.set(event.test.id, event.test.name);
  } else if (event.type === 'testDone' && event.hidden !== true) {
    const name = names.get(event.testID);
    const status = RESULTS[String(event.result)];
    if (name !== undefined && status !== undefined && !name.startsWith('loading ')) found.set(name, status);
  }
}

const MELOS = py`^\[[^\]]+\]:\s+\d+:\d+\s+\+\d+:\s+(/\S*\.dart:\s.+)$`;

/** melos prints the name of a test when the test starts and when it passes. A test whose name appears once counts as an error. */
export const dartMelos = byStrippedLine((line, found) => {
  const name = MELOS.exec(line)?.[1];
  if (name !== undefined) found.set(name, found.has(name) ? 'PASSED' : 'ERROR');
});

const TIME = String.raw`^\d+:\d+\s+\+\d+(?:\s+~\d+)?(?:\s+-\d+)?:\s+`;

/** Reads `00:01 +1 -1: /file.dart: name [E]`. `[E]` marks a failed test, or an error if the file did not load. */
export const dartExpanded = forms(
  [
    [py`${TIME}loading (?<name>/.*) \[E\]$`, 'ERROR'],
    [py`${TIME}(?<name>/\S*\.dart:\s.*\S)\s* \[E\]$`, 'FAILED'],
    [py`${TIME}(?!.* \[E\]$)(?<name>/\S*\.dart:\s.+)`, 'PASSED'],
  ],
  { store: setUnlessFailed, rename: strip },
);
