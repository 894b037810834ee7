/**
 * Judges as R2E-Gym does (agentica 353348a): the number of tests must be as expected, and each test must have the same status as with the
 * fix, including FAILED and ERROR. Colours, and all text from ` - ` on, are removed from names. Among equal names, the last test counts.
 * A test with an empty name counts in the number of tests, but its status is not compared.
 */
import { before } from '../text/pythontext.ts';
import type { Case, Judged } from './judged.ts';
import { listsOf } from './testsstatus.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOR = /\x1b\[\d+m/g;

export function expected({ read, verdict, instance }: Case): Judged {
  const wanted = cleaned(Object.entries(verdict.expected ?? {}));
  const found = cleaned(read.outcomes);
  const matches = (name: string): boolean => found.get(name) === wanted.get(name);
  const resolved =
    found.size === wanted.size &&
    [...found.keys()].every((name) => name === '' || (wanted.has(name) && matches(name)));
  const gains = new Set(instance.FAIL_TO_PASS);
  const names = [...wanted.keys()].filter((name) => name !== '');
  const others = names.filter((name) => !gains.has(name));
  return {
    resolved,
    tests: listsOf(
      names.filter((name) => gains.has(name)),
      others,
      matches,
    ),
  };
}

function cleaned(entries: Iterable<[string, string]>): Map<string, string> {
  const map = new Map<string, string>();
  for (const [name, status] of entries) map.set(before(name.replace(COLOR, ''), ' - '), status);
  return map;
}
