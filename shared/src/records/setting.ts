/** Settings of a run, declared with the field's schema: flag, help and configuration key. */
import { z } from 'zod';

export type RunSetting = {
  /** `--step-limit <n>`; null: set only by a configuration file. */
  flag: string | null;
  /** One line of `--help`, without choices and default, which the schema has. */
  help: string;
  /** Form of the flag's text, if the schema does not determine it: size with unit, JSON, content of a file, span or instant. */
  form?: 'size' | 'json' | 'file' | 'time';
  /** Choices on the command line, if they are fewer than the schema's. */
  choices?: readonly string[];
  /** Value of a flag without an argument, if it is not `true` (of `--no-…`: `false`). */
  constant?: unknown;
};

export const RUN_SETTINGS = z.registry<RunSetting>();

/** Registers a field of the run record as a setting. */
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
