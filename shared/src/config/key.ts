/** The declaration of one configuration key: schema, default, and its row in the table of keys. */
import type { z } from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

export type ConfigKey<T> = {
  schema: z.ZodType<T>;
  /** Returns the default, which the docs show as `shown`. `soFar`: values of the keys declared before this one. */
  default: (env: Environment, soFar: Readonly<Record<string, unknown>>) => T;
  shown: string;
  doc: string;
  /** Variables of other programs, read if the SWEFARM_ variable is not set. */
  otherEnv?: readonly string[];
};

export const key = <T>(
  schema: z.ZodType<T>,
  fallback: ConfigKey<T>['default'],
  shown: string,
  doc: string,
  otherEnv: readonly string[] = [],
): ConfigKey<T> => ({ schema, default: fallback, shown, doc, otherEnv });

export const plain = <T>(schema: z.ZodType<T>, value: T, doc: string, otherEnv: readonly string[] = []) =>
  key(schema, () => value, value === null ? '' : String(value), doc, otherEnv);
