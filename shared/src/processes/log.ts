/** Logs with pino to standard error, because standard output contains results. Lines are JSON, or pretty on a terminal. */
import { createRequire } from 'node:module';
import { type Logger, pino } from 'pino';
import { maskSecrets } from '../security/secret.ts';

// The compiler (compile/pieces.mjs) removes exactly this line, so that esbuild includes the library in the bundle.
const require = createRequire(import.meta.url);

export type Log = Logger;

/**
 * Creates a log that masks values of secrets, passwords in URLs and bearer tokens in every line. Common fields: run_id, instance_id,
 * rollout_id, attempt, worker, node, stage.
 */
export function createLog(
  options: { readonly log_level: string; readonly log_format: 'auto' | 'json' | 'pretty' },
  bindings: Record<string, unknown> = {},
  sink: { write(line: string): unknown } = process.stderr,
): Log {
  const terminal = sink === process.stderr && process.stderr.isTTY === true;
  const pretty = options.log_format === 'pretty' || (options.log_format === 'auto' && terminal);
  const prettify = pretty ? prettyLines(terminal) : null;
  const destination = {
    write: (line: string) => void sink.write(maskSecrets(prettify ? prettify(harmless(line)) : line)),
  };
  return pino(
    {
      level: options.log_level,
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: pino.stdSerializers.errWithCause, error: pino.stdSerializers.errWithCause },
    },
    destination,
  );
}

/** Returns a function that renders a JSON line for people. The library is loaded only for pretty logs. */
function prettyLines(colorize: boolean): (line: string) => string {
  const { prettyFactory } = require('pino-pretty') as typeof import('pino-pretty');
  return prettyFactory({ colorize, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' });
}

export const silentLog = (): Log => pino({ level: 'silent' });

/** Replaces the control characters of a JSON line, because a terminal would interpret them. */
const harmless = (line: string): string =>
  line.replace(/\\u00(0[0-8bcef]|1[0-9a-f])/g, '\\ufffd').replace(/[\x7f-\x9f]/g, '\ufffd');
