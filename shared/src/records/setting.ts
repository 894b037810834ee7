/** Settings of a run. The schema of each field declares its flag and help. */
import { z } from 'zod';

export type RunSetting = {
  /** Flag with its argument: `--step-limit <n>`; null: only a configuration file sets the field. */
  flag: string | null;
  /** One line of `--help`, without choices and default, which come from the schema. */
  help: string;
  /** Form of the argument, if the schema does not determine it: size with unit, JSON, path of a file, path of an agent's card, duration or time, or two rates. */
  form?: 'size' | 'json' | 'file' | 'card' | 'time' | 'band';
  /** Choices on the command line, if the schema allows more. */
  choices?: readonly string[];
  /** Value of a flag without an argument; default: `true`, or `false` for `--no-…`. */
  constant?: unknown;
};

export const RUN_SETTINGS = z.registry<RunSetting>();

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
