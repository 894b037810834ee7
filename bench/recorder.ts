/** Measures the CPU and the memory of the recording endpoint, beside a server that only parses the request and asks the policy. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import {
  createRecorderServer,
  openRecorder,
  type PolicyLine,
  type RecordedReply,
  type Recorder,
} from '@swefarm/recorder';
import { AgentCard, type Message } from '@swefarm/shared';
import { table } from './print.ts';
import type { Conversation } from './recorderclient.thread.ts';
import { median, rounded } from './statistics.ts';

export type RecorderSize = { agents: readonly number[]; turns: number; bodyBytes: number; reps: number };

type RecorderCell = {
  agents: number;
  /** Milliseconds of CPU of the main thread for a request. */
  ms_per_request: { endpoint: number; direct: number };
  of_direct: number;
  /** Bytes that a recorder keeps for a rollout after its last turn, without the token ids. */
  kept_bytes: number;
};
export type RecorderPart = Omit<RecorderSize, 'agents'> & { cells: RecorderCell[] };

const KEY = 'bench';
/** Bytes of JSON for one token of the prompts. */
const BYTES_PER_TOKEN = 4;
const RESULT = 'A line of what a command printed, with a "quoted" word.\n'.repeat(30);

export async function measureRecorder({ agents, ...size }: RecorderSize): Promise<RecorderPart> {
  const cells: RecorderCell[] = [];
  for (const count of agents) {
    const rounds: { endpoint: number; direct: number; kept: number }[] = [];
    // The first round only lets V8 compile hot code.
    for (let round = 0; round <= size.reps; round++) {
      const endpoint = await played(count, size, openEndpoint);
      const direct = await played(count, size, openDirect);
      rounds.push({ endpoint: endpoint.ms, direct: direct.ms, kept: endpoint.kept - direct.kept });
    }
    const counted = rounds.slice(1);
    const [endpoint, direct] = [
      median(counted.map((one) => one.endpoint)),
      median(counted.map((one) => one.direct)),
    ];
    cells.push({
      agents: count,
      ms_per_request: { endpoint: rounded(endpoint, 2), direct: rounded(direct, 2) },
      of_direct: rounded(endpoint / direct, 2),
      kept_bytes: Math.round(median(counted.map(({ kept }) => kept)) / count),
    });
  }
  return { ...size, cells };
}

export const printRecorder = ({ cells, bodyBytes }: RecorderPart): string =>
  table([
    ['agents', 'endpoint/direct', 'endpoint ms', 'direct ms', 'kept KiB'],
    ...cells.map(({ agents, of_direct: ratio, ms_per_request: { endpoint, direct }, kept_bytes: kept }) => [
      ...[agents, ratio, endpoint, direct, Math.round(kept / 1024)],
    ]),
  ]).concat(`\nmain thread, for a request of ${Math.round(bodyBytes / 1000)} kB`);

type Opened = AsyncDisposable & { server: Server };

async function played(
  agents: number,
  size: Omit<RecorderSize, 'agents'>,
  open: (conversation: Conversation) => Opened,
) {
  const conversation = conversationOf(size);
  await using stack = new AsyncDisposableStack();
  const ports: number[] = [];
  for (let index = 0; index < agents; index++) {
    const { server } = stack.use(open(conversation));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ports.push((server.address() as AddressInfo).port);
  }
  const heap = heapBytes();
  const client = new Worker(new URL('./recorderclient.thread.ts', import.meta.url), {
    workerData: { ports, conversation, key: KEY },
  });
  await once(client, 'online');
  const before = process.threadCpuUsage();
  client.postMessage('go');
  await once(client, 'message');
  const { user, system } = process.threadCpuUsage(before);
  await client.terminate();
  const ms = (user + system) / 1000 / (agents * size.turns);
  return { ms, kept: heapBytes() - heap };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Makes a conversation whose requests have about the wanted size in the middle. */
function conversationOf({ turns, bodyBytes }: Omit<RecorderSize, 'agents'>): Conversation {
  const grown = (turns * RESULT.length) / 2;
  const first = 'The task, and files of the repository.\n'.repeat(
    Math.max(1, Math.round((bodyBytes - grown) / 39)),
  );
  const answers = Array.from({ length: turns }, (_, turn): Message => {
    const called = { name: 'bash', arguments: JSON.stringify({ command: `sed -n ${turn}p file` }) };
    return {
      role: 'assistant',
      content: `I look at line ${turn}.`,
      tool_calls: [{ id: `call-${turn}`, type: 'function', function: called }],
    };
  });
  return { first, answers, result: RESULT };
}

/** Opens a line of a policy that has its answers ready. Its prompts have as many ids as real ones. */
function readyLine({ answers }: Conversation): PolicyLine {
  let prompt = new Int32Array(0);
  return {
    async complete({ messages }): Promise<RecordedReply> {
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const added = turn === 0 ? (messages[1]?.content ?? '') : RESULT;
      const longer = new Int32Array(
        prompt.length + Math.ceil(added.length / BYTES_PER_TOKEN) + GENERATION.length,
      );
      longer.set(prompt);
      const asked = longer.slice(0, -GENERATION.length);
      prompt = longer;
      return {
        message: answers[turn] as Message,
        finish_reason: 'tool_calls',
        usage: null,
        prompt_token_ids: asked,
        generation_token_ids: GENERATION,
        generation_log_probs: LOG_PROBS,
        seconds: 0,
        endpoint: 'bench',
        policy_version: { start: null, end: null },
        after: {},
      };
    },
  };
}
const GENERATION = new Int32Array(60);
const LOG_PROBS = new Float32Array(60);

function openEndpoint(conversation: Conversation): Opened {
  const recorder: Recorder = openRecorder({
    openLine: () => readyLine(conversation),
    policy: { requireTokens: true, experts: 'drop', tokenMode: 'token-in' },
    card: CARD,
    limits: { turns: 10_000, answerTokens: null, cost: null, malformedInARow: 3, wholePrompts: 10_000 },
    trainLines: 'all',
    key: KEY,
    trajectory: { ...EMPTY, messages: [], turns: [] },
    onTurn: () => undefined,
    signal: new AbortController().signal,
  });
  const server = createRecorderServer(recorder);
  return {
    server,
    [Symbol.asyncDispose]: async () =>
      await closed(server, async () => await recorder[Symbol.asyncDispose]()),
  };
}
const EMPTY = {
  format: 'swefarm-trajectory-1',
  token_mode: 'token-in',
  model: null,
  endpoint: null,
  exit_status: null,
} as const;
const CARD = AgentCard.parse({
  ...{ card: 1, name: 'bench', version: '1', description: 'A client of the benchmark.' },
  ...{ bundle: { name: 'bench' }, needs: { libc: 'none' }, api: { dialects: ['chat'] }, command: ['bench'] },
  ends: [{ exit: 'any', status: 'submitted' }],
});

function openDirect(conversation: Conversation): Opened {
  const line = readyLine(conversation);
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const { messages } = (await json(request)) as { messages: Message[] };
      const signal = AbortSignal.timeout(60_000);
      const reply = await line.complete({ messages, tools: [], maxTokens: null, seedTurn: 1, signal });
      response.end(JSON.stringify({ choices: [{ message: 'message' in reply ? reply.message : null }] }));
    };
    answer().catch(() => response.destroy());
  });
  return { server, [Symbol.asyncDispose]: async () => await closed(server, async () => undefined) };
}

async function closed(server: Server, before: () => Promise<void>): Promise<void> {
  await before();
  server.closeAllConnections();
  server.close();
}
