/** The command `swefarm-testkit`: servers that stand in for a model in tests, demo and benchmarks. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { errorMessage, SwefarmError } from '@swefarm/shared';
import { generateScript } from './policy/generate.ts';
import { startScriptedPolicy } from './policy/server.ts';

const USAGE = `swefarm-testkit policy --script FILE [options]      an OpenAI-compatible endpoint that follows a script
  --port N (0: a free one)  --host H (127.0.0.1)  --template plain|strips-thinking|FILE.jinja  --tokenizer FILE
  --tokens on|off  --context-limit N  --reasoning content|field  --api-key KEY  --seed N
  --delay-ms N | --delay-median-ms N --delay-sigma X  --ms-per-token X
  --engine JSON     answers take as long as on an engine with a KV cache, such as {"kv_tokens": 100000} (src/policy/engine.ts)
  --url-file FILE   the base URL is written there once the server answers (it is also the first line of stdout)
swefarm-testkit generate --turns N --tokens N [--variants N] [--output FILE]
  a script of long conversations: N turns that grow to so many tokens
`;

async function main(argv: string[]): Promise<void> {
  const [command, ...rest] = argv;
  if (command === 'policy') return policy(rest);
  if (command === 'generate') return generate(rest);
  process.stderr.write(USAGE);
  process.exitCode = command === undefined || command === '--help' || command === 'help' ? 0 : 2;
}

async function policy(args: string[]): Promise<void> {
  const values = optionsOf(args, [
    ...['script', 'port', 'host', 'template', 'tokenizer', 'tokens', 'reasoning', 'seed', 'api-key'],
    ...['context-limit', 'delay-ms', 'delay-median-ms', 'delay-sigma', 'ms-per-token', 'url-file', 'engine'],
  ]);
  if (values.script === undefined) throw new TypeError('policy needs --script FILE');
  const median = number(values['delay-median-ms'], 'delay-median-ms');
  const delay = {
    ...given('fixed_ms', number(values['delay-ms'], 'delay-ms')),
    ...given('ms_per_token', number(values['ms-per-token'], 'ms-per-token')),
    ...given(
      'log_normal',
      median === undefined
        ? undefined
        : { median_ms: median, sigma: number(values['delay-sigma'], 'delay-sigma') ?? 0.5, max_ms: 600_000 },
    ),
  };
  const server = await startScriptedPolicy({
    script: values.script,
    ...given('port', number(values.port, 'port')),
    ...given('host', values.host),
    ...given('template', values.template),
    ...given('tokenizer', values.tokenizer),
    ...given('tokens', oneOf(values.tokens, 'tokens', ['on', 'off']) && values.tokens === 'on'),
    ...given('reasoning', oneOf(values.reasoning, 'reasoning', ['content', 'field'] as const)),
    ...given('contextLimit', number(values['context-limit'], 'context-limit')),
    ...given('apiKey', values['api-key']),
    ...given('engine', values.engine === undefined ? undefined : JSON.parse(values.engine)),
    ...given('seed', number(values.seed, 'seed')),
    ...given('delay', Object.keys(delay).length > 0 ? delay : undefined),
  });
  if (values['url-file']) writeFileSync(values['url-file'], `${server.url}\n`);
  process.stdout.write(`${server.url}\n`);
  const stop = () => {
    void Promise.resolve(server[Symbol.asyncDispose]()).then(() => process.exit(0));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

async function generate(args: string[]): Promise<void> {
  const values = optionsOf(args, ['turns', 'tokens', 'variants', 'output']);
  const turns = number(values.turns, 'turns');
  const targetTokens = number(values.tokens, 'tokens');
  if (turns === undefined || targetTokens === undefined)
    throw new TypeError('generate needs --turns and --tokens');
  const script = generateScript({
    turns,
    targetTokens,
    ...given('variants', number(values.variants, 'variants')),
  });
  const json = `${JSON.stringify(script, null, 1)}\n`;
  if (values.output === undefined) process.stdout.write(json);
  else writeFileSync(values.output, json);
}

/** Each option has one value. */
function optionsOf<Name extends string>(
  args: string[],
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' } as const]));
  return parseArgs({ args, options }).values as Partial<Record<Name, string>>;
}

/** An object with the key, or an empty one: absent options must not be undefined. */
function given<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: V });
}

function number(value: string | undefined, name: string): number | undefined {
  if (value === undefined) return undefined;
  const read = Number(value);
  if (value.trim() === '' || !Number.isFinite(read))
    throw new TypeError(`--${name} ${value}: expected a number`);
  return read;
}

function oneOf<V extends string>(
  value: string | undefined,
  name: string,
  known: readonly V[],
): V | undefined {
  if (value === undefined) return undefined;
  const found = known.find((one) => one === value);
  if (found === undefined) throw new TypeError(`--${name} ${value}: expected ${known.join(' or ')}`);
  return found;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`swefarm-testkit: ${errorMessage(error)}\n`);
  process.exitCode =
    error instanceof TypeError || (error instanceof SwefarmError && !error.retryable) ? 2 : 12;
}
