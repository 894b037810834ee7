/** The declaration of one configuration key: schema, default, and its row in the table of keys. */
import { z } from 'zod';
import * as form from './schema.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type ConfigKey<T> = {
  schema: z.ZodType<T>;
  /** Returns the default, which the docs show as `shown`. `soFar`: values of the keys declared before this one. */
  default: (env: Environment, soFar: Readonly<Record<string, unknown>>) => T;
  shown: string;
  doc: string;
  /** Variables of other programs, read if the SWEFARM_ variable is not set. */
  otherEnv: readonly string[];
};

export const key = <T>(
  schema: z.ZodType<T>,
  fallback: ConfigKey<T>['default'],
  shown: string,
  doc: string,
  ...otherEnv: string[]
): ConfigKey<T> => ({ schema, default: fallback, shown, doc, otherEnv });

export const plain = <T>(schema: z.ZodType<T>, value: T, doc: string, ...otherEnv: string[]) =>
  key(schema, () => value, value === null ? '' : String(value), doc, ...otherEnv);

/** Declares a key whose default is null. */
export const optional = <T>(schema: z.ZodType<T>, doc: string, ...otherEnv: string[]) =>
  plain<T | null>(schema, null, doc, ...otherEnv);

/** Declares a key whose value is `auto` by default. */
export const automatic = <T>(schema: z.ZodType<T>, doc: string) =>
  plain<T | 'auto'>(z.union([z.literal('auto'), schema]), 'auto', doc);

/** Declares a number of bytes. @param value default with a unit */
export const size = (value: string, doc: string) =>
  key(form.bytes, () => form.bytes.parse(value), value, doc);

/** Declares a list that is empty by default. */
export const list = (doc: string, schema: z.ZodType<string[]> = form.list) => key(schema, () => [], '', doc);

/** Declares a positive number of seconds. */
export const seconds = (value: number, doc: string) => plain(form.positiveSeconds, value, doc);

/** Declares a positive integer. */
export const count = (value: number, doc: string) => plain(form.positiveInteger, value, doc);
