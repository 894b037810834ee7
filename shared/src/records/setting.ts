/** What a submitter may set of a run. It is declared beside the field's schema; flag, help and configuration key follow from it. */
import { z } from 'zod';

export type RunSetting = {
  /** As the command line has it, `--step-limit <n>`; null: only a configuration file sets it. */
  flag: string | null;
  /** One line of `--help`; it says neither choices nor default, which the schema knows. */
  help: string;
  /** How a flag's text is read, where the schema does not tell: a size with unit, JSON, the content of a file, a span or an instant. */
  form?: 'size' | 'json' | 'file' | 'time';
  /** The choices offered on the command line, when they are fewer than the schema's. */
  choices?: readonly string[];
  /** What a flag without a value sets, when it is not `true` (of `--no-…`: `false`). */
  constant?: unknown;
};

/** The settings by their schema: the walk over a record's shape finds them. */
export const RUN_SETTINGS = z.registry<RunSetting>();

/** Makes a field of the run's record one that submitters may set. */
export function setting<Schema extends z.ZodType>(
  flag: RunSetting['flag'],
  help: string,
  schema: Schema,
  more: Omit<RunSetting, 'flag' | 'help'> = {},
): Schema {
  const described = schema.describe(help);
  RUN_SETTINGS.add(described, { flag, help, ...more });
  return described;
}
