/** Reads tables of environment variables of `task.toml`. */
import type { FieldReader } from '../fields/fields.ts';

/** Replaces values of the form `${VAR}` or `${VAR:-default}` by the variables that the caller passes to tasks. */
export function resolved(
  read: FieldReader,
  key: string,
  env: Record<string, string>,
  taskEnv: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const [, variable = '', fallback] = /^\$\{(\w+)(?::-([^}]*))?\}$/s.exec(value) ?? [];
      if (variable === '') return [name, value];
      const found = Object.hasOwn(taskEnv, variable) ? taskEnv[variable] : fallback;
      if (found === undefined)
        read.complain(
          `${key}.${name}`,
          `a value of ${variable}`,
          value,
          `give it with --task-env ${variable}`,
        );
      return [name, found ?? ''];
    }),
  );
}
