/** A thread that plays agents: each sends its whole history again with every turn, over one connection. */
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { parentPort, workerData } from 'node:worker_threads';
import type { Message } from '@swefarm/shared';

/** `first`: text of the first request. `result`: text after each answer. */
export type Conversation = { first: string; answers: readonly Message[]; result: string };

const { ports, conversation, key } = workerData as {
  ports: number[];
  conversation: Conversation;
  key: string;
};
const { first, answers, result } = conversation;
const tools = [
  { type: 'function', function: { name: 'bash', description: 'Runs.', parameters: { type: 'object' } } },
];

async function play(port: number, bodies: readonly Buffer[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (const body of bodies) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
    };
    const sent = request(
      { port, agent, method: 'POST', path: '/v1/chat/completions', headers },
      (response) => {
        text(response).then(
          (got) => (response.statusCode === 200 ? resolve() : reject(new Error(got))),
          reject,
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
    await promise;
  }
  agent.destroy();
}

function bodiesOf(): Buffer[] {
  const messages: Message[] = [
    { role: 'system', content: 'You fix code.' },
    { role: 'user', content: first },
  ];
  return answers.map((answer, turn) => {
    const body = Buffer.from(JSON.stringify({ model: 'bench', messages, tools }));
    messages.push(answer, { role: 'tool', tool_call_id: `call-${turn}`, content: result });
    return body;
  });
}

const bodies = bodiesOf();
parentPort?.once('message', () => {
  Promise.all(ports.map((port) => play(port, bodies))).then(
    () => parentPort?.postMessage('done'),
    (error: unknown) => {
      throw error;
    },
  );
});
