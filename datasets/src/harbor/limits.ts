/** Reads the limits of a container from a table `environment` of `task.toml`. */
import type { HarborTask } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';
import { type Environment, mebibytes } from './tasktoml.ts';

const MIB = 1024 ** 2;

/** Returns the limits. Records a problem if the old and the new key of a size differ. @param key path of the table */
export function limitsOf(
  read: FieldReader,
  key: string,
  { cpus, memory_mb, storage_mb, memory, storage }: Environment,
): HarborTask['limits'] {
  const either = (name: string, number: number | undefined, text: string | undefined) => {
    const old = mebibytes(text);
    if (number !== undefined && old !== undefined && number !== old)
      read.complain(`${key}.${name}`, `the same size as ${name}_mb`, text, 'leave one of them out');
    const size = number ?? old;
    return size === undefined ? undefined : Math.round(size * MIB);
  };
  return {
    ...numbered('cpus', cpus),
    ...numbered('memory_bytes', either('memory', memory_mb, memory)),
    ...numbered('disk_bytes', either('storage', storage_mb, storage)),
  };
}

/** Returns an object with the key, or an empty object if there is no value. */
export const numbered = <K extends string>(key: K, value: number | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: number };
