/** Calls without any marker: whether an answer is one, only the model's template can say, by how it writes a call itself. */
import type { Post } from '../post.ts';
import type { Renderer } from '../renderer.ts';
import { alike, callsFor, closed } from '../standins.ts';
import { BARE, readBy } from './forms.ts';
import type { ToolParser } from './names.ts';

/** `auto` for templates whose calls have markers. Throws what the renderer throws. */
export async function bareForm(
  renderer: Renderer,
  tools: readonly object[],
  post: Post,
): Promise<ToolParser> {
  const [called] = callsFor([{ role: 'tool', content: '', tool_call_id: 'call00000' }], null);
  const [call, text] = await Promise.all([
    closed(renderer, called, tools, post),
    closed(renderer, { role: 'assistant', content: 'yes' }, tools, post),
  ]);
  const same = alike(call, text, (ids, place) => ids[place]);
  const written = await renderer.decode(call.subarray(same), post);
  const form = BARE.find((parser) => {
    const read = readBy(parser, written);
    return read !== null && 'calls' in read && read.calls[0]?.name === 'bash';
  });
  return form ?? 'auto';
}
