/**
 * R2E-Gym (agentica 353348a): as many tests as expected, and each has the status that it had with the fix, FAILED and ERROR too. In the
 * names of both sides colours are removed, and they end at ` - `; of tests that then have one name the last counts, and one without a
 * name counts in the number only.
 */
import { before } from '../text/pythontext.ts';
import { type Case, type Judged, listsOf } from './judged.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOR = /\x1b\[\d+m/g;

export function expected({ read, verdict, instance }: Case): Judged {
  const wanted = cleaned(Object.entries(verdict.expected ?? {}));
  const found = cleaned(read.outcomes);
  const holds = (name: string): boolean => found.get(name) === wanted.get(name);
  const resolved =
    found.size === wanted.size &&
    [...found.keys()].every((name) => name === '' || (wanted.has(name) && holds(name)));
  const gain = new Set(instance.FAIL_TO_PASS);
  const sort = (names: readonly string[]) => ({
    success: names.filter(holds),
    failure: names.filter((name) => !holds(name)),
  });
  const names = [...wanted.keys()].filter((name) => name !== '');
  return {
    resolved,
    tests: listsOf(
      sort(names.filter((name) => gain.has(name))),
      sort(names.filter((name) => !gain.has(name))),
    ),
  };
}

function cleaned(entries: Iterable<[string, string]>): Map<string, string> {
  const map = new Map<string, string>();
  for (const [name, status] of entries) map.set(before(name.replace(COLOR, ''), ' - '), status);
  return map;
}
