/** What the command line needs of the environment beyond configuration keys: a key by the name of its variable, and what our own processes inherit. */
import { UsageError } from '../failures/errors.ts';
import { Secret } from '../security/secret.ts';
import type { Environment } from './keys.ts';

/** The value of a variable that a flag names (`--api-key-env OPENAI_API_KEY`). Throws UsageError when it is not set. */
export function environmentSecret(variable: string, flag: string, env: Environment = process.env): Secret {
  const value = env[variable];
  if (value) return new Secret(value);
  throw new UsageError(`${flag} ${variable}: this environment variable is not set; export it first`);
}

/** For a worker that we start ourselves: everything we were given, so that it reads the same configuration, and `added`. */
export function inheritedEnvironment(
  added: Readonly<Record<string, string>>,
  env: Environment = process.env,
): Record<string, string | undefined> {
  return { ...env, ...added };
}
