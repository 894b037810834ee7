/**
 * A proxy before a real vLLM that limits what the model may sample, by vLLM's structured outputs: to one text or one form. A random model
 * samples the wanted text in pieces that no tokenizer would choose, so a text that is tokenised again gets other ids.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What an answer may be: exactly a text, any text that fits a regular expression, or anything (null). */
export type Wanted = { text: string } | { form: string } | null;

/** An answer as the server sent it. `id`: of the request, as in the server's log. */
export type Answered = { id: string; ids: number[] };

export type Guide = AsyncDisposable & {
  /** Ends in /v1. */
  readonly url: string;
  /** `next` returns what each answer of the rollout may be. The returned list receives the answers. */
  follow(rolloutId: string, next: () => Wanted): readonly Answered[];
};

type Followed = { next: () => Wanted; answers: Answered[] };

export async function openGuide(vllm: string): Promise<Guide> {
  const rollouts = new Map<string, Followed>();
  const pass = async ({ method = 'GET', url = '/', headers }: IncomingMessage, given: string) => {
    const followed = url === '/v1/completions' && rollouts.get(String(headers['x-swefarm-rollout']));
    const body = followed ? limited(given, followed.next()) : given;
    const answer = await fetch(new URL(url, vllm), {
      method,
      headers: { 'content-type': 'application/json' },
      ...(method === 'POST' ? { body } : {}),
    });
    const sent = await answer.text();
    if (followed && answer.ok) followed.answers.push(answeredIn(sent));
    return { status: answer.status, type: answer.headers.get('content-type') ?? '', sent };
  };
  const server = createServer((request, response) => {
    text(request)
      .then((given) => pass(request, given))
      .then(({ status, type, sent }) => response.writeHead(status, { 'content-type': type }).end(sent))
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    follow(rolloutId, next) {
      const followed: Followed = { next, answers: [] };
      rollouts.set(rolloutId, followed);
      return followed.answers;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function limited(body: string, wanted: Wanted): string {
  if (wanted === null) return body;
  const structured_outputs = 'text' in wanted ? { choice: [wanted.text] } : { regex: wanted.form };
  return JSON.stringify({ ...JSON.parse(body), structured_outputs });
}

type Chunk = { id: string; choices: { token_ids: number[] | null }[] };

/** Reads an answer, whole or as a stream. */
function answeredIn(sent: string): Answered {
  const events = sent.startsWith('{')
    ? [sent]
    : sent
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => line.slice('data: '.length));
  const chunks = events.map((event) => JSON.parse(event) as Chunk);
  return {
    id: chunks[0]?.id ?? '',
    ids: chunks.flatMap(({ choices }) => choices.flatMap(({ token_ids: ids }) => ids ?? [])),
  };
}
