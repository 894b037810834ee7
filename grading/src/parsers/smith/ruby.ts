/** Reads RSpec's JSON. If the log has none, reads the lines of minitest and test-unit. */
import { py } from '../../text/pattern.ts';
import { isSpace, strip, strippedLines } from '../../text/pythontext.ts';
import { type Reader, statuses, statusOf } from '../reader.ts';

export const rubyTests: Reader = (log) => {
  const found = fromJson(log);
  return found.size > 0 ? found : fromLines(log);
};

const RSPEC = statusOf({ passed: 'PASSED', failed: 'FAILED' });

/** Parses the text from the first `{"version` or `{"examples` to the last brace of the log. */
function fromJson(log: string): Map<string, string> {
  const found = statuses();
  const start = /\{"(?:version|examples)/.exec(log)?.index ?? -1;
  const end = log.lastIndexOf('}');
  if (start < 0 || end < start) return found;
  let parsed: unknown;
  try {
    parsed = JSON.parse(log.slice(start, end + 1));
  } catch (error) {
    if (error instanceof SyntaxError) return found;
    throw error;
  }
  const examples = (parsed as { examples?: unknown } | null)?.examples;
  for (const example of Array.isArray(examples) ? examples : []) {
    const { full_description: name, status } = (example ?? {}) as Record<string, unknown>;
    const word = RSPEC[String(status)];
    if (typeof name === 'string' && word !== undefined) found.set(name, word);
  }
  return found;
}

const WORDS = statusOf({ '.': 'PASSED', F: 'FAILED', E: 'ERROR' });
const UNIT = py`^(\S+):\s+([.FE]):\s+\(`;

function fromLines(log: string): Map<string, string> {
  const found = statuses();
  let owner = '';
  for (const line of strippedLines(log)) {
    if (line.includes('#test_') && line.includes(' = ')) {
      const last = line.lastIndexOf(' = ');
      const name = line.lastIndexOf(' = ', last - 1);
      const status = WORDS[strip(line.slice(last + 3))];
      if (status !== undefined && name >= 0 && last > 0) found.set(line.slice(0, name), status);
    } else if (/^\p{Lu}/u.test(line) && line.endsWith(':') && ![...line].some(isSpace))
      owner = line.slice(0, -1);
    else {
      const match = UNIT.exec(line);
      const status = WORDS[match?.[2] ?? ''];
      if (status !== undefined) found.set(`${owner}#${match?.[1]}`, status);
    }
  }
  return found;
}
