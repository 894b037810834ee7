/** JSON Schemas of our files, read by the YAML language server that editors use. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from './cli.ts';

type Message = { id?: number; method?: string; params?: unknown; result?: unknown };
type Diagnostics = { uri: string; diagnostics: { message: string; range: { start: { line: number } } }[] };

/** A client of the language server protocol over standard input and output. */
function startServer() {
  const bin = createRequire(import.meta.url).resolve('yaml-language-server/bin/yaml-language-server');
  const server = spawn(process.execPath, [bin, '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const messages: Message[] = [];
  let rest = Buffer.alloc(0);
  const send = (message: object): void => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
    server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    server.stdin.write(body);
  };
  server.stdout.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const [head = '', length = ''] =
        /^Content-Length: (\d+)\r\n(?:.+\r\n)*\r\n/.exec(rest.toString('latin1')) ?? [];
      const end = head.length + Number(length);
      if (head === '' || rest.length < end) return;
      const message = JSON.parse(rest.subarray(head.length, end).toString()) as Message;
      rest = rest.subarray(end);
      messages.push(message);
      if (!message.method) answers.get(message.id ?? 0)?.(message.result);
      // The server asks for the settings of the editor.
      if (message.id !== undefined && message.method) send({ id: message.id, result: [] });
    }
  });
  let asked = 0;
  const answers = new Map<number, (result: unknown) => void>();
  return {
    stop: () => server.kill(),
    notify: (method: string, params: object) => send({ method, params }),
    ask(method: string, params: object): Promise<unknown> {
      const id = ++asked;
      send({ id, method, params });
      return new Promise((resolve) => answers.set(id, resolve));
    },
    async diagnosticsOf(uri: string): Promise<string[]> {
      const found = () =>
        messages.findLast(
          ({ method, params }) =>
            method === 'textDocument/publishDiagnostics' && (params as Diagnostics).uri === uri,
        )?.params as Diagnostics | undefined;
      await expect.poll(found).toBeDefined();
      return found()?.diagnostics.map(({ message, range }) => `${range.start.line + 1}: ${message}`) ?? [];
    },
  };
}

const NAMES = ['config', 'run', 'card', 'prices'];
let folder: string;
let server: ReturnType<typeof startServer>;

beforeAll(async () => {
  folder = temporaryFolder('schema-');
  for (const name of NAMES)
    await writeFile(join(folder, `${name}.schema.json`), (await run(['schema', name])).stdout);
  server = startServer();
  const settings = { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities: {} };
  await server.ask('initialize', settings);
  server.notify('initialized', {});
});
afterAll(() => server.stop());

/** Opens a file whose first line names the schema. Returns its address. */
function open(name: string, schema: string, text: string): string {
  const uri = pathToFileURL(join(folder, name)).href;
  const document = {
    ...{ uri, languageId: 'yaml', version: 1 },
    text: `# yaml-language-server: $schema=${schema}.schema.json\n${text}`,
  };
  server.notify('textDocument/didOpen', { textDocument: document });
  return uri;
}

const RIGHT = {
  config: 'redis_url: redis://farm:6379\nconcurrency: 16\nmax_memory_bytes: 8G\npolicy_api_key_origins: []\n',
  run: 'group_size: 4\nagent:\n  type: codex\n  step_limit: 50\npolicy:\n  urls: [http://localhost:8000/v1]\n  model: m\n  sampling: {temperature: 0.5}\n',
  'nulls-of-run': 'group_size:\nagent:\nuntil:\npolicy:\ndeadline_at: 2h\n',
  prices: 'my-model: {prompt: 0.15, completion: 0.6}\n',
};

test.each(Object.entries(RIGHT))('the language server accepts a correct file: %s', async (name, text) => {
  const schema = name.split('-').at(-1) ?? name;
  expect(await server.diagnosticsOf(open(`${name}.yaml`, schema, text))).toEqual([]);
});

test.each([
  ['config', 'redis_ulr: redis://farm:6379\n', '2: Property redis_ulr is not allowed.'],
  ['config', 'log_level: loud\n', expect.stringContaining('2: Value is not accepted. Valid values: "trace"')],
  ['run', 'agent:\n  step_limits: 50\n', '3: Property step_limits is not allowed.'],
  ['run', 'agent:\n  step_limit: many\n', expect.stringContaining('3: Incorrect type.')],
  ['run', 'kind: session\n', expect.stringContaining('Value is not accepted')],
  ['card', 'nmae: mine\n', expect.stringContaining('is not allowed')],
  ['prices', 'my-model: {prompt: 0.15}\n', expect.stringContaining('Missing property "completion"')],
])('the language server marks a mistake in a file: %s %j', async (name, text, message) => {
  const found = await server.diagnosticsOf(open(`wrong-${name}-${text.length}.yaml`, name, text));
  expect(found).toEqual(expect.arrayContaining([message]));
});

test('the language server completes keys with their meaning', async () => {
  const uri = open('complete.yaml', 'run', 'agent:\n  step_\n');
  const at = { textDocument: { uri }, position: { line: 2, character: 7 } };
  const { items } = (await server.ask('textDocument/completion', at)) as {
    items: { label: string; documentation: unknown }[];
  };
  expect(items.map(({ label }) => label)).toEqual(expect.arrayContaining(['step_limit', 'step_timeout']));
  expect(JSON.stringify(items)).toContain('turns');
});

test('files with the key $schema are read, and a wrong key is still refused', async () => {
  const path = join(folder, 'keyed.json');
  const words = ['doctor', '--config', path, '--redis-url', 'redis://127.0.0.1:1'];
  await writeFile(path, JSON.stringify({ $schema: './config.schema.json', log_level: 'warn' }));
  expect((await run(words)).code).toBe(12);
  await writeFile(path, JSON.stringify({ $schema: './config.schema.json', log_levle: 'warn' }));
  expect(await run(words)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('did you mean "log_level"?'),
  });
});
