/** Reads secrets from environment variables, and makes the environment of child processes. */
import { UsageError } from '../failures/errors.ts';
import { Secret } from '../security/secret.ts';
import type { Environment } from './keys.ts';

/** Returns the value of a variable that a flag names (`--api-key-env OPENAI_API_KEY`). Throws UsageError if it is not set. */
export function environmentSecret(variable: string, flag: string): Secret {
  const value = process.env[variable];
  if (value) return new Secret(value);
  throw new UsageError(`${flag} ${variable}: this environment variable is not set; export it first`);
}

/** Returns the values of the environment variables `names`, without the variables that are not set. */
export const environmentValues = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** Returns the whole environment with `added`, for a child worker that must read the same configuration. */
export const inheritedEnvironment = (added: Readonly<Record<string, string>>) => ({
  ...process.env,
  ...added,
});

/** Names of the variables that child processes receive. None is an API key; URLs of proxies and package indexes may contain passwords. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TERM|TMPDIR|XDG_[A-Z_]+|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|DOCKER_(HOST|CONFIG|CERT_PATH|TLS_VERIFY)|CONTAINER_HOST|SLURM[A-Z]*_[A-Z_]+|PIP_[A-Z_]+|npm_config_[a-z_]+|NPM_CONFIG_[A-Z_]+|PYTHON[A-Z]+|LD_LIBRARY_PATH)$/;

/** Returns the allowed variables of this process with `added`. */
export function childEnvironment(
  added: Readonly<Record<string, string>> = {},
  env: Environment = process.env,
): Record<string, string> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && PASSED.test(entry[0]),
  );
  return { ...Object.fromEntries(passed), ...added };
}
