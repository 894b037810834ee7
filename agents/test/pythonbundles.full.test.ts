/** Builds the bundle of each shipped Python agent from its lock and lets the agent play a task against scripted answers. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { AgentCard } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { mountPath } from '../src/bundle.ts';
import { fillCard } from '../src/card/fillcard.ts';
import { shippedCardPath } from '../src/card/readcard.ts';
import { temporaryFolder } from '../src/install/folder.fixture.ts';
import { installCard } from '../src/install/install.ts';
import { runProgram } from '../src/install/run.ts';

const signal = new AbortController().signal;
const FIX = "sed -i 's/a - b/a + b/' calc.py";

type Answer = { text: string } | { tool: string; args: Record<string, unknown> };
const call = (tool: string, args: Record<string, unknown>): Answer => ({ tool, args });
const keys = (keystrokes: string, done: boolean): Answer => ({
  text: JSON.stringify({
    ...{ analysis: 'The sign is wrong.', plan: 'Fix it.', task_complete: done },
    commands: [{ keystrokes, duration: 1 }],
  }),
});

/** What the policy answers to each agent, request by request. */
const SCRIPTS: Record<string, Answer[]> = {
  'mini-swe-agent': [
    call('bash', { command: FIX }),
    call('bash', { command: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' }),
  ],
  openhands: [
    call('terminal', { command: FIX, summary: 'fix', security_risk: 'LOW' }),
    call('finish', { message: 'Fixed.', summary: 'end', security_risk: 'LOW' }),
  ],
  'terminus-2': [keys(`${FIX}\n`, false), keys('', true), keys('', true)],
};

async function scriptedServer(answers: readonly Answer[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void request.resume();
    const answer = answers[asked.length];
    asked.push(`${request.method} ${request.url}`);
    if (!answer) return void response.writeHead(403).end('{"error":{"message":"the rollout is over"}}');
    const message =
      'text' in answer
        ? { role: 'assistant', content: answer.text }
        : {
            ...{ role: 'assistant', content: null },
            tool_calls: [
              {
                ...{ id: `call_${asked.length}`, type: 'function' },
                function: { name: answer.tool, arguments: JSON.stringify(answer.args) },
              },
            ],
          };
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    const choices = [{ index: 0, message, finish_reason: 'text' in answer ? 'stop' : 'tool_calls' }];
    const body = { id: 'x', object: 'chat.completion', created: 1, model: 'policy', choices, usage };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, asked, [Symbol.dispose]: () => void server.close() };
}

/** A command in the system's own programs, beside the bundle. */
function inSandbox(bundle: string, mount: string, work: string, env: Record<string, string>, argv: string[]) {
  const system = ['/usr', '/bin', '/lib', '/lib64', '/etc'].flatMap((path) => ['--ro-bind', path, path]);
  const variables = Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]);
  const places = [
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--bind',
    work,
    '/work',
    '--chdir',
    '/work',
  ];
  const isolation = ['--unshare-pid', '--die-with-parent', '--new-session', '--clearenv'];
  const args = [...isolation, ...system, ...places, '--ro-bind', bundle, mount, ...variables, '--', ...argv];
  return runProgram('bwrap', args, { signal, timeoutMs: 300_000 });
}

/** Lists the shared libraries of a running interpreter after its import of an agent. */
const MAPS = (imports: string): string =>
  `${imports}\nimport re\nprint("\\n".join(sorted(set(re.findall(r"/\\S+\\.so\\S*", open("/proc/self/maps").read())))))`;

const libraries = async (card: AgentCard, folder: string): Promise<string[]> => {
  const mount = mountPath(card.bundle.name);
  const imports = 'import ssl, sqlite3, ctypes, lzma, litellm';
  const env = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LD_LIBRARY_PATH: '/usr/lib/x86_64-linux-gnu' };
  const argv = [`${mount}/bin/python3`, '-I', '-c', MAPS(imports)];
  const text = await inSandbox(folder, mount, temporaryFolder(), env, argv);
  return text
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('/'));
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(`the bundle of ${name} plays a task with no library of the system`, async ({ skip }) => {
    const online = await fetch('https://pypi.org/simple/pip/', { method: 'HEAD' }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (!online) skip('no package registry is reachable');
    const options = { source: null, again: false, signal, log: () => undefined };
    const { card, bundle } = await installCard(temporaryFolder(), shippedCardPath(name), options);
    const mount = mountPath(card.bundle.name);
    const loaded = await libraries(card, bundle.folder);
    expect(loaded.length).toBeGreaterThan(20);
    expect(loaded.filter((path) => !path.startsWith(`${mount}/`))).toEqual([]);

    using server = await scriptedServer(script);
    const work = temporaryFolder();
    writeFileSync(join(work, 'calc.py'), 'def add(a, b):\n    return a - b\n');
    mkdirSync(join(work, 'out'));
    const start = fillCard(
      card,
      {},
      {
        ...{ endpoint: server.url, key: 'key', model: 'policy', task: 'The function add is wrong. Fix it.' },
        ...{
          work: '/work',
          home: '/work/home',
          out: '/work/out',
          path: '/usr/bin:/bin',
          context: 65_536,
          turns: 9,
        },
      },
    );
    for (const { path, content } of start.files) {
      const target = join(work, path.replace('/work/', ''));
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    }
    await inSandbox(bundle.folder, mount, work, { PATH: '/usr/bin:/bin', ...start.env }, start.argv);
    expect(readFileSync(join(work, 'calc.py'), 'utf8')).toContain('a + b');
    expect(server.asked).toEqual(script.map(() => 'POST /v1/chat/completions'));
    const [rule] = start.ends;
    const written = JSON.parse(
      readFileSync(join(work, rule?.field?.file.replace('/work/', '') ?? ''), 'utf8'),
    );
    const value = rule?.field?.path.split('.').reduce((found, key) => found[key], written);
    expect(rule?.field?.is).toContain(value);
  });
}
