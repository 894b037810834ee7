/** A set (`--set t05:temperature=0.5,n=8`) is a run with these settings. The lines of the run have the tag `t05`. */
import { flagKey, flagName, RUN_FLAGS, type RunFlag } from '@swefarm/runs';
import { nearest, UsageError } from '@swefarm/shared';

export type CollectionSet = {
  /** Name of the set in lines and file names. */
  tag: string;
  /** Values of RUN_FLAGS, as commander stores them. */
  flags: Readonly<Record<string, string>>;
};

const SHORT: Readonly<Record<string, string>> = { n: 'group-size' };

/** Run flags that a set may contain, by name. A comma ends a value, so flags with several values are excluded. */
const SETTABLE = new Map<string, RunFlag>(
  RUN_FLAGS.filter((flag) => flag.many === undefined && flag.constant === undefined).map((flag) => [
    flagName(flag).replace(/^--/, ''),
    flag,
  ]),
);

/** Parses the values of `--set`. Throws UsageError, also for a repeated tag. */
export function parseSets(texts: readonly string[]): CollectionSet[] {
  const sets = texts.map(parseSet);
  for (const { tag } of sets) {
    if (sets.filter((one) => one.tag === tag).length > 1) {
      throw new UsageError(`--set ${tag}: given twice; give each set a tag of its own`);
    }
  }
  return sets;
}

function parseSet(text: string): CollectionSet {
  const [, tag, settings = ''] = /^([A-Za-z0-9][\w-]{0,39}):(.*)$/s.exec(text) ?? [];
  if (tag === undefined) {
    throw new UsageError(`--set: expected TAG:key=value,… such as t05:temperature=0.5,n=8, got "${text}"`);
  }
  const flags: Record<string, string> = {};
  for (const pair of settings.split(',').filter((one) => one.trim() !== '')) {
    const at = pair.indexOf('=');
    const given = (at < 0 ? pair : pair.slice(0, at)).trim();
    const name = SHORT[given] ?? given.replaceAll('_', '-');
    const flag = SETTABLE.get(name);
    if (!flag || at < 0) {
      const close = nearest(name, [...SETTABLE.keys()]);
      const hint = flag ? 'write key=value' : close === null ? 'see --help' : `did you mean ${close}?`;
      throw new UsageError(`--set ${tag}: "${pair.trim()}" is no setting of a run; ${hint}`);
    }
    flags[flagKey(flag)] = pair.slice(at + 1).trim();
  }
  return { tag, flags };
}

/** Adds the tag to a file name: `out.jsonl` and `t05` → `out.t05.jsonl`. `-` is unchanged. */
export const taggedPath = (path: string, tag: string): string =>
  path === '-' ? path : path.replace(/^(.*?)((?:\.jsonl?)?(?:\.gz)?)$/s, `$1.${tag}$2`);
