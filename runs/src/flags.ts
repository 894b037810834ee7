/** Derives the flags of a run from the settings that the schemas of the run record declare (shared/src/records/setting.ts). */
import { readFileSync } from 'node:fs';
import { readCard, shippedCards } from '@swefarm/agents';
import { parseBytes, RUN_SETTINGS, RunRecord, type RunSetting, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import { HARBOR_NAMES } from './agentsettings.ts';
import { parseDeadline } from './deadline.ts';

export type RunFlag = {
  flag: string;
  path: readonly string[];
  help: string;
  group: string;
  read: (text: string) => unknown;
  choices?: readonly string[];
  /** The flag may be given several times; its values become a list or, as `key=value`, an object. */
  many?: 'list' | 'map';
  /** Value that the flag sets if it is a switch without an argument. */
  constant?: unknown;
  default: unknown;
};

/** Values of the flags on the command line, by {@link flagKey}. */
export type RunFlagValues = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;

/** Keys of a run record that a submitter may set: `true` for a value, or the keys of a section. */
export type SettableKeys = { [key: string]: true | SettableKeys };

const GROUPS: Readonly<Record<string, string>> = {
  agent: 'Agent:',
  policy: 'Policy:',
  sandbox: 'Sandbox:',
  evaluation: 'Evaluation and reward:',
  reward: 'Evaluation and reward:',
};

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** Removes the default, null and optional wrappers of a schema. */
export function inner(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodDefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional
    ? inner(schema.unwrap())
    : schema;
}

function flagsIn(shape: Shape, section: readonly string[]): RunFlag[] {
  return Object.entries(shape).flatMap(([key, schema]) => {
    const path = [...section, key];
    const setting = RUN_SETTINGS.get(schema as z.ZodType);
    if (setting) return setting.flag === null ? [] : [runFlag(setting.flag, setting, path, schema)];
    const below = inner(schema);
    return below instanceof z.ZodObject ? flagsIn(below.shape, path) : [];
  });
}

function runFlag(
  flag: string,
  setting: RunSetting,
  path: readonly string[],
  schema: z.core.$ZodType,
): RunFlag {
  const { help, form } = setting;
  const value = inner(schema);
  const many =
    value instanceof z.ZodArray
      ? ('list' as const)
      : value instanceof z.ZodRecord && form !== 'json'
        ? ('map' as const)
        : undefined;
  const constant =
    setting.constant ?? (value instanceof z.ZodBoolean ? !flag.startsWith('--no-') : undefined);
  const named = setting.choices ?? (value instanceof z.ZodEnum ? value.options.map(String) : undefined);
  const choices =
    path.join('.') === 'agent.type'
      ? [...(named ?? []), ...Object.keys(HARBOR_NAMES), ...shippedCards()]
      : named;
  return {
    flag,
    path,
    help,
    group: GROUPS[path[0] ?? ''] ?? 'Run:',
    read: READERS[form ?? formOf(value)],
    ...(choices && { choices }),
    ...(constant === undefined ? many && { many } : { constant }),
    default: schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined,
  };
}

function settableIn(shape: Shape): SettableKeys {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([key, schema]): [string, true | SettableKeys][] => {
      if (RUN_SETTINGS.has(schema as z.ZodType)) return [[key, true]];
      const below = inner(schema);
      const keys = below instanceof z.ZodObject ? settableIn(below.shape) : {};
      return Object.keys(keys).length === 0 ? [] : [[key, keys]];
    }),
  );
}

function formOf(value: z.core.$ZodType): 'number' | 'either' | 'text' {
  if (value instanceof z.ZodNumber) return 'number';
  return value instanceof z.ZodUnion ? 'either' : 'text';
}

const READERS = {
  text: (value: string): string => value,
  number: parseNumber,
  either: (value: string): string | number => (/^\d+$/.test(value) ? Number(value) : value),
  size: parseSize,
  json: parseJson,
  file: readText,
  card: readCard,
  time: parseDeadline,
  band: parseBand,
} satisfies Record<NonNullable<RunSetting['form']> | 'text' | 'number' | 'either', RunFlag['read']>;

function parseNumber(value: string): number {
  const parsed = Number(value);
  if (value.trim() !== '' && Number.isFinite(parsed)) return parsed;
  throw new UsageError(`expected a number, got "${value}"`);
}

function parseSize(value: string): number {
  const size = parseBytes(value);
  if (size !== null) return size;
  throw new UsageError(`expected a size such as 4g or 512m, got "${value}"`);
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new UsageError(`expected JSON, got ${value.slice(0, 60)} (${(error as Error).message})`);
  }
}

function parseBand(value: string): number[] {
  const [, low, high] =
    /^(?:band=)?(0(?:\.\d+)?|1(?:\.0+)?|\.\d+):(0(?:\.\d+)?|1(?:\.0+)?|\.\d+)$/.exec(value) ?? [];
  if (low === undefined) throw new UsageError(`expected two rates such as band=0.2:0.8, got "${value}"`);
  return [Number(low), Number(high)];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path}: cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

export const RUN_FLAGS: readonly RunFlag[] = flagsIn(RunRecord.shape, []);

/** Keys that a configuration file may have; `newRunRecord` fills the other fields of the record. */
export const SETTABLE: SettableKeys = settableIn(RunRecord.shape);

/** Returns the long name of a flag, such as `--step-limit`. */
export const flagName = (flag: Pick<RunFlag, 'flag'>): string => flag.flag.split(' ')[0] ?? flag.flag;

/** Returns the key under which commander stores the value of a flag; for `--no-x` the key is `x`. */
export function flagKey(flag: RunFlag): string {
  const name = flagName(flag).replace(/^--(no-)?/, '');
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Converts the value of one flag to the form of the record. Throws UsageError that names the flag. */
export function readFlag(flag: RunFlag, given: unknown): unknown {
  const read = (value: string): unknown => {
    try {
      return flag.read(value);
    } catch (error) {
      if (error instanceof UsageError)
        throw new UsageError(`${flagName(flag)}: ${error.message}`, { cause: error });
      throw error;
    }
  };
  if (flag.many === undefined) return read(String(given));
  const texts = given as string[];
  if (flag.many === 'list') return texts.map(read);
  return Object.fromEntries(
    texts.map((pair) => {
      const at = pair.indexOf('=');
      if (at <= 0) throw new UsageError(`${flagName(flag)}: expected key=value, got "${pair}"`);
      return [pair.slice(0, at), read(pair.slice(at + 1))];
    }),
  );
}
