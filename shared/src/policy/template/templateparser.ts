/** Calls without any marker: whether an answer is one, only the model's template can say, by how it writes a call itself. */

import type { ToolParser } from '../../records/toolparsers.ts';
import type { Post } from '../endpoint/post.ts';
import { parseWith, UNMARKED } from '../toolcalls/registry.ts';
import { alike, callPair, renderClosed } from './placeholders.ts';
import type { Renderer } from './renderer.ts';

/** `auto` for templates whose calls have markers. Throws what the renderer throws. */
export async function templateParser(
  renderer: Renderer,
  tools: readonly object[],
  post: Post,
): Promise<ToolParser> {
  const [called] = callPair([{ role: 'tool', content: '', tool_call_id: 'call00000' }], null);
  const [call, text] = await Promise.all([
    renderClosed(renderer, called, tools, post),
    renderClosed(renderer, { role: 'assistant', content: 'yes' }, tools, post),
  ]);
  const same = alike(call, text, (ids, place) => ids[place]);
  const written = await renderer.decode(call.subarray(same), post);
  const form = UNMARKED.find((parser) => {
    const read = parseWith(parser, written);
    return read !== null && 'calls' in read && read.calls[0]?.name === 'bash';
  });
  return form ?? 'auto';
}
