/** Gets the texts of token ids from the endpoint's /detokenize for failure messages. */
import type { EndpointClient } from '@swefarm/policy';
import { z } from 'zod';

const TIMEOUT_MS = 3_000;
const Detokenized = z.object({ prompt: z.string() });

/** Returns null when the endpoint provides no texts. */
export async function detokenize(
  client: EndpointClient,
  model: string,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<string[] | null> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const textOf = async (id: number): Promise<string> => {
    const answer = await client.postWhole('detokenize', [JSON.stringify({ model, tokens: [id] })], limited);
    return Detokenized.parse(JSON.parse(answer.toString('utf8'))).prompt;
  };
  try {
    return await Promise.all(ids.map(textOf));
  } catch {
    return null;
  }
}
