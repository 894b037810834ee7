/** A caller of the gateway that behaves as Gym's client: it retries until it has an answer, and stores only the rollout's id. */
import { type Agent, request } from 'node:http';
import { sleep } from '@swefarm/shared';

const GROUP = 16;

export type Target = { agent: Agent; port: number; token: string };

export const rowOf = (index: number): string =>
  JSON.stringify({
    responses_create_params: { input: [], temperature: 1 },
    agent_ref: { name: 'swe_farm' },
    instance_id: `bench__calc-${Math.floor(index / GROUP)}`,
    repo: 'bench/calc',
    base_commit: 'c0',
    problem_statement: 'It breaks. '.repeat(500),
    image: 'x:1',
    FAIL_TO_PASS: ['t'],
    PASS_TO_PASS: [],
    policy_base_url: 'http://127.0.0.1:9/v1',
    policy_model_name: 'm',
    // As in NeMo RL, only this field distinguishes siblings.
    _rowidx: index,
  });

/** As Gym's client does, retries half a second after any failure before the headers. Reads the answer and returns only its id. */
export async function insist(
  target: Target,
  body: string,
  counted: { posts: number; bytes: number },
  cut: AbortSignal | null,
): Promise<string> {
  for (let first = true; ; first = false) {
    counted.posts += 1;
    try {
      return await ask(target, body, counted, first ? cut : null);
    } catch (error) {
      if (error instanceof Refused) throw error;
      await sleep(500);
    }
  }
}

class Refused extends Error {}

function ask(
  { agent, port, token }: Target,
  body: string,
  counted: { bytes: number },
  cut: AbortSignal | null,
): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        path: '/run',
        method: 'POST',
        headers,
        ...(cut ? { signal: cut } : {}),
      },
      (reply) => {
        let tail = '';
        reply.setEncoding('latin1');
        reply.on('data', (text: string) => {
          counted.bytes += text.length;
          tail = (tail + text).slice(-4096);
        });
        reply.on('error', reject);
        reply.on('end', () => {
          const id = /"rollout_id":"([^"]+)"/.exec(tail)?.[1];
          if (reply.statusCode === 200 && id) resolve(id);
          else reject(new Refused(`${reply.statusCode}: ${tail.slice(0, 300)}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
